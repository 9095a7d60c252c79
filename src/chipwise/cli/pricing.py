"""The pools that verbs of routing work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from chipwise.route.load import Pools


def read_pools(path: Path) -> Pools:
    """The pools of a file, priced by the list with the files of CHIPWISE_PRICES over it."""
    from chipwise.errors import BrokenFile
    from chipwise.knowledge import price_book
    from chipwise.route.load import load_pools

    try:
        return load_pools(path, price_book())
    except BrokenFile as error:
        if error.field != "file":
            raise
        raise BrokenFile("--pools", error.value, error.accepted) from None

"""The prices that a verb works with: the list, under the user's own files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from chipwise.prices import PriceBook
    from chipwise.route.load import Pools

FILES = "CHIPWISE_PRICES"
RATES = "CHIPWISE_FX"


def book_of(prices: Sequence[str] | None, fx: Sequence[str] | None = None, today: date | None = None) -> PriceBook:
    """The list prices with the files of CHIPWISE_PRICES laid over them, then those of `--prices`, each over the last.

    Rates of other currencies come from CHIPWISE_FX (split by commas) and, before it, from `--fx`.
    """
    import os
    from pathlib import Path

    from chipwise.prices import laid_over, listed, read_own

    named = [each for each in os.environ.get(FILES, "").split(os.pathsep) if each.strip()]
    rates = rates_of(fx)
    book = listed()
    for file in [*named, *(prices or ())]:
        book = laid_over(book, read_own(Path(file), rates, today))
    return book


def read_pools(path: Path) -> Pools:
    """The pools of a file, priced by the list with the files of CHIPWISE_PRICES over it."""
    from chipwise.errors import BrokenFile
    from chipwise.route.load import load_pools

    try:
        return load_pools(path, book_of(None))
    except BrokenFile as error:
        if error.field != "file":
            raise
        raise BrokenFile("--pools", error.value, error.accepted) from None


def rates_of(fx: Sequence[str] | None) -> dict[str, float]:
    """US dollars for one unit of each currency that CHIPWISE_FX or `--fx` names."""
    import os

    from chipwise.prices import read_rates

    said = [each for each in os.environ.get(RATES, "").split(",") if each.strip()]
    return {**read_rates(said, RATES), **read_rates(fx)}


def day_of(text: str, field: str) -> str:
    """A date as YYYY-MM-DD, not after today.

    >>> day_of("2026-08-22", "--date")
    '2026-08-22'
    """
    from chipwise.errors import InputError

    accepted = "a date such as 2026-08-22, not after today"
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise InputError(field, text, accepted) from None
    if found > date.today():
        raise InputError(field, text, accepted)
    return found.isoformat()

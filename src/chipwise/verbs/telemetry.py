"""Verbs of what exporters and agents have said: what is sick."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.observe.nodes.view import NodeHealth


def node_health(
    store: str = "",
    *,
    since: str | float = "1h",
    pools: str | Path | None = None,
    ledger: str = "",
    drain: bool = False,
) -> NodeHealth:
    """Say which nodes are sick by what their exporters and agents said `since`, and why.

    With `pools` (a file) their nodes are told by the pools that have them; `drain` lets routers of the ledger start
    nothing on those that are sick.

    >>> node_health("nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: store: 'nowhere.db' is not accepted; expected a store; ...
    """
    from chipwise.errors import NOTHING, InputError
    from chipwise.observe.nodes.look import look_at_nodes
    from chipwise.route.load import read_pools
    from chipwise.verbs.arguments import seconds_of

    if drain and pools is None:
        raise InputError("pools", NOTHING, "a pools file beside drain, or CHIPWISE_POOLS naming one")
    seconds = seconds_of(since, "since")
    return look_at_nodes(store, seconds, None if pools is None else read_pools(Path(pools)), ledger, drain)

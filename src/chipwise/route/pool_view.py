"""Pools as every face shows them: what there is to run on, what is free, and which pools take no more jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.errors import ChipwiseError, InputError
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.backend import Capacity
from chipwise.route.backends.named import backend_name, backends_of
from chipwise.route.ledger import LedgerError, LedgerView, open_view
from chipwise.route.ledger.records import BackendRow, NodeRow
from chipwise.route.ledger.remote import RemoteLedger
from chipwise.route.load import Pools
from chipwise.route.pool import Pool
from chipwise.route.pool_nodes import check_names, check_nodes
from chipwise.route.router.health import Guarded


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """A pool and how it stands."""

    pool: Pool
    held: int  # chips of attempts under way
    capacity: Capacity | None  # as its backend says
    error: str  # why the backend says nothing
    backend: BackendRow | None  # as routers have found it
    drained: str | None  # the reason
    nodes: tuple[NodeRow, ...] = ()  # that are drained

    @property
    def answers(self) -> bool | None:
        """Whether its backend answers; None: it was not asked."""
        return None if self.capacity is None and not self.error else not self.error

    @property
    def trouble(self) -> str:
        """What is wrong with its backend, as it says or as routers have found it."""
        return self.error or (self.backend.error if self.backend is not None and not self.backend.ok else "")

    @property
    def free(self) -> str:
        """The chips that are free, in words."""
        capacity = self.capacity
        if capacity is None:
            return "-"
        return f"{capacity.free} of {capacity.total}" + (f", {capacity.down} down" if capacity.down else "")

    @property
    def state(self) -> str:
        """Whether jobs can start there, in words."""
        if self.drained is not None:
            return f"drained: {safe(self.drained)}"
        if self.error:
            return "does not answer"
        if self.backend is not None and not self.backend.ok:
            return f"down for routers, {self.backend.failures} tries"
        return "ready"


POOL_COLUMNS: tuple[Column[PoolStatus], ...] = (
    Column("name", lambda s: s.pool.name, "pool", words=True),
    Column("backend", lambda s: s.pool.backend, "backend", words=True, drop=3),
    Column("chip", lambda s: s.pool.chip, "chip", words=True),
    Column("family", lambda s: s.pool.family),
    Column("count", lambda s: s.pool.count, "chips"),
    Column("unit", lambda s: s.pool.unit),
    Column("shapes", lambda s: [shape for _, shape in s.pool.shapes], nested=True),
    Column("free", lambda s: s.capacity and s.capacity.free, "free", lambda s: s.free, words=True),
    Column("working", lambda s: s.capacity and s.capacity.total),
    Column("down", lambda s: s.capacity and s.capacity.down),
    Column("held", lambda s: s.held, "held by jobs", drop=2),
    Column(
        "usd_per_chip_hour",
        lambda s: s.pool.usd_per_chip_hour,
        "$/chip-hour",
        lambda s: f"{s.pool.usd_per_chip_hour:.2f}",
        drop=4,
    ),
    Column("terms", lambda s: s.pool.terms, "terms", words=True, drop=5),
    Column("price_source", lambda s: s.pool.price_source),
    Column("region", lambda s: s.pool.region, "region", lambda s: s.pool.region or "-", words=True, drop=1),
    Column("watts_cap", lambda s: s.pool.power_cap),
    Column("max_seconds", lambda s: s.pool.max_seconds),
    Column("answers", lambda s: s.answers),
    Column("error", lambda s: s.trouble),
    Column("drained", lambda s: s.drained is not None, "state", lambda s: s.state, words=True),
    Column("reason", lambda s: s.drained or "", help="why it is drained"),
    Column(
        "drained_nodes",
        lambda s: [{"node": row.node, "reason": row.reason, "since": row.since} for row in s.nodes],
        nested=True,
    ),
)


@dataclass(frozen=True, slots=True, repr=False)
class PoolList(Result):
    """The pools of a file."""

    VERB: ClassVar[str] = "pools"
    ledger: str  # empty: there is none yet
    pools: tuple[PoolStatus, ...]
    assumptions: tuple[str, ...]
    backends_asked: bool = True  # whether the backends were asked for their capacity

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "ledger": self.ledger or None,
            "pools": [record(POOL_COLUMNS, status) for status in self.pools],
            "assumptions": self.assumptions,
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a pool."""
        return [flat(POOL_COLUMNS, status) for status in self.pools]

    def blocks(self) -> list[Block]:
        """For people."""
        errors = dict.fromkeys(f"{s.pool.backend}: {s.error}" for s in self.pools if s.error)
        ledger = f"ledger {safe(self.ledger)}" if self.ledger else "no ledger yet: nothing is drained, no job has run"
        return [
            Text(ledger),
            table(POOL_COLUMNS, self.pools),
            *([] if self.backends_asked else [Text("The backends were not asked for their free capacity.")]),
            *(Text(f"does not answer: {safe(line)}") for line in errors),
            *(
                Text(f"node {safe(row.node)} of {safe(row.pool)} is drained: {safe(row.reason)}")
                for status in self.pools
                for row in status.nodes
            ),
            *(Text(f"assumed: {safe(line)}") for line in self.assumptions),
        ]


def list_pools(pools: Pools, ledger: str = "", ask: bool = True) -> PoolList:
    """The pools of a file with their state in a ledger and, unless told not to `ask`, their backends' capacity."""
    try:
        book = open_view(ledger, create=False)
    except LedgerError as error:
        if not error.missing:
            raise
        return PoolList("", _statuses(pools, None, ask), pools.assumptions, ask)
    with book:
        return PoolList(book.where, _statuses(pools, book, ask), pools.assumptions, ask)


def drain_pool(pools: Pools, name: str, reason: str, ledger: str = "", nodes: Sequence[str] = ()) -> PoolList:
    """Let no job start in a pool from now on, or on some of its nodes."""
    if not reason.strip():
        raise InputError("reason", reason, "why, in a few words")
    return _change(pools, name, True, reason, ledger, nodes)


def resume_pool(pools: Pools, name: str, ledger: str = "", nodes: Sequence[str] = ()) -> PoolList:
    """Let jobs start in a pool again, or on some of its nodes."""
    return _change(pools, name, False, "", ledger, nodes)


def _change(pools: Pools, name: str, drained: bool, reason: str, ledger: str, nodes: Sequence[str]) -> PoolList:
    pool, names = pools.pool(name), check_names(list(nodes)) if nodes else []
    if names and drained:
        _check_there(pools, pool, names, ledger)
    with open_view(ledger) as book:
        if names:
            book.drain_nodes(name, names, drained, reason, time.time())
        else:
            book.drain(name, drained, reason, time.time())
    return list_pools(pools, ledger, ask=False)


def _check_there(pools: Pools, pool: Pool, names: Sequence[str], ledger: str) -> None:
    """See that the nodes are there, before a ledger is made to keep them in."""
    try:
        with open_view(ledger, create=False) as book:
            if isinstance(book, RemoteLedger):
                return  # it asks where its backends are
            uid = book.uid
    except LedgerError as error:
        if not error.missing:
            raise
        uid = ""
    check_nodes(pools, pool, names, uid)


def _statuses(pools: Pools, book: LedgerView | None, ask: bool) -> tuple[PoolStatus, ...]:
    held: Mapping[str, float] = {} if book is None else book.totals()["chips"]
    backends = {} if book is None else {row.name: row for row in book.backends()}
    drained, nodes = ({}, []) if book is None else (book.drained(), book.nodes())
    capacities, errors = _capacities(pools, "none" if book is None else book.uid or "none") if ask else ({}, {})
    return tuple(
        PoolStatus(
            pool,
            int(held.get(pool.name, 0)),
            capacities.get(pool.name),
            errors.get(backend_name(pool), ""),
            backends.get(backend_name(pool)),
            drained.get(pool.name),
            tuple(row for row in nodes if row.pool == pool.name and row.drained),
        )
        for pool in pools.pools
    )


def _capacities(pools: Pools, uid: str) -> tuple[dict[str, Capacity], dict[str, str]]:
    """Chips by pool, and why backends say nothing."""
    by_backend: dict[str, list[Pool]] = {}
    for pool in pools.pools:
        by_backend.setdefault(backend_name(pool), []).append(pool)
    capacities: dict[str, Capacity] = {}
    errors: dict[str, str] = {}
    for name, theirs in by_backend.items():
        try:
            folders = {name: pools.folder_of(theirs[0].backend) / uid}
            capacities |= Guarded(name, backends_of(theirs, folders, uid)[name]).capacity(theirs)
        except ChipwiseError as error:
            errors[name] = str(error)
    return capacities, errors

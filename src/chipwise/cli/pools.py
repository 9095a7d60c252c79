"""chipwise pools: what there is to run on, whether it has room, and which pools take no more jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.cli.router import LedgerOpt, complete_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.present.blocks import Block
    from chipwise.route.backend import Capacity
    from chipwise.route.ledger import Ledger
    from chipwise.route.ledger.records import BackendRow
    from chipwise.route.load import Pools
    from chipwise.route.pool import Pool

EXAMPLES = """\b
Examples:
  chipwise pools --pools examples/pools/local.yaml
  chipwise pools drain v5e --reason "new drivers on Friday" --pools examples/pools/local.yaml
  chipwise pools resume v5e --pools examples/pools/local.yaml
"""
DRAIN_EXAMPLES = """\b
Examples:
  chipwise pools drain v5e --reason "new drivers on Friday" --pools examples/pools/local.yaml
  chipwise pools resume v5e --pools examples/pools/local.yaml
"""

app = typer.Typer(
    name="pools",
    help="List pools with their room, and drain them.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


def complete_pools(context: typer.Context, incomplete: str) -> list[str]:
    """Pools of the file that begin with what was typed."""
    import os

    from chipwise.errors import ChipwiseError
    from chipwise.route.load import load_pools

    file = context.params.get("pools") or os.environ.get("CHIPWISE_POOLS")
    try:
        return [p.name for p in load_pools(file).pools if p.name.startswith(incomplete)] if file else []
    except ChipwiseError:
        return []


PoolsOpt = Annotated[
    Path | None,
    typer.Option(
        "--pools",
        metavar="FILE",
        envvar="CHIPWISE_POOLS",
        show_envvar=False,
        show_default=False,
        help="The pools file (YAML; CHIPWISE_POOLS).",
        autocompletion=complete_yaml,
    ),
]
PoolName = Annotated[
    str, typer.Argument(metavar="NAME", help="A pool of the file.", autocompletion=complete_pools, show_default=False)
]


@dataclass(frozen=True, slots=True)
class Stand:
    """A pool and how it stands."""

    pool: Pool
    held: int  # chips of attempts under way
    room: Capacity | None  # as its backend says
    error: str  # why the backend says nothing
    backend: BackendRow | None  # as routers have found it
    drained: str | None  # the reason


@app.callback(invoke_without_command=True)
def pools(
    context: typer.Context,
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="Ask the backends for their room.")] = True,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List the pools of a file: chip, room where the backend answers, price, terms, whether they are drained."""
    if context.invoked_subcommand is not None:
        return
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress

    formats(output, "table", "json", "csv")
    read = _read(pools)
    with progress("pools") as line:
        line.say("pools: asking the backends")
        where, found = stands(read, ledger, ask)
    if output == "json":
        emit_json(_record(where, found, read.said), out)
    elif output == "csv":
        emit_csv([{k: v for k, v in _pool_record(s).items() if k != "shapes"} for s in found], out)
    else:
        emit(_blocks(where, found, read.said, ask), out)


@app.command("drain", epilog=DRAIN_EXAMPLES)
def drain(
    name: PoolName,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, for `jobs explain`.", show_default=False)
    ],
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Let no job start in a pool from now on; what runs there goes on."""
    _set(name, True, reason, pools, ledger, output, out)


@app.command("resume", epilog=DRAIN_EXAMPLES)
def resume(
    name: PoolName, pools: PoolsOpt = None, ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None
) -> None:
    """Let jobs start in a pool again."""
    _set(name, False, "", pools, ledger, output, out)


def stands(read: Pools, ledger: str, ask: bool) -> tuple[str, list[Stand]]:
    """How the pools stand; the ledger's name, empty where there is none yet."""
    from chipwise.route.ledger import LedgerError, open_ledger

    try:
        book = open_ledger(ledger, create=False)
    except LedgerError as error:
        if not error.missing:
            raise
        return "", _stands(read, None, ask)
    with book:
        return book.where, _stands(read, book, ask)


def _stands(read: Pools, book: Ledger | None, ask: bool) -> list[Stand]:
    from chipwise.route.backends.named import backend_name

    held = {} if book is None else book.totals()["chips"]
    known = {} if book is None else {row.name: row for row in book.backends()}
    drained = {} if book is None else book.drained()
    rooms, errors = _rooms(read, "none" if book is None else book.uid) if ask else ({}, {})
    return [
        Stand(
            p,
            int(held.get(p.name, 0)),
            rooms.get(p.name),
            errors.get(backend_name(p), ""),
            known.get(backend_name(p)),
            drained.get(p.name),
        )
        for p in read.pools
    ]


def _rooms(read: Pools, uid: str) -> tuple[dict[str, Capacity], dict[str, str]]:
    """Chips by pool, and why backends say nothing."""
    from chipwise.errors import ChipwiseError
    from chipwise.route.backends.named import backend_name, backends_of
    from chipwise.route.router.health import Guarded

    by_backend: dict[str, list[Pool]] = {}
    for pool in read.pools:
        by_backend.setdefault(backend_name(pool), []).append(pool)
    rooms: dict[str, Capacity] = {}
    errors: dict[str, str] = {}
    for name, theirs in by_backend.items():
        try:
            folders = {name: read.folder_of(theirs[0].backend) / uid}
            rooms |= Guarded(name, backends_of(theirs, folders, uid)[name]).capacity(theirs)
        except ChipwiseError as error:
            errors[name] = str(error)
    return rooms, errors


def _read(pools: Path | None) -> Pools:
    from chipwise.errors import InputError
    from chipwise.route.load import read_pools

    if pools is None:
        raise InputError("--pools", "nothing", "a pools file, or CHIPWISE_POOLS naming one")
    return read_pools(pools)


def _set(name: str, on: bool, reason: str, pools: Path | None, ledger: str, output: str, out: Path | None) -> None:
    import time

    from chipwise.errors import InputError
    from chipwise.io.atomic import check_writable
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.route.ledger import open_ledger

    formats(output, "table", "json")
    read = _read(pools)
    read.pool(name)
    if on and not reason.strip():
        raise InputError("--reason", reason, "why, in a few words")
    check_writable(out)
    with open_ledger(ledger) as book:
        book.drain(name, on, reason, time.time())
    where, found = stands(read, ledger, ask=False)
    if output == "json":
        emit_json(_record(where, found, read.said), out)
    else:
        emit(_blocks(where, found, (), asked=False), out)


def _blocks(where: str, found: Sequence[Stand], said: Sequence[str], asked: bool) -> list[Block]:
    from chipwise.present.blocks import Table, Text
    from chipwise.present.safe import safe

    rows = []
    for s in found:
        p, room = s.pool, s.room
        free = "-" if room is None else f"{room.free} of {room.total}" + (f", {room.down} down" if room.down else "")
        state = f"drained: {safe(s.drained)}" if s.drained is not None else _health(s)
        rows.append(
            [
                p.name,
                p.backend,
                p.chip,
                str(p.count),
                free,
                str(s.held),
                f"{p.usd_per_chip_hour:.2f}",
                p.terms,
                p.region or "-",
                state,
            ]
        )
    errors = dict.fromkeys(f"{s.pool.backend}: {s.error}" for s in found if s.error)
    return [
        Text(f"ledger {safe(where)}" if where else "no ledger yet: nothing is drained, no job has run"),
        Table(
            ["pool", "backend", "chip", "chips", "free", "held by jobs", "$/chip-hour", "terms", "region", "state"],
            rows,
            frozenset({"pool", "backend", "chip", "free", "terms", "region", "state"}),
            drop=("region", "held by jobs"),
        ),
        *([] if asked else [Text("The backends were not asked for their room.")]),
        *(Text(f"does not answer: {safe(line)}") for line in errors),
        *(Text(f"assumed: {safe(line)}") for line in said),
    ]


def _health(s: Stand) -> str:
    if s.error:
        return "does not answer"
    if s.backend is not None and not s.backend.ok:
        return f"down for routers, {s.backend.failures} tries"
    return "ready"


def _record(where: str, found: Sequence[Stand], said: Sequence[str]) -> dict[str, Any]:
    from chipwise.cli.records import head

    return {
        **head("pools"),
        "ledger": where or None,
        "pools": [_pool_record(s) for s in found],
        "assumptions": list(said),
    }


def _pool_record(s: Stand) -> dict[str, Any]:
    from math import isfinite

    p, room, e = s.pool, s.room, s.backend
    return {
        "name": p.name,
        "backend": p.backend,
        "chip": p.chip,
        "family": p.family,
        "count": p.count,
        "unit": p.unit,
        "shapes": [shape for _, shape in p.shapes],
        "usd_per_chip_hour": p.usd_per_chip_hour,
        "terms": p.terms,
        "price_source": p.price_source,
        "region": p.region,
        "watts_cap": p.power_cap if isfinite(p.power_cap) else None,
        "max_seconds": p.max_seconds if isfinite(p.max_seconds) else None,
        "held": s.held,
        "free": None if room is None else room.free,
        "working": None if room is None else room.total,
        "down": None if room is None else room.down,
        "answers": None if room is None and not s.error else not s.error,
        "error": s.error or (e.error if e is not None and not e.ok else ""),
        "drained": s.drained is not None,
        "reason": s.drained or "",
    }

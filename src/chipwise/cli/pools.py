"""chipwise pools: what there is to run on, what is free, and which pools take no more jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.cli.router import LedgerOpt, PoolsOpt

if TYPE_CHECKING:
    from chipwise.route.load import Pools

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
  chipwise pools drain h200 --node node-3,node-7 --reason "Xid 79 twice" --pools examples/pools/slurm.yaml
"""

app = group("pools", "List pools with their free capacity, and drain them.", EXAMPLES)


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


NodesOpt = Annotated[
    str, option("--node", "NAME,...", "Some of its nodes only, of pools of Slurm's and Kubernetes'; the others go on.")
]
PoolName = Annotated[str, argument("NAME", "A pool of the file.", complete_pools)]


@app.callback(invoke_without_command=True)
def pools(
    context: typer.Context,
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="Ask the backends for their free capacity.")] = True,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List the pools of a file: chip, price, terms, what is free where the backend answers, which are drained."""
    if context.invoked_subcommand is not None:
        return
    from chipwise.present import output as present
    from chipwise.present.progress import progress
    from chipwise.route.pool_view import list_pools

    read = _read(pools)
    with progress("pools") as line:
        line.say("pools: asking the backends")
        listed = list_pools(read, ledger, ask)
    present.show(listed, output, out)


@app.command("drain", epilog=DRAIN_EXAMPLES)
def drain(
    name: PoolName,
    reason: Annotated[str, option("--reason", "TEXT", "Why, for `jobs explain`.")],
    node: NodesOpt = "",
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Let no job start in a pool from now on, or on some of its nodes; what runs there goes on."""
    from chipwise.io.atomic import check_writable
    from chipwise.present import output as present
    from chipwise.route.pool_view import drain_pool

    check_writable(out)
    present.show(drain_pool(_read(pools), name, reason, ledger, _names(node)), output, out)


@app.command("resume", epilog=DRAIN_EXAMPLES)
def resume(
    name: PoolName,
    node: NodesOpt = "",
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Let jobs start in a pool again, or on some of its nodes."""
    from chipwise.io.atomic import check_writable
    from chipwise.present import output as present
    from chipwise.route.pool_view import resume_pool

    check_writable(out)
    present.show(resume_pool(_read(pools), name, ledger, _names(node)), output, out)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


def _read(pools: Path | None) -> Pools:
    from chipwise.errors import NOTHING, InputError
    from chipwise.route.load import read_pools

    if pools is None:
        raise InputError("--pools", NOTHING, "a pools file, or CHIPWISE_POOLS naming one")
    return read_pools(pools)

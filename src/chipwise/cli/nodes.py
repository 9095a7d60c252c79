"""chipwise observe nodes: which nodes are sick, and which of them routers are to avoid."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.declare import option
from chipwise.cli.options import OutFile, TableJsonCsv
from chipwise.cli.router import LedgerOpt, PoolsOpt
from chipwise.cli.telemetry import StoreOpt

EXAMPLES = """\b
Examples:
  chipwise observe nodes
  chipwise observe nodes --since 1d -o csv
  chipwise observe nodes --pools examples/pools/slurm.yaml --drain
"""


def nodes(
    store: StoreOpt = "",
    since: Annotated[str, option("--since", "TIME", "By what was kept since then, at most two days.")] = "1h",
    pools: PoolsOpt = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Let routers start nothing on the sick ones (`pools drain --node`).")
    ] = False,
    ledger: LedgerOpt = "",
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Say which nodes are sick, by what exporters and agents said of them, what shows it and what to do.

    With --drain routers start nothing on those with a grave fault that is certain; what is not grave, or was seen for a
    moment only, is told. A node that somebody has resumed since its fault stays in use.
    """
    from chipwise import api
    from chipwise.io.atomic import check_writable
    from chipwise.present.output import show

    check_writable(out)
    show(api.node_health(store, since=since, pools=pools, ledger=ledger, drain=drain), output, out)

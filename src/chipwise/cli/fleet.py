"""chipwise fleet: demand over time into what to rent or buy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.options import (
    BILL_FORMATS,
    BillFormat,
    FxOpt,
    OutFile,
    PricesOpt,
)

EXAMPLES = """\b
Examples:
  chipwise fleet plan examples/fleet/mixed.yaml
  chipwise fleet plan examples/fleet/mixed.yaml --cautious --gap 0.002 --time-limit 5min
"""
PLAN_EXAMPLES = """\b
Examples:
  chipwise fleet plan examples/fleet/mixed.yaml
  chipwise fleet plan examples/fleet/mixed.yaml --no-sensitivity -o json --out plan.json
  chipwise fleet plan examples/fleet/mixed.yaml --plot plan.svg
  chipwise fleet plan examples/fleet/mixed.yaml --prices own.csv -o focus --out bill.csv
"""

app = typer.Typer(
    name="fleet",
    help="Plan what to rent and buy over time.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def fleet() -> None:
    """Plan what to rent and buy over time."""


def complete_demands(incomplete: str) -> list[str]:
    """YAML files that begin with what was typed."""
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    try:
        files = [str(p) for p in folder.iterdir() if p.is_dir() or p.suffix in (".yaml", ".yml")]
    except OSError:
        return []
    return [name for name in files if name.startswith(incomplete)]


@app.command("plan", epilog=PLAN_EXAMPLES)
def plan(
    demand: Annotated[
        Path,
        typer.Argument(
            metavar="DEMAND",
            help="A demand file (YAML): workloads over time, offers, limits.",
            autocompletion=complete_demands,
            show_default=False,
        ),
    ],
    gap: Annotated[
        float, typer.Option("--gap", metavar="SHARE", help="Stop once no plan can be cheaper by more than this share.")
    ] = 0.01,
    time_limit: Annotated[
        str, typer.Option("--time-limit", metavar="TIME", help="Most time for each plan that is solved: 60s, 5min.")
    ] = "60s",
    cautious: Annotated[
        bool, typer.Option("--cautious", help="Plan by the bad end of every prediction's interval.")
    ] = False,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity/--no-sensitivity",
            help="Solve again with demand and prices 20 % up and down, and by the bad end of all intervals.",
        ),
    ] = True,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw chips and dollars over time, as .svg or .png.", show_default=False
        ),
    ] = None,
    prices: PricesOpt = None,
    fx: FxOpt = None,
    output: BillFormat = "table",
    out: OutFile = None,
) -> None:
    """The cheapest mix of chips over time that meets a demand, with how good it is proved to be.

    How many of which chip on which terms in each period and what runs where; the cost split; GPUs alone, TPUs alone
    and the best mix side by side; what one more unit of each limit would save; what demand and prices 20 % up and down
    and the bad end of all intervals would change. A demand that can't be met: the fewest constraints that have to give
    way.
    """
    from chipwise.cli import fleet_blocks, fleet_plot, fleet_records
    from chipwise.errors import InputError
    from chipwise.fleet.demand import read_demand
    from chipwise.fleet.planned import Wanted, plan_demand
    from chipwise.knowledge import Knowledge, price_book
    from chipwise.present import plots
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress

    formats(output, *BILL_FORMATS)
    if plot is not None:
        plots.ready(plot)
    if not 0 <= gap <= 0.5:
        raise InputError("--gap", gap, "a share from 0 to 0.5, such as 0.01")
    wanted = Wanted(gap, _seconds(time_limit), cautious, sensitivity)
    book = price_book(prices, fx)
    read = read_demand(demand)
    with progress("fleet plan") as line:
        asked, found = plan_demand(
            read, Knowledge(prices=book), wanted, say=lambda what: line.say(f"fleet plan: {what}")
        )
    if plot is not None:
        if found.plan is None:
            raise InputError("--plot", str(plot), "a demand that some plan meets: " + found.relax[0].words)
        fleet_plot.draw(found.plan, asked.demand.name, plot)
    if output == "json":
        emit_json(fleet_records.record(asked, found, wanted), out)
    elif output == "csv":
        emit_csv(fleet_records.rows(asked, found), out)
    elif output == "focus":
        emit_csv(fleet_records.focus(asked, found), out)
    else:
        emit(fleet_blocks.blocks(asked, found, wanted), out)


def _seconds(text: str) -> float:
    from chipwise.errors import InputError
    from chipwise.units import HOUR, format_seconds, parse_duration

    seconds = parse_duration(text, "--time-limit")
    if not 1 <= seconds <= 24 * HOUR:
        raise InputError("--time-limit", format_seconds(seconds), "a second to a day, such as 60s or 5min")
    return seconds

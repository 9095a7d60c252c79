"""chipwise fleet: demand over time into what to rent or buy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_yaml
from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import NO_PRICE_FLAGS, AssumptionsOpt, BillFormat, OutFile, PriceFlags, with_price_flags
from chipwise.verbs import defaults

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
  chipwise fleet plan examples/fleet/mixed.yaml --assumptions examples/observe/rates.yaml --no-sensitivity
"""

app = group("fleet", "Plan what to rent and buy over time.", EXAMPLES)


@app.command("plan", epilog=PLAN_EXAMPLES)
@with_price_flags
def plan(
    demand: Annotated[
        Path, argument("DEMAND", "A demand file (YAML): workloads over time, offers, limits.", complete_yaml)
    ],
    gap: Annotated[
        float, option("--gap", "SHARE", "Stop once no plan can be cheaper by more than this share.")
    ] = defaults.GAP,
    time_limit: Annotated[
        str, option("--time-limit", "TIME", "Most time for each plan that is solved: 60s, 5min.")
    ] = defaults.TIME_LIMIT,
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
    plot: Annotated[Path | None, option("--plot", "FILE", "Draw chips and dollars over time, as .svg or .png.")] = None,
    assumptions_file: AssumptionsOpt = None,
    offers: PriceFlags = NO_PRICE_FLAGS,
    output: BillFormat = "table",
    out: OutFile = None,
) -> None:
    """The cheapest mix of chips over time that meets a demand, with how good it is proved to be.

    How many of which chip by which pricing model in each period and what runs where; the cost split; GPUs alone, TPUs
    alone and the best mix side by side; what one more unit of each limit would save; what demand and prices 20 % up and
    down and the bad end of all intervals would change. A demand that can't be met: the fewest constraints that have to
    give way.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.present import plots
    from chipwise.present.output import emit_csv, show
    from chipwise.present.progress import progress

    if plot is not None:
        plots.ready(plot)
    known = Knowledge.default(assumptions_file=assumptions_file, **offers)
    with progress("fleet plan") as line:
        fleet = api.plan_fleet(
            demand,
            gap=gap,
            time_limit=time_limit,
            cautious=cautious,
            sensitivity=sensitivity,
            knowledge=known,
            progress=lambda what: line.say(f"fleet plan: {what}"),
        )
    if plot is not None:
        fleet.plot(plot)
    if output == "focus":
        emit_csv(fleet.focus_rows(), out)
    else:
        show(fleet, output, out)

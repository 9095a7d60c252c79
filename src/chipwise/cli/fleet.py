"""chipwise fleet: demand over time into what to rent or buy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.completion import complete_yaml, one_of
from chipwise.cli.declare import argument, group, option, refuse
from chipwise.cli.history import CASES, RentedOpt, SinceOpt, StartOpt
from chipwise.cli.options import NO_PRICE_FLAGS, AssumptionsOpt, BillFormat, OutFile, PriceFlags, with_price_flags
from chipwise.cli.router import LedgerOpt, PoolsOpt
from chipwise.cli.telemetry import StoreOpt
from chipwise.verbs import defaults

if TYPE_CHECKING:
    from chipwise.observe.demand.view import ObservedDemand

OBSERVED = "observed"

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
  chipwise fleet plan --demand observed --pools examples/observe/pools.yaml --since 180d --months 6
"""

app = group("fleet", "Plan what to rent and buy over time.", EXAMPLES)


@app.command("plan", epilog=PLAN_EXAMPLES)
@with_price_flags
def plan(
    file: Annotated[
        Path | None,
        argument("DEMAND", "A demand file (YAML): workloads over time, offers, limits.", complete_yaml),
    ] = None,
    demand: Annotated[
        str | None,
        option("--demand", "WHICH", "observed: what a ledger's jobs asked for, without a file.", one_of(OBSERVED)),
    ] = None,
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    since: SinceOpt = None,
    start: StartOpt = None,
    months: Annotated[int | None, option("--months", "N", "Months of the plan. Default: 12.", min=1)] = None,
    case: Annotated[
        str | None,
        option("--case", "WHICH", "likely, low or high end of what is observed. Default: likely.", one_of(*CASES)),
    ] = None,
    on: RentedOpt = None,
    store: StoreOpt = "",
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

    With --demand observed the demand is that of `observe demand` with the same options; what it leaves out is told.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.present import plots
    from chipwise.present.output import emit_csv, show
    from chipwise.present.progress import progress

    _check_source(file, demand, pools, {"since": since, "start": start, "months": months, "case": case, "on": on})
    if plot is not None:
        plots.ready(plot)
    known = Knowledge.default(assumptions_file=assumptions_file, **offers)
    with progress("fleet plan") as line:
        wanted: Path | ObservedDemand
        if file is not None:
            wanted = file
        else:
            line.say("fleet plan: reading the ledger")
            wanted = api.observe_demand(
                str(pools),
                ledger,
                since=since,
                start=start,
                months=months or 12,
                case=case or CASES[0],
                on=on,
                store=store or None,
                knowledge=known,
            )
        fleet = api.plan_fleet(
            wanted,
            gap=gap,
            time_limit=time_limit,
            cautious=cautious,
            sensitivity=sensitivity,
            knowledge=known,
            progress=lambda what: line.say(f"fleet plan: {what}"),
        )
    if not isinstance(wanted, Path):
        for sentence in (wanted.headline(), *wanted.notes()):
            typer.echo(f"fleet plan: {sentence}", err=True)
    if plot is not None:
        fleet.plot(plot)
    if output == "focus":
        emit_csv(fleet.focus_rows(), out)
    else:
        show(fleet, output, out)


def _check_source(file: Path | None, demand: str | None, pools: Path | None, of_ledger: Mapping[str, object]) -> None:
    """One demand: a file, or what is observed, which takes a pools file."""
    from chipwise.errors import Conflict, InputError

    if demand is not None and demand != OBSERVED:
        raise InputError("--demand", demand, f"{OBSERVED}, or a demand file without --demand")
    if file is not None and demand is not None:
        raise Conflict("DEMAND", "--demand")
    if file is None and demand is None:
        raise InputError("DEMAND", "nothing", f"a demand file, or --demand {OBSERVED} with --pools FILE")
    if demand is None:
        words = {f"--{name}": None if value is None else str(value) for name, value in of_ledger.items()}
        refuse(words, f"--demand {OBSERVED} beside it")
    elif pools is None:
        raise InputError("--demand", OBSERVED, "--pools FILE beside it: the pools that the jobs ran on")

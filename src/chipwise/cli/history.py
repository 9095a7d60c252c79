"""chipwise observe rates, drift, demand, advice: what a ledger's jobs teach decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_chips, complete_yaml, one_of
from chipwise.cli.declare import argument, option
from chipwise.cli.options import OutFile, TableJsonCsv
from chipwise.cli.router import LedgerOpt, PoolsFile, PoolsOpt
from chipwise.cli.telemetry import StoreOpt

RATES_EXAMPLES = """\b
Examples:
  chipwise observe rates --pools examples/observe/pools.yaml
  chipwise observe rates --pools examples/observe/pools.yaml --since 2026-08-01 -o json
  chipwise observe rates --pools examples/observe/pools.yaml --to rates.yaml
"""
DRIFT_EXAMPLES = """\b
Examples:
  chipwise observe drift examples/observe/drift.yaml
  chipwise observe drift --jobs --pools examples/pools/local.yaml -o json
"""
DEMAND_EXAMPLES = """\b
Examples:
  chipwise observe demand --pools examples/observe/pools.yaml
  chipwise observe demand --pools examples/observe/pools.yaml --since 180d --months 24 --to demand.yaml
  chipwise observe demand --pools examples/observe/pools.yaml --case high --on h100,h200,v6e --to demand.yaml
"""
ADVICE_EXAMPLES = """\b
Examples:
  chipwise observe advice --pools examples/observe/pools.yaml
  chipwise observe advice --pools examples/observe/pools.yaml --since 90d --change h100=16 --change v5e=8
  chipwise observe advice --pools examples/observe/pools.yaml --mix examples/pools/local.yaml -o json
"""
CASES = ("likely", "low", "high")
SinceOpt = Annotated[str | None, option("--since", "WHEN", "From a day on (2026-08-01), or so long ago (90d).")]

StartOpt = Annotated[str | None, option("--start", "MONTH", "First month of the plan. Default: the next one.")]
MonthsOpt = Annotated[int, option("--months", "N", "Months of the plan.", min=1)]
CaseOpt = Annotated[
    str, option("--case", "WHICH", "likely (the median), low or high (ends of the 90 % interval).", one_of(*CASES))
]
RentedOpt = Annotated[
    str | None, option("--on", "CHIPS", "That may be rented: h100,v6e. Default: those of the pools.", complete_chips)
]


def rates(
    pools: PoolsFile,
    ledger: LedgerOpt = "",
    since: SinceOpt = None,
    store: StoreOpt = "",
    to: Annotated[
        Path | None, option("--to", "FILE", "Write a file of assumptions (YAML): what --assumptions takes.")
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """What costs assume, as this ledger's jobs met it: failures, spot interruptions, utilization and power.

    Each with what was met in how much time, and what that makes of the assumption by Bayes' rule: its range is the
    prior, so that little says little. A slice of TPUs is taken away as one. Power is by a store of telemetry, of chips
    that are well. With --to the figures can be used: `cost`, `compare`, `report` and `fleet plan` take the file by
    --assumptions.
    """
    from chipwise import api
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("reading the ledger"):
        answer = api.observe_rates(pools, ledger, since=since, to=to, store=store or None)
    show(answer, output, out)


def drift(
    file: Annotated[
        Path | None,
        argument("FILE", "Runs (YAML): logs, with the workload, the chips and the labels of each.", complete_yaml),
    ] = None,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Of what the jobs of a ledger printed; --pools says of which chips.")
    ] = False,
    pools: PoolsOpt = None,
    ledger: LedgerOpt = "",
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Since when runs take another time than before, and which driver, compiler or library changed then.

    Runs of a FILE, or of a ledger's jobs (--jobs), by chip, stack and kind of program, in the order in which they ran.
    Versions that logs tell are labels; a FILE may name more. Sick runs are left out.
    """
    from chipwise import api
    from chipwise.errors import Conflict, InputError
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    if file is not None and jobs:
        raise Conflict("--jobs", "FILE")
    if file is None and not jobs:
        raise InputError("FILE", "nothing", "runs (YAML), or --jobs with --pools FILE")
    if jobs and pools is None:
        raise InputError("--jobs", "given", "--pools FILE beside it: the chips that jobs ran on")
    with progress("reading runs"):
        answer = api.observe_drift(file, pools=pools if jobs else None, ledger=ledger)
    show(answer, output, out)


def demand(
    pools: PoolsFile,
    ledger: LedgerOpt = "",
    since: SinceOpt = None,
    start: StartOpt = None,
    months: MonthsOpt = 12,
    case: CaseOpt = "likely",
    on: RentedOpt = None,
    store: StoreOpt = "",
    to: Annotated[
        Path | None, option("--to", "FILE", "Write a demand file (YAML): review it, then `fleet plan FILE`.")
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """What this ledger's jobs asked of chips month by month, with growth and how sure it is: a demand for `fleet plan`.

    Training runs by when they were submitted, services by the requests that their servers' logs show, or else their
    counters in a store of telemetry, with the hours of their peak. A short history says little of growth: its months to
    come are wide. Jobs that say no workload are left out, with their chip-hours: nobody could size chips for them.
    """
    from chipwise import api
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("reading the ledger"):
        answer = api.observe_demand(
            pools,
            ledger,
            since=since,
            start=start,
            months=months,
            case=case,
            on=on,
            to=to,
            store=store or None,
        )
    show(answer, output, out)


def advice(
    pools: PoolsFile,
    ledger: LedgerOpt = "",
    since: SinceOpt = None,
    policy: Annotated[
        str | None, option("--policy", "NAME", "Replay by this policy. Default: that of the ledger's last router.")
    ] = None,
    change: Annotated[
        list[str] | None, option("--change", "POOL=CHIPS", "Try a pool with so many chips; repeatable: all at once.")
    ] = None,
    mix: Annotated[
        list[Path] | None, option("--mix", "FILE", "Try the pools of another pools file; repeatable.", complete_yaml)
    ] = None,
    store: StoreOpt = "",
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Which pools are idle, saturated or sick, and what the same jobs would have met and cost on other pools.

    The jobs are replayed through the simulation by the router's own policies: on the pools as they are, without what
    lay idle, with more where jobs waited, and on those of --change and --mix. Costs are those of the pools: by the hour
    while held, committed chips for all hours. What a replay can't know is said.
    """
    from chipwise import api
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("replaying the ledger's jobs"):
        answer = api.observe_advice(
            pools, ledger, since=since, policy=policy, change=change, mix=mix, store=store or None
        )
    show(answer, output, out)

"""chipwise observe: what really happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli import history, telemetry
from chipwise.cli import nodes as sick
from chipwise.cli import top as screen
from chipwise.cli.completion import complete_chips, one_of
from chipwise.cli.declare import argument, group, option, refuse
from chipwise.cli.options import (
    NO_FLAGS,
    NO_PRICE_FLAGS,
    Flags,
    OutFile,
    PriceFlags,
    TableJson,
    TableJsonCsv,
    with_price_flags,
    with_workload_flags,
)
from chipwise.cli.router import LedgerOpt, MetricsOpt, PoolsOpt, TokenFileOpt
from chipwise.cli.telemetry import StoreOpt
from chipwise.route.names import JOB_STATES

if TYPE_CHECKING:
    from chipwise.compare.training.predict import PricedPrediction
    from chipwise.knowledge import Knowledge
    from chipwise.observe.jobs.view import JobObservations

EXAMPLES = """\b
Examples:
  chipwise observe read examples/logs/maxtext.log
  chipwise observe read examples/logs/titan.log --against examples/llama-3.1-8b-pretrain.yaml --batch 64 --on h100:8
  chipwise observe health examples/logs/slow.log --on h100:8
  chipwise observe goodput examples/logs/slow.log --on h100:8
"""
READ_EXAMPLES = """\b
Examples:
  chipwise observe read examples/logs/vllm.log
  chipwise observe read examples/logs/kernel.log -o json
  chipwise observe read examples/logs/titan.log --against examples/llama-3.1-8b-pretrain.yaml --batch 64 --on h100:8
"""
HEALTH_EXAMPLES = """\b
Examples:
  chipwise observe health examples/logs/slow.log --on h100:8
  chipwise observe health examples/logs/kernel.log
  chipwise observe health examples/logs/titan.log --against examples/llama-3.1-8b-pretrain.yaml --batch 64 --on h100:8
"""
GOODPUT_EXAMPLES = """\b
Examples:
  chipwise observe goodput examples/logs/slow.log --on h100:8
  chipwise observe goodput --by team --month 2026-11
  chipwise observe goodput --by job --logs -o csv
"""
JOB_EXAMPLES = """\b
Examples:
  chipwise observe job 1
  chipwise observe job 1 --attempt 1 -o json
  chipwise observe job 1 --pools examples/pools/local.yaml
"""
JOBS_EXAMPLES = """\b
Examples:
  chipwise observe jobs
  chipwise observe jobs --state all -o csv
  chipwise observe jobs --tell
  chipwise observe jobs --metrics 127.0.0.1:9465
"""
ALL = "all"
BY = ("job", "pool", "team", "owner", "month")
FORMATS = (
    "maxtext", "torchtitan", "megatron", "nemo", "deepspeed", "hf-trainer", "lightning", "levanter", "mlperf",
    "chipwise", "steps", "vllm", "sglang", "tensorrt-llm", "prometheus", "kernel", "vllm-bench", "llm-d", "json",
)  # fmt: skip
FormatOpt = Annotated[
    str | None,
    option("--format", "NAME", f"One of {', '.join(FORMATS)}. Default: found by what it says.", one_of(*FORMATS)),
]
AgainstOpt = Annotated[
    str | None, option("--against", "WORKLOAD", "Hold it against the prediction of this workload: a file or a model.")
]
UntilOpt = Annotated[
    str | None,
    option(
        "--until", "TIME", "The run went on to here: now, 2026-11-02T10:00:00Z. Default: the last stamp in the log."
    ),
]
LayoutOpt = Annotated[
    str | None, option("--layout", "AXES", "How it was split, with --against: fsdp=128. Default: the best.")
]

app = group("observe", "Read what really happened, and hold it against what was predicted.", EXAMPLES)


@app.command("read", epilog=READ_EXAMPLES)
@with_workload_flags
def read(
    file: Annotated[str, argument("FILE", "A log, or a page of metrics (gzip as well); - for standard input.")],
    format: FormatOpt = None,
    against: AgainstOpt = None,
    on: Annotated[
        str | None, option("--on", "CHIPS", "The chips it ran on, with --against: h100:64, v5e:8x8.", complete_chips)
    ] = None,
    layout: LayoutOpt = None,
    flags: Flags = NO_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Read a log: steps of training, windows of serving, faults and metrics, in the format it is found to have.

    Steps told by several ranks count once; Xid 45 and time-outs beside the fault that caused them do not count. With
    --against and --on, actual over predicted with the prediction's 90 % interval.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import show

    if against is None and on is not None:
        raise InputError("--on", on, "--against WORKLOAD beside it")
    prediction = _prediction(against, on, layout, flags, Knowledge.default())
    show(api.read_log(file, format=format, against=prediction), output, out)


@app.command("health", epilog=HEALTH_EXAMPLES)
@with_workload_flags
@with_price_flags
def health(
    file: Annotated[str, argument("FILE", "A log, or a page of metrics (gzip as well); - for standard input.")],
    format: FormatOpt = None,
    against: AgainstOpt = None,
    on: Annotated[
        str | None,
        option("--on", "CHIPS", "The chips it ran on: h100:64, v5e:8x8. They price what was lost.", complete_chips),
    ] = None,
    layout: LayoutOpt = None,
    until: UntilOpt = None,
    flags: Flags = NO_FLAGS,
    offers: PriceFlags = NO_PRICE_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Say what is wrong with a run by what it printed, what to do, and what it has cost.

    Hung or stalled, slower than predicted from its first step (--against), slower than it was, ranks and nodes slower
    than the others, throttled devices, and faults: each with its evidence, seconds, chip-hours and dollars.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import show

    known = Knowledge.default(**offers)
    prediction = _prediction(against, on, layout, flags, known)
    show(api.diagnose(file, format=format, against=prediction, on=on, until=until, knowledge=known), output, out)


@app.command("goodput", epilog=GOODPUT_EXAMPLES)
@with_price_flags
def goodput(
    file: Annotated[
        str | None,
        argument("FILE", "A log of training (gzip as well); - for standard input. Without one: the jobs of a ledger."),
    ] = None,
    format: FormatOpt = None,
    on: Annotated[
        str | None, option("--on", "CHIPS", "The chips that the log's run had: h100:64, v5e:8x8.", complete_chips)
    ] = None,
    until: UntilOpt = None,
    by: Annotated[
        str | None,
        option("--by", "WHAT", f"Of a ledger's jobs: by {', '.join(BY)}. Default: pool.", one_of(*BY)),
    ] = None,
    month: Annotated[str | None, option("--month", "MONTH", "Of a ledger's jobs: 2026-11 alone (UTC).")] = None,
    logs: Annotated[
        bool, typer.Option("--logs", help="Of a ledger's jobs: read what attempts printed, for all classes of loss.")
    ] = False,
    ledger: LedgerOpt = "",
    offers: PriceFlags = NO_PRICE_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Say where time went: steps that count, and start-up, compiling, data, checkpoints, lost work, recovery and more.

    Of one run by its log, each second counted once; or of the jobs of a ledger, by job, pool, team, owner or month.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import show

    if file is not None:
        of_ledger = {"--by": by, "--month": month, "--logs": "given" if logs else None}
        refuse(of_ledger, "no FILE beside it: it is for the jobs of a ledger")
        known = Knowledge.default(**offers)
        show(api.measure_goodput(file, format=format, on=on, until=until, knowledge=known), output, out)
        return
    refuse({"--format": format, "--on": on, "--until": until}, "a FILE beside it")
    price = next(((name, value) for name, value in offers.items() if value), None)
    if price is not None:
        raise InputError(
            f"--{price[0].replace('_', '-')}", str(price[1]), "a FILE beside it: jobs have their pools' prices"
        )
    show(api.fleet_goodput(ledger, by=by or BY[1], month=month, logs=logs), output, out)


@app.command("job", epilog=JOB_EXAMPLES)
def job(
    job: Annotated[str, argument("ID", "The number of a job.")],
    attempt: Annotated[int | None, option("--attempt", "N", "Of this attempt; default: the newest.", min=1)] = None,
    plot: Annotated[
        Path | None, option("--plot", "FILE", "Draw its steps, or its windows of serving, as .svg or .png.")
    ] = None,
    ledger: LedgerOpt = "",
    pools: PoolsOpt = None,
    store: StoreOpt = "",
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """One job as it really runs: its steps, health and goodput, against its prediction, and what is left.

    Its output is read as `jobs logs` reads it. A running job's time and cost are estimated again, at the pace of now.
    Of a server, with --pools: the latencies of its last hour by its histograms in a store, beside those predicted at
    its load.
    """
    from chipwise import api
    from chipwise.present import plots
    from chipwise.present.output import show

    if plot is not None:
        plots.ready(plot)
    answer = api.observe_job(job, ledger, attempt=attempt, pools=pools, store=store if pools else None)
    if plot is not None:
        answer.plot(plot)
    show(answer, output, out)


@app.command("jobs", epilog=JOBS_EXAMPLES)
def jobs(
    ledger: LedgerOpt = "",
    state: Annotated[
        str, option("--state", "STATE", f"In this state: {', '.join((*JOB_STATES, ALL))}.", one_of(*JOB_STATES, ALL))
    ] = "running",
    owner: Annotated[str | None, option("--owner", "NAME", "Only of this owner.")] = None,
    limit: Annotated[int, option("--limit", "N", "The newest so many.", min=1)] = 100,
    tell: Annotated[
        bool, typer.Option("--tell", help="Let routers reckon with what runs take by their steps, not as predicted.")
    ] = False,
    pools: PoolsOpt = None,
    store: StoreOpt = "",
    metrics: MetricsOpt = None,
    token_file: TokenFileOpt = None,
    interval: Annotated[
        str | None, option("--interval", "TIME", "Between two looks, with --metrics. Default: 30s.")
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Jobs as they really run: step, actual over predicted, goodput, health, time and cost that are left.

    With --metrics the same for Prometheus: it looks again and again, until it is stopped.
    """
    from chipwise import api
    from chipwise.present.output import show

    named = None if state == ALL else state

    def look() -> JobObservations:
        return api.observe_jobs(
            ledger,
            state=named,
            owner=owner,
            limit=limit,
            tell=tell,
            pools=pools,
            store=store if pools else None,
        )

    if metrics is None:
        refuse({"--token-file": str(token_file) if token_file else None, "--interval": interval}, "--metrics beside it")
        show(look(), output, out)
        return
    refuse({"--out": str(out) if out else None, "-o": None if output == "table" else output}, "no --metrics beside it")
    _serve(look, metrics, token_file, interval)


def _serve(look: Callable[[], JobObservations], address: str, token_file: Path | None, interval: str | None) -> None:
    """A page of metrics of what is looked at, until stopped."""
    from chipwise.io.endpoint import Endpoint, read_token
    from chipwise.observe.jobs.metrics import serve
    from chipwise.verbs.arguments import seconds_of

    every, token = seconds_of(interval or "30s", "interval"), read_token(token_file)

    def opened(endpoint: Endpoint) -> None:
        with_token = ", with the bearer token" if token else ""
        typer.echo(f"observe jobs: port {endpoint.port}, /metrics{with_token}", err=True)

    def tell(words: str) -> None:
        typer.echo(f"observe jobs: {words}", err=True)

    serve(lambda: look().observations, address, token, every, opened, tell)


def _prediction(
    against: str | None, on: str | None, layout: str | None, flags: Flags, known: Knowledge
) -> PricedPrediction | None:
    """The prediction that a log is held against; flags that only say what to predict need a workload."""
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.workload.read import read_workload

    if against is None:
        given = {"layout": layout, **flags}
        lost = next(((name, value) for name, value in given.items() if value is not None), None)
        if lost is not None:
            raise InputError(f"--{lost[0].replace('_', '-')}", lost[1], "--against WORKLOAD beside it")
        return None
    if on is None:
        raise InputError("--against", against, "--on CHIPS beside it: what it ran on")
    return api.predict(read_workload(against, flags), on, layout=layout, knowledge=known)


for _verb, _examples in (
    (telemetry.scrape, telemetry.SCRAPE_EXAMPLES),
    (telemetry.receive, telemetry.RECEIVE_EXAMPLES),
    (telemetry.agent, telemetry.AGENT_EXAMPLES),
    (telemetry.devices, telemetry.DEVICES_EXAMPLES),
    (telemetry.export, telemetry.EXPORT_EXAMPLES),
    (sick.nodes, sick.EXAMPLES),
    (telemetry.rules, telemetry.RULES_EXAMPLES),
    (telemetry.dashboards, telemetry.DASHBOARDS_EXAMPLES),
    (history.rates, history.RATES_EXAMPLES),
    (history.drift, history.DRIFT_EXAMPLES),
    (history.demand, history.DEMAND_EXAMPLES),
    (history.advice, history.ADVICE_EXAMPLES),
    (screen.top, screen.EXAMPLES),
):
    app.command(_verb.__name__, epilog=_examples)(_verb)

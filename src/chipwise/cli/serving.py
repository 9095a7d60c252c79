"""chipwise serving: a model served on chips, simulated request by request, and the largest load it carries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import (
    NO_FLAGS,
    Flags,
    OutFile,
    TableJson,
    TableJsonCsv,
    WorkloadArg,
    complete_chips,
    one_of,
    with_serving_flags,
)

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators
    from chipwise.serving.service import ServingTarget

EXAMPLES = """\b
Examples:
  chipwise serving capacity examples/llama-3.1-70b-serve.yaml --on h200:8
  chipwise serving simulate examples/llama-3.1-70b-serve.yaml --on h200:8 --rate 4
"""
SIMULATE_EXAMPLES = """\b
Examples:
  chipwise serving simulate examples/llama-3.1-70b-serve.yaml --on h200:8 --rate 4
  chipwise serving simulate examples/llama-3.1-70b-serve.yaml --on h200:16 --rate 8 --tp 4 --plot load.svg
  chipwise serving simulate examples/llama-3.1-70b-serve.yaml --on h200:16 --rate 6 --tp 4 --disaggregate 2:2
  chipwise serving simulate examples/trace-serve.yaml --on h100:2 --router prefix
  chipwise serving simulate llama-3.1-8b --input-len 1000 --output-len 200 --users 64 --on v6e:8 -o json
"""
CAPACITY_EXAMPLES = """\b
Examples:
  chipwise serving capacity examples/llama-3.1-70b-serve.yaml --on h200:8
  chipwise serving capacity examples/llama-3.1-70b-serve.yaml --on b200:8 --precision fp8 --stack sglang
  chipwise serving capacity examples/llama-3.1-8b-offline.yaml --on h200:8
  chipwise serving capacity examples/bert-serve.yaml --on h200:1 -o csv
"""
ROUTERS = ("round_robin", "least_loaded", "prefix")
LARGEST = 16_384  # tokens of an iteration there are times for
JOB = 1_000_000  # requests of an offline job that are simulated, at most: the others take as long

app = typer.Typer(
    name="serving",
    help="Simulate a served model, and find its largest load.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)

OnOpt = Annotated[
    str,
    typer.Option(
        "--on", metavar="CHIPS", help="All chips of the service: h200:8, v5e:2x4.", autocompletion=complete_chips
    ),
]
SplitOpt = int | None
TpOpt = Annotated[
    SplitOpt,
    typer.Option(
        "--tp",
        metavar="N",
        help="Tensor parallel chips of a replica. The best split unless one is named.",
        min=1,
        show_default=False,
    ),
]
PpOpt = Annotated[
    SplitOpt, typer.Option("--pp", metavar="N", help="Pipeline stages of a replica.", min=1, show_default=False)
]
DpOpt = Annotated[
    SplitOpt,
    typer.Option(
        "--dp", metavar="N", help="Attention groups of a replica that share its experts.", min=1, show_default=False
    ),
]
EpOpt = Annotated[
    SplitOpt,
    typer.Option("--ep", metavar="N", help="Ways that experts are split over tp x dp.", min=1, show_default=False),
]
SeedOpt = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="Of the requests drawn: the same seed, the same answer.", min=0, max=2**32 - 1
    ),
]


@app.command("simulate", epilog=SIMULATE_EXAMPLES)
@with_serving_flags
def simulate(
    workload: WorkloadArg,
    on: OnOpt,
    tp: TpOpt = None,
    pp: PpOpt = None,
    dp: DpOpt = None,
    ep: EpOpt = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            "--replicas",
            metavar="N",
            help="Replicas. As many as the chips hold unless said.",
            min=1,
            max=100_000,
            show_default=False,
        ),
    ] = None,
    disaggregate: Annotated[
        str | None,
        typer.Option(
            "--disaggregate",
            metavar="P:D",
            help="P replicas for prompts, D others that decode: 2:6.",
            show_default=False,
        ),
    ] = None,
    router: Annotated[
        str,
        typer.Option("--router", metavar="NAME", help=f"One of {', '.join(ROUTERS)}.", autocompletion=one_of(*ROUTERS)),
    ] = "least_loaded",
    max_batch: Annotated[
        int | None,
        typer.Option(
            "--max-batch",
            metavar="N",
            help="Sequences of a replica at once. The stack's own unless said.",
            min=1,
            max=LARGEST,
            show_default=False,
        ),
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk",
            metavar="N",
            help="Tokens of an iteration, prompts are cut to fit. The stack's own unless said.",
            min=1,
            max=LARGEST,
            show_default=False,
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            "--requests",
            metavar="N",
            help="Requests to simulate (10,000; all of a trace or an offline job).",
            min=1,
            max=10_000_000,
            show_default=False,
        ),
    ] = None,
    seed: SeedOpt = 0,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw latency against load, as .svg or .png.", show_default=False),
    ] = None,
    flags: Flags = NO_FLAGS,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Serve a stream of requests on chips, iteration by iteration.

    Time to first token, time per token and end to end by percentile with 90 % intervals, rates, whether the SLO
    is kept, use of cache and compute, power, and the stack's own flags.
    """
    from chipwise.cli import serving_plot, serving_records
    from chipwise.cli.replicas import ServiceRequest, named_split, overloaded, read_pools, service_of
    from chipwise.cli.serving_blocks import served_blocks
    from chipwise.errors import InputError
    from chipwise.present import plots
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.serving.service import run

    formats(output, "table", "json")
    if router not in ROUTERS:
        raise InputError("--router", router, f"one of {', '.join(ROUTERS)}")
    if disaggregate is not None and replicas is not None:
        raise InputError("--replicas", replicas, "no such option beside --disaggregate, which says both numbers")
    pools = None if disaggregate is None else read_pools(disaggregate)
    asked = ServiceRequest(named_split(tp, pp, dp, ep), replicas, pools, router, max_batch, chunk)
    if plot is not None:
        plots.ready(plot)
    acc, at = _place(workload, on, flags)
    if plot is not None and at.workload.serve.arrival.kind == "offline":
        raise InputError("--plot", str(plot), "requests that come over time: an offline job has one load")
    with progress("trying") as shown:
        of = service_of(at, acc.count, asked, seed, shown)
        served = run(of, count=requests or min(at.workload.serve.requests, JOB), seed=seed, settle=True)
        if served.measures.saturated:
            raise overloaded(served, _rate_field(at, flags), seed)
        curve = serving_plot.curve(of, seed, shown) if plot is not None else None
    if plot is not None and curve is not None:
        serving_plot.draw(curve, plot)
    if output == "json":
        emit_json(serving_records.served(served, acc, asked, seed, curve), out)
    else:
        emit(served_blocks(served, acc, asked, seed), out)


@app.command("capacity", epilog=CAPACITY_EXAMPLES)
@with_serving_flags
def capacity(
    workload: WorkloadArg,
    on: OnOpt,
    tp: TpOpt = None,
    pp: PpOpt = None,
    dp: DpOpt = None,
    ep: EpOpt = None,
    seed: SeedOpt = 0,
    flags: Flags = NO_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Find the largest load that chips carry within an SLO.

    Every split of the replicas, the best one's interval, settings and flags, and the Pareto front of speed for a user
    against the output of a chip. The rate of the workload is not the load tried; it says how many chips it takes.
    """
    from chipwise.cli import serving_records
    from chipwise.cli.capacity_blocks import capacity_blocks
    from chipwise.cli.replicas import check_chips, named_split
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.serving.capacity import search
    from chipwise.serving.service import run

    formats(output, "table", "json", "csv")
    split = named_split(tp, pp, dp, ep)
    acc, at = _place(workload, on, flags)
    if split is not None:
        check_chips(split, None, acc.count)
    with progress("trying") as shown:
        found = search(at, acc.count, seed, progress=shown, only=None if split is None else [split])
        offline = at.workload.serve.arrival.kind == "offline"
        job = run(found.best.service, count=min(at.workload.serve.requests, JOB), seed=seed) if offline else None
    if output == "json":
        emit_json(serving_records.capacity(found, acc, seed, job), out)
    elif output == "csv":
        emit_csv(serving_records.capacity_rows(found), out)
    else:
        emit(capacity_blocks(found, acc, seed, job), out)


def _place(workload: str, on: str, flags: Flags) -> tuple[Accelerators, ServingTarget]:
    """The chips, and the workload on them."""
    from chipwise.catalog import parse
    from chipwise.catalog.calibration import load_calibration
    from chipwise.serving.service import serving_target
    from chipwise.workload.read import read_serving

    acc = parse(on)
    return acc, serving_target(read_serving(workload, flags), acc.chip, load_calibration())


def _rate_field(at: ServingTarget, flags: Flags) -> str:
    """Where the rate of the requests was said."""
    if flags.get("rate"):
        return "--rate"
    return "serve.trace" if at.workload.serve.trace is not None else "serve.arrival.rate"

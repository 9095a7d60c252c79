"""chipwise serving: a model served on chips, simulated request by request, and the largest load it sustains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chipwise.cli.completion import complete_chips, one_of
from chipwise.cli.declare import group, option
from chipwise.cli.options import (
    NO_FLAGS,
    ChipFileOpt,
    Flags,
    LaunchForOpt,
    LaunchOpt,
    OutFile,
    TableJson,
    TableJsonCsv,
    WorkloadArg,
    with_serving_flags,
)
from chipwise.serving.limits import DEFAULT_ROUTER, LARGEST, MOST_REPLICAS, MOST_REQUESTS, ROUTERS

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
  chipwise serving capacity llama-3.1-8b --input-len 1500 --output-len 200 --offline 500M --deadline 6h --on h200:1
  chipwise serving capacity examples/llama-3.1-70b-serve.yaml --on h200:16 --disaggregate auto
  chipwise serving capacity examples/llama-3.1-70b-serve.yaml --on h200:8 --launch serve.dstack.yml
  chipwise serving capacity examples/bert-serve.yaml --on h200:1 -o csv
"""

app = group("serving", "Simulate a served model, and find its largest load.", EXAMPLES)

OnOpt = Annotated[str, option("--on", "CHIPS", "All chips of the service: h200:8, v5e:2x4.", complete_chips)]
SplitOpt = int | None
TpOpt = Annotated[SplitOpt, option("--tp", "N", "Tensor parallel chips of a replica. Default: the best split.", min=1)]
PpOpt = Annotated[SplitOpt, option("--pp", "N", "Pipeline stages of a replica.", min=1)]
DpOpt = Annotated[SplitOpt, option("--dp", "N", "Attention groups of a replica that share its experts.", min=1)]
EpOpt = Annotated[SplitOpt, option("--ep", "N", "Ways that experts are split over tp x dp.", min=1)]
SeedOpt = Annotated[
    int, option("--seed", "N", "Seed of the requests drawn: the same seed, the same answer.", min=0, max=2**32 - 1)
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
        int | None, option("--replicas", "N", "Replicas. Default: as many as the chips hold.", min=1, max=MOST_REPLICAS)
    ] = None,
    disaggregate: Annotated[
        str | None, option("--disaggregate", "P:D", "P replicas for prefill, D others for decode: 2:6.")
    ] = None,
    router: Annotated[
        str, option("--router", "NAME", f"One of {', '.join(ROUTERS)}.", one_of(*ROUTERS))
    ] = DEFAULT_ROUTER,
    max_batch: Annotated[
        int | None,
        option("--max-batch", "N", "Sequences of a replica at once. Default: the stack's own.", min=1, max=LARGEST),
    ] = None,
    chunk: Annotated[
        int | None,
        option(
            "--chunk",
            "N",
            "Tokens of an iteration, prompts are cut to fit. Default: the stack's own.",
            min=1,
            max=LARGEST,
        ),
    ] = None,
    requests: Annotated[
        int | None,
        option(
            "--requests",
            "N",
            "Requests to simulate. Default: 10,000, or 600 a replica; all of a trace or an offline job.",
            min=1,
            max=MOST_REQUESTS,
        ),
    ] = None,
    seed: SeedOpt = 0,
    chip_file: ChipFileOpt = None,
    plot: Annotated[Path | None, option("--plot", "FILE", "Draw latency against load, as .svg or .png.")] = None,
    flags: Flags = NO_FLAGS,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Serve a stream of requests on chips, iteration by iteration.

    Time to first token, time per token and end to end by percentile with 90 % intervals, rates, whether the SLO
    is met, use of KV cache and compute, power, and the stack's own flags.
    """
    from chipwise import api
    from chipwise.catalog import add_chip_files
    from chipwise.knowledge import Knowledge
    from chipwise.present import plots
    from chipwise.present.output import show
    from chipwise.present.progress import progress
    from chipwise.workload.read import read_serving

    if plot is not None:
        plots.ready(plot)
    add_chip_files(chip_file or ())
    work = read_serving(workload, flags)
    with progress("trying") as shown:
        simulation = api.serve(
            work,
            on,
            tp=tp,
            pp=pp,
            dp=dp,
            ep=ep,
            replicas=replicas,
            disaggregate=disaggregate,
            router=router,
            max_batch=max_batch,
            chunk=chunk,
            requests=requests,
            curve=plot is not None,
            knowledge=Knowledge(seed=seed),
            progress=shown,
        )
    if plot is not None:
        simulation.plot(plot)
    show(simulation, output, out)


@app.command("capacity", epilog=CAPACITY_EXAMPLES)
@with_serving_flags
def capacity(
    workload: WorkloadArg,
    on: OnOpt,
    tp: TpOpt = None,
    pp: PpOpt = None,
    dp: DpOpt = None,
    ep: EpOpt = None,
    disaggregate: Annotated[
        str | None,
        option("--disaggregate", "P:D", "P replicas for prefill to D for decode: 2:6; auto: where that sustains more."),
    ] = None,
    deadline: Annotated[
        str | None, option("--deadline", "TIME", "Of an offline job: when its last request must be answered, 6h.")
    ] = None,
    seed: SeedOpt = 0,
    chip_file: ChipFileOpt = None,
    launch: LaunchOpt = None,
    launch_for: LaunchForOpt = None,
    flags: Flags = NO_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Find the largest load that chips sustain within an SLO.

    Every split of the replicas, the best one's interval, settings and flags, and the Pareto front of speed for a user
    against the output of a chip. The rate of the workload is not the load tried; it says how many chips it takes.
    """
    from chipwise import api
    from chipwise.catalog import add_chip_files
    from chipwise.knowledge import Knowledge
    from chipwise.launch.launch import check_launch_file
    from chipwise.present.output import show
    from chipwise.present.progress import progress
    from chipwise.workload.read import read_serving

    check_launch_file(launch, launch_for)
    add_chip_files(chip_file or ())
    work = read_serving(workload, flags, loaded=False)
    with progress("trying") as shown:
        largest = api.capacity(
            work,
            on,
            tp=tp,
            pp=pp,
            dp=dp,
            ep=ep,
            disaggregate=disaggregate,
            deadline=deadline,
            knowledge=Knowledge(seed=seed),
            progress=shown,
        )
    show(largest, output, out)
    if launch is not None:
        largest.launch(launch_for, launch).write(launch)

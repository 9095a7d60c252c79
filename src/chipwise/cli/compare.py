"""chipwise compare: chips side by side on one workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.declare import option
from chipwise.cli.options import (
    NO_FLAGS,
    NO_PRICE_FLAGS,
    AllOpt,
    AssumptionsOpt,
    BudgetOpt,
    ByOpt,
    ChipsOpt,
    ComparedOpt,
    DeadlineOpt,
    EdgeOpt,
    EvidenceOpt,
    Flags,
    HeadroomOpt,
    LaunchForOpt,
    LaunchOpt,
    OutFile,
    PowerOpt,
    PriceFlags,
    ScenarioOpt,
    TableJsonCsv,
    WorkloadArg,
    with_any_flags,
    with_price_flags,
)
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise compare examples/llama-3.1-8b-pretrain.yaml
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --all
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --on h100,b200,v5p --deadline 30d
  chipwise compare llama-3.1-70b --tokens 1T --batch 1024 --sequence 8192 --on h200:512,v6e:512
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --on h100:64,v5p:64,v6e:64 --evidence auto
  chipwise compare examples/mixtral-8x7b-pretrain.yaml --budget 2M --by time -o json --out run.json
  chipwise compare llama-3.1-8b --tokens 100B --batch 512 --sequence 4096 --deadline 7d --budget 100k --front
  chipwise compare examples/llama-3.1-70b-serve.yaml --on h100,h200:32,v6e
  chipwise compare examples/llama-3.1-70b-serve.yaml --on h100,h200 --disaggregate auto
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --on h100:64,v5p:64 --launch run.sky.yaml
  chipwise compare resnet50 --edge --power 15W --by energy
"""


@with_any_flags
@with_price_flags
def compare(
    workload: WorkloadArg,
    on: ComparedOpt = None,
    chips: ChipsOpt = None,
    deadline: DeadlineOpt = None,
    budget: BudgetOpt = None,
    by: ByOpt = None,
    headroom: HeadroomOpt = None,
    disaggregate: Annotated[
        str | None,
        option("--disaggregate", "P:D", "P replicas for prefill to D for decode: 2:6; auto: where that is better."),
    ] = None,
    edge: EdgeOpt = False,
    power: PowerOpt = None,
    scenario: ScenarioOpt = None,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = defaults.EVIDENCE,
    assumptions_file: AssumptionsOpt = None,
    offers: PriceFlags = NO_PRICE_FLAGS,
    launch: LaunchOpt = None,
    launch_for: LaunchForOpt = None,
    front: Annotated[
        bool, typer.Option("--front", help="Show cost against time over the counts of the best three chips.")
    ] = False,
    plot: Annotated[Path | None, option("--plot", "FILE", "Draw that front, as .svg or .png.")] = None,
    every: AllOpt = False,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Compare chips on a workload, and say what to pick.

    For each chip: its best layout, step time with a 90 % interval, time to train, energy and cost. Then what to pick,
    why, and what would flip the decision. Of a model that is served: the cheapest chips that sustain its requests
    within the SLO, and what they cost an hour and a million tokens. With --edge: devices within a power limit, by
    latency, energy or price of one inference.
    """
    from chipwise import api
    from chipwise.compare.comparison import TrainingComparison
    from chipwise.errors import Conflict, MissingInput
    from chipwise.knowledge import Knowledge
    from chipwise.launch.launch import check_launch_file
    from chipwise.present import plots
    from chipwise.present.output import show
    from chipwise.present.progress import progress
    from chipwise.workload.read import read_any

    check_launch_file(launch, launch_for)
    if plot is not None:
        plots.ready(plot)
    if edge:
        data_center = {
            "chips": chips,
            "deadline": deadline,
            "budget": budget,
            "headroom": headroom,
            "disaggregate": disaggregate,
            "assumptions": assumptions_file,
            "launch": launch,
            "front": front or None,
            "plot": plot,
            **flags,
            **offers,
        }
        data_center.pop("precision", None)
        for name, value in data_center.items():
            if value is not None:
                raise Conflict(name, "edge", "it is for data-center chips")
        precision = flags.get("precision")
        show(api.compare_edge(workload, on, power=power, scenario=scenario, by=by, precision=precision), output, out)
        return
    for name, value in (("power", power), ("scenario", scenario)):
        if value is not None:
            raise MissingInput([("edge",)], name)
    known = Knowledge.default(assumptions_file=assumptions_file, **offers)
    work = read_any(workload, flags)
    with progress("comparing") as shown:
        comparison = api.compare(
            work,
            on=on,
            chips=chips,
            deadline=deadline,
            budget=budget,
            by=by,
            headroom=headroom,
            disaggregate=disaggregate,
            evidence=evidence,
            knowledge=known,
            progress=shown,
            front=front or plot is not None,
        )
    show(comparison, output, out, comparison.all_blocks if every else None)
    if plot is not None and isinstance(comparison, TrainingComparison):
        comparison.plot(plot)
    if launch is not None:
        comparison.launch(launch_for, launch).write(launch)

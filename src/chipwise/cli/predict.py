"""chipwise predict: one workload on one set of chips, with one layout."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.completion import complete_chips
from chipwise.cli.declare import option
from chipwise.cli.options import (
    NO_FLAGS,
    NO_PRICE_FLAGS,
    EvidenceOpt,
    Flags,
    HeadroomOpt,
    LaunchForOpt,
    LaunchOpt,
    OutFile,
    PriceFlags,
    TableJson,
    WorkloadArg,
    with_price_flags,
    with_workload_flags,
)
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:128 --explain
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:128 --layout fsdp=128 --explain
  chipwise predict llama-3.1-70b --steps 1 --batch 512 --sequence 8192 --on h100:512 --layout tp=8,pp=4
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:64 --evidence compiled
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:64 --launch run.maxtext.yml
  chipwise predict my-model/config.json --tokens 1T --batch 1024 --sequence 4096 --on h200:64 -o json
"""


@with_workload_flags
@with_price_flags
def predict(
    workload: WorkloadArg,
    on: Annotated[str, option("--on", "CHIPS", "Chips and how many: h100:64, v5e:8x8, v5p-128.", complete_chips)],
    layout: Annotated[
        str | None, option("--layout", "AXES", "How the work is split: fsdp=128 or tp=8,pp=4,mbs=1. Default: the best.")
    ] = None,
    headroom: HeadroomOpt = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how the number comes about.")] = False,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = defaults.EVIDENCE,
    offers: PriceFlags = NO_PRICE_FLAGS,
    launch: LaunchOpt = None,
    launch_for: LaunchForOpt = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Predict one workload on one set of chips.

    Step time with a 90 % interval, rate, MFU, memory, time to train, energy and cost; with --explain, how the number
    comes about.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.launch.launch import check_launch_file
    from chipwise.present.output import emit, show
    from chipwise.present.progress import stages
    from chipwise.workload.read import read_workload

    check_launch_file(launch, launch_for)
    known = Knowledge.default(**offers)
    work = read_workload(workload, flags)
    with stages(f"compiling for {on}") as stage:
        prediction = api.predict(
            work, on, layout=layout, headroom=headroom, evidence=evidence, knowledge=known, stage=stage
        )
    if explain and output == "table":
        emit(prediction.explanation(), out)
    else:
        show(prediction, output, out)
    if launch is not None:
        prediction.launch(launch_for, launch).write(launch)

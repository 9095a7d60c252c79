"""chipwise layouts: every way to split a workload over chips, timed."""

from __future__ import annotations

from typing import Annotated

from chipwise.cli.completion import complete_chips
from chipwise.cli.declare import option
from chipwise.cli.options import (
    NO_FLAGS,
    ChipFileOpt,
    Flags,
    HeadroomOpt,
    OutFile,
    TableJsonCsv,
    WorkloadArg,
    with_workload_flags,
)
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise layouts examples/gpt3-175b-pretrain.yaml --on h100:512
  chipwise layouts llama-3.1-70b --steps 1 --batch 1024 --sequence 8192 --on v5p:4x8x8 --top 20
  chipwise layouts examples/mixtral-8x7b-pretrain.yaml --on h200:64 -o json
"""


@with_workload_flags
def layouts(
    workload: WorkloadArg,
    on: Annotated[str, option("--on", "CHIPS", "Chips and how many: h100:512, v5e:8x8, v5p-128.", complete_chips)],
    top: Annotated[int, option("--top", "N", "Layouts to show.", min=1, max=1000)] = defaults.LAYOUTS,
    headroom: HeadroomOpt = None,
    chip_file: ChipFileOpt = None,
    flags: Flags = NO_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Search every legal way to split the work over chips.

    Shows the best layouts, the Pareto front of time against memory, and why others were refused.
    """
    from chipwise import api
    from chipwise.catalog import add_chip_files
    from chipwise.present.output import show
    from chipwise.workload.read import read_workload

    add_chip_files(chip_file or ())
    show(api.layouts(read_workload(workload, flags), on, top=top, headroom=headroom), output, out)

"""chipwise layouts: every way to split a workload over chips, timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import (
    NO_FLAGS,
    Flags,
    OutFile,
    TableJsonCsv,
    WorkloadArg,
    complete_chips,
    with_workload_flags,
)

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators
    from chipwise.layout import Found, SearchResult
    from chipwise.present.blocks import Block, Table
    from chipwise.workload import Workload

EXAMPLES = """\b
Examples:
  chipwise layouts examples/gpt3-175b-pretrain.yaml --on h100:512
  chipwise layouts llama-3.1-70b --steps 1 --batch 1024 --sequence 8192 --on v5p:4x8x8 --top 20
  chipwise layouts examples/mixtral-8x7b-pretrain.yaml --on h200:64 -o json
"""


@with_workload_flags
def layouts(
    workload: WorkloadArg,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="CHIPS",
            help="Chips and how many: h100:512, v5e:8x8, v5p-128.",
            autocompletion=complete_chips,
        ),
    ],
    top: Annotated[int, typer.Option("--top", metavar="N", help="Layouts to show.", min=1, max=1000)] = 10,
    flags: Flags = NO_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Search every legal way to split the work over chips.

    Shows the best layouts, the Pareto front of time against memory, and why others were refused.
    """
    from chipwise.catalog import parse
    from chipwise.catalog.calibration import in_use
    from chipwise.cli import records
    from chipwise.cli.workloads import read_workload
    from chipwise.layout import search
    from chipwise.predict.setup import named_stack
    from chipwise.present.output import emit, emit_csv, emit_json, formats

    formats(output, "table", "json", "csv")
    acc = parse(on)
    work = read_workload(workload, flags)
    found = search(work, acc, in_use(), named_stack(work), top)
    if output == "json":
        emit_json(records.layouts(work, acc, found), out)
    elif output == "csv":
        front = [{"set": "front", **records.found(f, found)} for f in found.front]
        emit_csv([{"set": "top", **records.found(f, found)} for f in found.top] + front, out)
    else:
        emit(blocks(work, acc, found), out)


def blocks(work: Workload, acc: Accelerators, r: SearchResult) -> list[Block]:
    """A search for people."""
    from chipwise.cli.words import plural
    from chipwise.layout import in_words
    from chipwise.present.blocks import Text
    from chipwise.units import format_bytes, format_seconds

    fits = r.evaluated - r.too_large
    out: list[Block] = [
        Text(
            f"{work.name} on {acc}: the best of {plural(r.evaluated, 'layout')} is {r.best.layout}, "
            f"{format_seconds(r.best.seconds)} a step"
        ),
        _table(r.top, r, "Best layouts, one per split"),
        _table(r.front, r, "Pareto front: nothing else is both faster and smaller"),
        Text("Evaluated and refused", True),
        Text(
            f"  {plural(r.evaluated, 'layout')} of {plural(r.splits, 'split')} evaluated; {fits:,} fit in "
            f"{format_bytes(r.limit)}"
        ),
    ]
    if r.too_large:
        out.append(
            Text(
                f"  {plural(r.too_large, 'layout')} too large for the memory (the smallest of all needs "
                f"{format_bytes(r.least_bytes)})"
            )
        )
    return out + [Text(f"  {line}") for line in in_words(r.refused)]


def _table(found: tuple[Found, ...], r: SearchResult, title: str) -> Table:
    from chipwise.present.blocks import Table
    from chipwise.units import format_bytes, format_seconds

    rows = [
        [
            str(f.layout),
            format_seconds(f.seconds),
            f"{f.seconds / r.best.seconds:.2f}x",
            format_bytes(f.bytes),
            format_bytes(max(r.headroom(f), 0.0)),
        ]
        for f in found
    ]
    return Table(
        ["layout", "step", "of the best", "memory", "headroom"],
        rows,
        frozenset({"layout"}),
        title=title,
        under=("layout",),
    )

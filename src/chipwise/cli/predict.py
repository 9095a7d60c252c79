"""chipwise predict: one workload on one set of chips, with one layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import (
    NO_FLAGS,
    EvidenceOpt,
    Flags,
    FxOpt,
    OutFile,
    PricesOpt,
    TableJson,
    WorkloadArg,
    complete_chips,
    with_workload_flags,
)

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators, Stack
    from chipwise.catalog.calibration import Calibration
    from chipwise.predict.prediction import Prediction
    from chipwise.workload import Workload

EXAMPLES = """\b
Examples:
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:128 --explain
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:128 --layout fsdp=128 --explain
  chipwise predict llama-3.1-70b --steps 1 --batch 512 --sequence 8192 --on h100:512 --layout tp=8,pp=4
  chipwise predict examples/llama-3.1-8b-pretrain.yaml --on v5p:64 --evidence compiled
  chipwise predict my-model/config.json --tokens 1T --batch 1024 --sequence 4096 --on h200:64 -o json
"""


@with_workload_flags
def predict(
    workload: WorkloadArg,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="CHIPS",
            help="Chips and how many: h100:64, v5e:8x8, v5p-128.",
            autocompletion=complete_chips,
        ),
    ],
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="AXES",
            help="How the work is split: fsdp=128 or tp=8,pp=4,mbs=1. The best unless said.",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how the number comes about.")] = False,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = "modelled",
    prices: PricesOpt = None,
    fx: FxOpt = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Predict one workload on one set of chips.

    Step time with a 90 % interval, rate, MFU, memory, time to train, energy and cost; with --explain, how the number
    comes about.
    """
    from chipwise.catalog import parse
    from chipwise.catalog.calibration import in_use
    from chipwise.cli import records
    from chipwise.cli.evidence import known_evidence, with_evidence
    from chipwise.cli.explain import explanation, price_words, summary
    from chipwise.cli.pricing import book_of
    from chipwise.cli.workloads import read_workload
    from chipwise.predict.prediction import collectives
    from chipwise.predict.setup import named_stack
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.prices import quote

    formats(output, "table", "json")
    known_evidence(evidence)
    acc = parse(on)
    book = book_of(prices, fx)
    work = read_workload(workload, flags)
    found = with_evidence(_predict(work, acc, layout, in_use(), named_stack(work)), evidence, in_use())
    ondemand, spot = (quote(acc.chip, acc.count, found.duration, s, book=book) for s in (False, True))
    own = price_words(book, ondemand, spot)
    if output == "json":
        document = {
            **records.head("predict"),
            "workload": records.workload(work),
            **records.prediction(found),
            "collectives_seconds": collectives(found, in_use()),
            "ondemand": records.quote(ondemand),
            "spot": records.quote(spot),
            "prices": book.origin,
        }
        emit_json(document, out)
    elif explain:
        emit([*explanation(found, in_use()), *summary(found, ondemand, spot)[1:], *own], out)
    else:
        emit([*summary(found, ondemand, spot), *own], out)


def _predict(
    work: Workload, acc: Accelerators, layout: str | None, calibration: Calibration, stack: Stack | None
) -> Prediction:
    """The prediction of a layout, or of the best one; a `Refusal` where it can't run."""
    from chipwise.errors import DoesNotFit, Refusal
    from chipwise.layout import search
    from chipwise.layout.named import read_layout
    from chipwise.predict.prediction import predict as run
    from chipwise.units import format_bytes

    if stack is not None and acc.chip.family not in stack.families:
        raise Refusal(
            f"{stack.name} does not run on {acc.chip.id}",
            f"it runs on {' and '.join(f'{f} chips' for f in stack.families)}",
        )
    if layout is None:
        return run(work, acc, search(work, acc, calibration, stack).best.layout, calibration, stack)
    split = read_layout(layout, work, acc, calibration, stack)
    found = run(work, acc, split, calibration, stack)
    if not found.fits:
        raise DoesNotFit(
            f"{work.name} does not fit on {acc} with {split}: it needs {format_bytes(found.memory['total'])} a chip,"
            f" {format_bytes(found.capacity)} can be allocated",
            f"see `chipwise layouts WORKLOAD --on {acc}`",
        )
    return found

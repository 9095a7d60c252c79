"""chipwise validate: predictions against published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.declare import option
from chipwise.cli.options import OutFile, TableJson
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise validate
  chipwise validate --evidence compiled
  chipwise validate --evidence compiled --row T0039 --recompile
  chipwise validate --rows validation/rows/training.csv -o json --out scoreboard.json
  chipwise validate --rows measured.csv --on h200
"""


def validate(
    rows: Annotated[
        list[Path] | None, option("--rows", "FILE", "Rows to score, repeatable; default: those shipped.")
    ] = None,
    evidence: Annotated[
        str,
        option(
            "--evidence",
            "KIND",
            "modelled (all rows), or compiled: TPU training rows by the schedules that XLA made of them.",
        ),
    ] = defaults.EVIDENCE,
    on: Annotated[str | None, option("--on", "CHIP", "The chip that flat rows of measurements are of.")] = None,
    ids: Annotated[list[str] | None, option("--row", "ID", "Score this row only, repeatable.")] = None,
    recompile: Annotated[
        bool,
        typer.Option(
            "--recompile", help="With compiled: run the compiler again instead of reading the kept schedules."
        ),
    ] = False,
    compile_missing: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile",
            help="With compiled: compile rows of which no schedule is kept (minutes each). "
            "Default: for rows named by --rows or --row.",
            show_default=False,
        ),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Score predictions against published results.

    Error, bias and how often the 90 % intervals held, over all rows, by chip and by source.
    """
    from chipwise import api
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("scoring") as shown:
        validation = api.validate(
            rows,
            on=on,
            evidence=evidence,
            ids=ids,
            recompile=recompile,
            compile_missing=compile_missing,
            progress=shown,
        )
    show(validation, output, out)

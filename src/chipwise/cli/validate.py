"""chipwise validate: predictions against published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from chipwise.cli.options import OutFile, TableJson

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
        list[Path] | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="Rows to score, may be repeated; those shipped unless said.",
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        str,
        typer.Option(
            "--evidence",
            metavar="KIND",
            help="modelled (all rows), or compiled: TPU training rows by the schedules that XLA made of them.",
        ),
    ] = "modelled",
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="CHIP", help="The chip that flat rows of measurements are of.", show_default=False
        ),
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option("--row", metavar="ID", help="Score this row only, may be repeated.", show_default=False),
    ] = None,
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
            help="With compiled: compile rows of which no schedule is kept (minutes each). Done "
            "for rows named by --rows or --row unless said.",
            show_default=False,
        ),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Score predictions against published results.

    Error, bias and how often the 90 % intervals held, over all rows, by chip and by source.
    """
    from chipwise.cli.records import head
    from chipwise.errors import BrokenFile, InputError
    from chipwise.present.output import emit_json, formats, write
    from chipwise.present.progress import progress
    from chipwise.validate import report, score
    from chipwise.validate.compiled import compile_now
    from chipwise.validate.report import points_report

    formats(output, "table", "json")
    if evidence not in ("modelled", "compiled"):
        raise InputError("--evidence", evidence, "modelled or compiled")
    missing = bool(rows or row or recompile) if compile_missing is None else compile_missing
    compiling = None if evidence == "modelled" else (compile_now if missing else None, recompile)
    if compiling is None and (recompile or compile_missing is not None):
        raise InputError("--recompile" if recompile else "--compile", "given", "only with --evidence compiled")
    for path in rows or ():
        if not path.is_file():
            raise BrokenFile("--rows", str(path), "a file that exists")
    flat = _flat(rows or [], on)
    if flat is not None and (row or evidence != "modelled"):
        option, given = ("--row", ", ".join(row)) if row else ("--evidence", evidence)
        raise InputError(option, given, "only beside published rows; --rows holds flat ones")
    if flat is not None:
        found = flat
        if output == "json":
            emit_json({**head("validate"), **found}, out)
        else:
            write(points_report(found), out)
        return
    with progress("scoring") as shown:
        found = score(rows or None, shown, ids=row or (), compiling=compiling)
    if output == "json":
        emit_json({**head("validate"), **found}, out)
    else:
        write(report(found).rstrip("\n") + "\n", out)


def _flat(paths: list[Path], on: str | None) -> dict[str, Any] | None:
    """Flat rows of measurements scored, where that is what the files hold."""
    from chipwise.catalog.names import find_chip
    from chipwise.errors import InputError
    from chipwise.validate.bench_score import score_rows
    from chipwise.validate.score import FLAT, read_rows

    read = [read_rows(path) for path in paths]
    flat = [rows for kind, rows in read if kind == FLAT]
    if not flat:
        if on is not None:
            raise InputError("--on", on, "only beside --rows with flat rows of measurements")
        return None
    if len(flat) < len(read):
        raise InputError("--rows", ", ".join(map(str, paths)), "files of one kind: published rows or flat ones")
    if on is None:
        raise InputError("--on", "", "the chip that the flat rows are of, such as h200")
    if ":" in on:
        raise InputError("--on", on, "one chip with no count, such as h200: flat rows are of one")
    return score_rows([row for rows in flat for row in rows], find_chip(on))

"""chipwise doctor: which compilers are installed, and what each enables."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.declare import option
from chipwise.cli.options import OutFile, TableJson

EXAMPLES = """\b
Examples:
  chipwise doctor
  chipwise doctor --require tpu,torch
  chipwise doctor -o json
"""
MISSING = 1  # exit status: something required is not usable


def doctor(
    require: Annotated[
        str | None,
        option(
            "--require",
            "LIST",
            "Leave with 1 unless these are usable: tpu, gpu, torch, export. Of those, what this platform can have.",
        ),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Show the compilers installed, and what each enables.

    For a missing one, the command that installs it, and under which license it comes; where this platform can't have
    it, the ways out.
    """
    from chipwise.compiled.doctor import diagnose
    from chipwise.present.output import show
    from chipwise.present.safe import safe

    diagnosis = diagnose(require)
    show(diagnosis, output, out)
    for state in diagnosis.impossible:
        typer.echo(f"chipwise: not required here: {safe(str(state.error()))}", err=True)
    if diagnosis.lacking:
        names = ", ".join(state.toolchain.id for state in diagnosis.lacking)
        typer.echo(f"chipwise: required but not usable: {names}", err=True)
        raise typer.Exit(MISSING)

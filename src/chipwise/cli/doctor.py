"""chipwise doctor: which compilers are installed, what each enables, and what there is to observe with."""

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
    """Show the compilers installed, what each enables, and what this node can be observed with.

    For a missing compiler, the command that installs it, and under which license it comes; where this platform can't
    have it, the ways out.
    """
    from chipwise.observe.agent.doctor import examine
    from chipwise.present.output import show
    from chipwise.present.safe import safe

    examination = examine(require)
    diagnosis = examination.compilers
    show(examination, output, out)
    for state in diagnosis.impossible:
        typer.echo(f"chipwise: not required here: {safe(str(state.error()))}", err=True)
    if diagnosis.lacking:
        names = ", ".join(state.toolchain.id for state in diagnosis.lacking)
        typer.echo(f"chipwise: required but not usable: {names}", err=True)
        raise typer.Exit(MISSING)

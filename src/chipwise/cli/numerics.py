"""chipwise numerics: does a program train in low precision, and where does it break?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import one_of
from chipwise.cli.options import OutFile, TableJson
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise numerics char-transformer
  chipwise numerics digits-cnn --framework jax --precisions bf16,fp8
  chipwise numerics examples/programs/numerics_underflow.py --precisions fp16 --plot curves.png
  chipwise numerics mine.py --seeds 8 --steps 400 -o json --out numerics.json
"""


def numerics(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM",
            help="char-transformer, digits-cnn, or a Python file (JAX or PyTorch).",
            autocompletion=one_of("char-transformer", "digits-cnn"),
            show_default=False,
        ),
    ],
    precisions: Annotated[
        str,
        typer.Option(
            "--precisions", metavar="LIST", help="Some of fp32, bf16, fp16, fp8; fp32 is always the reference."
        ),
    ] = defaults.PRECISIONS,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", help="Seeds trained in each precision; default: 5.", show_default=False),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", metavar="N", help="Steps of each run; default: the program's own, or 100.", show_default=False
        ),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(
            "--framework",
            metavar="NAME",
            help="torch or jax, where a program comes in both.",
            autocompletion=one_of("torch", "jax"),
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="3 seeds of 40 steps, where not given.")] = False,
    loss_scale: Annotated[
        float, typer.Option("--loss-scale", metavar="S", help="Scale of fp16 with static loss scaling.")
    ] = defaults.LOSS_SCALE,
    margin: Annotated[
        float, typer.Option("--margin", metavar="SHARE", help="How much more final loss still counts as the same.")
    ] = defaults.MARGIN,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Round in software even where the hardware has the precision.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the curves to a .png or .svg.", show_default=False),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Train a program in each precision and say which are safe.

    The same seeds are trained in fp32 and in each lower precision, fp16 with and without loss scaling, bf16 with and
    without fp32 master weights; final losses and curves are compared by a paired test. Without an accelerator, low
    precision is emulated by rounding.
    """
    from chipwise import api
    from chipwise.present.output import formats, ready, show
    from chipwise.present.progress import progress

    formats(output, "table", "json")
    ready(out)
    with progress("training") as line:
        study = api.numerics(
            program,
            precisions=precisions,
            seeds=seeds,
            steps=steps,
            framework=framework,
            quick=quick,
            loss_scale=loss_scale,
            margin=margin,
            emulate=emulate,
            plot=plot,
            progress=line,
        )
    show(study, output, out)

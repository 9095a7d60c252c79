"""chipwise numerics: does a program train in low precision, and where does it break?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import one_of
from chipwise.cli.declare import argument, option
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
        argument(
            "PROGRAM",
            "char-transformer, digits-cnn, or a Python file (JAX or PyTorch).",
            one_of("char-transformer", "digits-cnn"),
        ),
    ],
    precisions: Annotated[
        str, option("--precisions", "LIST", "Some of fp32, bf16, fp16, fp8; fp32 is always the reference.")
    ] = defaults.PRECISIONS,
    seeds: Annotated[int | None, option("--seeds", "N", "Seeds trained in each precision; default: 5.")] = None,
    steps: Annotated[
        int | None, option("--steps", "N", "Steps of each run; default: the program's own, or 100.")
    ] = None,
    framework: Annotated[
        str | None,
        option("--framework", "NAME", "torch or jax, where a program comes in both.", one_of("torch", "jax")),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="3 seeds of 40 steps, where not given.")] = False,
    loss_scale: Annotated[
        float, option("--loss-scale", "S", "Scale of fp16 with static loss scaling.")
    ] = defaults.LOSS_SCALE,
    margin: Annotated[
        float, option("--margin", "SHARE", "How much more final loss still counts as the same.")
    ] = defaults.MARGIN,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Round in software even where the hardware has the precision.")
    ] = False,
    plot: Annotated[Path | None, option("--plot", "FILE", "Draw the curves to a .png or .svg.")] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Train a program in each precision and say which are safe.

    The same seeds are trained in fp32 and in each lower precision, fp16 with and without loss scaling, bf16 with and
    without fp32 master weights; final losses and curves are compared by a paired test. Without an accelerator, low
    precision is emulated by rounding.
    """
    from chipwise import api
    from chipwise.present.output import ready, show
    from chipwise.present.progress import progress

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

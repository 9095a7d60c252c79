"""chipwise bench: measure this machine's accelerator, and read, compare and draw what was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.completion import one_of
from chipwise.cli.declare import argument, group, option
from chipwise.cli.options import OutFile, TableJson, TableJsonCsv
from chipwise.verbs import defaults

if TYPE_CHECKING:
    from chipwise.bench.session import BenchPlan

EXAMPLES = """\b
Examples:
  chipwise bench kernels --quick --out h200.json
  chipwise bench all --device cpu --suite-size tiny
  chipwise bench train --points
  chipwise bench show h200.json
  chipwise bench diff before.json after.json --fail-above 5
  chipwise bench roofline h200.json --plot roofline.svg
"""
MEASURE_EXAMPLES = """\b
Examples:
  chipwise bench {suite} --quick --out today.json
  chipwise bench {suite} --device cpu --suite-size tiny
  chipwise bench {suite} --frameworks torch --seconds 300 --out today.json
  chipwise bench {suite} --points
"""
SHOW_EXAMPLES = """\b
Examples:
  chipwise bench show examples/bench/h200-1.json.gz
  chipwise bench show h200.json --framework torch -o csv --out rows.csv
"""
DIFF_EXAMPLES = """\b
Examples:
  chipwise bench diff examples/bench/h200-1.json.gz examples/bench/h200-2.json.gz
  chipwise bench diff before.json after.json --fail-above 5
"""
ROOFLINE_EXAMPLES = """\b
Examples:
  chipwise bench roofline examples/bench/h200-1.json.gz
  chipwise bench roofline h200.json --plot roofline.svg
"""
SUITES = {
    "kernels": "Measure matrix products, attention, copies and the like.",
    "train": "Measure training steps of decoders.",
    "serve": "Measure prefill and decode steps of decoders.",
    "vision": "Measure steps of ResNet-50 and vision transformers.",
    "collectives": "Measure all-reduce and its kin over all devices here.",
    "all": "Measure every suite, one after another.",
}
NOTHING_USABLE = REGRESSED = 1  # exit statuses

app = group("bench", "Measure this machine, and compare measurements.", EXAMPLES)

FileArg = Annotated[Path, argument("FILE", "A bench file.")]
DeviceOpt = Annotated[
    str, option("--device", "NAME", "auto, cuda, tpu, rocm or cpu.", one_of("auto", "cuda", "tpu", "rocm", "cpu"))
]
FrameworksOpt = Annotated[
    str | None,
    option(
        "--frameworks",
        "LIST",
        "torch, jax or both: torch,jax; default: those installed.",
        one_of("torch", "jax", "torch,jax"),
    ),
]
QuickOpt = Annotated[bool, typer.Option("--quick", help="Fewer points, less time for each: minutes.")]
SizeOpt = Annotated[
    str | None, option("--suite-size", "NAME", "tiny, quick or full; default: full.", one_of("tiny", "quick", "full"))
]
SecondsOpt = Annotated[str | None, option("--seconds", "TIME", "Begin no point after it: 300, 10min.")]
PointsOpt = Annotated[bool, typer.Option("--points", help="List what would be measured, and measure nothing.")]
HostOpt = Annotated[bool, typer.Option("--hostname", help="Record the machine's name in the file.")]
KeepFile = Annotated[Path | None, option("--out", "FILE", "Keep the measurements in a bench file.")]


def _command(suite: str, words: str) -> Callable[..., None]:
    """The command that measures a suite."""

    def measure(
        device: DeviceOpt = defaults.DEVICE,
        frameworks: FrameworksOpt = None,
        quick: QuickOpt = False,
        suite_size: SizeOpt = None,
        seconds: SecondsOpt = None,
        points: PointsOpt = False,
        hostname: HostOpt = False,
        output: TableJson = "table",
        out: KeepFile = None,
    ) -> None:
        from chipwise import api
        from chipwise.present.output import show

        plan = api.bench.plan(
            suite,
            device=device,
            frameworks=frameworks,
            suite_size=suite_size,
            quick=quick,
            seconds=seconds,
            hostname=hostname,
        )
        if points:
            show(plan, output, out)
        else:
            _measure(plan, output, out)

    measure.__doc__ = (
        f"{words}\n\nWith every framework installed, each in a process of its own. Results go to "
        "stdout, progress to stderr; Ctrl-C keeps what is done. Exit status 0 if some point is "
        "usable, 1 if none is, 2 for input that can't be used."
    )
    return measure


for _name, _words in SUITES.items():
    app.command(_name, epilog=MEASURE_EXAMPLES.format(suite=_name))(_command(_name, _words))


def _measure(plan: BenchPlan, output: str, out: Path | None) -> None:
    from chipwise import api
    from chipwise.bench.file import text
    from chipwise.bench.progress import showing
    from chipwise.io.printable import json_escaped
    from chipwise.present.output import emit, write
    from chipwise.present.safe import safe

    with showing(plan, out) as tell:
        run = api.bench(plan, out=out, progress=tell)
    if output == "json":
        write(json_escaped(text(run.file)), None)  # one line a point, as the file has it
    else:
        emit(run.blocks())
    if run.kept is not None:
        typer.echo(f"kept in {safe(str(run.kept))}", err=True)
    if run.interrupted:
        raise KeyboardInterrupt
    if not run.usable:
        raise typer.Exit(NOTHING_USABLE)


@app.command("show", epilog=SHOW_EXAMPLES)
def show(
    file: FileArg,
    framework: Annotated[str | None, option("--framework", "NAME", "Only that framework's points.")] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Show a bench file.

    Times, rates, their share of the chip's peak, and what could not be measured. -o csv has the usable points as
    flat rows.
    """
    from chipwise import api
    from chipwise.present import output as present

    present.show(api.bench.show(file, framework=framework), output, out)


@app.command("diff", epilog=DIFF_EXAMPLES)
def diff(
    before: Annotated[Path, argument("A", "A bench file.")],
    after: Annotated[Path, argument("B", "A later one.")],
    fail_above: Annotated[
        float | None,
        option(
            "--fail-above",
            "PERCENT",
            "Leave with 1 if a point is significantly slower by more than this.",
            min=0.0,
            max=1e6,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show the points that did not change, too.")] = False,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Compare two bench files, point by point.

    Samples are compared by a Mann-Whitney U test. Of the points called slower or faster, one in twenty is expected
    to be a false alarm (Benjamini-Hochberg). The test knows the scatter within each run, not from run to run.
    """
    from chipwise import api
    from chipwise.present import output as present

    changes = api.bench.diff(before, after, fail_above=fail_above)
    if output == "table":
        present.emit(changes.blocks(every), out)
    else:
        present.show(changes, output, out)
    if changes.failures:
        raise typer.Exit(REGRESSED)


@app.command("roofline", epilog=ROOFLINE_EXAMPLES)
def roofline(
    file: FileArg,
    plot: Annotated[Path | None, option("--plot", "FILE", "Draw it, as .svg or .png.")] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Show the ceilings measured, and draw the roofline.

    Bandwidth by the best copy or addition, FLOP/s by the best product of each precision.
    """
    from chipwise import api
    from chipwise.present import output as present

    present.show(api.bench.roofline(file, plot=plot), output, out)

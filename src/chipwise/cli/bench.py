"""chipwise bench: measure this machine's accelerator, and read, compare and draw what was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import OutFile, TableJson, TableJsonCsv, one_of

if TYPE_CHECKING:
    from chipwise.bench.session import Plan, Request, Session

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
SUITES = {  # in the order that `all` runs them
    "kernels": "Measure matrix products, attention, copies and the like.",
    "train": "Measure training steps of decoders.",
    "serve": "Measure prefill and decode steps of decoders.",
    "vision": "Measure steps of ResNet-50 and vision transformers.",
    "collectives": "Measure all-reduce and its kin over all devices here.",
}
SIZES = ("tiny", "quick", "full")
PLATFORMS = ("auto", "cuda", "tpu", "rocm", "cpu")
NOTHING_USABLE = REGRESSED = 1  # exit statuses

app = typer.Typer(
    name="bench",
    help="Measure this machine, and compare measurements.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)

FileArg = Annotated[Path, typer.Argument(metavar="FILE", help="A bench file.", show_default=False)]
DeviceOpt = Annotated[
    str,
    typer.Option("--device", metavar="NAME", help="auto, cuda, tpu, rocm or cpu.", autocompletion=one_of(*PLATFORMS)),
]
FrameworksOpt = Annotated[
    str | None,
    typer.Option(
        "--frameworks",
        metavar="LIST",
        help="torch, jax or both: torch,jax. Those installed unless said.",
        autocompletion=one_of("torch", "jax", "torch,jax"),
        show_default=False,
    ),
]
QuickOpt = Annotated[bool, typer.Option("--quick", help="Fewer points, less time for each: minutes.")]
SizeOpt = Annotated[
    str | None,
    typer.Option(
        "--suite-size",
        metavar="NAME",
        help="tiny, quick or full (full unless said).",
        autocompletion=one_of(*SIZES),
        show_default=False,
    ),
]
SecondsOpt = Annotated[
    str | None,
    typer.Option("--seconds", metavar="TIME", help="Begin no point after it: 300, 10min.", show_default=False),
]
PointsOpt = Annotated[bool, typer.Option("--points", help="List what would be measured, and measure nothing.")]
HostOpt = Annotated[bool, typer.Option("--hostname", help="Record the machine's name in the file.")]
KeepFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Keep the measurements in a bench file.", show_default=False),
]


def _command(name: str, suites: tuple[str, ...], words: str) -> Callable[..., None]:
    """The command that measures some suites."""

    def measure(
        device: DeviceOpt = "auto",
        frameworks: FrameworksOpt = None,
        quick: QuickOpt = False,
        suite_size: SizeOpt = None,
        seconds: SecondsOpt = None,
        points: PointsOpt = False,
        hostname: HostOpt = False,
        output: TableJson = "table",
        out: KeepFile = None,
    ) -> None:
        from chipwise.bench.session import plan
        from chipwise.present.output import formats

        formats(output, "table", "json")
        request = _request(name, suites, device, frameworks, quick, suite_size, seconds, hostname)
        planned = plan(request)
        if points:
            _list(planned, output, out)
        else:
            _measure(request, planned, output, out)

    measure.__doc__ = (
        f"{words}\n\nWith every framework installed, each in a process of its own. Results go to "
        "stdout, progress to stderr; Ctrl-C keeps what is done. Exit status 0 if some point is "
        "usable, 1 if none is, 2 for input that can't be used."
    )
    return measure


for _name, _words in SUITES.items():
    app.command(_name, epilog=MEASURE_EXAMPLES.format(suite=_name))(_command(_name, (_name,), _words))
app.command("all", epilog=MEASURE_EXAMPLES.format(suite="all"))(
    _command("all", tuple(SUITES), "Measure every suite, one after another.")
)


def _request(
    name: str,
    suites: tuple[str, ...],
    device: str,
    frameworks: str | None,
    quick: bool,
    suite_size: str | None,
    seconds: str | None,
    host: bool,
) -> Request:
    from chipwise.bench.session import OPENERS, Request
    from chipwise.errors import InputError
    from chipwise.units import parse_duration

    if device not in PLATFORMS:
        raise InputError("--device", device, f"one of {', '.join(PLATFORMS)}")
    if suite_size is not None and suite_size not in SIZES:
        raise InputError("--suite-size", suite_size, f"one of {', '.join(SIZES)}")
    if quick and suite_size not in (None, "quick"):
        raise InputError("--suite-size", suite_size, "quick beside --quick, or one of the two options alone")
    size = suite_size or ("quick" if quick else "full")
    chosen = tuple(dict.fromkeys(word.strip().lower() for word in (frameworks or "").split(",") if word.strip()))
    if frameworks is not None and (not chosen or set(chosen) - set(OPENERS)):
        raise InputError("--frameworks", frameworks, f"some of {', '.join(OPENERS)}")
    limit = None
    if seconds is not None:
        limit = parse_duration(seconds, "--seconds")
        if not limit > 0:
            raise InputError("--seconds", seconds, "more than 0")
    words = ["chipwise", "bench", name, "--device", device, "--suite-size", size]
    words += ["--frameworks", ",".join(chosen)] if chosen else []
    words += ["--seconds", seconds] if seconds is not None else []
    return Request(suites, device, size, chosen, limit, tuple(words), host)


def _list(planned: Plan, output: str, out: Path | None) -> None:
    from chipwise.cli.bench_blocks import plan_blocks
    from chipwise.cli.bench_records import plan_record
    from chipwise.present.output import emit, emit_json

    if output == "json":
        emit_json(plan_record(planned), out)
    else:
        emit(plan_blocks(planned), out)


def _measure(request: Request, planned: Plan, output: str, out: Path | None) -> None:
    from chipwise.bench.session import Session
    from chipwise.cli.bench_progress import showing
    from chipwise.errors import ChipwiseError

    if not planned.total:
        device = planned.parts[0].device
        raise ChipwiseError(
            f"nothing to measure: {', '.join(request.suites)} has no point for {device.name} "
            f"(devices here: {device.count})"
        )
    if out is not None and out.is_dir():
        raise ChipwiseError(f"--out: {out} is a folder; expected a file's name")
    with showing(planned, out) as tell:
        session = Session(request, planned, tell, out)
        session.run()
    _results(session, output)
    if session.interrupted:
        raise KeyboardInterrupt
    if not any(each.usable for each in session.file.points):
        raise typer.Exit(NOTHING_USABLE)


def _results(session: Session, output: str) -> None:
    from chipwise.bench.file import text
    from chipwise.cli.bench_blocks import file_blocks
    from chipwise.present.output import emit, write

    if output == "json":
        write(text(session.file), None)
    else:
        emit(file_blocks(session.file))
    if session.out is not None:
        typer.echo(f"kept in {session.out}", err=True)


@app.command("show", epilog=SHOW_EXAMPLES)
def show(
    file: FileArg,
    framework: Annotated[
        str | None,
        typer.Option("--framework", metavar="NAME", help="Only that framework's points.", show_default=False),
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Show a bench file.

    Times, rates, their share of the chip's peak, and what could not be measured. -o csv has the usable points as
    flat rows.
    """
    from dataclasses import replace

    from chipwise.bench.file import read, rows
    from chipwise.bench.measurement import COLUMNS, MORE_COLUMNS
    from chipwise.cli import bench_records
    from chipwise.cli.bench_blocks import file_blocks
    from chipwise.errors import InputError
    from chipwise.present.output import emit, emit_csv, emit_json, formats, write

    formats(output, "table", "json", "csv")
    found = read(file)
    if framework is not None:
        if framework not in found.frameworks:
            raise InputError("--framework", framework, f"one of {', '.join(found.frameworks)}")
        found = replace(found, points=tuple(each for each in found.points if each.framework == framework))
    if output == "json":
        emit_json(bench_records.file_record(found), out)
    elif output == "csv":
        flat = rows(found)
        emit_csv(flat, out) if flat else write(",".join((*COLUMNS, *MORE_COLUMNS)) + "\n", out)
    else:
        emit(file_blocks(found), out)


@app.command("diff", epilog=DIFF_EXAMPLES)
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="A bench file.", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="B", help="A later one.", show_default=False)],
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above",
            metavar="PERCENT",
            help="Leave with 1 if a point is significantly slower by more than this.",
            min=0.0,
            max=1e6,
            show_default=False,
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
    from chipwise.bench.diff import diff as compare
    from chipwise.bench.file import read
    from chipwise.cli.bench_blocks import diff_blocks
    from chipwise.cli.bench_records import diff_record
    from chipwise.present.output import emit, emit_json, formats

    formats(output, "table", "json")
    found = compare(read(before), read(after))
    if output == "json":
        emit_json(diff_record(found, fail_above), out)
    else:
        emit(diff_blocks(found, fail_above, every), out)
    if fail_above is not None and found.regressions(fail_above):
        raise typer.Exit(REGRESSED)


@app.command("roofline", epilog=ROOFLINE_EXAMPLES)
def roofline(
    file: FileArg,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it, as .svg or .png.", show_default=False)
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Show the ceilings measured, and draw the roofline.

    Bandwidth by the best copy or addition, FLOP/s by the best product of each precision.
    """
    from chipwise.bench.file import read
    from chipwise.bench.roofline import draw
    from chipwise.bench.roofline import roofline as ceilings
    from chipwise.cli.bench_blocks import roofline_blocks
    from chipwise.cli.bench_records import roofline_record
    from chipwise.present.output import emit, emit_json, formats

    formats(output, "table", "json")
    found = ceilings(read(file))
    if plot is not None:
        draw(found, plot)
    if output == "json":
        emit_json(roofline_record(found), out)
    else:
        emit(roofline_blocks(found), out)

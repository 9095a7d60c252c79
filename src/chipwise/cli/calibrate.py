"""chipwise calibrate: measurements become what predictions are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import OutFile, TableJson

if TYPE_CHECKING:
    from chipwise.predict.learn.bench_calibration import BenchCalibration
    from chipwise.present.blocks import Block

EXAMPLES = """\b
Examples:
  chipwise calibrate bench examples/bench/h200-1.json.gz --folder calibration
"""
BENCH_EXAMPLES = """\b
Examples:
  chipwise calibrate bench examples/bench/h200-1.json.gz --folder calibration
  chipwise calibrate bench monday.json tuesday.json --framework torch
  chipwise calibrate bench card.json --chip rtx-4090 --folder calibration
"""

app = typer.Typer(
    name="calibrate",
    help="Let measurements correct the predictions.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _group() -> None:
    """Let measurements correct the predictions."""


@app.command("bench", epilog=BENCH_EXAMPLES)
def bench(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Bench files of one chip.", show_default=False)
    ],
    framework: Annotated[
        str | None,
        typer.Option(
            "--framework",
            metavar="NAME",
            help="Only that framework's points; all in the files unless said.",
            show_default=False,
        ),
    ] = None,
    chip: Annotated[
        str,
        typer.Option(
            "--chip",
            metavar="NAME",
            help="The catalog's name of the chip, where the file doesn't say.",
            show_default=False,
        ),
    ] = "",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Where to keep the calibration: your data folder unless said.",
            show_default=False,
        ),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Fit a chip's tables and overheads to bench files.

    Predictions for that chip use them at once, and say `measured` where the very point was measured. Errors are
    those of points left out of the fit. Runs on several machines, taken together, even out how fast their hosts were.
    """
    from chipwise.bench.file import read
    from chipwise.calibrate.bench import fit_bench
    from chipwise.catalog.bench_files import user_folder, write
    from chipwise.cli.records import head
    from chipwise.errors import InputError
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.present.progress import progress

    formats(output, "table", "json")
    names = [path.name for path in files]
    found = {path.name if names.count(path.name) == 1 else str(path): read(path) for path in files}
    if len(found) < len(files):
        raise InputError("FILE", str(files[0]), "each file once")
    known = list(dict.fromkeys(name for file in found.values() for name in file.frameworks))
    usable = [name for name in known if any(m.usable and m.framework == name for f in found.values() for m in f.points)]
    if not usable:
        raise InputError("FILE", ", ".join(found), "a file with points that can be used")
    wanted = usable if framework is None else [framework]
    if framework is not None and framework not in usable:
        raise InputError("--framework", framework, f"one with usable points: {', '.join(usable)}")
    with progress("fitting") as shown:
        calibrations = []
        for i, name in enumerate(wanted):
            shown(i, len(wanted), name)
            calibrations.append(fit_bench(found, name, chip))
    paths = [write(folder or user_folder(), each.as_json()) for each in calibrations]
    if output == "json":
        records = [_record(each, path) for each, path in zip(calibrations, paths, strict=True)]
        emit_json({**head("calibrate"), "calibrations": records}, out)
    else:
        emit(
            [block for i, pair in enumerate(zip(calibrations, paths, strict=True)) for block in _blocks(*pair, i > 0)],
            out,
        )


def _record(calibration: BenchCalibration, path: Path) -> dict[str, Any]:
    return {
        "chip": calibration.chip,
        "framework": calibration.framework,
        "date": calibration.date,
        "source": calibration.source,
        "file": str(path),
        "points": len(calibration.measured),
        "kernels": {name: {"points": t.points, "error": t.error} for name, t in calibration.tables.items()},
        "steps": {name: {"points": s.points, "error": s.error} for name, s in calibration.steps.items()},
        "left_out": dict(calibration.left_out),
    }


def _blocks(calibration: BenchCalibration, path: Path, strong: bool) -> list[Block]:
    from chipwise.present.blocks import Table, Text

    found = {
        **{name: (t.points, t.error) for name, t in calibration.tables.items()},
        **{name: (s.points, s.error) for name, s in calibration.steps.items()},
    }
    rows = [
        [name, f"{points:,}", "too few to tell" if error is None else f"{error * 100:.1f} %"]
        for name, (points, error) in found.items()
    ]
    return [
        Text(
            f"{calibration.chip} with {calibration.framework}, from {calibration.source} of {calibration.date}", strong
        ),
        Table(["what", "points", "error, left out"], rows, frozenset({"what"})),
        *(Text(f"{name} not calibrated: {why}") for name, why in calibration.left_out.items()),
        Text(f"{len(calibration.measured):,} measured points; kept in {path}"),
    ]

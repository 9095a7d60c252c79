"""chipwise calibrate: measurements become what predictions are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.options import OutFile, TableJson

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
            help="Only that framework's points; default: all in the files.",
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
            help="Where to keep the calibration; default: your data folder.",
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
    from chipwise.calibrate.measured import calibrate_bench
    from chipwise.present.output import formats, show
    from chipwise.present.progress import progress

    formats(output, "table", "json")
    with progress("fitting") as shown:
        calibrations = calibrate_bench(files, framework, chip, folder, shown)
    show(calibrations, output, out)

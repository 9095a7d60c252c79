"""chipwise calibrate: measurements become what predictions are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chipwise.cli.declare import argument, group, option
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

app = group("calibrate", "Let measurements correct the predictions.", EXAMPLES)


@app.command("bench", epilog=BENCH_EXAMPLES)
def bench(
    files: Annotated[list[Path], argument("FILE...", "Bench files of one chip.")],
    framework: Annotated[
        str | None, option("--framework", "NAME", "Only that framework's points; default: all in the files.")
    ] = None,
    chip: Annotated[
        str, option("--chip", "NAME", "The catalog's name of the chip, where the file doesn't say.", show_default=False)
    ] = "",
    folder: Annotated[
        Path | None, option("--folder", "FOLDER", "Where to keep the calibration; default: your data folder.")
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Fit a chip's tables and overheads to bench files.

    Predictions for that chip use them at once, and say `measured` where the very point was measured. Errors are
    those of points left out of the fit. Runs on several machines, taken together, even out how fast their hosts were.
    """
    from chipwise.calibrate.measured import calibrate_bench
    from chipwise.present.output import show
    from chipwise.present.progress import progress

    with progress("fitting") as shown:
        calibrations = calibrate_bench(files, framework, chip, folder, shown)
    show(calibrations, output, out)

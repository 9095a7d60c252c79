"""``python -m chipwise.calibrate DATE``: refit on the published rows and write the package's calibration.

``python -m chipwise.calibrate widths DATE`` learns the intervals of serving again and fits nothing.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from chipwise.calibrate import edge, serving_run, serving_widths, training_run
from chipwise.calibrate.tpu_rows import FILE
from chipwise.calibrate.tpu_sweep import complete
from chipwise.catalog.calibration import read_calibration
from chipwise.errors import ChipwiseError

WIDTHS = "widths"
SOURCE = Path(__file__).resolve().parents[1]


def main(arguments: list[str]) -> int:
    """Calibrate in a checkout; the rows are under ``validation``, the compilers' sweep beside the calibration."""
    widths_alone = arguments[:1] == [WIDTHS]
    day = next(iter(arguments[widths_alone:]), date.today().isoformat())
    folder = SOURCE / "catalog" / "data" / "calibration"
    root = SOURCE.parents[1] / "validation"
    try:
        paths = [] if widths_alone else _fit(root, folder, day)
        rows, others = serving_run.read(root), serving_widths.read(root)
        calibration = read_calibration(folder, bench=False)
        paths += serving_widths.write(serving_widths.calibrate_widths(rows, others, calibration, day), folder)
    except ChipwiseError as error:
        print(f"chipwise: {error}", file=sys.stderr)
        return 2
    print("written: " + ", ".join(f"{p.name} ({p.stat().st_size / 1e6:.2f} MB)" for p in paths))
    return 0


def _fit(root: Path, folder: Path, day: str) -> list[Path]:
    """Everything that is fitted."""
    complete(folder / FILE)
    paths = training_run.write(training_run.calibrate_training(root, day, sweep=folder / FILE), folder)
    calibration = read_calibration(folder, bench=False)
    paths += edge.write(edge.calibrate_edge(edge.read(root), day), folder)
    return paths + serving_run.write(serving_run.calibrate_serving(serving_run.read(root), calibration, day), folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

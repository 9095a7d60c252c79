"""``python -m chipwise.calibrate DATE``: refit on the published rows and write the package's calibration.

``python -m chipwise.calibrate serving DATE`` fits the part of serving alone, with its intervals; ``widths DATE`` learns
these again and fits nothing; ``first DATE`` fits what servers add to first tokens under open loads, and nothing else.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from chipwise.calibrate import edge, first_tokens, serving_run, serving_widths, training_run
from chipwise.calibrate.tpu_rows import FILE
from chipwise.calibrate.tpu_sweep import complete
from chipwise.catalog.calibration import Calibration, read_calibration
from chipwise.errors import ChipwiseError, InputError

SERVED, WIDTHS, FIRST = "serving", "widths", "first"
SOURCE = Path(__file__).resolve().parents[1]


def main(arguments: list[str]) -> int:
    """Calibrate in a checkout; the rows are under ``validation``, the compilers' sweep beside the calibration."""
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    part = arguments[0] if arguments[:1] in ([SERVED], [WIDTHS], [FIRST]) else ""
    folder = SOURCE / "catalog" / "data" / "calibration"
    root = SOURCE.parents[1] / "validation"
    try:
        day = _day(arguments[bool(part) :])
        paths = [] if part else _fit(root, folder, day)
        if part == SERVED:
            paths = _fit_serving(root, folder, day, read_calibration(folder, bench=False))
        if part != FIRST:
            rows, others = serving_run.read(root), serving_widths.read(root)
            calibration = read_calibration(folder, bench=False)
            paths += serving_widths.write(serving_widths.calibrate_widths(rows, others, calibration, day), folder)
        calibration = read_calibration(folder, bench=False, refits=True)
        content = first_tokens.calibrate_first_tokens(first_tokens.read(root), calibration, day)
        paths += first_tokens.write(content, calibration.serving.date, folder)
    except ChipwiseError as error:
        print(f"chipwise: {error}", file=sys.stderr)
        return 2
    print("written: " + ", ".join(f"{p.name} ({p.stat().st_size / 1e6:.2f} MB)" for p in paths))
    return 0


def _day(arguments: list[str]) -> str:
    """The day that the files are named by: today's unless one is named."""
    if not arguments:
        return date.today().isoformat()
    try:
        return date.fromisoformat(" ".join(arguments)).isoformat()
    except ValueError:
        expected = f"a day such as 2026-11-19, alone or after {SERVED}, {WIDTHS} or {FIRST}"
        raise InputError("arguments", " ".join(arguments), expected) from None


def _fit(root: Path, folder: Path, day: str) -> list[Path]:
    """Everything that is fitted."""
    complete(folder / FILE)
    paths = training_run.write(training_run.calibrate_training(root, day, sweep=folder / FILE), folder)
    calibration = read_calibration(folder, bench=False)
    paths += edge.write(edge.calibrate_edge(edge.read(root), day), folder)
    return paths + _fit_serving(root, folder, day, calibration)


def _fit_serving(root: Path, folder: Path, day: str, calibration: Calibration) -> list[Path]:
    """What serving stacks add to their kernels, as they are calibrated."""
    rows, later = serving_run.read(root), serving_widths.read(root)
    return serving_run.write(serving_run.calibrate_serving(rows, calibration, day, later=later), folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

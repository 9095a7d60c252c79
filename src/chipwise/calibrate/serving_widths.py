"""Interval widths of serving by distance, learned from sources left out whole; nothing else is fitted here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.dated_files import write_dated
from chipwise.calibrate.published import published_rows
from chipwise.calibrate.serving_errors import Refits, errors_by_distance
from chipwise.calibrate.serving_run import left_out
from chipwise.catalog.calibration import SCHEMA, SERVING_ERRORS, SERVING_WIDTHS, Calibration
from chipwise.errors import ChipwiseError
from chipwise.serving.distance import Seen
from chipwise.serving.widths import Error, as_columns, as_table, learn
from chipwise.validate import serving_rows
from chipwise.validate.serving import model_key
from chipwise.validate.serving_rows import ServingRow, repository_of

Say = Callable[[str], None]
LATER = "inference_later.csv"  # rows that widths are learned from: no prior was set in sight of them


def read(root: Path, say: Say = print) -> list[ServingRow]:
    """The rows gathered later, those that can't be read counted with the reason."""
    rows: list[ServingRow] = []
    reasons: Counter[str] = Counter()
    for row in published_rows(root, LATER):
        if not serving_rows.eligible(row):
            reasons[serving_rows.why_not(row)] += 1
            continue
        try:
            rows.append(serving_rows.read(row))
        except ChipwiseError as error:
            reasons[str(error)] += 1
    for reason, count in reasons.most_common():
        say(f"  {count} x {reason}")
    return rows


def calibrate_widths(
    rows: Sequence[ServingRow],
    later: Sequence[ServingRow],
    calibration: Calibration,
    date: str,
    say: Say = print,
) -> dict[str, Any]:
    """The content of both files."""
    refits = Refits(rows, later, calibration)
    say(f"widths: {len(refits.rows)} rows, {len(refits.observations.row)} figures, {refits.later.sum()} gathered later")
    errors = errors_by_distance(refits, say)
    return {
        "schema": SCHEMA,
        "date": date,
        "calibration": calibration.serving.date,
        "rows": len(refits.rows),
        "seen": _counts(refits.seen(np.ones(len(refits.later), bool))),
        "widths": as_table(learn(errors)),
        "errors": as_columns(errors),
        "without": _without(refits, errors),
    }


def _without(refits: Refits, errors: Sequence[Error]) -> dict[str, Any]:
    """What was seen, and the widths, without each source (its whole repository) and each model."""
    rows = [refits.rows[i] for i in refits.observations.row]
    sources, models = np.array([r.source for r in rows]), np.array([model_key(r.model) for r in rows])

    @cache
    def widths(repository: str, model: str) -> dict[str, dict[str, list[float]]]:
        return as_table(learn([e for e in errors if repository != e.repository and model != e.model]))

    def seen(kept: NDArray[np.bool_]) -> dict[str, int]:
        return _counts(refits.seen(kept))

    out: dict[str, Any] = {}
    for name in sorted(set(sources.tolist())):
        out[name] = {"seen": seen(~left_out(sources, name)), "widths": widths(repository_of(name), "")}
    for name in sorted(set(models.tolist())):
        out[name] = {"seen": seen(models != name), "widths": widths("", name)}
    return out


def _counts(seen: Seen) -> dict[str, int]:
    return {str(place): count for place, count in sorted(seen.counts.items(), key=lambda item: str(item[0]))}


def write(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write both files under the date of the calibration whose errors they are of."""
    apart = {key: content[key] for key in ("schema", "errors", "without")}
    main = {key: value for key, value in content.items() if key not in ("errors", "without")}
    return write_dated(folder, content["calibration"], {SERVING_WIDTHS: main, SERVING_ERRORS: apart})

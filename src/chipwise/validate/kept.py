"""How far predictions were from published results when this version was scored; `make scoreboard` writes the file.

Scoring takes most of a minute, so what pages quote is kept beside the code with the date of the calibration it is for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

COLUMNS = ("calibration", "kind", "group", "name", "figures", "median_error", "bias", "covers90")
GROUPS = {"by_family": "family", "by_chip": "chip", "by_metric": "metric"}


@dataclass(frozen=True, slots=True)
class KeptScore:
    """Published figures of one kind against their predictions; shares, not per cent."""

    calibration: str  # the date of the calibration that was scored
    kind: str  # "training" or "inference"
    group: str  # "all", "left out" (with the row's source left out of the fit), "family", "chip" or "metric"
    name: str
    figures: int  # that were predicted
    median_error: float
    bias: float
    covers90: float  # share of figures inside their 90 % interval


def kept_text(result: Mapping[str, Any]) -> str:
    """The file's text from what `score` found."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for kind, part in (("training", result), ("inference", result["inference"])):
        rows = [("all", "", part["summary"]), ("left out", "", part["leave_one_source_out"]["summary"])]
        rows += [(group, name, some) for key, group in GROUPS.items() for name, some in part.get(key, {}).items()]
        for group, name, some in rows:
            if some["predicted"]:
                writer.writerow(
                    (
                        result["calibration"],
                        kind,
                        group,
                        name,
                        some["predicted"],
                        *(f"{some[key]:.4f}" for key in ("median_ape", "bias", "coverage90")),
                    )
                )
    return out.getvalue()


@cache
def kept_scores() -> tuple[KeptScore, ...]:
    """What was kept when this version was scored."""
    text = (files("chipwise.validate") / "data" / "scores.csv").read_text(encoding="utf-8")
    return tuple(
        KeptScore(
            row["calibration"],
            row["kind"],
            row["group"],
            row["name"],
            int(row["figures"]),
            float(row["median_error"]),
            float(row["bias"]),
            float(row["covers90"]),
        )
        for row in csv.DictReader(io.StringIO(text))
    )

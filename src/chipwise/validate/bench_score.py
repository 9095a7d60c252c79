"""How far predictions for a measured chip are from measurements it hasn't seen: flat rows, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.catalog import Chip
from chipwise.catalog.calibration import Bench
from chipwise.errors import ChipwiseError, Refusal
from chipwise.ops.point import KINDS, Point
from chipwise.predict.estimate import Estimate
from chipwise.predict.learn.bench_calibration import BenchCalibration, bench_calibration
from chipwise.predict.learn.point_memory import predict_peak
from chipwise.predict.learn.points import predict_point
from chipwise.units import GiB
from chipwise.validate.bench_rows import framework_of, kind_of, number, point_of
from chipwise.validate.summary import Pair, summary

PEAK = "peak_memory"


def measured_of(chip: Chip, framework: str) -> BenchCalibration:
    """What was measured of a chip; a refusal with what would unlock it where nothing was."""
    calibration = bench_calibration(Bench(used=True), chip.id, framework)
    if calibration is None:
        raise Refusal(
            f"{chip.id} was never measured with {framework}",
            "run `chipwise bench all --quick --out FILE` on one and `chipwise calibrate bench FILE`",
        )
    return calibration


def score_rows(rows: Sequence[Mapping[str, str]], chip: Chip) -> dict[str, Any]:
    """Everything `validate --rows` prints of flat rows: seconds, and the most bytes that training rows held."""
    used = {name: measured_of(chip, name) for name in dict.fromkeys(map(framework_of, rows))}
    scored = [_row(i, row, chip, used[framework_of(row)]) for i, row in enumerate(rows, 1)]
    kinds = sorted({row["kind"] for row in scored if row["kind"] in KINDS})
    peaks = [row for row in scored if row["peak_observed"] is not None]

    def of(some: Sequence[dict[str, Any]]) -> dict[str, float | int | None]:
        return summary(len(some), [_pair(row) for row in some if row["predicted"] is not None])

    by_kind = {kind: of([row for row in scored if row["kind"] == kind]) for kind in kinds}
    if peaks:
        by_kind[PEAK] = summary(
            len(peaks),
            [
                Pair(
                    row["peak_observed"], Estimate(row["peak_predicted"], row["peak_low"], row["peak_high"], "modelled")
                )
                for row in peaks
            ],
        )
    return {
        "calibration": ", ".join(dict.fromkeys(measured.date for measured in used.values())),
        "evidence": "measured and modelled",
        "chip": chip.id,
        "framework": ", ".join(used),
        "source": ", ".join(dict.fromkeys(measured.source for measured in used.values())),
        "rows_read": len(rows),
        "not_eligible": {},
        "summary": of(scored),
        "refusals": dict(Counter(row["refusal"] for row in scored if row["refusal"])),
        "by_kind": by_kind,
        "rows": scored,
    }


def _pair(row: Mapping[str, Any]) -> Pair:
    return Pair(row["observed"], Estimate(row["predicted"], row["low"], row["high"], row["evidence"]))


def _row(index: int, row: Mapping[str, str], chip: Chip, bench: BenchCalibration) -> dict[str, Any]:
    """One row against its prediction; what can't be read or predicted says why."""
    out: dict[str, Any] = {
        "id": row.get("id") or str(index),
        "kind": kind_of(row),
        "unit": "s",
        "observed": None,
        "predicted": None,
        "low": None,
        "high": None,
        "evidence": None,
        "peak_observed": None,
        "peak_predicted": None,
        "peak_low": None,
        "peak_high": None,
        "refusal": None,
    }
    try:
        point, seconds = point_of(row), number(row, "seconds")
        if seconds is None:
            raise Refusal("no seconds", "state what was measured")
        out |= {"observed": seconds, **_peak(point, row, bench)}
        p = predict_point(point, chip, bench)
        return out | {"predicted": p.value, "low": p.low, "high": p.high, "evidence": p.evidence}
    except ChipwiseError as error:
        return out | {"refusal": str(error)}


def _peak(point: Point, row: Mapping[str, str], bench: BenchCalibration) -> dict[str, float]:
    peak_gib = number(row, "peak_gib")
    if peak_gib is None or point.kind != "train":
        return {}
    p = predict_peak(point, bench)
    return {"peak_observed": peak_gib * GiB, "peak_predicted": p.value, "peak_low": p.low, "peak_high": p.high}

"""Published edge rows predicted: the device, model and scenario that a row says, by a calibration without its pair."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.edge_calibration import EdgeCalibration
from chipwise.errors import ChipwiseError
from chipwise.predict.estimate import Estimate
from chipwise.serving.edge import seconds_a_sample
from chipwise.serving.edge_power import wall_joules
from chipwise.serving.edge_roofline import SAMPLES
from chipwise.validate.edge_rows import EdgeRow, read
from chipwise.validate.scored import Scored

EDGE = "edge"
ALSO = ("device", "model")  # left out whole, beside the pair and the source


def predict_edge_row(row: EdgeRow, calibration: EdgeCalibration) -> dict[str, Estimate]:
    """Every metric of a row: seconds of a query, samples/s of all chips, joules a sample."""
    point = row.point
    seconds = seconds_a_sample(point, calibration)
    query = SAMPLES["multi"] if point.scenario == "multi" else 1
    out = {"latency": seconds.scaled(query), "throughput": seconds.inverted(point.chips)}
    if "energy" in row.observed:
        out["energy"] = wall_joules(point, seconds, calibration)
    return {metric: out[metric] for metric in row.observed}


def score_edge_row(row: Mapping[str, str], calibration: EdgeCalibration) -> list[Scored]:
    """Every figure of an eligible row scored: by the refits without its pair, device, model and source."""
    try:
        parsed = read(row)
    except ChipwiseError as error:
        source = row.get("source_repo", "")
        return [Scored(row.get("id", ""), EDGE, source, "", "", None, None, None, str(error))]
    device, scenario = parsed.point.device, parsed.point.scenario
    base = (parsed.id, EDGE, parsed.source, device.id, device.kind)
    mode = scenario if scenario == "offline" else f"{scenario}_stream"
    names = {"pair": parsed.pair, "device": device.id, "model": parsed.point.model.id, "source": parsed.source}
    try:
        by = {kind: predict_edge_row(parsed, calibration.without(kind, name)) for kind, name in names.items()}
    except ChipwiseError as error:
        return [
            Scored(*base, value, None, None, str(error), metric=metric, mode=mode)
            for metric, value in parsed.observed.items()
        ]
    return [
        Scored(
            *base,
            value,
            by["pair"][metric],
            by["source"][metric],
            "",
            metric=metric,
            mode=mode,
            also={kind: by[kind][metric] for kind in ALSO},
        )
        for metric, value in parsed.observed.items()
    ]

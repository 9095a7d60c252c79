"""Edge inference: a roofline time of one sample, times effects that published results gave (a mixed linear model).

The logarithm of seconds a sample is that of the roofline plus effects of labels (device, design, model, precision,
scenario, runtime ...), each drawn from a normal distribution of its kind: what few results say shrinks towards what
the kinds above it say. `calibrate` writes the effects; without them the roofline is all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, log, log2, sqrt

from chipwise.catalog.edge import EdgeDevice
from chipwise.catalog.edge_calibration import EdgeCalibration
from chipwise.predict.estimate import Estimate
from chipwise.serving.edge_roofline import DATAFLOW, EdgePoint, lower_bound, peak_of, roofline, stays

# Centers of the logarithms that slopes multiply, so that a slope says nothing at a middling device or model
PEAK, BANDWIDTH, OPS, PARAMS, INPUT = log(1e14), log(4e11), log2(1e10), log2(1e7), log2(2.5e5)

# Standard deviations of the effects by kind, in logarithms: chosen by gradient on the published rows' errors and
# log-likelihood with pairs, devices, models and sources left out, 2026-11
KINDS: Mapping[str, float] = {
    "base": 0.065,
    "scenario": 0.013,
    "design": 0.011,
    "device": 0.13,
    "design/scenario": 0.013,
    "device/scenario": 0.0065,
    "family": 0.21,
    "family/scenario": 0.067,
    "model": 0.23,
    "model/scenario": 0.14,
    "design/family": 0.012,
    "design/family/scenario": 0.0056,
    "design/model": 0.0079,
    "design/model/scenario": 0.0047,
    "device/model": 0.0049,
    "kind/model/scenario": 0.11,
    "precision": 0.11,
    "precision/scenario": 0.0076,
    "design/precision": 0.005,
    "runtime": 0.092,
    "runtime/scenario": 0.015,
    "runtime/model": 0.014,
    "mode/scenario": 0.44,
    "mode/design": 0.083,
    "mode/device": 0.08,
    "several/scenario": 0.044,
    "several/design/scenario": 0.097,
    "chips/device/scenario": 0.023,
    "several/design/model/scenario": 0.034,
    "submitter/scenario": 0.0062,
    "era/model/scenario": 0.044,
    "round/model/scenario": 0.038,
    "round/design": 0.0068,
    "fits/design": 0.46,
    "peak*base": 0.024,
    "peak*scenario": 0.074,
    "peak*model": 0.096,
    "peak*model/scenario": 0.062,
    "bandwidth*base": 0.0091,
    "bandwidth*scenario": 0.036,
    "bandwidth*model": 0.1,
    "bandwidth*model/scenario": 0.078,
    "ops*scenario": 0.018,
    "ops*design/scenario": 0.014,
}
# Ends of the sum of slopes, so that more work never takes less time, nor a faster chip more
STEEPEST = {"ops": (-0.65, 1.0), "peak": (-1.0, 0.95)}
# The same of dataflow chips, whose published rows are throughput at a batch
FLOW_KINDS: Mapping[str, float] = {
    "flow/scenario": 0.72,
    "flow/device": 0.02,
    "flow/device/scenario": 0.021,
    "flow/family": 0.42,
    "flow/family/scenario": 0.2,
    "flow/series": 0.41,
    "flow/series/scenario": 0.12,
    "flow/model": 0.15,
    "flow/model/scenario": 0.028,
    "flow/device/family": 0.14,
    "flow/device/series": 0.019,
    "flow/fits/scenario": 0.049,
    "flow/fits/device/scenario": 0.11,
    "flow/fits/family/scenario": 0.012,
    "flow/fits/series": 0.012,
    "flow/fits/model": 0.0087,
    "ops*flow/fits/scenario": 0.071,
    "params*flow/fits/scenario": 0.072,
    "input*flow/fits/scenario": 0.0093,
    "params*flow/device/fits": 0.015,
    "input*flow/device/fits": 0.035,
}
NOISE, FLOW_NOISE = 0.074, 0.066  # what is left of one row
# The same of the score that says whether a model stays on a dataflow chip: +1 it does, -1 it is loaded in parts
FIT_KINDS: Mapping[str, float] = {
    "device": 1.0,
    "family": 1.0,
    "series": 0.4,
    "model": 0.4,
    "device/family": 0.4,
    "params*base": 0.15,
    "ops*base": 0.2,
    "input*base": 0.1,
}
FIT_NOISE = 0.4
# A logistic of that score says how likely a model stays on chip: its slope, and the score of even odds, above 0 for a
# rate predicted too high is the worse mistake. Chosen with pairs, devices and models left out, 2026-11
SURENESS, STAYS = 8.0, 0.2


def _names(point: EdgePoint) -> dict[str, str]:
    """What each word of a kind stands for."""
    rounds = point.round
    era = "" if not rounds else "1" if rounds < "2" else "2" if rounds < "3" else "3" if rounds < "5" else "5"
    return {
        "scenario": point.key,
        "design": point.device.design,
        "device": point.device.id,
        "kind": point.device.kind,
        "family": point.model.family,
        "model": point.model.id,
        "precision": point.precision,
        "runtime": point.runtime,
        "flow": "flow",
        "series": series_of(point.model.id),
        "mode": point.mode,
        "several": "several" if point.chips > 1 else "one",
        "chips": str(point.chips),
        "submitter": point.submitter,
        "era": era,
        "round": rounds,
        "fits": "fits" if stays(point) else "parts",
    }


def _slopes(point: EdgePoint) -> dict[str, float]:
    """What slopes multiply. Operations and peak count by the roofline: where that waits for memory, they are idle."""
    device, model = point.device, point.model
    peak = max(device.peak.get("int8", 0.0), device.peak.get("fp16", 0.0) * 2)
    if not peak:
        return dict.fromkeys(("peak", "bandwidth", "ops", "params", "input"), 0.0)
    full = roofline(replace(point, clock=1.0))
    return {
        "peak": log(peak * full / roofline(point)) - PEAK,
        "bandwidth": log(device.bandwidth) - BANDWIDTH if device.bandwidth else 0.0,
        "ops": log2(model.ops if device.design == DATAFLOW else full * peak_of(device, point.precision)) - OPS,
        "params": log2(model.params) - PARAMS,
        "input": log2(max(model.input, 1.0)) - INPUT,
    }


def series_of(model: str) -> str:
    """The series that a model's name begins with.

    >>> series_of("yolov8s_pose"), series_of("resnet50")
    ('yolov', 'resnet')
    """
    found = re.match(r"[a-z]+", model.lower())
    return found[0] if found else ""


def kinds_of(device: EdgeDevice) -> Mapping[str, float]:
    """The kinds of effects that count on a device."""
    return FLOW_KINDS if device.design == DATAFLOW else KINDS


def noise_of(device: EdgeDevice) -> float:
    """Standard deviation of one published row around its effects."""
    return FLOW_NOISE if device.design == DATAFLOW else NOISE


def labels(point: EdgePoint, kinds: Mapping[str, float]) -> Iterator[tuple[str, str, float]]:
    """Kind, label and value of every effect that a point has; a word that stands for nothing leaves its kinds out."""
    names, slopes = _names(point), _slopes(point)
    loads = bool(point.device.link)
    for kind in kinds:
        slope, star, plain = kind.rpartition("*")
        words = [] if plain == "base" else plain.split("/")
        if "fits" in words and not loads:
            continue
        if not all(names[word] for word in words):
            continue
        value = slopes[slope] if star else 1.0
        if value:
            yield kind, f"{kind}:" + "|".join(names[word] for word in words), value


@dataclass(frozen=True, slots=True)
class Effect:
    """The sum of effects on a point, with the variance that is left of them."""

    mean: float
    variance: float


def effect_of(point: EdgePoint, table: Mapping[str, tuple[float, float]], kinds: Mapping[str, float]) -> Effect:
    """Sum the effects of a point's labels; one that no result has is 0 with its kind's own variance."""
    mean = variance = 0.0
    steepest = STEEPEST if kinds is KINDS else {}
    slopes = dict.fromkeys(steepest, 0.0)
    values: dict[str, float] = {}
    for kind, label, value in labels(point, kinds):
        known = table.get(label)
        size = known[0] if known else 0.0
        variance += value**2 * (known[1] if known else kinds[kind] ** 2)
        slope = kind.partition("*")[0]
        if slope in steepest:
            slopes[slope] += size
            values[slope] = value
        else:
            mean += value * size
    for slope, value in values.items():
        low, high = steepest[slope]
        mean += value * min(max(slopes[slope], low), high)
    return Effect(mean, variance)


def stay_share(point: EdgePoint, calibration: EdgeCalibration) -> float:
    """How likely all weights stay on a dataflow chip, 0 to 1: a logistic of the fitted score; elsewhere as is."""
    if point.device.design != DATAFLOW:
        return 1.0 if stays(point) else 0.0
    return 1 / (1 + exp(-SURENESS * (effect_of(point, calibration.fits, FIT_KINDS).mean - STAYS)))


def predicted_log(point: EdgePoint, calibration: EdgeCalibration) -> Effect:
    """Logarithm of seconds a sample with its variance, before the bound.

    A dataflow chip may hold the model whole or load it in parts: the two answers are averaged by how likely each is,
    and how far they are apart adds to the variance (a mixture of two normals).
    """
    kinds, noise = kinds_of(point.device), noise_of(point.device) ** 2
    share = stay_share(point, calibration)
    if point.device.design != DATAFLOW:
        effect = effect_of(point, calibration.effects, kinds)
        return Effect(log(roofline(point)) + effect.mean, effect.variance + noise)
    whole, parts = (replace(point, fits=fits) for fits in (True, False))
    one, other = (effect_of(p, calibration.effects, kinds) for p in (whole, parts))
    first, second = log(roofline(whole)) + one.mean, log(roofline(parts)) + other.mean
    apart = share * (1 - share) * (first - second) ** 2
    variance = share * one.variance + (1 - share) * other.variance
    return Effect(share * first + (1 - share) * second, variance + apart + noise)


def seconds_a_sample(point: EdgePoint, calibration: EdgeCalibration) -> Estimate:
    """Seconds a sample on one chip: latency of a single stream, of an eighth of a multi-stream query, or 1 / rate."""
    bound = lower_bound(point)
    effect = predicted_log(point, calibration)
    value = max(exp(effect.mean), bound)
    step = distance(point, calibration)
    below, above = interval_of(point, step, calibration.intervals)
    spread = sqrt(effect.variance)
    low = min(value, max(value * exp(below * spread), bound))
    evidence = "bounded" if step == "design" else "modelled"
    return Estimate(value, low, value * exp(max(above, 0.0) * spread), evidence, WHY[step].format(point))


def realm_of(device: EdgeDevice) -> str:
    """Devices that learn from each other's models: cards and modules together, stick and dataflow chips apart."""
    return device.design if device.link else "cards"


# Distance to the nearest published result, the nearest first, and what an interval then rests on
WHY: Mapping[str, str] = {
    "measured": "published for {0.model.id} on {0.device.id}: errors on systems left out",
    "pair": "nothing published for {0.model.id} on {0.device.id}: errors on such pairs left out",
    "device": "nothing published on {0.device.id}: errors on whole devices left out",
    "model": "nothing published for {0.model.id} on like devices: errors on whole models left out",
    "design": "nothing published on {0.device.design} devices: errors on whole designs left out",
}


def evidence_of(point: EdgePoint) -> tuple[str, str, str, str]:
    """What a published result of a point is evidence of: its design, model, device and pair."""
    device, model = point.device, point.model.id
    return device.design, f"{realm_of(device)}|{model}", f"device:{device.id}", f"pair:{model}|{device.id}"


def distance(point: EdgePoint, calibration: EdgeCalibration) -> str:
    """How far the nearest published result is: the coarsest thing about the point that nothing was published of."""
    steps = zip(("design", "model", "device", "pair"), evidence_of(point), strict=True)
    return next((step for step, name in steps if name not in calibration.seen), "measured")


def interval_groups(point: EdgePoint, step: str) -> tuple[str, str]:
    """Whose errors an interval comes from: rows at this distance on devices of its kind, else all at this distance."""
    device = point.device
    kind = "dataflow" if device.design == DATAFLOW else "stick" if device.link else device.kind
    load = "offline" if point.scenario == "offline" else "stream"
    return f"{step}/{kind}/{load}", step


def interval_of(point: EdgePoint, step: str, intervals: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """The ends of the 90 % interval in standard deviations."""
    own, every = interval_groups(point, step)
    # few kinds of devices have systems enough: errors on pairs left out are of the same devices, and larger
    nearest = (own, interval_groups(point, "pair")[0], every) if step == "measured" else (own, every)
    return next((intervals[group] for group in nearest if group in intervals), (-2.0, 2.0))

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
from chipwise.catalog.edge_models import EdgeModel
from chipwise.errors import PrecisionMissing
from chipwise.predict.estimate import Estimate

SCENARIOS = ("single", "multi", "offline")
SAMPLES = {"single": 1, "multi": 8, "offline": 32}  # at once; 8 a query by MLPerf's rules from round v2.0, 2022
BYTES = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5}
EDGE_PRECISIONS = ("int8", "fp16", "bf16", "fp32", "fp8", "fp4")
DATAFLOW = "hailo"  # a design whose chips hold the whole model, or load it in parts
VENDOR = "vendor"  # the vendor's own runtime: TensorRT, HailoRT, Edge TPU, Cloud AI SDK
# Centers of the logarithms that slopes multiply, so that a slope says nothing at a middling device or model
PEAK, BANDWIDTH, OPS, PARAMS, INPUT = log(1e14), log(4e11), log2(1e10), log2(1e7), log2(2.5e5)

# Standard deviations of the effects by kind, in logarithms: chosen on the published rows with whole (model, device)
# pairs left out, 2026-11
KINDS: Mapping[str, float] = {
    "base": 0.5,
    "scenario": 0.4,
    "design": 0.25,
    "device": 0.05,
    "design/scenario": 0.08,
    "device/scenario": 0.06,
    "family": 0.25,
    "family/scenario": 0.2,
    "model": 0.35,
    "model/scenario": 0.5,
    "design/family": 0.12,
    "design/family/scenario": 0.08,
    "design/model": 0.08,
    "design/model/scenario": 0.04,
    "device/model": 0.03,
    "kind/model/scenario": 0.2,
    "precision": 0.2,
    "precision/scenario": 0.08,
    "design/precision": 0.25,
    "runtime": 0.4,
    "runtime/scenario": 0.3,
    "runtime/model": 0.2,
    "mode/scenario": 0.1,
    "mode/design": 0.06,
    "mode/device": 0.2,
    "several/scenario": 0.1,
    "several/design/scenario": 0.35,
    "chips/device/scenario": 0.16,
    "several/design/model/scenario": 0.1,
    "submitter/scenario": 0.03,
    "era/model/scenario": 0.06,
    "round/model/scenario": 0.05,
    "round/design": 0.06,
    "fits/design": 0.3,
    "peak*base": 0.2,
    "peak*scenario": 0.05,
    "peak*model": 0.06,
    "peak*model/scenario": 0.1,
    "bandwidth*base": 0.25,
    "bandwidth*scenario": 0.25,
    "bandwidth*model": 0.25,
    "bandwidth*model/scenario": 0.1,
    "ops*scenario": 0.2,
    "ops*design/scenario": 0.06,
    "ops*runtime/scenario": 0.1,
}
# Ends of the sum of slopes, so that more work never takes less time, nor a faster chip more
STEEPEST = {"ops": (-0.65, 1.0), "peak": (-1.0, 0.95)}
# The same of dataflow chips, whose published rows are throughput at a batch
FLOW_KINDS: Mapping[str, float] = {
    "flow/scenario": 0.6,
    "flow/device": 0.3,
    "flow/device/scenario": 0.1,
    "flow/family": 0.4,
    "flow/family/scenario": 0.25,
    "flow/series": 0.4,
    "flow/series/scenario": 0.2,
    "flow/model": 0.25,
    "flow/model/scenario": 0.1,
    "flow/device/family": 0.2,
    "flow/device/series": 0.06,
    "flow/fits/scenario": 0.5,
    "flow/fits/device/scenario": 0.12,
    "flow/fits/family/scenario": 0.1,
    "flow/fits/series": 0.08,
    "flow/fits/model": 0.1,
    "ops*flow/fits/scenario": 0.1,
    "params*flow/fits/scenario": 0.2,
    "input*flow/fits/scenario": 0.04,
    "ops*flow/device/fits": 0.04,
    "params*flow/device/fits": 0.03,
    "input*flow/device/fits": 0.03,
}
NOISE, FLOW_NOISE = 0.09, 0.12  # what is left of one row
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
# A model stays on chip above this score; nearer to it than UNSURE nobody can say. Above 0: a rate predicted too high
# is the worse mistake
STAYS, UNSURE = 0.2, 0.5


@dataclass(frozen=True, slots=True)
class EdgePoint:
    """One inference set-up: what runs where and how. `round`, `submitter` are of published rows, "" for others."""

    device: EdgeDevice
    model: EdgeModel
    precision: str
    scenario: str = "single"
    batch: int = 0  # samples at once; 0: as the scenario has it
    chips: int = 1
    mode: str = ""  # a published power setting such as MaxQ; "" for the full clock
    runtime: str = VENDOR
    round: str = ""
    submitter: str = ""
    fits: bool = True  # all weights stay on chip, where there is no other memory
    clock: float = 1.0  # share of the full clock

    @property
    def at_once(self) -> int:
        """Samples at once on a chip."""
        return self.batch or SAMPLES[self.scenario]

    @property
    def key(self) -> str:
        """The scenario as labels have it; tables of dataflow chips give throughput at a batch."""
        return f"batch{self.at_once}" if self.device.design == DATAFLOW else self.scenario


def peak_of(device: EdgeDevice, precision: str) -> float:
    """Dense FLOP/s in a precision; fp32 runs as tf32 on matrix units that have it, fp8 as int8 where that is meant."""
    names = {"fp32": ("tf32", "fp32"), "bf16": ("bf16", "fp16")}.get(precision, (precision,))
    rates = [device.peak[name] for name in names if name in device.peak]
    if not rates:
        have = ", ".join(device.peak) or "no peak that a source gives"
        raise PrecisionMissing(f"{device.name} has no published {precision} rate", f"it has {have}")
    return max(rates)


def weight_bytes(point: EdgePoint) -> float:
    """Bytes of all weights."""
    return point.model.params * BYTES[point.precision]


def stays(point: EdgePoint) -> bool:
    """Whether all weights stay on chip: by its size where that is published, else as the point says."""
    return weight_bytes(point) <= point.device.onchip_bytes if point.device.onchip_bytes else point.fits


def reload_seconds(point: EdgePoint) -> float:
    """Loading weights that don't stay on chip, once a batch; 0 for devices with memory of their own."""
    device = point.device
    if not device.link:
        return 0.0
    if device.onchip_bytes:
        return max(0.0, weight_bytes(point) - device.onchip_bytes) / device.link
    return 0.0 if point.fits else weight_bytes(point) / device.link


def lower_bound(point: EdgePoint) -> float:
    """Seconds a sample on one chip that no schedule beats: operations at the peak, weights read once a batch."""
    device, model = point.device, point.model
    dla = device.dla_int8 if point.precision == "int8" else 0.0
    compute = model.ops / ((peak_of(device, point.precision) + dla) * point.clock)
    resident = device.onchip_bytes if device.onchip_bytes > weight_bytes(point) / 2 else 0.0
    read = max(0.0, weight_bytes(point) - resident) * model.passes / point.at_once
    return max(compute, read / device.bandwidth if device.bandwidth else 0.0)


def roofline(point: EdgePoint) -> float:
    """Seconds a sample on one chip before any effect."""
    device, model = point.device, point.model
    compute = model.ops / (peak_of(device, point.precision) * point.clock)
    # of models that pass once over their weights, effects of bandwidth say what reading costs: caches hold much of it
    passes = model.passes if model.passes > 1 and device.bandwidth else 0.0
    read = weight_bytes(point) * passes / point.at_once / (device.bandwidth or 1.0)
    return max(compute, read) + reload_seconds(point) / point.at_once


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


def with_fit(point: EdgePoint, calibration: EdgeCalibration) -> tuple[EdgePoint, bool]:
    """The point with whether its weights stay on chip, and whether that is sure; for dataflow chips alone."""
    device = point.device
    if device.design != DATAFLOW:
        return point, True
    score = effect_of(point, calibration.fits, FIT_KINDS).mean
    return replace(point, fits=score > STAYS), abs(score - STAYS) > UNSURE


def seconds_a_sample(point: EdgePoint, calibration: EdgeCalibration) -> Estimate:
    """Seconds a sample on one chip: latency of a single stream, of an eighth of a multi-stream query, or 1 / rate."""
    point, sure = with_fit(point, calibration)
    bound = lower_bound(point)
    effect = effect_of(point, calibration.effects, kinds_of(point.device))
    value = max(roofline(point) * exp(effect.mean), bound)
    group, why = evidence_group(point, calibration, sure)
    below, above = calibration.intervals.get(group, calibration.intervals.get("unknown", (-2.0, 2.0)))
    spread = sqrt(effect.variance + noise_of(point.device) ** 2)
    low = min(value, max(value * exp(below * spread), bound))
    evidence = "bounded" if group == "unknown" else "modelled"
    return Estimate(value, low, value * exp(max(above, 0.0) * spread), evidence, why)


def realm_of(device: EdgeDevice) -> str:
    """Devices that learn from each other's models: cards and modules together, stick and dataflow chips apart."""
    return device.design if device.link else "cards"


def evidence_group(point: EdgePoint, calibration: EdgeCalibration, sure: bool) -> tuple[str, str]:
    """Whose errors the interval comes from, and why in words."""
    device, model = point.device, point.model.id
    if device.design not in calibration.seen:
        return "unknown", f"no published result on {device.design} devices to learn from"
    known = f"{realm_of(device)}|{model}" in calibration.seen
    if device.design == DATAFLOW:
        why = "model published on a like device" if known else "a model that no like device has published"
        return (
            f"dataflow/{'sure' if sure else 'unsure'}/{'known' if known else 'new'}",
            f"errors on dataflow rows; {why}",
        )
    if not known:
        return "new", f"no published result of {model} on like devices: errors of all rows, widened"
    kind = "stick" if device.link else device.kind
    group = f"{kind}/{'offline' if point.scenario == 'offline' else 'stream'}"
    return group, f"errors on published {group} rows with the pair of model and device left out"


def energy_joules(point: EdgePoint, seconds: Estimate, calibration: EdgeCalibration) -> Estimate:
    """Energy a sample: wall power of the system as published results have it, over all its chips."""
    watts = wall_watts(point, calibration)
    product = seconds.value * watts.value / (point.chips if point.scenario == "offline" else 1)
    # the two errors are independent: their logarithms add in quadrature
    up = sqrt(log(seconds.high / seconds.value) ** 2 + log(watts.high / watts.value) ** 2)
    down = sqrt(log(seconds.value / seconds.low) ** 2 + log(watts.value / watts.low) ** 2)
    evidence = "bounded" if "bounded" in (seconds.evidence, watts.evidence) else "modelled"
    return Estimate(product, product * exp(-down), product * exp(up), evidence, watts.because)


POWER_KINDS: Mapping[str, float] = {
    "base": 1.0,
    "kind": 0.5,
    "design": 0.3,
    "device": 0.25,
    "scenario": 0.2,
    "kind/scenario": 0.2,
    "design/scenario": 0.1,
    "device/scenario": 0.05,
    "family": 0.1,
    "model": 0.05,
    "mode": 0.2,
    "mode/device": 0.15,
    "chips/kind": 0.2,
    "submitter": 0.1,
}
POWER_NOISE = 0.08
UNKNOWN_W = 30.0  # of a device whose power no source gives. Assumed
IDLE = 0.3  # of its budget that a device draws at least while it infers. Assumed


def wall_watts(point: EdgePoint, calibration: EdgeCalibration) -> Estimate:
    """Power of the whole system at the wall while it infers; of devices never metered, their own budget."""
    watts = nominal_watts(point)
    if not is_metered(point.device, calibration):
        why = "the device at its whole budget: no published wall power"
        return Estimate(watts, watts * IDLE, watts, "bounded", why)
    effect = effect_of(point, calibration.power, POWER_KINDS)
    below, above = calibration.intervals.get("power", (-2.0, 2.0))
    spread = sqrt(effect.variance + POWER_NOISE**2)
    value = watts * exp(effect.mean)
    why = "wall power of whole systems, as published results measured it"
    return Estimate(
        value, value * exp(min(below, 0.0) * spread), value * exp(max(above, 0.0) * spread), "modelled", why
    )


def is_metered(device: EdgeDevice, calibration: EdgeCalibration) -> bool:
    """Whether published results measured the wall power of systems with devices of this design."""
    return f"design:{device.design}" in calibration.power


def nominal_watts(point: EdgePoint) -> float:
    """The budget of the mode, of all chips."""
    device = point.device
    fast = [mode.watts for mode in device.modes if mode.clock >= point.clock - 1e-9 and mode.watts]
    return (min(fast, default=0.0) or device.tdp_w or UNKNOWN_W) * point.chips

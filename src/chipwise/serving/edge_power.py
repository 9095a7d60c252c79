"""Power and energy of edge inference: of the device, never above its mode's budget, and of systems at the wall."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, sqrt

from chipwise.catalog.edge import EdgeDevice
from chipwise.catalog.edge_calibration import EdgeCalibration
from chipwise.predict.estimate import Estimate
from chipwise.serving.edge import distance, effect_of
from chipwise.serving.edge_roofline import EdgePoint

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


def wall_joules(point: EdgePoint, seconds: Estimate, calibration: EdgeCalibration) -> Estimate:
    """Energy a sample of the whole system at the wall, as published results have it, over all its chips."""
    return _joules(point, seconds, wall_watts(point, calibration))


def device_joules(point: EdgePoint, seconds: Estimate, calibration: EdgeCalibration) -> Estimate:
    """Energy a sample of the device alone."""
    return _joules(point, seconds, device_watts(point, calibration))


def _joules(point: EdgePoint, seconds: Estimate, watts: Estimate) -> Estimate:
    product = seconds.value * watts.value / (point.chips if point.scenario == "offline" else 1)
    # the two errors are independent: their logarithms add in quadrature
    up = sqrt(log(seconds.high / seconds.value) ** 2 + log(watts.high / watts.value) ** 2)
    down = sqrt(log(seconds.value / seconds.low) ** 2 + log(watts.value / watts.low) ** 2)
    evidence = "bounded" if "bounded" in (seconds.evidence, watts.evidence) else "modelled"
    return Estimate(product, product * exp(-down), product * exp(up), evidence, watts.because)


def device_watts(point: EdgePoint, calibration: EdgeCalibration) -> Estimate:
    """Power of the device while it infers: that of its whole system where that is less than the mode's budget."""
    budget, wall = nominal_watts(point), wall_watts(point, calibration)
    value = min(wall.value, budget)
    why = "the whole budget of the mode: its system draws more" if wall.value > budget else wall.because
    return Estimate(
        value, min(value, max(wall.low, budget * IDLE)), max(value, min(wall.high, budget)), wall.evidence, why
    )


def wall_watts(point: EdgePoint, calibration: EdgeCalibration) -> Estimate:
    """Power of the whole system at the wall while it infers; of devices never metered, their own budget."""
    watts = nominal_watts(point)
    if not is_metered(point.device, calibration):
        why = "the device at its whole budget: no published wall power"
        return Estimate(watts, watts * IDLE, watts, "bounded", why)
    effect = effect_of(point, calibration.power, POWER_KINDS)
    groups = (power_group(distance(point, calibration)), power_group("pair"))
    below, above = next((calibration.intervals[name] for name in groups if name in calibration.intervals), (-2.0, 2.0))
    spread = sqrt(effect.variance + POWER_NOISE**2)
    value = watts * exp(effect.mean)
    why = "wall power of whole systems, as published results measured it"
    return Estimate(
        value, value * exp(min(below, 0.0) * spread), value * exp(max(above, 0.0) * spread), "modelled", why
    )


def power_group(step: str) -> str:
    """Whose errors an interval of power comes from: rows at this distance to what is published."""
    return f"power/{step}"


def is_metered(device: EdgeDevice, calibration: EdgeCalibration) -> bool:
    """Whether published results measured the wall power of systems with devices of this design."""
    return f"design:{device.design}" in calibration.power


def nominal_watts(point: EdgePoint) -> float:
    """The budget of the mode, of all chips."""
    device = point.device
    fast = [mode.watts for mode in device.modes if mode.clock >= point.clock - 1e-9 and mode.watts]
    return (min(fast, default=0.0) or device.tdp_w or UNKNOWN_W) * point.chips

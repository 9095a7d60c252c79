"""What one's own servers took counts in predictions: a factor on every time of a replica, and its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog import Chip, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.telemetry_files import TelemetryGroup
from chipwise.serving.estimates import Correction
from chipwise.workload.serve import ServingWorkload


def program_of(workload: ServingWorkload) -> str:
    """Servers whose errors are alike: family of models, and precision."""
    experts = "-moe" if workload.model.experts else ""
    return f"serve/{workload.model.family}{experts}/{workload.serve.precision}"


def base_of(calibration: Calibration) -> str:
    """What a replica's times rest on but telemetry: a factor on one is none on another."""
    return f"serving {calibration.serving.date}"


def group_at(workload: ServingWorkload, chip: Chip, stack: Stack, calibration: Calibration) -> TelemetryGroup | None:
    """What one's own servers of such models took, where it was learned beside this very calibration."""
    group = calibration.telemetry.of(chip.id, stack.id, program_of(workload))
    return group if group is not None and group.base == base_of(calibration) else None


def with_observed(near: Mapping[str, Correction], group: TelemetryGroup | None, chip: str) -> dict[str, Correction]:
    """Corrections with what one's own servers took: of times between tokens the interval too.

    Windows say what a token takes, and not what a first one does: that has the factor alone.
    """
    if group is None:
        return dict(near)
    because = f"{group.runs} runs of your own of such servers on {chip}, the last of {group.date}"
    out = {name: replace(one, factor=one.factor * group.factor) for name, one in near.items()}
    out["tpot"] = replace(
        out["tpot"],
        low=group.low - group.log_factor,
        high=group.high - group.log_factor,
        evidence="modelled",
        because=because,
        distance=None,
    )
    out["ttft"] = replace(out["ttft"], because=f"{out['ttft'].because}; {because}")
    return out


def observed_in_words(workload: ServingWorkload, chip: Chip, stack: Stack, calibration: Calibration) -> list[str]:
    """What one's own servers say, or why that does not count; nothing where there are none."""
    group = calibration.telemetry.of(chip.id, stack.id, program_of(workload))
    if group is None:
        return []
    if group.base != base_of(calibration):
        what = f"servers observed on {chip.id} to {group.date} do not count: they were held against another calibration"
        return [f"{what} ({group.base}); `chipwise calibrate telemetry` learns from them again"]
    times = f"{group.factor:.3g} times what is published says"
    return [f"{group.runs} runs of your own servers on {chip.id}, to {group.date}: {times}"]

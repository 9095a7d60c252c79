"""The step time of a compiled program: the walk through its schedule, what joins slices, and how wrong it may be."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.schedule import Loop, Schedule
from chipwise.compiled.timing import Timing, pace_of, time_schedule
from chipwise.predict.estimate import Estimate
from chipwise.predict.fabric import reduce_seconds
from chipwise.predict.site import wires
from chipwise.workload.model import Workload
from chipwise.workload.params import count

# Kernels nothing is known of run at most this much longer than their bytes take (a guess, said in the output)
UNKNOWN = 5.0
GRADIENT_BYTES = 2.0  # of a gradient that slices exchange: compiled modules reduce in bf16
UNSCORED = (-0.20, 0.25)  # log interval where no published row has scored compiled steps (an assumption)


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """A step as the compiler would run it."""

    estimate: Estimate  # seconds
    timing: Timing
    between_slices: float  # seconds that gradients cross the data-centre network


def compiled_step(schedule: Schedule, acc: Accelerators, calibration: Calibration,
                  workload: Workload | None = None) -> CompiledStep:
    """Time a schedule on these chips; `workload` tells what slices exchange where there are several."""
    timing = time_schedule(schedule, pace_of(acc, calibration))
    between = slice_seconds(workload, acc, calibration) if workload is not None and acc.slices > 1 else 0.0
    seconds = timing.seconds + between
    table = calibration.compiled.get("intervals", {})
    low, high = table.get(acc.chip.family) or UNSCORED
    words = [f"XLA's schedule for {acc}, errors on {table['rows']} published steps" if "rows" in table
             else f"XLA's schedule for {acc}; no published step has scored it"]
    if timing.unknown:
        high += log(1 + (UNKNOWN - 1) * timing.unknown / seconds)
        words.append(f"{timing.unknown / seconds:.0%} in kernels whose work is unknown, taken by their bytes")
    guessed = sum(isinstance(item, Loop) and not item.known for items in schedule.blocks.values() for item in items)
    if guessed:
        words.append(f"{guessed} loop{'s' * (guessed > 1)} whose length depends on data, counted once")
    return CompiledStep(Estimate(seconds, seconds * exp(low), seconds * exp(high), "compiled", "; ".join(words)),
                        timing, between)


def slice_seconds(workload: Workload, acc: Accelerators, calibration: Calibration) -> float:
    """Seconds to sum gradients over slices: each chip exchanges its own shard over the data-centre network."""
    chips = acc.count // acc.slices
    shard = count(workload.model).total * GRADIENT_BYTES / chips
    return float(reduce_seconds(wires(acc, calibration), np.array(float(acc.slices)), np.array(float(chips)),
                                np.array(shard)))

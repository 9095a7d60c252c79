"""The step time of a compiled program: the walk through its schedule, what joins slices, and how wrong it may be."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.timing.schedule import Loop, Schedule
from chipwise.compiled.timing.timing import Timing, clock_rates, time_schedule
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.fabric import reduce_seconds
from chipwise.predict.model.training import costs
from chipwise.predict.site import wires
from chipwise.workload.model import Workload
from chipwise.workload.params import count

# Kernels nothing is known of run at most this much longer than their bytes take (a guess, said in the output)
UNKNOWN = 5.0
GRADIENT_BYTES = 2.0  # of a gradient that slices exchange: compiled modules reduce in bf16
# Log intervals where no published row has scored compiled steps: assumptions. XLA for GPUs tunes nothing without the
# card and gives no cycles, so that its guess is wider
UNSCORED = {"tpu": (-0.20, 0.25), "gpu": (-0.35, 0.5)}


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """A step as the compiler would run it."""

    estimate: Estimate  # seconds
    timing: Timing
    between_slices: float  # seconds that gradients cross the data-center network


def compiled_step(
    schedule: Schedule, acc: Accelerators, calibration: Calibration, workload: Workload | None = None
) -> CompiledStep:
    """Time a schedule on these chips; `workload` tells what slices exchange where there are several."""
    timing = time_schedule(schedule, clock_rates(acc, calibration))
    between = slice_seconds(workload, acc, calibration) if workload is not None and acc.slices > 1 else 0.0
    seconds = timing.seconds + between
    low, high, why = interval_of(acc, calibration)
    words = [why]
    if timing.unknown:
        high += log(1 + (UNKNOWN - 1) * timing.unknown / seconds)
        words.append(f"{timing.unknown / seconds:.0%} in kernels whose work is unknown, taken by their bytes")
    if guessed := open_loops(schedule):
        words.append(loops_in_words(guessed))
    return CompiledStep(
        Estimate(seconds, seconds * exp(low), seconds * exp(high), "compiled", "; ".join(words)), timing, between
    )


def interval_of(acc: Accelerators, calibration: Calibration) -> tuple[float, float, str]:
    """Log bounds of a compiled time on these chips, and where they come from."""
    table, family = calibration.training.compiled.get("intervals", {}), acc.chip.family
    low, high = table.get(family) or UNSCORED[family]
    scored = f"errors on {table['rows']} published steps" if family in table else "no published step has scored it"
    return low, high, f"XLA's schedule for {acc}; {scored}"


def open_loops(schedule: Schedule) -> int:
    """Loops whose trip count only running tells."""
    return sum(isinstance(item, Loop) and not item.known for items in schedule.blocks.values() for item in items)


def loops_in_words(count: int) -> str:
    """What is assumed of loops of unknown length."""
    return f"{count} loop{'s' * (count > 1)} whose length depends on data, counted once"


def slice_seconds(workload: Workload, acc: Accelerators, calibration: Calibration) -> float:
    """Seconds to sum gradients over slices: each chip exchanges its own shard over the data-center network."""
    chips = acc.count // acc.slices
    trained = costs(workload.train, workload.model).trained
    shard = count(workload.model).total * trained * GRADIENT_BYTES / chips
    return float(
        reduce_seconds(wires(acc, calibration), np.array(float(acc.slices)), np.array(float(chips)), np.array(shard))
    )

"""How one point is measured: built, checked against float64, warmed up, sampled; a doubtful result is marked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Protocol

from chipwise.bench.frameworks.interface import Case, Framework, OutOfMemory, Unsupported
from chipwise.bench.measurement import Measurement, Summary, Watched
from chipwise.ops.point import Point

# Largest ||out - reference|| / ||reference|| by precision: a few times what its rounding gives over a long sum.
TOLERANCES = {"fp32": 1e-4, "tf32": 2e-3, "bf16": 2e-2, "fp16": 2e-2, "fp8": 1e-1, "int8": 1e-6}
UNSTABLE = 0.10  # interquartile range over the median, or drift from the first to the last third of the samples
MOST_CALLS = 20_000  # in one sample
REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Budget:
    """Time for one point. Few samples are taken where even one is long."""

    seconds: float  # of sampling
    warm_seconds: float  # of warm-up, after the first call, which may compile
    least_samples: int = 7
    most_samples: int = 31
    sample_seconds: float = 2e-3  # a sample is at least so long, so that the clock's own cost doesn't count
    few_samples: int = 3  # where `least_samples` would take over four times the budget


# Short, so that a GPU's power cap has little time to lower its clocks while one kernel is measured (on an H200 a tenth
# of the products still ran below 1.8 of its 1.98 GHz, 2026-11-15). Steps run at the clocks of sustained work.
BUDGETS = {
    "tiny": Budget(0.03, 0.01),
    "quick": Budget(0.03, 0.015, most_samples=15, sample_seconds=1e-3),
    "full": Budget(0.06, 0.02),
}
# Of steps of models: the host's part of an eager step scatters, so that more of them are taken; and large ones are to
# run long enough for the power cap to tell
STEP_BUDGETS = {**BUDGETS, "quick": Budget(0.4, 0.1, most_samples=15), "full": Budget(0.8, 0.2)}


def budget_of(size: str, suite: str) -> Budget:
    """How long one point of a suite may take."""
    return (BUDGETS if suite == "kernels" else STEP_BUDGETS)[size]


class Window(Protocol):
    """What was seen of the device between entering and leaving."""

    def watched(self, calls: int, seconds: float) -> Watched:
        """The window summed up, with the energy of one of `calls` calls that took `seconds` each."""


class Watcher(Protocol):
    """What looks at the device while a point runs."""

    def window(self) -> AbstractContextManager[Window]:
        """Look for as long as the context lasts."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Seconds of one call by each sample, in the order taken, and what the device said meanwhile."""

    seconds: tuple[float, ...]
    calls: int
    watched: Watched

    @property
    def doubt(self) -> str:
        """Why the samples can't be trusted, in words; "" where they can."""
        summary = summarize(self.seconds, self.calls)
        moved = drift(self.seconds)
        if summary.spread > UNSTABLE:
            return f"the samples scatter: their interquartile range is {summary.spread:.0%} of the median"
        if abs(moved) > UNSTABLE:
            return f"the samples drift: the last third is {abs(moved):.0%} {'slower' if moved > 0 else 'faster'}"
        return ""


def measure(
    framework: Framework,
    point: Point,
    budget: Budget,
    watcher: Watcher,
    tell: Callable[[str], None] = lambda stage: None,
) -> Measurement:
    """The measurement of a point; what goes wrong with it is in its status, never raised."""
    try:
        framework.reset()
        return _measured(framework, point, budget, watcher, tell)
    except Unsupported as error:
        return Measurement(point, framework.name, "unsupported", reason=one_line(error))
    except OutOfMemory as error:
        return Measurement(point, framework.name, "oom", reason=one_line(error))
    except Exception as error:
        status = "oom" if framework.out_of_memory(error) else "failed"
        return Measurement(point, framework.name, status, reason=f"{type(error).__name__}: {one_line(error)}")


def _measured(
    framework: Framework, point: Point, budget: Budget, watcher: Watcher, tell: Callable[[str], None]
) -> Measurement:
    tell("building")
    case = framework.build(point)
    tell("checking")
    error = case.check() if case.check is not None else None
    wrong = _wrong(error, point.dtype, case.slack)
    if wrong:
        kept = error if error is not None and math.isfinite(error) else None
        return Measurement(point, framework.name, "failed", reason=wrong, error=kept)
    tell("warming up")
    calls, used = warm_up(framework, case, budget)
    tell("measuring")
    sampled, used = sample(framework, case, calls, budget, watcher, used)
    if sampled.doubt:
        tell("measuring again")
        again, used = sample(framework, case, calls, budget, watcher, used)
        sampled = again if not again.doubt or _spread(again) < _spread(sampled) else sampled
    return Measurement(
        point,
        framework.name,
        "unstable" if sampled.doubt else "ok",
        summarize(sampled.seconds, sampled.calls),
        sampled.doubt,
        case.flops,
        case.moved_bytes,
        case.items,
        case.params,
        framework.peak_bytes(),
        error,
        sampled.watched,
    )


def _spread(sampled: Sampled) -> float:
    return summarize(sampled.seconds, sampled.calls).spread


def _wrong(error: float | None, dtype: str, slack: float) -> str:
    if error is None:
        return ""
    allowed = TOLERANCES[dtype] * slack
    if math.isfinite(error) and error <= allowed:
        return ""
    return f"wrong result: relative error {error:.2g} against a wider precision; {dtype} is allowed {allowed:g}"


def warm_up(framework: Framework, case: Case, budget: Budget) -> tuple[int, int]:
    """Calls that make a sample long enough, and how many calls were made to find out."""
    framework.sample(case.call, 1, 0)  # compiles, allocates, fills caches
    calls, used, start = 1, 1, time.perf_counter()
    while True:
        seconds = framework.sample(case.call, calls, used)
        used += calls
        if seconds < budget.sample_seconds and calls < MOST_CALLS:
            grow = budget.sample_seconds / max(seconds, 1e-9) * 1.1
            calls = min(MOST_CALLS, max(calls + 1, math.ceil(calls * min(grow, 8.0))))
        elif time.perf_counter() - start >= budget.warm_seconds:
            return calls, used


def sample(
    framework: Framework, case: Case, calls: int, budget: Budget, watcher: Watcher, first: int
) -> tuple[Sampled, int]:
    """Samples within the budget, and the number of the next call; each call takes the next set of inputs."""
    seconds: list[float] = []
    with watcher.window() as window:
        start = time.perf_counter()
        while True:
            seconds.append(framework.sample(case.call, calls, first) / (calls * case.unit))
            first += calls
            gone = time.perf_counter() - start
            long = budget.least_samples * gone / len(seconds) > 4 * budget.seconds
            least = budget.few_samples if long else budget.least_samples
            if len(seconds) >= budget.most_samples or (len(seconds) >= least and gone >= budget.seconds):
                break
    watched = window.watched(calls * case.unit * len(seconds), median(seconds))
    return Sampled(tuple(seconds), calls * case.unit, watched), first


def summarize(seconds: Sequence[float], calls: int) -> Summary:
    """Median and quartiles of seconds per call.

    >>> summarize([3.0, 1.0, 2.0], 4)
    Summary(median=2.0, p25=1.5, p75=2.5, low=1.0, high=3.0, samples=3, calls=4, samples_s=(1.0, 2.0, 3.0))
    """
    ordered = sorted(seconds)
    p25, mid, p75 = quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    kept = tuple(float(f"{value:.4g}") for value in ordered)
    return Summary(mid, p25, p75, ordered[0], ordered[-1], len(ordered), calls, kept)


def drift(seconds: Sequence[float]) -> float:
    """How much slower the last third of the samples is than the first; 0 for fewer than six.

    >>> round(drift([1.0, 1.0, 1.1, 1.1, 1.2, 1.2]), 2), drift([1.0, 2.0])
    (0.2, 0.0)
    """
    third = len(seconds) // 3
    if third < 2:
        return 0.0
    return median(seconds[-third:]) / median(seconds[:third]) - 1.0


def one_line(error: BaseException) -> str:
    """The message of an exception on one line, cut where it is long."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= REASON_LENGTH else words[: REASON_LENGTH - 3] + "..."

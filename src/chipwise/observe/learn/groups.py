"""What runs of one kind of program say: a robust mean of log(observed / predicted), and the interval of the next run.

One run is one observation, whatever the number of its steps: steps of a run share what makes it slow. Runs far from the
median are left out as outliers (median absolute deviations); of the others the interval is that of Student's
distribution for one more observation, so that it is as wide as few runs deserve.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import sqrt
from statistics import mean, median, stdev

from chipwise.catalog.telemetry_files import ObservedRun, TelemetryGroup

FEWEST_RUNS = 3  # of one, and of two, no spread is known that an interval could be made of
MOST_RUNS = 50  # of a group, the newest: drivers and compilers change
OUTLIER = 4.0  # standard deviations, by the median absolute deviation, beyond which a run is no run of its group
LEAST_SPREAD = 0.02  # of one, in a group whose runs are all alike: as far as the same run differs between two days
LEVEL = 0.95  # of each end: 90 % lie between
_ROBUST = 1.4826  # a standard deviation in median absolute deviations, of a normal distribution


def outliers(runs: Sequence[ObservedRun]) -> set[str]:
    """Digests of runs that are far from the others of their group."""
    if len(runs) < FEWEST_RUNS:
        return set()
    middle = median(run.log_ratio for run in runs)
    spread = max(LEAST_SPREAD, _ROBUST * median(abs(run.log_ratio - middle) for run in runs))
    return {run.digest for run in runs if abs(run.log_ratio - middle) > OUTLIER * spread}


def learned(runs: Sequence[ObservedRun]) -> TelemetryGroup | None:
    """What runs of one group say, outliers left out; None where they are too few."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # Student's quantiles

    far = outliers(runs)
    recent = sorted((run for run in runs if run.digest not in far), key=lambda run: run.at)[-MOST_RUNS:]
    if len(recent) < FEWEST_RUNS:
        return None
    ratios = [run.log_ratio for run in recent]
    centre, n = mean(ratios), len(ratios)
    half = float(stdtrit(n - 1, LEVEL)) * max(stdev(ratios), LEAST_SPREAD) * sqrt(1 + 1 / n)
    newest = recent[-1]
    return TelemetryGroup(
        chip=newest.chip,
        stack=newest.stack,
        program=newest.program,
        base=newest.base,
        log_factor=centre,
        low=centre - half,
        high=centre + half,
        runs=n,
        steps=sum(run.steps for run in recent),
        date=datetime.fromtimestamp(newest.at, UTC).date().isoformat() if newest.at else "",
    )

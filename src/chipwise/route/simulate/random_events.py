"""Random run times, interruptions and node failures, drawn from a seed, alike for every policy.

Every draw depends on the seed, the job and the pool (and the attempt) alone, so that policies meet the same luck
wherever they send a job to the same pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from random import Random

from chipwise.errors import InputError
from chipwise.predict.estimate import Estimate
from chipwise.route.late_spread import Z95
from chipwise.route.pool import Pool
from chipwise.units import HOUR

MOST_SEED = 2**32
REPAIR_S = 4 * HOUR  # until a failed node is back: a reboot and a health check, or a shift's wait; no source, stated


@dataclass(frozen=True, slots=True)
class RandomEvents:
    """What is drawn. Without a seed nothing is: runs take what was estimated, interruptions in expectation."""

    seed: int | None = None
    failures: float = 0.0  # of a unit (a host) an hour
    repair: float = REPAIR_S

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed < MOST_SEED:
            raise InputError("seed", self.seed, f"a whole number from 0 to {MOST_SEED - 1:,}")
        if not 0 <= self.failures <= 1:
            raise InputError("failures", self.failures, "failures of a node an hour from 0 to 1, such as 0.0005")

    def seconds(self, estimate: Estimate, job: str, pool: str) -> float:
        """How long a whole run really takes: its value, or drawn so that nine in ten lie in the interval.

        >>> RandomEvents().seconds(Estimate(100.0, 80.0, 150.0, "modelled"), "a", "h100")
        100.0
        """
        if self.seed is None:
            return estimate.value
        z = Random(f"{self.seed}/time/{job}/{pool}").gauss(0.0, 1.0)
        side = estimate.high if z > 0 else estimate.low
        if not 0 < side < inf or estimate.value <= 0:
            return estimate.value
        return estimate.value * exp(abs(z) / Z95 * log(side / estimate.value))

    def interruption(self, pool: Pool, chips: int, job: str, attempt: int) -> float:
        """Seconds until spot chips are taken away; inf where they aren't."""
        rate = pool.interruptions * max(1, chips // pool.unit) if pool.spot and self.seed is not None else 0.0
        return _wait(rate, f"{self.seed}/spot/{job}/{pool.name}/{attempt}")

    def failure(self, pool: Pool, chips: int, number: int) -> tuple[float, float]:
        """Seconds until a pool's next node fails, and which: a position in the pool from 0 to 1."""
        rate = self.failures * max(1, chips // pool.unit)
        name = f"{self.seed or 0}/node/{pool.name}/{number}"
        return _wait(rate, name), Random(name + "/which").random()


def _wait(per_hour: float, name: str) -> float:
    rate = per_hour / HOUR  # a denormal rate would divide to nothing
    return Random(name).expovariate(rate) if rate > 1e-300 else inf

"""The effort of a port: engineer-weeks from the framework, the kernels and what a compiler refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Port:
    """Engineer-weeks to bring a program to a chip, once, and the runs that share them."""

    weeks: float
    weeks_low: float
    weeks_high: float
    week_usd: float
    runs: float
    reasons: tuple[str, ...]  # what makes the weeks, or why there are none

    @property
    def usd_run(self) -> float:
        """US dollars of one run's share."""
        return self.weeks * self.week_usd / self.runs

"""What an importer found: own prices, and in words every row that it could not use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.prices.custom_prices import CustomPriceRow


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows left out for one reason, and what they cost where that is known."""

    reason: str
    rows: int
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """Own prices from files, how many rows they rest on, and what was left out or assumed."""

    rows: tuple[CustomPriceRow, ...]
    read: int
    used: int
    left_out: tuple[LeftOut, ...]
    assumptions: tuple[str, ...] = ()


@dataclass(slots=True)
class Tally:
    """Counts rows left out, by reason."""

    counts: dict[str, int] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    joined: int = 0  # rows that are part of another row's price

    def add(self, reason: str, usd: float | None = None) -> None:
        """One more row left out."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if usd is not None:
            self.costs[reason] = self.costs.get(reason, 0.0) + usd

    def left_out(self) -> tuple[LeftOut, ...]:
        """The reasons, most rows first."""
        costs: Mapping[str, float] = self.costs
        many = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple(LeftOut(reason, rows, costs.get(reason)) for reason, rows in many)

"""How many chips of a kind: of the counts within all limits, the fewest that are nearly as good as the best.

Every count of the ladder is evaluated unless physics alone rules it out, so that the answer is that of brute force.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chipwise.catalog import Accelerators, Chip
from chipwise.compare.decision import Refused
from chipwise.compare.terms import Terms
from chipwise.compare.training.row import TrainingRow
from chipwise.errors import Refusal
from chipwise.prices import PriceBook, why_no_price
from chipwise.units import HOUR, format_money, format_seconds

KNEE = 1.05  # a count is nearly as good as the best up to this many times its time, cost or energy

Evaluate = Callable[[Accelerators], TrainingRow | Refusal]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no run on a chip can beat: chip-seconds at the dense peak, US dollars a chip-hour at its cheapest."""

    chip_seconds: float
    usd_per_chip_hour: float | None

    def rules_out(self, count: int, terms: Terms) -> bool:
        """Whether so many chips break a limit whatever their efficiency."""
        if terms.deadline_s is not None and self.chip_seconds / count > terms.deadline_s:
            return True
        if terms.budget_usd is None or self.usd_per_chip_hour is None:
            return False
        return self.usd > terms.budget_usd

    @property
    def usd(self) -> float:
        """What the run costs at least, by the cheapest offer."""
        return self.chip_seconds / HOUR * (self.usd_per_chip_hour or 0.0)

    def refused(self, chip: Chip, most: Accelerators, terms: Terms) -> Refused:
        """Why no count comes into question."""
        if terms.budget_usd is not None and self.usd > terms.budget_usd:
            reason = f"{chip.id} costs {format_money(self.usd)} at its peak rate"
            return Refused(chip, None, "budget", reason, f"the budget is {format_money(terms.budget_usd)}")
        assert terms.deadline_s is not None
        reason = f"{most} takes {format_seconds(self.chip_seconds / most.count)} at its peak rate"
        return Refused(chip, most, "deadline", reason, f"the deadline is {format_seconds(terms.deadline_s)}")


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a chip that were tried, in ascending order."""

    terms: Terms
    rows: Sequence[TrainingRow]
    refusals: Sequence[tuple[Accelerators, Refusal]] = ()

    def within(self) -> list[TrainingRow]:
        """Those that keep every limit by the high end of their intervals."""
        return [row for row in self.rows if keeps(row, self.terms)]

    def best(self) -> TrainingRow | None:
        """The knee: the fewest chips whose time, cost or energy is within 5 % of the best within the limits."""
        return knee(self.within(), self.terms.objective)


def keeps(row: TrainingRow, terms: Terms) -> bool:
    """Whether a row keeps the deadline and the budget by the high end of its interval; without a price no budget."""
    if terms.deadline_s is not None and row.prediction.duration.high > terms.deadline_s:
        return False
    return terms.budget_usd is None or (row.ondemand is not None and row.ondemand.usd.high <= terms.budget_usd)


def knee(rows: Sequence[TrainingRow], objective: str) -> TrainingRow | None:
    """The fewest chips within 5 % of the best; the fewest of all where none has a price."""
    scored = [(by.value, row) for row in rows if (by := row.by(objective)) is not None]
    if not scored:
        return min(rows, key=lambda row: row.accelerators.count, default=None)
    least = min(value for value, _ in scored)
    return min((row for value, row in scored if value <= least * KNEE), key=lambda row: row.accelerators.count)


def tried(
    counts: Sequence[Accelerators], terms: Terms, bounds: Bounds, evaluate: Evaluate, first: bool = False
) -> Counts:
    """Every count that physics does not rule out, or those up to the first within the limits."""
    rows: list[TrainingRow] = []
    refusals: list[tuple[Accelerators, Refusal]] = []
    for acc in counts:
        if bounds.rules_out(acc.count, terms):
            continue
        row = evaluate(acc)
        if isinstance(row, TrainingRow):
            rows.append(row)
            if first and keeps(row, terms):
                break
        else:
            refusals.append((acc, row))
    return Counts(terms, rows, refusals)


def broken(counts: Counts, prices: PriceBook) -> tuple[TrainingRow, str, str, str]:
    """Of counts that all break a limit: the one that comes nearest, which limit, why, what would unlock it."""
    terms = counts.terms
    in_time = [r for r in counts.rows if terms.deadline_s is None or r.prediction.duration.high <= terms.deadline_s]
    if not in_time:
        assert terms.deadline_s is not None
        row = min(counts.rows, key=lambda r: r.prediction.duration.high)
        reason = (
            f"{row.accelerators} takes up to {format_seconds(row.prediction.duration.high)}, "
            f"the deadline is {format_seconds(terms.deadline_s)}"
        )
        return row, "deadline", reason, "no other count is faster" if len(counts.rows) > 1 else "more chips may do"
    priced = [r for r in in_time if r.ondemand is not None]
    assert terms.budget_usd is not None
    if not priced:
        acc = in_time[0].accelerators
        return in_time[0], "budget", why_no_price(acc.chip, acc.count, False, prices), "no budget can be checked"
    row = min(priced, key=lambda r: r.ondemand.usd.high if r.ondemand else 0.0)
    assert row.ondemand is not None
    late = "" if terms.deadline_s is None else f" within {format_seconds(terms.deadline_s)}"
    reason = f"{row.accelerators} costs up to {format_money(row.ondemand.usd.high)}{late}"
    return row, "budget", reason, f"the budget is {format_money(terms.budget_usd)}"

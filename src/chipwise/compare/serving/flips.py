"""What would flip the choice of a chip to serve on: a price, the demand, or a looser SLO.

Other demands are sized from what replicas are known to sustain, without another run where cost decides; a looser SLO
is searched again for the leading rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from chipwise.compare.decision import Flip, pick_of, price_flip, score
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.terms import Candidate
from chipwise.errors import Refusal
from chipwise.units import format_money
from chipwise.workload.serve import Bound

LEADING = 4  # rows that are evaluated again: those behind would need a larger change
FACTORS = (0.5, 2.0, 0.25, 4.0)
NEAR = (0.5, 2.0)  # where every demand takes new runs
LOOSER = 2.0  # times the bound that limits the pick


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The pick, and the chip that would be picked, if the bound that limits the pick were looser."""

    bound: Bound  # as the SLO has it
    looser: Bound
    same: ServingRow | None  # the picked chip sized again; None where that was not found
    winner: ServingRow

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "metric": self.bound.metric,
            "percentile": self.bound.percentile,
            "before": self.bound.seconds,
            "after": self.looser.seconds,
            "winner": str(self.winner.accelerators),
            "same": str(self.same.accelerators) if self.same else None,
        }


def flips(
    comparer: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow], pick: ServingRow
) -> tuple[Flip, ...]:
    """Changes that flip the decision, smallest first."""
    found = list(price_flip(rows, pick, " a chip")) if comparer.terms.objective == "cost" else []
    if comparer.demand.kind != "job" and len(rows) > 1:
        for factor in FACTORS if comparer.terms.objective == "cost" else NEAR:
            found += _by_demand(comparer, candidates, rows, pick, factor)
    return tuple(sorted(found, key=lambda flip: round(flip.size, 4)))


def _by_demand(
    comparer: ServingComparer,
    candidates: Sequence[Candidate],
    rows: Sequence[ServingRow],
    pick: ServingRow,
    factor: float,
) -> Iterator[Flip]:
    """The pick at another demand."""
    other = comparer.times(factor)
    if other.demand == comparer.demand:
        return
    name = _cheapest(other, candidates, rows) if comparer.terms.objective == "cost" else _best(other, candidates, rows)
    if name is None or name.partition(":")[0] == pick.accelerators.chip.id:
        return
    yield Flip(
        comparer.demand.kind,
        name,
        "",
        comparer.demand.load,
        other.demand.load,
        f"{name} wins on {comparer.terms.objective} at {other.demand} instead of {comparer.demand}",
    )


def _cheapest(comparer: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow]) -> str | None:
    """The chips with the least cost at this demand; of bounded rows as much is added as theirs have now."""
    found: list[tuple[float, str]] = []
    for row in rows:
        points, by = score(row, "cost"), row.by("cost")
        if points is None or by is None or points == inf:
            continue
        try:
            fleets = comparer.fleets(_candidate(candidates, row))
        except Refusal:
            continue
        priced = [
            (fleet.usd_per_hour * points / by.value, str(fleet.accelerators)) for fleet in fleets if fleet.usd_per_hour
        ]
        found += priced
    return min(found)[1] if found else None


def _best(comparer: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow]) -> str | None:
    """The best of the leading rows, run again."""
    got = [comparer.evaluate(_candidate(candidates, row)) for row in rows[:LEADING]]
    best = pick_of([row for row in got if isinstance(row, ServingRow)], comparer.terms.objective)
    return str(best.accelerators) if best else None


def relaxed(
    comparer: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow], pick: ServingRow
) -> Relaxed | None:
    """The leading rows evaluated with twice the bound that limits the pick; None where no bound does."""
    serve = comparer.workload.serve
    bound = next((b for b in serve.slo if str(b) == pick.limit), None)
    if bound is None:
        return None
    looser = replace(bound, seconds=bound.seconds * LOOSER)
    slo = tuple(looser if b is bound else b for b in serve.slo)
    other = comparer.under(slo)
    leading = [row for row in rows if score(row, comparer.terms.objective) is not None]
    leading.sort(key=lambda row: score(row, comparer.terms.objective) or 0.0)
    got = [other.evaluate(_candidate(candidates, row)) for row in leading[:LEADING]]
    again = [row for row in got if isinstance(row, ServingRow)]
    winner = pick_of(again, comparer.terms.objective)
    if winner is None:
        return None
    same = next((row for row in again if row.accelerators.chip == pick.accelerators.chip), None)
    return Relaxed(bound, looser, same, winner)


def relaxed_in_words(found: Relaxed, pick: ServingRow, objective: str) -> str:
    """What a looser bound would change."""
    loose = f"allowing {found.looser.metric} p{found.looser.percentile:g} of {found.looser.seconds * 1e3:g} ms"
    row = found.winner
    paid = f" at {format_money(row.ondemand.usd.value)}/h" if row.ondemand else ""
    if row.accelerators.chip != pick.accelerators.chip:
        return f"{loose}, {row.accelerators}{paid} wins on {objective}"
    if row.accelerators.count < pick.accelerators.count:
        return f"{loose}, {row.accelerators}{paid} would do"
    return f"{loose} changes nothing"


def _candidate(candidates: Sequence[Candidate], row: ServingRow) -> Candidate:
    """What a row was asked for as."""
    same = [c for c in candidates if c.chip == row.accelerators.chip]
    return next((c for c in same if c.fixed == row.accelerators), next((c for c in same if c.fixed is None), same[0]))

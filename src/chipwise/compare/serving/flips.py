"""What would flip the choice of a chip to serve on: a price, the demand, or a looser SLO.

Other demands are sized from what replicas are known to carry, without another run where cost decides; a looser SLO
is searched anew for the leading rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from chipwise.compare.serving.comparer import ServingComparer, ServingRow
from chipwise.compare.terms import Candidate
from chipwise.compare.training.flips import HAIR, Flip
from chipwise.errors import Refusal
from chipwise.units import format_money
from chipwise.workload.serve import Bound

LEADING = 4  # rows that are evaluated anew: those behind would need a larger change
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


def choose(rows: Sequence[ServingRow], objective: str) -> ServingRow | None:
    """The row to pick: the best score, then the best value; None where no row has one."""
    scored = [
        (score, by.value, str(row.accelerators), row)
        for row in rows
        if (score := row.score(objective)) is not None and (by := row.by(objective)) is not None
    ]
    return min(scored, key=lambda each: each[:3])[3] if scored else None


def runner_up(rows: Sequence[ServingRow], pick: ServingRow, objective: str) -> ServingRow | None:
    """The row that would be picked without `pick`."""
    return choose([row for row in rows if row is not pick], objective)


def flips(
    market: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow], pick: ServingRow
) -> tuple[Flip, ...]:
    """Changes that flip the decision, smallest first."""
    found = list(_by_price(rows, pick)) if market.terms.objective == "cost" else []
    if market.demand.kind != "job" and len(rows) > 1:
        for factor in FACTORS if market.terms.objective == "cost" else NEAR:
            found += _by_demand(market, candidates, rows, pick, factor)
    return tuple(sorted(found, key=lambda flip: round(flip.size, 4)))


def _by_price(rows: Sequence[ServingRow], pick: ServingRow) -> Iterator[Flip]:
    """The smallest fall of a rival's price that makes it the pick."""
    second = runner_up(rows, pick, "cost")
    if second is None or second.ondemand is None:
        return
    best, other = pick.score("cost"), second.score("cost")
    if best is None or other is None or other == inf or best == inf:
        return
    before = second.ondemand.price.usd_h
    after = before * best / other * (1 - HAIR)
    now = choose([second.priced(after) if row is second else row for row in rows], "cost")
    if now is None or now.accelerators != second.accelerators:
        return
    name = str(second.accelerators)
    fall = f"{1 - after / before:.0%}".replace("%", " %")
    yield Flip(
        "price",
        name,
        second.accelerators.chip.id,
        before,
        after,
        f"{name} wins on cost if its price falls by {fall} to ${after:.2f}/h a chip (from ${before:.2f}/h)",
    )


def _by_demand(
    market: ServingComparer,
    candidates: Sequence[Candidate],
    rows: Sequence[ServingRow],
    pick: ServingRow,
    factor: float,
) -> Iterator[Flip]:
    """The pick at another demand."""
    other = market.times(factor)
    if other.demand == market.demand:
        return
    name = _cheapest(other, candidates, rows) if market.terms.objective == "cost" else _best(other, candidates, rows)
    if name is None or name.partition(":")[0] == pick.accelerators.chip.id:
        return
    yield Flip(
        market.demand.kind,
        name,
        "",
        market.demand.load,
        other.demand.load,
        f"{name} wins on {market.terms.objective} at {other.demand} instead of {market.demand}",
    )


def _cheapest(market: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow]) -> str | None:
    """The chips with the least cost at this demand; of bounded rows as much is added as theirs have now."""
    found: list[tuple[float, str]] = []
    for row in rows:
        score, by = row.score("cost"), row.by("cost")
        if score is None or by is None or score == inf:
            continue
        try:
            fleets = [fleet for _, fleet in market.sized(_candidate(candidates, row))]
        except Refusal:
            continue
        priced = [(fleet.usd_h * score / by.value, str(fleet.accelerators)) for fleet in fleets if fleet.usd_h]
        found += priced
    return min(found)[1] if found else None


def _best(market: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow]) -> str | None:
    """The best of the leading rows, run again."""
    got = [market.evaluate(_candidate(candidates, row)) for row in rows[:LEADING]]
    best = choose([row for row in got if isinstance(row, ServingRow)], market.terms.objective)
    return str(best.accelerators) if best else None


def relaxed(
    market: ServingComparer, candidates: Sequence[Candidate], rows: Sequence[ServingRow], pick: ServingRow
) -> Relaxed | None:
    """The leading rows evaluated with twice the bound that limits the pick; None where no bound does."""
    serve = market.workload.serve
    bound = next((b for b in serve.slo if str(b) == pick.limit), None)
    if bound is None:
        return None
    looser = replace(bound, seconds=bound.seconds * LOOSER)
    slo = tuple(looser if b is bound else b for b in serve.slo)
    work = replace(market.workload, serve=replace(serve, slo=slo))
    other = replace(market, workload=work, known={})
    leading = [row for row in rows if row.score(market.terms.objective) is not None]
    leading.sort(key=lambda row: row.score(market.terms.objective) or 0.0)
    got = [other.evaluate(_candidate(candidates, row)) for row in leading[:LEADING]]
    again = [row for row in got if isinstance(row, ServingRow)]
    winner = choose(again, market.terms.objective)
    if winner is None:
        return None
    same = next((row for row in again if row.accelerators.chip == pick.accelerators.chip), None)
    return Relaxed(bound, looser, same, winner)


def relaxed_in_words(found: Relaxed, pick: ServingRow, objective: str) -> str:
    """What a looser bound would change."""
    loose = f"allowing {found.looser.metric} p{found.looser.percentile:g} of {found.looser.seconds * 1e3:g} ms"
    row = found.winner
    paid = f" at {format_money(row.ondemand.usd_h.value)}/h" if row.ondemand else ""
    if row.accelerators.chip != pick.accelerators.chip:
        return f"{loose}, {row.accelerators}{paid} wins on {objective}"
    if row.accelerators.count < pick.accelerators.count:
        return f"{loose}, {row.accelerators}{paid} would do"
    return f"{loose} changes nothing"


def _candidate(candidates: Sequence[Candidate], row: ServingRow) -> Candidate:
    """What a row was asked for as."""
    same = [c for c in candidates if c.chip == row.accelerators.chip]
    return next((c for c in same if c.fixed == row.accelerators), next((c for c in same if c.fixed is None), same[0]))

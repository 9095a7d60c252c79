"""Chips side by side on a workload that is served: sized for its demand, ranked, with a pick and what would flip it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import inf

from chipwise.catalog.calibration import Calibration
from chipwise.catalog.taught import Taught
from chipwise.compare.comparison import Progress
from chipwise.compare.serving.comparer import FEW, MANY, ServingComparer, ServingRow, demand_of
from chipwise.compare.serving.flips import Relaxed, choose, flips, relaxed
from chipwise.compare.serving.sentences import in_words
from chipwise.compare.terms import Candidate, Terms, every_chip
from chipwise.compare.training.comparer import Refused
from chipwise.compare.training.flips import Flip
from chipwise.compare.training.sentences import Words
from chipwise.errors import InputError, Refusal
from chipwise.prices import PriceBook, listed, prices_in_words
from chipwise.serving.capacity import COUNT
from chipwise.units import format_money, format_seconds
from chipwise.workload.serve import ServingWorkload


@dataclass(frozen=True, slots=True)
class ServingComparison:
    """Rows ranked best first (those without a price last on cost), the refused, and the decision."""

    workload: ServingWorkload
    terms: Terms
    market: ServingComparer
    rows: tuple[ServingRow, ...]
    refused: tuple[Refused, ...]
    pick: ServingRow | None
    flips: tuple[Flip, ...]
    relaxed: Relaxed | None  # the pick with twice the bound that limits it
    words: Words
    assumptions: tuple[str, ...]


def compare_serving(
    workload: ServingWorkload,
    candidates: Sequence[Candidate] | None,
    calibration: Calibration,
    taught: Taught,
    terms: Terms | None = None,
    today: date | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    book: PriceBook | None = None,
) -> ServingComparison:
    """Compare chips (the whole catalog unless named) on a workload to serve; a `Refusal` where none carries it."""
    terms = terms or Terms()
    work = within(workload, terms)
    chips = list(candidates) if candidates is not None else every_chip()
    market = ServingComparer(
        work,
        terms,
        calibration,
        taught,
        work.serve.stack,
        today or date.today(),
        demand_of(work, seed),
        book or listed(),
        seed,
    )
    rows: list[ServingRow] = []
    refused: list[Refused] = []
    for i, candidate in enumerate(chips):
        if progress:
            progress(i, len(chips), candidate.chip.id)
        got = market.evaluate(candidate)
        if isinstance(got, ServingRow):
            rows.append(got)
        else:
            refused.append(got)
    if not rows:
        raise _nowhere(market, refused)
    if progress:
        progress(len(chips), len(chips), "what would flip it")
    ranked = tuple(sorted(rows, key=lambda row: _rank(row, terms.objective)))
    pick = choose(ranked, terms.objective)
    found = flips(market, chips, ranked, pick) if pick else ()
    looser = relaxed(market, chips, ranked, pick) if pick else None
    return ServingComparison(
        work,
        terms,
        market,
        ranked,
        tuple(refused),
        pick,
        found,
        looser,
        in_words(market, ranked, pick, found, looser),
        _assumptions(market, ranked, all(market.named(c) for c in chips)),
    )


def within(workload: ServingWorkload, terms: Terms) -> ServingWorkload:
    """The workload with the deadline of the terms, which only an offline job has."""
    if terms.deadline_s is None:
        return workload
    s = workload.serve
    if s.arrival.kind != "offline" or not s.requests:
        raise InputError(
            "--deadline",
            format_seconds(terms.deadline_s),
            "an offline job with a number of requests: a service has no end",
        )
    return replace(workload, serve=replace(s, deadline_s=terms.deadline_s))


def _rank(row: ServingRow, objective: str) -> tuple[bool, float, str]:
    by = row.by(objective)
    return by is None, by.value if by else float(row.accelerators.count), str(row.accelerators)


def _assumptions(market: ServingComparer, rows: Sequence[ServingRow], fixed: bool) -> tuple[str, ...]:
    s, job = market.workload.serve, market.demand.kind == "job"
    stacks = dict.fromkeys(f"{r.served.service.target.stack.name} on {r.accelerators.chip.family}" for r in rows)
    first = rows[0].served.simulation.requests
    tried = f"{COUNT} requests for each load of a replica, {FEW:,} to {MANY:,} for the whole fleet"
    said = [
        "counts: as named" if fixed else _sizing(market),
        f"software: {', '.join(stacks)}" + ("" if s.stack else " (assumed: none was named)"),
        f"precision {s.precision}"
        + (f", cache in {s.kv_precision}" if rows[0].writes else "")
        + "; engine settings as the stack has them by default",
        f"simulated with seed {market.seed}: "
        + (f"{len(first):,} requests on one replica" if job else tried)
        + "; every chip gets the same requests",
        "prices: the cheapest list price for whole instances (TPUs: slices) that hold the replicas; whether so many "
        "are free is not known",
        "not counted: idle hours, replicas spare for failures, the router, storage, network, support, discounts",
        "spot: no interruptions are counted" + _on_spot(rows),
        f"calibration of {market.taught.date} on {market.taught.rows:,} published serving rows",
    ]
    bare = [r for r in rows if r.ondemand and r.ondemand.price.offer.note.startswith("accelerator only")]
    if bare:
        names = ", ".join(r.accelerators.chip.id for r in bare)
        said.append(f"without their hosts, which the list prices apart: {names}")
    if any(r.evidence == "bounded" for r in rows):
        said.append("bounded rows are ranked by value and picked by the high end of their interval")
    used = [q.price for r in rows for q in (r.ondemand, r.spot) if q]
    return (*said, *prices_in_words(market.book, used))


def _sizing(market: ServingComparer) -> str:
    if market.demand.kind == "job":
        within = "finish in time" if market.demand.load else "hold one replica (no deadline was given)"
        return f"counts (where not named): the fewest chips of each kind that {within}"
    return (
        "counts (where not named): replicas that carry the demand by the central value of their capacity, filling "
        "whole instances; headroom is what they carry beyond it, with its interval"
    )


def _on_spot(rows: Sequence[ServingRow]) -> str:
    """The cheapest row on spot, in words."""
    priced = [(r.spot.usd_h.value, r) for r in rows if r.spot]
    if not priced:
        return ""
    usd, row = min(priced, key=lambda pair: pair[0])
    return f"; the cheapest on spot is {row.accelerators.chip.id} at {format_money(usd)} an hour"


def _nowhere(market: ServingComparer, refused: Sequence[Refused]) -> Refusal:
    """One refusal for all: that of the chip which comes nearest."""
    if len(refused) == 1:
        return Refusal(refused[0].reason, refused[0].unlock)
    first = min(refused, key=lambda r: (market.missed.get(r.chip.id, inf), r.kind != "slo"))
    why = f"{first.reason}; {first.unlock}" if first.unlock else first.reason
    near = "the nearest" if first.chip.id in market.missed else "for one"
    return Refusal(f"none of the {len(refused)} chips compared carries {market.workload.name}", f"{near}: {why}")

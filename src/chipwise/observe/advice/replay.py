"""The jobs of a ledger replayed on other pools, by the router's own policies and allocation.

A job takes in another pool what was predicted for it there, times what its own run took over what was predicted for it
where it ran. Chips by the hour are paid for while they are held, committed ones for the whole span, at the price that
the pool has by the price book.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.observe.advice.records import COMMITTED, LeftOut, Mix, Replayed, State, Tried, Used
from chipwise.observe.advice.usage import wait_of
from chipwise.predict.estimate import Estimate
from chipwise.route.estimates.options import Estimator
from chipwise.route.ledger import LedgerView
from chipwise.route.ledger.records import CANCELLED, FAILED, AttemptRow, JobRow
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace, in_order
from chipwise.route.simulate.outcome import Outcome
from chipwise.route.simulate.run import simulate
from chipwise.units import HOUR

MORE = 0.5  # of a saturated pool's chips are added (own, 2026-11-19)
FASTEST, SLOWEST = 0.02, 50.0  # times as predicted: beyond that a run did something else


def mixes(used: Sequence[Used], wanted: Mapping[str, int]) -> list[Mix]:
    """The pools as they are; without what lies idle, with more where jobs wait, and both; then what was asked for."""
    pools = [one.pool for one in used]
    fewer = {
        one.pool.name: _whole(one.pool, one.busy_chips)
        for one in used
        if one.pool.terms in COMMITTED and State.SATURATED not in one.states
    }
    fewer = {name: count for name, count in fewer.items() if count < _count(pools, name)}
    more = {
        one.pool.name: _whole(one.pool, one.pool.count * (1 + MORE)) for one in used if State.SATURATED in one.states
    }
    out = [Mix(name="as it is", pools=pools)]
    if fewer:
        out.append(_mix("without what lay idle", pools, fewer))
    if more:
        out.append(_mix("more where jobs waited", pools, more))
    if fewer and more:
        out.append(_mix("both", pools, {**fewer, **more}))
    if wanted:
        out.append(_mix("as asked", pools, wanted))
    return out


def _count(pools: Sequence[Pool], name: str) -> int:
    return next(pool.count for pool in pools if pool.name == name)


def _whole(pool: Pool, chips: float) -> int:
    """Whole units; of slices the least one."""
    unit = min((count for count, _ in pool.shapes), default=pool.unit)
    return int(-(-chips // unit) * unit)


def _mix(name: str, pools: Sequence[Pool], counts: Mapping[str, int]) -> Mix:
    return Mix(
        name=name,
        pools=[replace(pool, count=counts.get(pool.name, pool.count)) for pool in pools],
        changes=[(pool.name, pool.count, counts[pool.name]) for pool in pools if pool.name in counts],
    )


def replayed(
    book: LedgerView,
    tried: Sequence[Mix],
    policy: str,
    span: tuple[float, float],
    estimator: Estimator,
    weights: Mapping[str, float],
) -> Replayed:
    """What the jobs of a span would have met in each mix."""
    attempts: dict[str, list[AttemptRow]] = {}
    for attempt in book.attempts():
        attempts.setdefault(attempt.job_id, []).append(attempt)
    left_out: Counter[LeftOut] = Counter()
    jobs: list[tuple[JobRow, float]] = []
    measured = 0
    waits: list[float] = []
    for job in sorted(book.jobs(), key=lambda row: (row.submitted, int(row.id))):
        theirs = attempts.get(job.id, [])
        if not span[0] <= job.submitted < span[1]:
            continue
        begun = [a.started for a in theirs if a.started is not None]
        if job.state == CANCELLED and not begun:
            left_out[LeftOut.CANCELLED] += 1
            continue
        if job.state == FAILED:
            left_out[LeftOut.FAILED] += 1
            continue
        if begun:
            waits.append(min(begun) - job.submitted)
        factor = _factor(job, theirs)
        measured += factor is not None
        jobs.append((job, factor or 1.0))
    results = []
    nowhere = 0
    for mix in tried:
        arrivals, lost = _arrivals(jobs, mix.pools, estimator, span[0])
        nowhere = nowhere or lost
        if arrivals:
            results.append(_tried(mix, arrivals, policy, span, weights))
    if nowhere:
        left_out[LeftOut.NO_POOL] = nowhere
    return Replayed(
        policy=policy,
        jobs=len(jobs),
        real_wait=wait_of(waits),
        tried=results,
        left_out=sorted(left_out.items()),
        measured=measured,
    )


def _factor(job: JobRow, attempts: Sequence[AttemptRow]) -> float | None:
    """What its run took over what was predicted for it there; None where it did not run to its end in one attempt."""
    if len(attempts) != 1 or attempts[0].state != "succeeded":
        return None
    (attempt,) = attempts
    if attempt.started is None or attempt.ended is None:
        return None
    factor = (attempt.ended - attempt.started) / max(attempt.option.seconds.value, 1e-9)
    return factor if FASTEST <= factor <= SLOWEST else None


def _arrivals(
    jobs: Sequence[tuple[JobRow, float]], pools: Sequence[Pool], estimator: Estimator, since: float
) -> tuple[list[Arrival], int]:
    out, lost = [], 0
    for row, factor in jobs:
        options, infeasible = estimator.options(row.job, [pool for pool in pools if pool.count > 0])
        lost += not options
        scaled = tuple(replace(o, seconds=_certain(o.seconds.value * factor)) for o in options)
        deadline = row.job.deadline - since  # as the trace's clock has it
        job = replace(row.job, deadline=deadline, key="")
        out.append(Arrival(row.id, row.submitted - since, job, scaled, tuple(infeasible)))
    return out, lost


def _certain(seconds: float) -> Estimate:
    return Estimate(seconds, seconds, seconds, "measured")


def _tried(
    mix: Mix, arrivals: Sequence[Arrival], policy: str, span: tuple[float, float], weights: Mapping[str, float]
) -> Tried:
    pools = tuple(pool for pool in mix.pools if pool.count > 0)
    trace = Trace(mix.name, "jobs", in_order(arrivals), pools, weights=weights)
    simulation = simulate(trace, [policy])
    (outcome,), (measures,) = simulation.outcomes, simulation.measures
    waits = [fate.first - fate.arrival for fate in outcome.fates if fate.first is not None]
    return Tried(
        mix=mix,
        usd=paid(mix.pools, outcome, span),
        done=measures.completed,
        late=sum(fate.end is not None and fate.end > span[1] - span[0] for fate in outcome.fates),
        refused=measures.refused,
        wait=wait_of(waits),
        missed=measures.deadline_misses,
        kwh=measures.energy_kwh,
    )


def paid(pools: Sequence[Pool], outcome: Outcome, span: tuple[float, float]) -> float:
    """Dollars of a span: held chips by the hour, committed ones for all of it."""
    committed = {pool.name: pool for pool in pools if pool.terms in COMMITTED}
    hours = (span[1] - span[0]) / HOUR
    by_the_hour = sum(run.usd for run in outcome.runs if run.pool not in committed)
    return by_the_hour + sum(pool.count * hours * pool.usd_per_chip_hour for pool in committed.values())

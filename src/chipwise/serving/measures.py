"""What a simulated run says: latencies with intervals, rates, whether the SLO is met, use and energy.

Where requests keep coming the first tenth of them is warm-up (in a closed loop at least the first request of every
user), and rates and uses are taken between the arrivals of the first request after it and of the last one; an offline
job counts whole. Intervals are 90 % ones from twenty batches of consecutive requests, so that a queue's memory of
itself counts: of a percentile, from how the share of requests within it varies between the batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.io.brief import brief
from chipwise.predict.estimate import Estimate
from chipwise.serving.requests import OPEN
from chipwise.serving.simulate import Fleet, Prefill, Simulation
from chipwise.workload.serve import Bound

Array = NDArray[np.float64]

SIMULATED = "modelled"  # as evidence
BATCHES = 20
STUDENT = 1.729  # 95 % quantile at 19 degrees of freedom: both ends of a 90 % interval
PERCENTILES = (50.0, 90.0, 99.0)
GROWTH = 0.02  # of the requests that arrived: what grew by more has no end, or not yet


@brief
@dataclass(frozen=True, slots=True)
class Spread:
    """A latency over the requests, s; gaps between tokens: over the tokens."""

    mean: Estimate
    p50: Estimate
    p90: Estimate
    p99: Estimate

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"mean": self.mean, "p50": self.p50, "p90": self.p90, "p99": self.p99}


@dataclass(frozen=True, slots=True)
class SloCheck:
    """A bound and what the run had."""

    bound: Bound
    seconds: float  # at the bound's percentile

    @property
    def measured(self) -> bool:
        """Whether there was anything to measure."""
        return not isnan(self.seconds)

    @property
    def holds(self) -> bool:
        """Whether it stayed within; nothing to measure is within."""
        return not self.seconds > self.bound.seconds


@brief
@dataclass(frozen=True, slots=True)
class Measures:
    """A run in figures."""

    requests: int  # that count
    seconds: float  # that count
    ttft: Spread  # arrival to first token
    tpot: Spread | None  # mean gap of a request after its first token; None: every request has one token
    itl: Spread | None  # every gap
    e2e: Spread  # arrival to last token
    request_rate: Estimate  # answered, 1/s
    token_rate: Estimate  # output tokens/s
    goodput: float  # answered within every bound, 1/s
    good: float  # share of the requests
    slo_checks: tuple[SloCheck, ...]  # each bound at its percentile
    saturated: str  # in words, that the queue grows without end; empty: it doesn't
    settled: bool  # False: ever more requests in the system up to the end; a longer run would tell whether for good
    busy: float  # share of time, of the replicas that decode
    busy_prefill: float  # of those that prefill, 0 where there are none
    kv_use: float  # of the blocks, over time
    kv_peak: float  # of the blocks of the fullest replica
    queue: float  # mean requests that wait for a slot or blocks
    batch: float  # mean sequences of an iteration
    preemptions: int
    joules_per_token: float  # output token; all replicas, idle or not
    in_system: float  # mean requests in the system over the whole run, by time
    little: float  # the same by Little's law: rate x mean stay

    @property
    def watts(self) -> float:
        """Mean power of all chips."""
        return self.joules_per_token * self.token_rate.value

    @property
    def holds(self) -> bool:
        """Whether every bound is kept and the queue has an end."""
        return not self.saturated and all(check.holds for check in self.slo_checks)


def measure(simulation: Simulation, slo: tuple[Bound, ...] = ()) -> Measures:
    """All figures of a run."""
    run = simulation
    begin, end = float(run.edges[0]), float(run.edges[-1])
    seconds, spans, after = end - begin, np.diff(run.edges), run.counted
    output = run.requests.output[after]
    ttft, e2e = (run.first_s - run.arrival_s)[after], (run.finish_s - run.arrival_s)[after]
    tpot = _gap_of_each(run)
    finish = run.finish_s
    inside = (finish > begin) & (finish <= end)
    later = run.gaps[run.sections].sum(axis=1)  # every token but a first one ends a gap
    tokens = (later if run.steady else later.sum(keepdims=True)) + np.histogram(run.first_s, run.edges)[0]
    answered = np.histogram(finish, run.edges)[0].astype(np.float64)
    good = _good(run, slo)
    whole = float(run.end_s - run.arrival_s[0])
    prefills = run.fleet.prefill.replicas if run.fleet.prefill is not None else 0
    busy = _within(run, run.totals.busy_s)
    return Measures(
        requests=len(ttft),
        seconds=seconds,
        ttft=spread(ttft),
        tpot=spread(tpot[after][output > 1]) if np.any(output > 1) else None,
        itl=_gap_spread(run),
        e2e=spread(e2e),
        request_rate=_rate(answered, spans),
        token_rate=_rate(tokens, spans),
        goodput=float((inside & good).sum()) / seconds,
        good=float(good[after].mean()),
        slo_checks=tuple(SloCheck(bound, _at(run, bound, ttft, tpot[after], e2e)) for bound in slo),
        saturated=_saturated(run),
        settled=_settled(run),
        busy=min(float(busy[prefills:].mean()) / seconds, 1.0),
        busy_prefill=min(float(busy[:prefills].mean()) / seconds, 1.0) if prefills else 0.0,
        kv_use=min(float(_within(run, run.totals.kv_block_s)[prefills:].mean()) / (seconds * run.fleet.kv_blocks), 1.0),
        kv_peak=float(run.peak_blocks[prefills:].max()) / run.fleet.kv_blocks,
        queue=float(_within(run, run.totals.wait_s).sum()) / seconds,
        batch=float(_within(run, run.totals.sequence_s)[prefills:].sum()) / max(float(busy[prefills:].sum()), 1e-9),
        preemptions=int(run.totals.preemptions.sum()),
        joules_per_token=_joules(run, seconds) / max(float(tokens.sum()), 1.0),
        in_system=float(run.totals.stay_s.sum()) / whole,
        little=len(run.requests) / whole * float((run.finish_s - run.arrival_s).mean()),
    )


def check(simulation: Simulation, slo: tuple[Bound, ...]) -> tuple[tuple[float, ...], bool]:
    """What `measure` has of an SLO, and nothing else: seconds at each bound, and whether the queue has an end."""
    run, after = simulation, simulation.counted
    ttft, e2e = (run.first_s - run.arrival_s)[after], (run.finish_s - run.arrival_s)[after]
    tpot = _gap_of_each(run)[after]
    return tuple(_at(run, bound, ttft, tpot, e2e) for bound in slo), _settled(run) and not _saturated(run)


def spread(values: Array) -> Spread:
    """Mean and percentiles of values in the order of their requests, each with its interval."""
    ordered = np.sort(values)
    return Spread(_mean(values), *(_percentile(values, ordered, p / 100) for p in PERCENTILES))


def _mean(values: Array) -> Estimate:
    value = float(values.mean())
    if len(values) < 2 * BATCHES:
        half = STUDENT * float(values.std()) / max(len(values) - 1, 1) ** 0.5
    else:
        half = STUDENT * float(_batched(values).std(ddof=1)) / BATCHES**0.5
    # of few sections that differ much the error is larger than the mean, which no latency's is below
    return Estimate(value, max(value - half, min(value, float(values.min()))), value + half, SIMULATED)


def _batched(values: Array) -> Array:
    """Means of twenty batches of consecutive values."""
    starts = len(values) * np.arange(BATCHES) // BATCHES
    return np.asarray(np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values))))


def _percentile(values: Array, ordered: Array, share: float) -> Estimate:
    """A percentile; its ends are the percentiles that the share of values below it could as well have been."""
    value = _quantile(ordered, share)
    error = (share * (1 - share) / len(values)) ** 0.5  # of independent requests: never less
    if len(values) >= 2 * BATCHES:
        below = (values <= value).astype(float)
        error = max(error, float(_batched(below).std(ddof=1)) / BATCHES**0.5)
    low, high = max(share - STUDENT * error, 0.0), min(share + STUDENT * error, 1.0)
    return Estimate(value, _quantile(ordered, low), _quantile(ordered, high), SIMULATED)


def _quantile(ordered: Array, share: float) -> float:
    """Between the values of the two nearest ranks in proportion."""
    return float(np.interp(share * (len(ordered) - 1), np.arange(len(ordered)), ordered))


def _gap_at(counts: Array, seconds: Array, share: float) -> tuple[int, float]:
    """The bin that holds a percentile of the gaps, and the mean gap in it."""
    sums = np.cumsum(counts)
    place = int(np.searchsorted(sums, share * sums[-1]))
    place = int(np.searchsorted(sums, sums[min(place, len(sums) - 1)]))  # not an empty bin after it
    return place, float(seconds[place] / counts[place])


def _gap_spread(run: Simulation) -> Spread | None:
    counts, lasting = run.gaps[run.sections], run.gap_s[run.sections]
    number, seconds, each = counts.sum(axis=0), lasting.sum(axis=0), counts.sum(axis=1)
    if not each.any():
        return None
    mean = float(seconds.sum() / number.sum())
    half = _ratio_error(lasting.sum(axis=1), each, mean)

    def at(share: float) -> Estimate:
        place, value = _gap_at(number, seconds, share)
        below = counts[:, : place + 1].sum(axis=1)
        error = _ratio_error(below, each, float(below.sum() / each.sum()))
        ends = [_gap_at(number, seconds, x)[1] for x in (max(share - error, 0.0), min(share + error, 1.0))]
        return Estimate(value, ends[0], ends[1], SIMULATED)

    return Spread(Estimate(mean, max(mean - half, 0.0), mean + half, SIMULATED), at(0.5), at(0.9), at(0.99))


def _gap_of_each(run: Simulation) -> Array:
    """Mean gap after the first token of each request; NaN where there is none."""
    later = run.requests.output - 1
    return np.where(later > 0, (run.finish_s - run.first_s) / np.maximum(later, 1), np.nan)


def _within(run: Simulation, sums: Array) -> Array:
    """Sums over the sections that count, by replica."""
    return np.asarray(sums[run.sections].sum(axis=0))


def _rate(counts: Array, spans: Array) -> Estimate:
    seconds = float(spans.sum())
    value = float(counts.sum()) / seconds
    half = _ratio_error(counts, spans, value)
    return Estimate(value, max(value - half, 0.0), value + half, SIMULATED)


def _ratio_error(parts: Array, wholes: Array, ratio: float) -> float:
    """Half the interval of a ratio of sums over sections, by what each has beyond its share; 0: one section."""
    if len(parts) < 2:
        return 0.0
    return STUDENT * float((parts - ratio * wholes).std()) * float(np.sqrt(len(parts))) / float(wholes.sum())


def _own(run: Simulation, metric: str) -> Array:
    """A metric of each request; of the gaps between tokens its own mean stands for all."""
    if metric in ("tpot", "itl"):
        return _gap_of_each(run)
    return (run.first_s if metric == "ttft" else run.finish_s) - run.arrival_s


def _good(run: Simulation, slo: tuple[Bound, ...]) -> NDArray[np.bool_]:
    """Requests that are within every bound by themselves."""
    good = np.ones(len(run.requests), bool)
    for bound in slo:
        good &= ~(_own(run, bound.metric) > bound.seconds)
    return good


def _at(run: Simulation, bound: Bound, ttft: Array, tpot: Array, e2e: Array) -> float:
    """What the run has at a bound's percentile; NaN: nothing to measure."""
    share = bound.percentile / 100
    if bound.metric == "itl":
        counts, seconds = run.gaps[run.sections].sum(axis=0), run.gap_s[run.sections].sum(axis=0)
        return _gap_at(counts, seconds, share)[1] if counts.any() else float("nan")
    values = {"ttft": ttft, "tpot": tpot[~np.isnan(tpot)], "e2e": e2e}[bound.metric]
    return _quantile(np.sort(values), share) if len(values) else float("nan")


def _growth(run: Simulation, gone_s: Array, begin: float, end: float) -> tuple[int, int]:
    """Requests that arrived in a span, and how many more had arrived but not gone at its end than at its start."""
    come, gone = (np.sort(x).searchsorted([begin, end], side="right") for x in (run.arrival_s, gone_s))
    arrived = int(come[1] - come[0])
    return arrived, arrived - int(gone[1] - gone[0])


def _saturated(run: Simulation) -> str:
    """In words, that more arrives than is let in: the queue grew by more than chance explains."""
    if run.requests.kind not in OPEN or not run.steady:
        return ""
    begin, end = float(run.edges[0]), float(run.edges[-1])
    arrived, grown = _growth(run, run.start_s, begin, end)
    gaps = np.diff(run.arrival_s)
    varies = max(float(gaps.std() / gaps.mean()), 1.0)
    if grown <= max(GROWTH * arrived, 2 * varies * arrived**0.5):
        return ""
    arrive, served = arrived / (end - begin), (arrived - grown) / (end - begin)
    return f"{arrive:.4g} requests/s arrive, {served:.4g} get served: the queue grows"


def _settled(run: Simulation) -> bool:
    """Whether the requests in the system no longer rose in the second half, by more than chance explains."""
    if run.requests.kind not in OPEN or not run.steady:
        return True
    arrived, grown = _growth(run, run.finish_s, float(run.edges[len(run.edges) // 2]), float(run.edges[-1]))
    return bool(grown <= max(GROWTH * arrived, 4 * arrived**0.5))


def _joules(run: Simulation, seconds: float) -> float:
    """Energy of all replicas over the time that counts."""
    fleet, used = run.fleet, _within(run, run.totals.use_s)
    prefills = fleet.prefill.replicas if fleet.prefill is not None else 0
    joules = _pool_joules(fleet, float(used[prefills:].sum()), seconds)
    if fleet.prefill is not None:
        joules += _pool_joules(fleet.prefill, float(used[:prefills].sum()), seconds)
    return joules


def _pool_joules(pool: Fleet | Prefill, used_s: float, seconds: float) -> float:
    step_times = pool.step_times
    return step_times.watts_idle * seconds * pool.replicas + (step_times.watts_busy - step_times.watts_idle) * used_s

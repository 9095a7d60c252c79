"""The largest load within an SLO, by bisection over loads: for every way to split a replica, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, exp, inf, log2
from typing import Any

from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing, Refusal
from chipwise.io.brief import brief
from chipwise.layout.splits import domain
from chipwise.predict.estimate import Estimate
from chipwise.predict.site import slice_for
from chipwise.serving.measures import SloCheck
from chipwise.serving.requests import OPEN, Requests, draw
from chipwise.serving.service import Served, Service, ServingTarget, run, service, settled
from chipwise.serving.split import Split
from chipwise.serving.splits import by_reach, splits, worthwhile
from chipwise.serving.step_times import EngineConfig
from chipwise.workload.serve import Bound

Progress = Callable[[int, int, str], None]

COUNT = 600  # requests simulated for each load that is tried on one replica
LONG = 4_000  # and for those that confirm the best
JOB = 10_000  # of an offline job
STEPS = 9  # halvings of the ratio between a load that holds and one that doesn't: 1 % of the load
FLAT = 1.05  # of the output: four times the users that give less than this much more only wait longer
CHUNKS = (1024, 2048, 4096, 8192, 16384)  # tokens of an iteration that are tried
TIE = 0.01  # of a load: splits so near each other are alike, and the simplest is the best
BETTER = 1.02  # a setting is changed for a load that is larger by so much
BATCHES = (32, 64, 128, 256, 512, 1024, 2048)  # sequences at once that are tried


@dataclass(frozen=True, slots=True)
class Trial:
    """One load that was simulated on one replica."""

    load: float  # requests/s of the replica, or its users
    tokens_per_s: float
    user_tokens_per_s: float  # that one user sees: 1 / mean time per token
    holds: bool


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """The largest load of a service within its SLO."""

    service: Service  # all replicas that the chips hold
    load: Estimate  # requests/s, or users, of all replicas
    served: Served  # at the largest load, one replica
    limit: str  # what ends it: a bound, or that the queue grows
    trials: tuple[Trial, ...]

    @property
    def unit_chips(self) -> int:
        """Chips of what was simulated: one replica, or all of those that prefill and decode together."""
        return self.service.chips if self.service.prefill else self.service.replica.split.chips

    @property
    def units(self) -> int:
        """How many of that there are."""
        return 1 if self.service.prefill else self.service.replicas

    @property
    def per_chip(self) -> float:
        """Load of one chip."""
        return self.load.value / self.service.chips

    @property
    def chip_rate(self) -> float:
        """Output of one chip at the largest load, 1/s."""
        return self.served.token_rate.value / self.unit_chips

    @property
    def worth(self) -> float:
        """What splits are ranked by: the load, or the output where any number of users would hold."""
        serve = self.service.target.workload.serve
        endless = serve.arrival.kind == "closed" and not serve.slo
        return self.served.token_rate.value * self.units if endless else self.load.value


@dataclass(frozen=True, slots=True)
class RefusedSplit:
    """A split that can't be, and why."""

    split: Split
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"split": self.split, "reason": self.reason}


@brief
@dataclass(frozen=True, slots=True, eq=False)
class CapacitySearch:
    """Capacities of every split, best first, and those that can't be."""

    target: ServingTarget
    chips: int
    capacities: tuple[Capacity, ...]
    refused: tuple[RefusedSplit, ...] = ()
    passed_over: tuple[Split, ...] = ()  # estimated to hold clearly less than the best

    @property
    def best(self) -> Capacity:
        """The split and settings with the largest load."""
        return self.capacities[0]

    @property
    def demand(self) -> float:
        """The load that the workload has itself; 0: none, or one that any number of chips holds."""
        serve = self.target.workload.serve
        if serve.arrival.kind == "closed":
            return float(serve.arrival.users) if serve.slo else 0.0
        return serve.arrival.rate

    @property
    def needed_replicas(self) -> int:
        """Replicas, or groups that prefill apart, like the best that sustain the workload's own load; 0: none."""
        best = self.best
        return ceil(self.demand / (best.load.value / best.units) - 1e-9)

    @property
    def needed_chips(self) -> int:
        """Chips of the best split that sustain the workload's own load; 0: it has none."""
        return self.needed_replicas * self.best.unit_chips


def trial_requests(target: ServingTarget, seed: int = 0, count: int = COUNT) -> Requests:
    """The requests every load is tried with: the same ones, closer together or further apart."""
    serve = target.workload.serve
    if serve.arrival.kind == "offline":
        return draw(serve, JOB, seed)  # a job is a queue from the start: a short one is all start and end
    if serve.arrival.kind == "closed":
        return draw(serve, count, seed)
    return draw(serve, count, seed, rate=1.0)


def at_load(of: Service, requests: Requests, load: float) -> Served:
    """One replica under a load."""
    if requests.kind in OPEN:
        return run(of, requests.at_rate(load))
    if requests.kind == "closed":
        return run(of, requests.with_users(max(1, round(load))))
    return run(of, requests)


def holds(served: Served) -> bool:
    """Whether the SLO is kept and the queue has an end."""
    m = served.measures
    return m.holds and (m.settled or served.simulation.requests.kind not in OPEN)


def limit_of(served: Served) -> str:
    """What a load runs into, in words."""
    missed = [str(check.bound) for check in served.measures.slo_checks if not check.holds]
    return missed[0] if missed else "the queue grows" if not holds(served) else ""


def largest(of: Service, requests: Requests, steps: int = STEPS) -> tuple[float, Served, str, list[Trial]]:
    """The largest load of one replica that holds; 0 where none does, with the lightest that was tried."""
    trials: list[Trial] = []

    def attempt(load: float) -> Served:
        served = at_load(of, requests, load)
        trials.append(Trial(load, served.token_rate.value, served.user_rate, holds(served)))
        return served

    if requests.kind == "offline":
        served = attempt(1.0)
        return served.request_rate.value, served, "as fast as it goes", trials
    closed = requests.kind == "closed"
    light = 1.0 if closed else _lightest(of, requests)
    good = attempt(light)
    if not holds(good):
        return 0.0, good, limit_of(good), trials
    low, high, why = light, light, ""
    while True:
        high = low * 4 if closed else low * 3
        served = attempt(high)
        if not holds(served):
            why = limit_of(served)
            break
        more = trials[-1].tokens_per_s / trials[-2].tokens_per_s
        if closed and more < FLAT:
            return low, good, "more users only wait longer", trials
        low, good = high, served
        if closed and high > 1e5:
            return low, good, "the largest number of users tried", trials
    for _ in range(steps):
        if high / low < 1.02 or (closed and high - low <= 1):
            break
        middle = round((low * high) ** 0.5) if closed else (low * high) ** 0.5
        middle = min(max(middle, low + 1), high - 1) if closed else middle
        served = attempt(middle)
        if holds(served):
            low, good = middle, served
        else:
            high, why = middle, limit_of(served)
    return low, good, why, trials


def _lightest(of: Service, requests: Requests) -> float:
    """A rate at which requests hardly meet."""
    unloaded = at_load(
        of,
        replace(
            requests,
            arrival_s=requests.arrival_s[:40],
            input=requests.input[:40],
            output=requests.output[:40],
            shared=requests.shared[:40],
            group=requests.group[:40],
        ),
        1e-3,
    )
    return 0.05 / max(unloaded.e2e.mean.value, 1e-6)


def capacity_of(of: Service, requests: Requests, interval: bool = False) -> Capacity:
    """The largest load of all replicas of a service."""
    one = of if of.prefill is not None else of.with_replicas(1)  # pools of two kinds sustain what they sustain together
    load, served, why, trials = largest(one, requests)
    low = high = load
    by = of.corrections["tpot"]  # of how fast a replica steps; the queue's part of a TTFT follows from it
    if interval and load > 0 and requests.kind != "offline":
        ends = [largest(one.slower(exp(e)), requests, STEPS - 3)[0] for e in (max(by.high, 0.0), min(by.low, 0.0))]
        low, high = min(ends[0], load), max(ends[1], load)
    elif interval and requests.kind == "offline":
        low, high = served.request_rate.low, served.request_rate.high
    many = of.replicas // one.replicas
    span = Estimate(load * many, low * many, high * many, by.evidence, by.because, by.distance)
    return Capacity(of, span, served, why, tuple(trials))


def search(
    target: ServingTarget,
    chips: int,
    seed: int = 0,
    tune: bool = True,
    progress: Progress | None = None,
    only: Sequence[Split] | None = None,
    also: Callable[[Sequence[Capacity]], Sequence[Capacity]] | None = None,
) -> CapacitySearch:
    """The splits of replicas over these chips, each with its largest load; the settings of the best one tuned.

    `only` these splits, or all that are worth a simulation (`worthwhile`); `also`: what is tried beside the best.
    """
    requests = trial_requests(target, seed)
    model = target.workload.model
    fast = domain(slice_for(target.chip, chips))
    groups = [list(only)] if only is not None else by_reach(splits(model, chips, fast), target.chip)
    capacities: list[Capacity] = []
    refused: list[RefusedSplit] = []
    refusals: list[Refusal] = []
    passed: list[Split] = []
    for group in groups:
        services: dict[Split, Service] = {}
        for split in group:
            try:
                services[split] = service(target, split, max(1, chips // split.chips))
            except (DoesNotFit, NoLayout, PrecisionMissing) as refusal:
                refused.append(RefusedSplit(split, str(refusal)))
                refusals.append(refusal)
        tried = list(services) if only is not None else worthwhile(services, fast, chips)
        passed += [split for split in services if split not in tried]
        for done, split in enumerate(tried):
            if progress:
                progress(done, len(tried), str(split))
            capacities.append(capacity_of(services[split], requests))
        if any(c.load.value > 0 for c in capacities):
            break
    if not capacities:
        nothing = NoLayout(f"{model.name} can't be split over {chips} {target.chip.id}", "other counts may do")
        raise refusals[-1] if refusals else nothing
    ranked = by_load(capacities)
    if tune and ranked[0].load.value > 0:
        ranked = _tuned(ranked, requests)
    if also is not None:
        ranked = by_load([*ranked, *also(ranked)])
    if ranked[0].load.value <= 0:
        raise impossible(target, (c.served.measures.slo_checks for c in ranked))
    return CapacitySearch(target, chips, tuple(best_confirmed(ranked, seed)), tuple(refused), tuple(passed))


def best_confirmed(ranked: Sequence[Capacity], seed: int = 0) -> list[Capacity]:
    """Capacities, the best first, which a longer run confirmed; a `Refusal` where none then sustains any load."""
    best, longer = list(ranked), list[Capacity]()
    while best[0] not in longer:
        longer.append(confirmed(best[0], seed))
        best = by_load([longer[-1], *best[1:]])
    if best[0].load.value <= 0:
        raise impossible(best[0].service.target, (c.served.measures.slo_checks for c in best))
    return best


def by_load(capacities: Iterable[Capacity]) -> list[Capacity]:
    """The largest load first, but for one of a split with fewer axes that is as large to within `TIE`."""
    ranked = sorted(capacities, key=lambda c: -c.worth)
    near = [c for c in ranked if c.worth * (1 + TIE) >= ranked[0].worth]
    best = min(near, key=lambda c: c.service.replica.split.axes)
    return [best, *(c for c in ranked if c is not best)]


def confirmed(capacity: Capacity, seed: int = 0) -> Capacity:
    """The same searched again with a longer run, at what published rows say of its load, with an interval."""
    requests = trial_requests(capacity.service.target, seed, max(LONG, together(capacity.service)))
    return capacity_of(settled(capacity.service, capacity.served), requests, interval=True)


def together(of: Service) -> int:
    """How many requests make each load of replicas that are simulated together."""
    return min(COUNT * (of.replicas + of.prefill_replicas), JOB) if of.prefill else COUNT


def _tuned(ranked: list[Capacity], requests: Requests) -> list[Capacity]:
    """The best split with the batch of tokens and the number of sequences that sustain most."""
    best = ranked[0]
    r = best.service.replica
    settings: list[Callable[[EngineConfig], EngineConfig]] = [partial(_chunk, size) for size in CHUNKS]
    settings += [partial(_batch, size) for size in BATCHES]
    for change in settings:
        now = best.service.replica.config
        config = change(now)
        if config == now:
            continue
        try:
            candidate = service(best.service.target, r.split, best.service.replicas, config=config)
        except DoesNotFit:
            continue
        more = best.load.value / best.service.replicas * BETTER
        if requests.kind != "offline" and not holds(at_load(candidate.with_replicas(1), requests, more)):
            continue
        capacity = capacity_of(candidate, requests)
        if capacity.worth > best.worth:
            best = capacity
    return [best, *ranked[1:]]


def _chunk(size: int, config: EngineConfig) -> EngineConfig:
    return replace(config, most_tokens=size)


def _batch(size: int, config: EngineConfig) -> EngineConfig:
    return replace(config, most_sequences=size)


def impossible(target: ServingTarget, checks: Iterable[Sequence[SloCheck]]) -> Refusal:
    """No load holds the SLO: which part can't be met, and the nearest that can, by the lightest load of each split."""
    nearest: dict[Bound, float] = {}
    for each in checks:
        for check in each:
            nearest[check.bound] = min(nearest.get(check.bound, inf), check.seconds)
    missed = [(bound, best) for bound, best in nearest.items() if best > bound.seconds]
    if not missed:
        return Refusal(f"no load on {target.chip.id} keeps every bound of the SLO at once", "relax one of them")
    words = ", ".join(
        f"{bound.metric} p{bound.percentile:g} of {bound.seconds * 1e3:g} ms can't be met: the nearest "
        f"is {_up(best) * 1e3:g} ms"
        for bound, best in missed
    )
    return Refusal(f"on {target.chip.id} {words}", "relax it, use a faster chip or a smaller precision")


def _up(seconds: float) -> float:
    """Rounded up to two digits, so that it can be met."""
    if seconds <= 0:
        return 0.0
    scale = 10.0 ** (int(log2(seconds) / log2(10)) - 2)
    return ceil(seconds / scale) * scale


@brief
@dataclass(frozen=True, slots=True, eq=False)
class FrontPoint:
    """A load within the SLO that no other beats."""

    capacity: Capacity  # of the split
    trial: Trial

    @property
    def split(self) -> Split:
        """How a replica is split."""
        return self.capacity.service.replica.split

    @property
    def chip_rate(self) -> float:
        """Output of one chip, 1/s."""
        return self.trial.tokens_per_s / self.capacity.unit_chips

    @property
    def load(self) -> float:
        """The load of all replicas together when each has the one that was tried."""
        c = self.capacity
        return c.load.value if c.served.offline else self.trial.load * c.units


def front(capacities: Iterable[Capacity]) -> list[FrontPoint]:
    """The Pareto front of tokens/s a user sees and tokens/s a chip gives, fastest for a user first."""
    points = [FrontPoint(c, t) for c in capacities for t in c.trials if t.holds]
    out: list[FrontPoint] = []
    best = 0.0
    for point in sorted(points, key=lambda p: (-p.trial.user_tokens_per_s, -p.chip_rate)):
        if point.chip_rate > best * 1.001:
            best = point.chip_rate
            out.append(point)
    return out

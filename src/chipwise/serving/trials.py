"""Loads of one replica held against an SLO, each simulated once: whatever SLO or speed is asked about afterwards.

A replica all of whose times are multiplied by a factor does at a load what it did at that load times the factor, with
every latency multiplied. So runs of one replica tell what a slower or a faster one sustains, and under any SLO.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isnan, log, nextafter

import numpy as np

from chipwise.io.brief import brief
from chipwise.serving.measures import SloCheck, check
from chipwise.serving.requests import OPEN, Requests
from chipwise.serving.service import Served, Service, as_users_see, inside, run
from chipwise.serving.simulate import Fleet, simulate

UNLOADED = 40  # requests of one user after another
LIGHT = 0.05  # requests at once at which they hardly meet
EACH = 8  # requests of a user in a closed loop, at least: fewer say little
MOST_RATE = 1e6  # requests/s of one replica


@dataclass(frozen=True, slots=True)
class Trial:
    """What one load came to."""

    seconds: tuple[float, ...]  # at each bound of the SLO, in the replica
    settled: bool  # the queue has an end


@brief
@dataclass(slots=True, eq=False)
class ReplicaTrials:
    """One replica, the requests that every load is made of, and the loads that were simulated."""

    service: Service  # one replica
    requests: Requests
    trials: dict[float, Trial] = field(default_factory=dict)  # by load
    _fleet: Fleet | None = None
    _seen: list[tuple[float, float]] = field(default_factory=list)
    _light: float = 0.0

    def under(self, service: Service) -> ReplicaTrials:
        """The same runs for a service that differs in the seconds of its bounds alone."""
        return replace(self, service=service)

    @property
    def whole(self) -> bool:
        """Whether loads are users, who come one by one."""
        return self.requests.kind not in OPEN

    @property
    def most(self) -> float:
        """The largest load that the requests are enough for."""
        return max(1.0, float(len(self.requests) // EACH)) if self.whole else MOST_RATE

    @property
    def light(self) -> float:
        """A load at which requests hardly meet."""
        if self.whole:
            return 1.0
        if not self._light:
            self._light = LIGHT / max(unloaded(self.service, self.requests).e2e.mean.value, 1e-6)
        return self._light

    def loaded(self, load: float) -> Requests:
        """The requests at a load."""
        return self.requests.with_users(max(1, round(load))) if self.whole else self.requests.at_rate(load)

    def at(self, load: float) -> Trial:
        """The trial of a load, simulated where it was not yet."""
        if load not in self.trials:
            if self._fleet is None:
                self._fleet = self.service.fleet()
            slo = self.service.target.workload.serve.slo
            done = simulate(self.loaded(load), self._fleet)
            self.trials[load] = Trial(*check(done, tuple(inside(bound, self.service) for bound in slo)))
        return self.trials[load]

    def checks(self, load: float, slower: float = 1.0) -> tuple[SloCheck, ...]:
        """Every bound with what users would see; `slower`: of a replica with every time multiplied."""
        slo = self.service.target.workload.serve.slo
        if not self._seen:
            self._seen = [as_users_see(bound, self.service) for bound in slo]
        # what a model of one pass has on top is the way in, which no replica makes longer
        more = slower if self.service.replica.model.writes else 1.0
        seconds = self.at(load).seconds
        return tuple(
            SloCheck(bound, (own * slower + shown * more) * scale)
            for bound, own, (shown, scale) in zip(slo, seconds, self._seen, strict=True)
        )

    def excess(self, load: float, slower: float = 1.0) -> float:
        """The worst bound's seconds over those allowed; above 1: the SLO is missed, without end: the queue grows."""
        if not self.at(load).settled:
            return inf
        checks = [c for c in self.checks(load, slower) if not isnan(c.seconds)]
        worst = max((c.seconds / c.bound.seconds for c in checks), default=0.0)
        return worst if all(c.holds for c in checks) else max(worst, nextafter(1.0, 2.0))

    def limit(self, load: float, slower: float = 1.0) -> str:
        """What a load that is too large runs into, in words."""
        missed = [str(c.bound) for c in self.checks(load, slower) if not c.holds]
        return missed[0] if missed else "the queue grows"


def unloaded(of: Service, requests: Requests) -> Served:
    """Requests of one user, one after another."""
    some = slice(0, UNLOADED)
    few = replace(
        requests,
        arrival_s=np.zeros(len(requests.input[some])),
        input=requests.input[some],
        output=requests.output[some],
        shared=requests.shared[some],
        group=requests.group[some],
        kind="closed",
        users=1,
        rate=0.0,
    )
    return run(of.with_replicas(1), few)


@dataclass(slots=True)
class _Bracket:
    """The largest load known to hold, and the smallest known not to."""

    of: ReplicaTrials
    slower: float
    low: float = 0.0
    high: float = inf

    def __post_init__(self) -> None:
        self.high = min((x for x in self.of.trials if self.excess(x) > 1), default=inf)
        self.low = max((x for x in self.of.trials if x < self.high), default=0.0)

    def excess(self, load: float) -> float:
        return self.of.excess(load, self.slower)

    def place(self, load: float) -> bool:
        """Try a load; whether it holds."""
        if self.excess(load) <= 1:
            self.low = max(self.low, load)
            return True
        self.high = min(self.high, load)
        return False

    def between(self, ratio: float, halve: bool) -> float:
        """The next load to try: where the excess would be 1 on a line between both, a little to the wider side."""
        low, high = self.low, self.high
        middle = (low * high) ** 0.5
        below, above = self.excess(low), self.excess(high)
        if not halve and high / low > ratio**1.5 and 0 < below < 1 and above < inf:
            crossing = low * (high / low) ** (log(1 / below) / log(above / below))
            side = ratio**0.4 if high / crossing > crossing / low else ratio**-0.4
            middle = min(max(crossing * side, low * ratio**0.4), high / ratio**0.4)
        return min(max(float(round(middle)), low + 1), high - 1) if self.of.whole else middle


def largest_load(of: ReplicaTrials, guess: float, ratio: float, step: float = 2.0, slower: float = 1.0) -> float:
    """The largest load that holds, to within `ratio`, by regula falsi from what was tried or a guess; 0: none does.

    `slower`: the load of `of` that a replica with every time multiplied would have at the load divided by as much.
    """
    found = _Bracket(of, slower)
    if found.low == 0 and found.high == inf:
        found.place(min(max(1.0, round(guess)), of.most) if of.whole else guess)
    while found.high == inf:
        if found.low >= of.most:
            return found.low
        more = found.low * step
        found.place(min(max(round(more), found.low + 1) if of.whole else more, of.most))
        step = min(step * step, 2.0) if step < 2 else step
    while found.low == 0:
        if of.whole and found.high <= 1:
            return 0.0
        far, less = step >= 2, found.high / step
        step *= step
        if far:  # before the whole way down: whether any load holds
            light = of.light
            if found.high <= light or not found.place(min(light, less)):
                return 0.0
        near = max(float(round(less)), 1.0) if of.whole else less
        if found.low < near < found.high:
            found.place(near)
    turn = 0
    while found.high / found.low > ratio and not (of.whole and found.high - found.low <= 1):
        turn += 1
        found.place(found.between(ratio, turn % 3 == 0))
    return found.low


def limit_above(of: ReplicaTrials, load: float, slower: float = 1.0) -> str:
    """What ends a load: what the smallest larger one that was tried runs into."""
    above = [x for x in of.trials if x > load and of.excess(x, slower) > 1]
    return of.limit(min(above), slower) if above else "the largest load tried"

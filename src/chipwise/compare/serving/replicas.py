"""What one replica carries, found from a guess: the splits and the chips of a comparison are much alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp, inf

import numpy as np

from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing, Refusal
from chipwise.layout.splits import domain
from chipwise.predict.estimate import Estimate
from chipwise.predict.site import slice_for
from chipwise.serving import capacity
from chipwise.serving.capacity import Capacity
from chipwise.serving.requests import OPEN, Requests
from chipwise.serving.service import Served, Service, ServingTarget, run, service

UNLOADED = 40  # requests of one user after another
COARSE, FINE = 1.05, 1.015  # between a load that holds and one that doesn't: to compare splits, and to size by
TOGETHER = 16.0
EACH = 8  # requests of a user in a closed loop, at least: fewer say little
MOST_RATE = 1e6  # requests/s of one replica
WORSE = 2  # wider splits in a row that carry less a chip, after which no wider one is tried


class OutOfReach(Refusal):
    """No load holds the SLO; `times`: how much longer than the worst bound the nearest split takes."""

    def __init__(self, reason: str, unlock: str, times: float) -> None:
        super().__init__(reason, unlock)
        self.times = times

    @classmethod
    def on(cls, target: ServingTarget, found: Sequence[Capacity]) -> OutOfReach:
        """The refusal of a chip whose splits were all tried."""
        said = capacity.impossible(target, found)
        times = (
            max(k.seconds / k.bound.seconds for k in c.served.measures.slo_checks)
            for c in found
            if c.served.measures.slo_checks
        )
        return cls(said.reason, said.unlock, min(times, default=inf))


def replicas(target: ServingTarget, requests: Requests, narrow: bool) -> tuple[Capacity, ...]:
    """One replica of every split, with the largest load it carries; a `Refusal` where none can be.

    `narrow`: coarse, without the widest where wider ones carry ever less a chip.
    """
    found: list[Capacity] = []
    why: list[Refusal] = []
    alike: dict[tuple[bool, bool], list[Capacity]] = {}  # ways to split, each from narrow to wide
    for split in capacity.splits(
        target.workload.model, capacity.WIDEST, domain(slice_for(target.chip, capacity.WIDEST))
    ):
        before = alike.setdefault((split.ep > 1, split.dp > 1), [])
        if narrow and _falls(before):
            continue
        try:
            of = service(target, split)
        except (DoesNotFit, NoLayout, PrecisionMissing) as refusal:
            why.append(refusal)
            continue
        last = found[-1].per_chip if found else 0.0
        before.append(carried(of, requests, last * split.chips or _guess(of, requests), COARSE if narrow else FINE))
        found.append(before[-1])
    if not found:
        raise why[-1]
    if not any(c.load.value > 0 for c in found):
        raise OutOfReach.on(target, found)
    return tuple(found)


def _guess(of: Service, requests: Requests) -> float:
    """A load to begin with: some requests at once, each as fast as without the others."""
    return TOGETHER / unloaded(of, requests).e2e.mean.value if requests.kind in OPEN else TOGETHER


def carried(of: Service, requests: Requests, guess: float, ratio: float = FINE) -> Capacity:
    """The largest load of one replica to within `ratio`; 0 where none holds, with the lightest that was tried."""
    by = of.corrections["tpot"]
    if requests.kind == "offline":
        served = run(of, requests)
        rate = served.request_rate
        return Capacity(of, replace(rate, evidence=by.evidence, because=by.because), served, "as fast as it goes", ())
    load, best, limit = _largest(of, requests, guess, ratio)
    return Capacity(of, Estimate(load, load, load, by.evidence, by.because), best, limit, ())


def with_interval(one: Capacity, requests: Requests) -> Capacity:
    """The load refined, with the loads of a replica as fast and as slow as the interval of its times allows."""
    if requests.kind == "offline":
        return one
    exact, by = carried(one.service, requests, one.load.value), one.service.corrections["tpot"]
    value, ends = exact.load.value, []
    for end in (max(by.high, 0.0), min(by.low, 0.0)):
        of = replace(one.service, replica=one.service.replica.slower(exp(end)))
        ends.append(carried(of, requests, value * exp(-end), COARSE).load.value)
    load = Estimate(value, min(ends[0], value), max(ends[1], value), by.evidence, by.because)
    return replace(exact, load=load)


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


def _largest(of: Service, requests: Requests, guess: float, ratio: float) -> tuple[float, Served, str]:
    """Between a load that holds and one that doesn't, from twice or half the guess on."""
    whole = requests.kind not in OPEN  # users come one by one
    most = len(requests) // EACH if whole else MOST_RATE
    load = min(max(1.0, round(guess)), most) if whole else guess
    served = capacity.at_load(of, requests, load)
    if capacity.holds(served):
        low, best = load, served
        while capacity.holds(served):
            low, best = load, served
            if load >= most:
                return low, best, "the largest load tried"
            load = min(load * 2, most)
            served = capacity.at_load(of, requests, load)
        high, why = load, capacity.limit_of(served)
    else:
        high, why = load, capacity.limit_of(served)
        low = 1.0 if whole else min(0.05 / max(unloaded(of, requests).e2e.mean.value, 1e-6), high / 2)
        best = served if whole and high <= 1 else capacity.at_load(of, requests, low)
        if not capacity.holds(best):
            return 0.0, best, capacity.limit_of(best)
        half = _between(high / 4, high, whole)
        if low < half < high:  # near the guess before the whole way down
            served = capacity.at_load(of, requests, half)
            if capacity.holds(served):
                low, best = half, served
            else:
                high, why = half, capacity.limit_of(served)
    while high / low > ratio and not (whole and high - low <= 1):
        middle = _between(low, high, whole)
        served = capacity.at_load(of, requests, middle)
        if capacity.holds(served):
            low, best = middle, served
        else:
            high, why = middle, capacity.limit_of(served)
    return low, best, why


def _between(low: float, high: float, whole: bool) -> float:
    middle = float((low * high) ** 0.5)
    return min(max(float(round(middle)), low + 1), high - 1) if whole else middle


def _falls(found: Sequence[Capacity]) -> bool:
    """Whether the last splits, each wider than the one before, carry ever less a chip."""
    last = [c.per_chip for c in found[-WORSE - 1 :]]
    return len(last) > WORSE and last[-1] > 0 and all(b < a for a, b in pairwise(last))

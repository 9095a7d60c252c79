"""What one replica sustains, found from a guess: the splits and the chips of a comparison are much alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, inf

import numpy as np

from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing, Refusal
from chipwise.io.brief import brief
from chipwise.layout.splits import domain
from chipwise.predict.estimate import Estimate
from chipwise.predict.site import slice_for
from chipwise.serving import capacity
from chipwise.serving.capacity import Capacity
from chipwise.serving.estimates import Correction
from chipwise.serving.requests import Requests
from chipwise.serving.service import Served, Service, ServingTarget, run, service
from chipwise.serving.split import Split
from chipwise.serving.splits import WIDEST, by_reach, splits, worthwhile
from chipwise.serving.trials import ReplicaTrials, largest_load, limit_above, unloaded

COARSE, FINE = 1.05, 1.015  # between a load that holds and one that doesn't: to compare splits, and to size by
NEXT = 1.08  # from the load of a short run to the first that is tried with a long one
TOGETHER = 16.0
WORSE = 2  # wider splits in a row that sustain less a chip, after which no wider one is tried


class OutOfReach(Refusal):
    """No load holds the SLO; `times`: how much longer than the worst bound the nearest split takes."""

    def __init__(self, reason: str, unlock: str, times: float) -> None:
        super().__init__(reason, unlock)
        self.times = times

    @classmethod
    def on(cls, target: ServingTarget, found: Iterable[ReplicaLoad]) -> OutOfReach:
        """The refusal of a chip whose splits were all tried."""
        checks = [one.trials.checks(min(one.trials.trials)) for one in found if one.trials is not None]
        said = capacity.impossible(target, checks)
        times = (max(k.seconds / k.bound.seconds for k in each) for each in checks if each)
        return cls(said.reason, said.unlock, min(times, default=inf))


@brief
@dataclass(frozen=True, slots=True, eq=False)
class ReplicaLoad:
    """One replica of a split, and the largest load that it sustains in short runs."""

    trials: ReplicaTrials
    load: Estimate  # requests/s, or users
    served: Served | None = None  # of an offline job, which has one load

    @property
    def service(self) -> Service:
        """The replica."""
        return self.trials.service

    @property
    def split(self) -> Split:
        """Of the replica over its chips."""
        return self.service.replica.split

    @property
    def per_chip(self) -> float:
        """Load of one chip."""
        return self.load.value / self.split.chips


Known = dict[tuple[str, Split], ReplicaTrials]  # runs by chip and split


def replicas(target: ServingTarget, requests: Requests, narrow: bool, known: Known) -> tuple[ReplicaLoad, ...]:
    """One replica of every split, with the largest load it sustains; a `Refusal` where none can be.

    `narrow`: coarse, without the widest where wider ones sustain ever less a chip. A replica over several hosts that
    only PCIe and the network join is tried where none within a host sustains any load.
    """
    chip = target.chip
    fast = domain(slice_for(chip, WIDEST))
    ways = splits(target.workload.model, WIDEST, fast)
    found: list[ReplicaLoad] = []
    why: list[Refusal] = []
    for group in by_reach(ways, chip):
        able = _able(target, requests, group, known, why)
        tried = worthwhile({split: of.service for split, of in able.items()}, fast)
        found += _sustained({split: able[split] for split in tried}, narrow)
        if any(one.load.value > 0 for one in found):
            return tuple(found)
    if not found:
        raise why[-1]
    raise OutOfReach.on(target, found)


def _able(
    target: ServingTarget, requests: Requests, ways: Sequence[Split], known: Known, why: list[Refusal]
) -> dict[Split, ReplicaTrials]:
    """Replicas of these splits; `why` gets the reasons of those that can't be."""
    able: dict[Split, ReplicaTrials] = {}
    for split in ways:
        try:
            able[split] = _trials(target, split, requests, known)
        except (DoesNotFit, NoLayout, PrecisionMissing) as refusal:
            why.append(refusal)
    return able


def _sustained(able: Mapping[Split, ReplicaTrials], narrow: bool) -> list[ReplicaLoad]:
    """The largest loads of replicas, narrow ones first."""
    found: list[ReplicaLoad] = []
    alike: dict[tuple[bool, ...], dict[int, float]] = {}  # by the axes used: the best load of a chip for each width
    for split, trials in able.items():
        widths = alike.setdefault((split.pp > 1, split.ep > 1, split.dp > 1), {})
        if narrow and split.chips not in widths and _falls(list(widths.values())):
            continue
        guess = found[-1].per_chip * split.chips if found else 0.0
        found.append(_largest(trials, guess, COARSE if narrow else FINE))
        widths[split.chips] = max(widths.get(split.chips, 0.0), found[-1].per_chip)
    return found


def _trials(target: ServingTarget, split: Split, requests: Requests, known: Known) -> ReplicaTrials:
    """The runs of a replica so far; with another SLO they are the same runs."""
    key = target.chip.id, split
    if key not in known:
        known[key] = ReplicaTrials(service(target, split), requests)
    return known[key].under(replace(known[key].service, target=target))


def _largest(trials: ReplicaTrials, guess: float, ratio: float) -> ReplicaLoad:
    of = trials.service
    by = of.corrections["tpot"]
    if trials.requests.kind == "offline":
        served = run(of, trials.requests)
        return ReplicaLoad(trials, _backed(served.request_rate, by), served)
    load = largest_load(trials, guess or _guess(trials), ratio)
    return ReplicaLoad(trials, _backed(Estimate(load, load, load, by.evidence), by))


def _backed(load: Estimate, by: Correction) -> Estimate:
    """A load with what its replica's times rest on."""
    return replace(load, evidence=by.evidence, because=by.because, distance=by.distance)


def _guess(trials: ReplicaTrials) -> float:
    """A load to begin with: some requests at once, each as fast as without the others."""
    return TOGETHER if trials.whole else TOGETHER / unloaded(trials.service, trials.requests).e2e.mean.value


def confirmed(one: ReplicaLoad, requests: Requests) -> Capacity:
    """The load by a longer run, with the loads of a replica as fast and as slow as the interval of its times allows."""
    of, by, short = one.service, one.service.corrections["tpot"], one.trials
    if one.served is not None:
        return Capacity(of, one.load, one.served, "as fast as it goes", ())
    long = ReplicaTrials(of, requests)
    load = largest_load(long, one.load.value, FINE, NEXT)
    ends = [_slower(short, exp(end), one.load.value) for end in (max(by.high, 0.0), min(by.low, 0.0))]
    low, high = (load * end / one.load.value for end in ends)
    span = _backed(Estimate(load, min(low, load), max(high, load), by.evidence), by)
    return Capacity(of, span, run(of, long.loaded(load or long.light)), limit_above(long, load), ())


def _slower(trials: ReplicaTrials, times: float, load: float) -> float:
    """The largest load of a replica with every time multiplied."""
    same = largest_load(trials, load, COARSE, slower=times)
    return same if trials.whole else same / times


def queueing_margin(one: ReplicaLoad) -> float:
    """The share by which random arrivals lower the largest load, against requests at equal distances.

    A Poisson stream that a router deals out at random is a Poisson stream at every replica, so that the load of one
    replica by itself bounds that of many from below; a router that knows the queues comes near equal distances.
    """
    requests = one.trials.requests
    random = largest_load(one.trials, one.load.value, FINE)
    even = replace(requests, arrival_s=np.arange(len(requests)) / requests.rate)
    return max(0.0, 1 - random / largest_load(ReplicaTrials(one.service, even), random, FINE, NEXT))


def _falls(per_chip: Sequence[float]) -> bool:
    """Whether the last widths, each wider than the one before, sustain ever less a chip."""
    last = per_chip[-WORSE - 1 :]
    return len(last) > WORSE and last[-1] > 0 and all(b < a for a, b in pairwise(last))

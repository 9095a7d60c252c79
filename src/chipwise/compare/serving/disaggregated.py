"""A chip whose replicas for prompts are others than those that decode: how many of each sustain the demand.

All of them are simulated together. On chips that are named by count the answer is that of `serving capacity`; of a chip
by itself the fewest replicas that hold the demand are searched for every split, and those of the cheapest are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil, inf

from chipwise.catalog import Accelerators
from chipwise.compare.decision import rank
from chipwise.compare.serving.comparer import NEAR, ServingComparer
from chipwise.compare.serving.fleet import Fleet, held, rent
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.terms import MOST_CHIPS, Candidate, Terms
from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing, Refusal
from chipwise.io.brief import brief
from chipwise.knowledge import Knowledge
from chipwise.layout.splits import domain
from chipwise.predict.estimate import Estimate
from chipwise.predict.site import slice_for
from chipwise.prices import Quote
from chipwise.serving.capacity import TIE, Capacity, at_load, capacity_of, confirmed, holds, impossible, together
from chipwise.serving.disaggregation import apart, pools_at
from chipwise.serving.measures import SloCheck
from chipwise.serving.results import find_capacity
from chipwise.serving.service import Served, Service, ServingTarget, can_prefill_apart, service
from chipwise.serving.sizing import AUTO, read_pools
from chipwise.serving.split import Split
from chipwise.serving.splits import WIDEST, by_reach, splits, steady, worthwhile
from chipwise.serving.trials import unloaded
from chipwise.workload.serve import Bound, ServingWorkload


@brief
@dataclass(frozen=True, slots=True)
class DisaggregatedComparer(ServingComparer):
    """Compares services some of whose replicas do prompts alone."""

    pools: tuple[int, int] | None = None  # so many for prompts to so many for decode; None: what is best, or none
    sized_apart: dict[str, ServingRow] = field(default_factory=dict, compare=False)  # by what was asked for

    @classmethod
    def of(cls, workload: ServingWorkload, terms: Terms, knowledge: Knowledge) -> DisaggregatedComparer:
        """The comparer of a workload, within the deadline of the terms."""
        text = str(terms.disaggregate).strip().lower()
        pools = None if text == AUTO else read_pools(text, AUTO)
        can_prefill_apart(workload.model, text)
        usual = ServingComparer.of(workload, terms, knowledge)
        return cls(usual.workload, terms, knowledge, usual.demand, pools=pools)

    def under(self, slo: tuple[Bound, ...]) -> DisaggregatedComparer:
        """The same with other seconds in the bounds of the SLO."""
        work = replace(self.workload, serve=replace(self.workload.serve, slo=slo))
        return replace(self, workload=work, known={}, sure={}, sized_apart={})

    def best(self, candidate: Candidate) -> ServingRow:
        """The better of replicas that do both, where that is left open, and of those that don't."""
        both: ServingRow | None = None
        refusal: Refusal | None = None
        if self.pools is None:
            try:
                both = ServingComparer.best(self, candidate)
            except Refusal as why:
                refusal = why
        try:
            own = self._apart(candidate, both)
        except Refusal as why:
            if both is not None:
                return both
            raise (refusal if refusal is not None and self.named(candidate) is None else why) from None
        if own is None:
            if both is None:
                assert refusal is not None
                raise refusal
            return both
        self.sized_apart[_asked(candidate)] = own
        if both is None:
            return own
        if self.named(candidate) is not None and self.terms.objective == "cost":  # the same chips: what sustains more
            return own if own.load.value > both.load.value * (1 + TIE) else both
        return min(both, own, key=lambda row: rank(row, self.terms.objective)[:2])

    def fleets(self, candidate: Candidate) -> list[Fleet]:
        """The chips of every split of replicas that do both, and of those that were sized apart."""
        out: list[Fleet] = []
        if self.pools is None:
            try:
                out += ServingComparer.fleets(self, candidate)
            except Refusal:
                if _asked(candidate) not in self.sized_apart:
                    raise
        row = self.sized_apart.get(_asked(candidate))
        if row is not None:
            named = self.named(candidate)
            count = self._replicas_at(row.load.value, row.fleet.replicas)
            if named is None:
                out.append(rent(candidate.chip, row.split.chips, count, False, *self.priced_on))
            elif count <= row.fleet.replicas:
                out.append(row.fleet)
        return out

    def _replicas_at(self, load: float, count: int) -> int:
        """Replicas that sustain the demand where so many sustain a load, in whole groups of what was named."""
        group = sum(self.pools) if self.pools else 1
        need = self.demand.load / self.demand.most_use * count / load if load > 0 else inf
        return max(1, ceil(need / group - 1e-9)) * group

    def _apart(self, candidate: Candidate, both: ServingRow | None) -> ServingRow | None:
        """The row of replicas some of which do prompts alone; None where those that do both are no worse."""
        named, target = self.named(candidate), self.target(candidate.chip)
        if named is not None:
            seed = self.knowledge.seed
            capacity = find_capacity(target, named, None, seed, None, self.terms.disaggregate).best
            if capacity.service.prefill is None:
                return None
            if not self._enough_load(capacity):
                share = replace(self.demand, load=capacity.load.value * self.demand.most_use)
                raise Refusal(
                    f"{named} sustains {share} of the {self.demand} ({capacity.limit})", "more chips would do"
                )
            return self._row_of(
                capacity, held(named, capacity.service.replica.split.chips, False, *self.priced_on), named
            )
        least = inf if both is None else self._paid_for(both.fleet)
        fewest = self._fewest(target, least, both is None)
        if fewest is None:
            return None
        fewest = self._filled(fewest)
        return self._row_of(fewest, self._fleet_of(fewest.service), None)

    def _enough_load(self, capacity: Capacity) -> bool:
        return capacity.load.value * self.demand.most_use >= self.demand.load * (1 - 1e-9)

    def _fleet_of(self, of: Service) -> Fleet:
        return rent(of.target.chip, of.replica.split.chips, _total(of), False, *self.priced_on)

    def _filled(self, capacity: Capacity) -> Capacity:
        """The same with the replicas for which the instances have room besides; what is paid for is used."""
        group, of = sum(self.pools) if self.pools else 1, capacity.service
        room = self._fleet_of(of).replicas // group * group
        if room <= _total(of):
            return capacity
        more = self._held(replace(of, prefill=None, prefill_replicas=0), room)
        return capacity if more is None else max(capacity, self._sure(more), key=lambda each: each.load.value)

    @staticmethod
    def _paid_for(fleet: Fleet) -> float:
        """Dollars an hour; chips without a price."""
        return fleet.usd_per_hour if fleet.usd_per_hour is not None else float(fleet.accelerators.count)

    def _fewest(self, target: ServingTarget, least: float, alone: bool) -> Capacity | None:
        """The cheapest replicas of any split that hold the demand for less; a `Refusal` where none could (`alone`)."""
        best: Capacity | None = None
        why: list[Refusal] = []
        checks: list[tuple[SloCheck, ...]] = []
        for of in self._services(target, why):
            lightly = unloaded(apart(of.with_replicas(2), 1), self.requests(target))
            checks.append(lightly.measures.slo_checks)
            if not lightly.measures.holds:
                continue
            for held_by in self._holding(of, least):
                capacity = self._sure(held_by)
                if self._enough_load(capacity):
                    best, least = capacity, self._paid_for(self._fleet_of(capacity.service))
                    break
        if best is None and alone:
            if not checks:
                raise why[-1]
            raise impossible(target, checks)
        return best

    def _services(self, target: ServingTarget, why: list[Refusal]) -> list[Service]:
        """One replica of every split that is worth a simulation, those first that sustain most where they do both."""
        fast = domain(slice_for(target.chip, WIDEST))
        able: dict[Split, Service] = {}
        for split in by_reach(splits(target.workload.model, WIDEST, fast), target.chip)[0]:
            try:
                able[split] = service(target, split)
            except (DoesNotFit, NoLayout, PrecisionMissing) as refusal:
                why.append(refusal)
        order = sorted(worthwhile(able, fast), key=lambda split: -steady(able[split]) / split.chips)
        return [able[split] for split in order]

    def _holding(self, of: Service, least: float) -> Iterator[Service]:
        """The fewest replicas that hold the demand and cost less, then ever one group more, up to `NEAR` as many."""
        group = sum(self.pools) if self.pools else 1
        first, chips = (1 if self.pools else 2), of.replica.split.chips
        most = _last(first, MOST_CHIPS // (chips * group), lambda n: self._cheaper(of, n * group, least))
        if most < first:
            return
        sure: dict[int, Service | None] = {}

        def at(groups: int) -> Service | None:
            if groups not in sure:
                sure[groups] = self._held(of, groups * group)
            return sure[groups]

        guess = self.demand.load / max(steady(of), 1e-9) / group
        here = min(max(first, ceil(guess / 2) if guess < most else most), most)
        fails = first - 1
        while at(here) is None:
            if here == most:
                return
            fails, here = here, min(here * 2, most)
        while here - fails > 1:
            middle = (here + fails) // 2
            if at(middle) is None:
                fails = middle
            else:
                here = middle
        for groups in range(here, min(most, max(ceil(here * NEAR), here + 1)) + 1):
            if (holding := at(groups)) is not None:
                yield holding

    def _cheaper(self, of: Service, count: int, least: float) -> bool:
        if least == inf:
            return True
        chips = of.replica.split.chips
        return self._paid_for(rent(of.target.chip, chips, count, False, *self.priced_on)) < least * (1 - 1e-9)

    def _held(self, of: Service, count: int) -> Service | None:
        """So many replicas with those for prompts among them that let them hold the demand; None where none do."""
        load = self.demand.load / self.demand.most_use
        many = of.with_replicas(count)
        if self.pools is None:
            return pools_at(many, load, self.requests(of.target, together(apart(many, 1))))
        of = apart(many, count * self.pools[0] // sum(self.pools))
        requests = self.requests(of.target, together(of))
        served = at_load(of, requests, load) if load else None
        if served is None or (holds(served) and (not served.offline or served.request_rate.value >= load)):
            return of
        return None

    def _sure(self, of: Service) -> Capacity:
        """The largest load of these replicas by a longer run, with its interval, as `serving capacity` finds it."""
        requests = self.requests(of.target, together(of))
        return confirmed(capacity_of(of, requests), self.knowledge.seed)

    def _row_of(self, capacity: Capacity, fleet: Fleet, named: Accelerators | None) -> ServingRow:
        """What users see of all replicas at the demand."""
        of, served = capacity.service, capacity.served
        fleet = replace(fleet, replicas=_total(of))
        if self.demand.kind != "job":
            shared = at_load(of, self.requests(of.target, together(of)), self.demand.load)
            served = shared if holds(shared) else served
        return ServingRow(
            fleet,
            of.replica.split,
            self.demand,
            capacity.load,
            capacity.limit,
            served,
            _lone(of, self),
            *self._quoted(capacity, fleet, named),
        )

    def _quoted(
        self, capacity: Capacity, fleet: Fleet, named: Accelerators | None
    ) -> tuple[Quote | None, Quote | None]:
        """What the chips cost on demand and on spot, where that is cheaper."""
        chip, chips, load = capacity.service.target.chip, capacity.service.replica.split.chips, capacity.load

        def rented(count: int, spot: bool) -> Fleet:
            return rent(chip, chips, count, spot, *self.priced_on)

        def costs(spot: bool) -> Quote | None:
            now = fleet
            if spot:
                now = held(named, chips, True, *self.priced_on) if named else rented(fleet.replicas, True)
            usd = now.usd_per_hour
            if usd is None or now.price is None:
                return None
            ends = [usd, usd]
            if named is None and self.demand.kind != "job":
                counts = [self._replicas_at(end, fleet.replicas) if end > 0 else 0 for end in (load.high, load.low)]
                ends = [(rented(count, spot).usd_per_hour or inf) if count else inf for count in counts]
            low, high = min(ends[0], usd), max(ends[1], usd)
            return Quote(
                Estimate(usd, low, high, load.evidence, load.because, load.distance), now.price, now.paid_chips, "hour"
            )

        ondemand, spot = costs(False), costs(True)
        if ondemand and spot and spot.usd.value >= ondemand.usd.value:
            spot = None
        return ondemand, spot


def _total(of: Service) -> int:
    """Replicas of both kinds."""
    return of.replicas + of.prefill_replicas


def _asked(candidate: Candidate) -> str:
    """What a candidate was asked for as."""
    return str(candidate.fixed or candidate.chip.id)


def _lone(of: Service, comparer: ServingComparer) -> Estimate:
    """Seconds per token of a request that meets no other."""
    served: Served = unloaded(replace(of, prefill_replicas=1), comparer.requests(of.target))
    return served.tpot.mean if served.tpot else served.e2e.mean


def _last(first: int, most: int, able: Callable[[int], bool]) -> int:
    """The largest whole number up to `most` that is able, as all smaller ones are; `first` - 1: none."""
    low, high = first - 1, max(most, first - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if able(middle):
            low = middle
        else:
            high = middle - 1
    return low

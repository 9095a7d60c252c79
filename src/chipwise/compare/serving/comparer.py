"""What evaluates a chip to serve on: the split and the number of replicas that carry the demand, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import TYPE_CHECKING

from chipwise.catalog import Accelerators, Chip
from chipwise.compare.decision import DecisionSummary, Flip, Refused
from chipwise.compare.serving.fleet import Fleet, held, rent
from chipwise.compare.serving.replicas import COARSE, OutOfReach, carried, replicas, unloaded, with_interval
from chipwise.compare.serving.row import Demand, ServingRow, demand_of
from chipwise.compare.terms import MOST_CHIPS, Candidate, Terms, at_least
from chipwise.errors import InputError, Refusal
from chipwise.knowledge import Knowledge
from chipwise.predict.estimate import Estimate
from chipwise.prices import Quote
from chipwise.serving import capacity
from chipwise.serving.capacity import Capacity
from chipwise.serving.requests import Requests
from chipwise.serving.service import Served, Service, ServingTarget, run, serving_target
from chipwise.units import HOUR, format_money, format_seconds
from chipwise.workload.serve import ServingWorkload

if TYPE_CHECKING:
    from chipwise.compare.serving.flips import Relaxed


FEW, MANY = 3_000, 20_000  # requests of the run that checks a fleet: 600 a replica within these
JOB = 4_000  # requests simulated of an offline job on one replica: several times what it works on at once
TURNS = 20  # requests of a user in a closed loop
FINAL = 2  # splits that are sized to the last replica where time or energy decides
AGAIN = 8  # times that replicas are added where the run does not hold what the capacities said


Sized = tuple[Capacity, Fleet]  # one replica with its largest load, and the chips for as many as it takes


@dataclass(frozen=True, slots=True)
class ServingComparer:
    """What every row of a comparison of services shares."""

    workload: ServingWorkload
    terms: Terms
    knowledge: Knowledge
    demand: Demand
    known: dict[str, tuple[Capacity, ...]] = field(default_factory=dict, compare=False)
    missed: dict[str, float] = field(default_factory=dict, compare=False)  # chips that hold at no load: how far off

    @classmethod
    def of(cls, workload: ServingWorkload, terms: Terms, knowledge: Knowledge) -> ServingComparer:
        """The comparer of a workload, within the deadline of the terms."""
        work = within(workload, terms)
        return cls(work, terms, knowledge, demand_of(work, knowledge.seed))

    def flips(self, candidates: Sequence[Candidate], rows: Sequence[ServingRow], pick: ServingRow) -> tuple[Flip, ...]:
        """Changes that flip the decision, smallest first."""
        from chipwise.compare.serving.flips import flips

        return flips(self, candidates, rows, pick)

    def relaxed(self, candidates: Sequence[Candidate], rows: Sequence[ServingRow], pick: ServingRow) -> Relaxed | None:
        """The pick if the bound that limits it were looser."""
        from chipwise.compare.serving.flips import relaxed

        return relaxed(self, candidates, rows, pick)

    def words(
        self, rows: Sequence[ServingRow], pick: ServingRow | None, flips: Sequence[Flip], looser: Relaxed | None
    ) -> DecisionSummary:
        """The decision in three sentences."""
        from chipwise.compare.serving.sentences import in_words

        return in_words(self, rows, pick, flips, looser)

    def assumptions(self, rows: Sequence[ServingRow], fixed: bool) -> tuple[str, ...]:
        """What the comparison took for granted."""
        from chipwise.compare.serving.sentences import assumptions

        return assumptions(self, rows, fixed)

    def nowhere(self, refused: Sequence[Refused]) -> Refusal:
        """One refusal for all: that of the chip which comes nearest."""
        from chipwise.compare.serving.sentences import nowhere

        return nowhere(self, refused)

    def times(self, factor: float) -> ServingComparer:
        """The same with another demand; what replicas carry stays known."""
        load = self.demand.load * factor
        if self.demand.kind == "users":
            load = max(1.0, round(load))
        return replace(self, demand=replace(self.demand, load=load))

    def target(self, chip: Chip) -> ServingTarget:
        """Where the workload is served."""
        return serving_target(self.workload, chip, self.knowledge.calibration, self.workload.serve.stack)

    def requests(self, target: ServingTarget) -> Requests:
        """What every load of a replica is tried with."""
        count = JOB if self.demand.kind == "job" else capacity.COUNT
        if self.demand.kind == "users":
            count = min(max(count, TURNS * int(self.demand.load)), MANY)
        return capacity.trial_requests(target, self.knowledge.seed, count)

    def replicas(self, chip: Chip) -> tuple[Capacity, ...]:
        """One replica of every split, with the largest load that each carries; a `Refusal` where none can be."""
        if chip.id not in self.known:
            self.known[chip.id] = self._replicas(chip)
        return self.known[chip.id]

    def _replicas(self, chip: Chip) -> tuple[Capacity, ...]:
        at = self.target(chip)
        return replicas(at, self.requests(at), self.terms.objective == "cost")

    def sized(self, candidate: Candidate) -> list[Sized]:
        """Every split on as many chips as it takes, or on those that were named; a `Refusal` where none carries it."""
        carrying = [c for c in self.replicas(candidate.chip) if c.load.value > 0]
        named = self.named(candidate)
        if named is None:
            return [
                (
                    c,
                    rent(
                        candidate.chip,
                        _each(c),
                        self.demand.replicas(c.load.value),
                        today=self.knowledge.today,
                        book=self.knowledge.prices,
                    ),
                )
                for c in carrying
            ]
        fleets = [
            (c, fleet)
            for c in carrying
            if (fleet := held(named, _each(c), self.knowledge.today, book=self.knowledge.prices)).replicas
        ]
        if not fleets:
            least = min(_each(c) for c in carrying)
            raise Refusal(f"{named} holds no replica within the SLO", f"the smallest takes {least} chips")
        fleets = [(self._exact(c, fleet.replicas), fleet) for c, fleet in fleets]
        enough = [(c, fleet) for c, fleet in fleets if c.load.value * fleet.replicas >= self.demand.load]
        if not enough:
            best, fleet = max(fleets, key=lambda pair: pair[0].load.value * pair[1].replicas)
            raise self._short(named, best.load.value * fleet.replicas, best.limit)
        return enough

    def _exact(self, one: Capacity, replicas: int) -> Capacity:
        """The replica with its load refined where that decides whether so many carry the demand."""
        near = self.demand.load / replicas
        if self.demand.kind == "job" or not near / COARSE <= one.load.value < near:
            return one
        return carried(one.service, self.requests(one.service.target), one.load.value)

    def _short(self, named: Accelerators, load: float, limit: str) -> Refusal:
        most = replace(self.demand, load=load)
        return Refusal(f"{named} carries {most} of the {self.demand} ({limit})", "more chips would do")

    def named(self, candidate: Candidate) -> Accelerators | None:
        """The chips asked for by count, if any."""
        if candidate.fixed is None and self.terms.chips is not None:
            return at_least(candidate.chip, self.terms.chips)
        return candidate.fixed

    def evaluate(self, candidate: Candidate) -> ServingRow | Refused:
        """The row of a chip, or why there is none."""
        named = self.named(candidate)
        try:
            self.target(candidate.chip)
        except Refusal as refusal:
            return Refused(candidate.chip, named, "stack", refusal.reason, refusal.unlock)
        try:
            row = self._best(candidate, self.sized(candidate))
        except Refusal as refusal:
            kind = "slo" if refusal.kind == "refused" else refusal.kind
            if isinstance(refusal, OutOfReach):
                self.missed[candidate.chip.id] = refusal.times
            return Refused(candidate.chip, named, kind, refusal.reason, refusal.unlock)
        return self._within_budget(row)

    def _best(self, candidate: Candidate, sized: Sequence[Sized]) -> ServingRow:
        """Of all splits the cheapest (the fewest chips without a price), or the best by another objective."""
        fixed = self.named(candidate) is not None
        if self.terms.objective == "cost":
            chosen = min(sized, key=lambda pair: self._price_key(pair, fixed))
            return self._row(*chosen, fixed)
        rows: list[ServingRow] = []
        why: Refusal | None = None
        for one, fleet in sorted(sized, key=self._run_key):
            try:
                rows.append(self._row(one, fleet, fixed))
            except Refusal as refusal:
                why = refusal  # it did not hold after all
            if len(rows) == FINAL:
                break
        if not rows:
            assert why is not None
            raise why
        return min(rows, key=lambda row: by.value if (by := row.by(self.terms.objective)) else inf)

    def _run_key(self, pair: Sized) -> tuple[float, int]:
        """Median time of an answer, or joules for a token, of a fleet at the demand; of an offline job at its end."""
        one, fleet = pair
        if self.demand.kind == "job":
            value = 1 / (one.load.value * fleet.replicas)
            served = one.served
        else:
            served = self._run(one.service, fleet.replicas)
            value = served.e2e.p50.value
        if self.terms.objective == "energy":
            value = served.measures.joules_per_token
        return value, fleet.accelerators.count

    def _price_key(self, pair: Sized, fixed: bool) -> tuple[float, float]:
        one, fleet = pair
        rate = one.load.value * fleet.replicas
        paid = fleet.usd_per_hour if fleet.usd_per_hour is not None else float(fleet.accelerators.count)
        if self.demand.kind == "job":
            paid /= rate
        return (-rate, paid) if fixed else (paid, -rate)

    def _row(self, one: Capacity, fleet: Fleet, fixed: bool) -> ServingRow:
        """A sized fleet run at the demand; replicas are added where it does not hold."""
        at, each = one.service.target, _each(one)
        requests = self.requests(at)
        ends = with_interval(one, requests)
        load, served = ends.load, ends.served
        if not fixed:
            fleet = rent(
                at.chip, each, self.demand.replicas(load.value), today=self.knowledge.today, book=self.knowledge.prices
            )
        if fleet.accelerators.count > MOST_CHIPS:
            raise Refusal(
                f"{at.chip.id} would take {fleet.accelerators.count:,} chips ({ends.limit})",
                f"counts up to {MOST_CHIPS:,} are compared",
            )
        if self.demand.kind != "job":
            for _ in range(AGAIN):
                served = self._run(one.service, fleet.replicas)
                if capacity.holds(served):
                    break
                load = _at_most(load, self.demand.load / fleet.replicas)
                if fixed:
                    raise self._short(fleet.accelerators, load.value * fleet.replicas * 0.99, capacity.limit_of(served))
                more = fleet.replicas + max(1, ceil(fleet.replicas * 0.05))
                fleet = rent(at.chip, each, more, today=self.knowledge.today, book=self.knowledge.prices)
            else:
                raise Refusal(
                    f"{fleet.accelerators} does not carry {self.demand} ({capacity.limit_of(served)})",
                    "a lower rate or a looser SLO would do",
                )
        return ServingRow(
            fleet,
            one.service.replica.split,
            self.demand,
            load.scaled(fleet.replicas),
            ends.limit,
            served,
            _lone(one.service, requests),
            *self._quotes(one.service, fleet, load, fixed),
        )

    def _run(self, of: Service, replicas: int) -> Served:
        count = min(max(FEW, capacity.COUNT * replicas), MANY)
        many = of.with_replicas(replicas)
        if self.demand.kind == "users":
            users = int(self.demand.load)
            return run(many, count=max(count, TURNS * users), seed=self.knowledge.seed, users=users)
        return run(many, count=count, seed=self.knowledge.seed, rate=self.demand.load)

    def _quotes(self, of: Service, fleet: Fleet, load: Estimate, fixed: bool) -> tuple[Quote | None, Quote | None]:
        """What the chips cost on demand and on spot, where that is cheaper."""
        chip, each = of.target.chip, of.replica.split.chips

        def costs(spot: bool) -> Quote | None:
            if fixed:
                now = held(fleet.accelerators, each, self.knowledge.today, spot, self.knowledge.prices)
            else:
                now = (
                    rent(chip, each, fleet.replicas, spot, self.knowledge.today, self.knowledge.prices)
                    if spot
                    else fleet
                )
            usd_per_hour = now.usd_per_hour
            if usd_per_hour is None or now.price is None:
                return None
            low = high = usd_per_hour
            if not fixed and self.demand.kind != "job":
                low, high = (self._usd_per_hour(of, end, spot) for end in (load.high, load.low))
            spread = Estimate(
                usd_per_hour, min(low, usd_per_hour), max(high, usd_per_hour), load.evidence, load.because
            )
            return Quote(spread, now.price, "hour")

        ondemand, spot = costs(False), costs(True)
        if ondemand and spot and spot.usd.value >= ondemand.usd.value:
            spot = None  # another cloud's spot, more expensive than this on demand: no use
        return ondemand, spot

    def _usd_per_hour(self, of: Service, each: float, spot: bool) -> float:
        """Dollars an hour if a replica carried so much; without end where it carries nothing."""
        if each <= 0:
            return inf
        needed = self.demand.replicas(each)
        return (
            rent(
                of.target.chip, of.replica.split.chips, needed, spot, self.knowledge.today, self.knowledge.prices
            ).usd_per_hour
            or inf
        )

    def _within_budget(self, row: ServingRow) -> ServingRow | Refused:
        """Refuse what costs more than the budget: dollars an hour, or of the whole offline job."""
        budget, chip = self.terms.budget_usd, row.accelerators.chip
        if budget is None:
            return row
        if row.ondemand is None:
            return Refused(chip, None, "budget", f"{chip.id} has no public price", "no budget can be checked")
        usd, what = row.ondemand.usd.value, " an hour"
        if self.demand.kind == "job":
            usd, what = usd * row.seconds.value / HOUR, f" for {format_seconds(row.seconds.value)}"
        if usd <= budget:
            return row
        return Refused(
            chip,
            row.accelerators,
            "budget",
            f"costs {format_money(usd)}{what}",
            f"the budget is {format_money(budget)}",
        )


def _lone(of: Service, requests: Requests) -> Estimate:
    """Seconds per token, or of the whole answer of a model that answers in one pass."""
    served = unloaded(of, requests)
    return served.tpot.mean if served.tpot else served.e2e.mean


def _each(one: Capacity) -> int:
    return one.service.replica.split.chips


def _at_most(load: Estimate, most: float) -> Estimate:
    """A load that a run has shown to be smaller."""
    if load.value <= most:
        return load
    return replace(load, value=most, low=min(load.low, most))


def within(workload: ServingWorkload, terms: Terms) -> ServingWorkload:
    """The workload with the deadline of the terms, which only an offline job has."""
    if terms.deadline_s is None:
        return workload
    s = workload.serve
    if s.arrival.kind != "offline" or not s.requests:
        raise InputError(
            "deadline",
            format_seconds(terms.deadline_s),
            "an offline job with a number of requests: a service has no end",
        )
    return replace(workload, serve=replace(s, deadline_s=terms.deadline_s))

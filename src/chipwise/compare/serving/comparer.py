"""What evaluates a chip to serve on: the split and the number of replicas that sustain the demand, and their cost.

Replicas are sized one by one: each gets its share of the requests at random, as a router that looks at nothing would
hand them out, and a fleet has as many as the demand over the load that one sustains so. A router that looks at queues
does better, at most as well as requests at equal distances would: the difference is the queueing margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from math import ceil, inf
from typing import TYPE_CHECKING

from chipwise.catalog import Accelerators, Chip
from chipwise.compare.decision import DecisionSummary, Flip, Refused
from chipwise.compare.serving.fleet import Fleet, held, rent
from chipwise.compare.serving.replicas import Known, OutOfReach, ReplicaLoad, confirmed, queueing_margin, replicas
from chipwise.compare.serving.row import Demand, ServingRow, demand_of
from chipwise.compare.terms import LARGEST_CHIPS, Candidate, Terms, at_least
from chipwise.errors import Refusal
from chipwise.io.brief import brief
from chipwise.knowledge import Knowledge
from chipwise.predict.estimate import Estimate
from chipwise.prices import PriceBook, Quote
from chipwise.serving import capacity
from chipwise.serving.capacity import Capacity
from chipwise.serving.requests import Requests
from chipwise.serving.service import Served, Service, ServingTarget, run, serving_target
from chipwise.serving.split import Split
from chipwise.serving.trials import ReplicaTrials, unloaded
from chipwise.units import HOUR, format_money, format_seconds
from chipwise.workload.serve import Bound, ServingWorkload, with_deadline

if TYPE_CHECKING:
    from chipwise.compare.serving.flips import Relaxed


MANY = 20_000  # requests of users, at most
JOB = 4_000  # requests simulated of an offline job on one replica: several times what it works on at once
TURNS = 20  # requests of a user in a closed loop
FINAL = 2  # splits that are sized to the last replica where time or energy decides
MAX_CONFIRMED = 4  # splits that longer runs size again where cost decides
NEAR = 1.25  # splits are sized again by longer runs where short ones put them within so much of the best


Sized = tuple[ReplicaLoad, Fleet]  # one replica with its largest load, and the chips for as many as it takes


@brief
@dataclass(frozen=True, slots=True)
class ServingComparer:
    """What every row of a comparison of services shares."""

    workload: ServingWorkload
    terms: Terms
    knowledge: Knowledge
    demand: Demand
    known: dict[str, tuple[ReplicaLoad, ...]] = field(default_factory=dict, compare=False)
    sure: dict[tuple[str, Split], Capacity] = field(default_factory=dict, compare=False)  # by longer runs
    runs: Known = field(default_factory=dict, compare=False)  # of short requests, whatever the SLO
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
        """The same with another demand; what replicas sustain stays known."""
        load = self.demand.load * factor
        if self.demand.kind == "users":
            load = max(1.0, round(load))
        return replace(self, demand=replace(self.demand, load=load))

    def target(self, chip: Chip) -> ServingTarget:
        """Where the workload is served."""
        return serving_target(self.workload, chip, self.knowledge.calibration, self.workload.serve.stack)

    def under(self, slo: tuple[Bound, ...]) -> ServingComparer:
        """The same with other seconds in the bounds of the SLO; the runs of replicas stay known."""
        work = replace(self.workload, serve=replace(self.workload.serve, slo=slo))
        return replace(self, workload=work, known={}, sure={})

    def requests(self, target: ServingTarget, count: int = capacity.COUNT) -> Requests:
        """What every load of a replica is tried with."""
        if self.demand.kind == "job":
            count = JOB
        if self.demand.kind == "users":
            count = min(max(count, TURNS * int(self.demand.load)), MANY)
        return capacity.trial_requests(target, self.knowledge.seed, count)

    def replicas(self, chip: Chip) -> tuple[ReplicaLoad, ...]:
        """One replica of every split, with the largest load of each; a `Refusal` where none can be."""
        if chip.id not in self.known:
            at = self.target(chip)
            self.known[chip.id] = replicas(at, self.requests(at), self.terms.objective == "cost", self.runs)
        return self.known[chip.id]

    def confirmed(self, one: ReplicaLoad) -> Capacity:
        """The replica with its load by a longer run, and the interval of it."""
        at = one.service.target
        key = at.chip.id, one.split
        if key not in self.sure:
            self.sure[key] = confirmed(one, self.requests(at, capacity.LONG))
        return self.sure[key]

    def best_of(self, able: Sequence[ReplicaLoad], worth: Callable[[ReplicaLoad, float], float]) -> ReplicaLoad | None:
        """The replica that is worth most at the load that longer runs find; None where none sustains any."""
        best, most = None, 0.0
        for one in sorted(able, key=lambda each: -worth(each, self.load(each))):
            if worth(one, self._at_most(one)) > most and (now := worth(one, self.confirmed(one).load.value)) > most:
                best, most = one, now
        return best

    def load(self, one: ReplicaLoad) -> float:
        """The largest load of a replica, by the longest run there is."""
        sure = self.sure.get((one.service.target.chip.id, one.split))
        return one.load.value if sure is None else sure.load.value

    def sized(self, candidate: Candidate) -> list[Sized]:
        """Every split on as many chips as it takes, or on those that were named; a `Refusal` where none sustains it."""
        able = [one for one in self.replicas(candidate.chip) if self.load(one) > 0]
        named = self.named(candidate)
        if named is None:
            return [(one, self._rented(one, self.load(one))) for one in able]
        fleets = [
            (one, fleet) for one in able if (fleet := held(named, one.split.chips, False, *self.priced_on)).replicas
        ]
        if not fleets:
            least = min(one.split.chips for one in able)
            raise Refusal(f"{named} is too small for a replica within the SLO", f"it takes at least {least} chips")
        return fleets

    def fleets(self, candidate: Candidate) -> list[Fleet]:
        """The chips of every split; a `Refusal` where none sustains the demand."""
        return [fleet for _, fleet in self.sized(candidate)]

    def _rented(self, one: ReplicaLoad, load: float, spot: bool = False) -> Fleet:
        """The chips for as many replicas of a load as the demand takes: linear in the demand."""
        count = self.demand.replicas(load)
        job = self.demand.kind == "job"
        return rent(one.service.target.chip, one.split.chips, count, spot, *self.priced_on, by_replica=job)

    @property
    def priced_on(self) -> tuple[date, PriceBook]:
        """The day of asking, and the prices."""
        return self.knowledge.today, self.knowledge.prices

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
            row = self.best(candidate)
        except Refusal as refusal:
            kind = "slo" if refusal.kind == "refused" else refusal.kind
            if isinstance(refusal, OutOfReach):
                self.missed[candidate.chip.id] = refusal.times
            return Refused(candidate.chip, named, kind, refusal.reason, refusal.unlock)
        return self._within_budget(row)

    def best(self, candidate: Candidate) -> ServingRow:
        """Of all splits the cheapest (the fewest chips without a price), or the best by another objective."""
        named, sized = self.named(candidate), self.sized(candidate)
        able = self._enough(named, sized) if named is not None else self._near(sized)
        if not able:
            raise OutOfReach.on(self.target(candidate.chip), [one for one, _ in sized])
        if self.terms.objective == "cost":
            return self._row(*self._cheapest(able, named is not None), named is not None)
        able = sorted(able, key=self._run_key)[:FINAL]
        rows = [self._row(one, fleet, named is not None) for one, fleet in able]
        return min(rows, key=lambda row: by.value if (by := row.by(self.terms.objective)) else inf)

    def _near(self, sized: Sequence[Sized]) -> list[Sized]:
        """The splits that may be the cheapest, sized again by longer runs; all of them where cost does not decide.

        A longer run may sustain more than a short one, and take a replica less: what a split costs at best is asked
        before it is passed over, as it would be asked of a count that is named.
        """
        able: list[Sized] = []
        least, by_cost = inf, self.terms.objective == "cost"
        for one, _ in sorted(sized, key=lambda pair: self._price_key(pair, False)):
            if by_cost and len(able) == MAX_CONFIRMED:
                break
            best = one, self._rented(one, self._at_most(one))
            if by_cost and self._paid(best) > least * (1 + 1e-9):
                continue
            load = self.confirmed(one).load.value
            if load > 0:
                able.append((one, self._rented(one, load)))
                least = min(least, self._paid(able[-1]))
        return able

    def _at_most(self, one: ReplicaLoad) -> float:
        """The load that a longer run may find; of whole users one more at least."""
        load = self.load(one)
        return max(load * NEAR, load + 1) if self.demand.kind == "users" else load * NEAR

    def _enough(self, named: Accelerators, sized: Sequence[Sized]) -> list[Sized]:
        """The splits that sustain the demand on the chips named, most first; a `Refusal` where none does."""
        able: list[Sized] = []
        most, limit, best = 0.0, "", 0.0
        for one, fleet in sorted(sized, key=lambda pair: -pair[0].load.value * pair[1].replicas):
            guess = one.load.value * fleet.replicas
            if able and self._at_most(one) * fleet.replicas < best:
                break
            sure = self.confirmed(one)
            best = max(best, guess)
            if sure.load.value * fleet.replicas * self.demand.most_use >= most:
                most, limit = sure.load.value * fleet.replicas * self.demand.most_use, sure.limit
            if sure.load.value > 0 and self.demand.replicas(sure.load.value) <= fleet.replicas:
                able.append((one, fleet))
        if not able:
            share = replace(self.demand, load=most)
            raise Refusal(f"{named} sustains {share} of the {self.demand} ({limit})", "more chips would do")
        return able

    def _run_key(self, pair: Sized) -> tuple[float, int]:
        """Median time of an answer, or joules for a token, of a replica at its share; of an offline job at its end."""
        one, fleet = pair
        if one.served is not None:
            served, value = one.served, 1 / (one.load.value * fleet.replicas)
        else:
            served = self._at_share(one.trials, fleet.replicas)
            value = served.e2e.p50.value
        if self.terms.objective == "energy":
            value = served.measures.joules_per_token
        return value, fleet.accelerators.count

    def _paid(self, pair: Sized) -> float:
        """Dollars an hour, or chips without a price; of an offline job, for its requests."""
        one, fleet = pair
        paid = fleet.usd_per_hour if fleet.usd_per_hour is not None else float(fleet.accelerators.count)
        return paid / (self.load(one) * fleet.replicas) if self.demand.kind == "job" else paid

    def _cheapest(self, able: Sequence[Sized], fixed: bool) -> Sized:
        """The best by price; of those alike in it whose loads are within a tie, the one split in fewest ways."""
        best = min(able, key=lambda pair: self._price_key(pair, fixed))
        paid, least = self._paid(best) * (1 + 1e-9), self.load(best[0]) * best[1].replicas / (1 + capacity.TIE)
        near = [pair for pair in able if self._paid(pair) <= paid and self.load(pair[0]) * pair[1].replicas >= least]
        return min(near, key=lambda pair: (pair[0].split.axes, self._price_key(pair, fixed)))

    def _price_key(self, pair: Sized, fixed: bool) -> tuple[float, float]:
        one, fleet = pair
        rate = self.load(one) * fleet.replicas
        return (-rate, self._paid(pair)) if fixed else (self._paid(pair), -rate)

    def _at_share(self, trials: ReplicaTrials, replicas: int) -> Served:
        """One of so many replicas at its share of the demand: each gets requests at random, as from a stream apart."""
        share = self.demand.load / replicas
        return run(trials.service, trials.loaded(ceil(share - 1e-9) if trials.whole else share))

    def _row(self, one: ReplicaLoad, fleet: Fleet, fixed: bool) -> ServingRow:
        """A sized fleet, and what users see of one of its replicas at its share of the demand."""
        at, sure = one.service.target, self.confirmed(one)
        if fleet.accelerators.count > LARGEST_CHIPS:
            raise Refusal(
                f"{at.chip.id} would take {fleet.accelerators.count:,} chips ({sure.limit})",
                f"counts up to {LARGEST_CHIPS:,} are compared",
            )
        served, margin = sure.served, None
        if self.demand.kind != "job":
            shared = self._at_share(ReplicaTrials(one.service, self.requests(at, capacity.LONG)), fleet.replicas)
            served = shared if capacity.holds(shared) else served  # by chance a lighter load may miss what a larger had
        if self.demand.kind == "rate":
            margin = queueing_margin(one)
        return ServingRow(
            fleet,
            one.split,
            self.demand,
            sure.load.scaled(fleet.replicas),
            sure.limit,
            served,
            _lone(one.service, one.trials.requests),
            *self._quotes(one, fleet, sure.load, fixed),
            queueing_margin=margin,
        )

    def _quotes(self, one: ReplicaLoad, fleet: Fleet, load: Estimate, fixed: bool) -> tuple[Quote | None, Quote | None]:
        """What the chips cost on demand and on spot, where that is cheaper."""

        def costs(spot: bool) -> Quote | None:
            now = fleet
            if fixed:
                now = held(fleet.accelerators, one.split.chips, spot, *self.priced_on)
            elif spot:
                now = self._rented(one, load.value, spot)
            usd_per_hour = now.usd_per_hour
            if usd_per_hour is None or now.price is None:
                return None
            low = high = usd_per_hour
            if not fixed and self.demand.kind != "job":
                low, high = (self._usd_per_hour(one, end, spot) for end in (load.high, load.low))
            ends = min(low, usd_per_hour), max(high, usd_per_hour)
            spread = Estimate(usd_per_hour, *ends, load.evidence, load.because, load.distance)
            return Quote(spread, now.price, now.paid_chips, "hour")

        ondemand, spot = costs(False), costs(True)
        if ondemand and spot and spot.usd.value >= ondemand.usd.value:
            spot = None  # another cloud's spot, more expensive than this on demand: no use
        return ondemand, spot

    def _usd_per_hour(self, one: ReplicaLoad, load: float, spot: bool) -> float:
        """Dollars an hour if a replica sustained so much; without end where it sustains nothing."""
        return (self._rented(one, load, spot).usd_per_hour or inf) if load > 0 else inf

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


def within(workload: ServingWorkload, terms: Terms) -> ServingWorkload:
    """The workload with the deadline of the terms, which only an offline job has."""
    if terms.deadline_s is None:
        return workload
    return with_deadline(workload, terms.deadline_s)

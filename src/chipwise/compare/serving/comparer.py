"""One chip of a comparison of services: the split and the number of replicas that carry the demand, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from math import ceil, exp, inf

from chipwise.catalog import Accelerators, Chip
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.taught import Taught
from chipwise.compare.serving.fleet import Fleet, held, rent
from chipwise.compare.serving.replicas import COARSE, OutOfReach, alone, carried, replicas, with_interval
from chipwise.compare.terms import MOST_CHIPS, Candidate, Terms, at_least
from chipwise.compare.training.comparer import Refused
from chipwise.errors import Refusal
from chipwise.predict.estimate import Estimate
from chipwise.prices import Price, PriceBook
from chipwise.serving import capacity
from chipwise.serving.capacity import Capacity
from chipwise.serving.requests import Requests, draw
from chipwise.serving.service import Served, Service, ServingTarget, run, serving_target
from chipwise.serving.split import Split
from chipwise.units import HOUR, format_money, format_seconds
from chipwise.workload.serve import ServingWorkload

FEW, MANY = 3_000, 20_000  # requests of the run that checks a fleet: 600 a replica within these
JOB = 4_000  # requests simulated of an offline job on one replica: several times what it works on at once
TURNS = 20  # requests of a user in a closed loop
FINAL = 2  # splits that are sized to the last replica where time or energy decides
AGAIN = 8  # times that replicas are added where the run does not hold what the capacities said


@dataclass(frozen=True, slots=True)
class Demand:
    """What must be carried: requests/s, users of a closed loop, or the requests/s that finish a job in time."""

    kind: str  # "rate", "users" or "job"
    load: float  # 0: a job without a deadline

    def replicas(self, each: float) -> int:
        """Replicas of that load that carry it.

        >>> Demand("rate", 20.0).replicas(5.0), Demand("rate", 20.0).replicas(4.9), Demand("job", 0.0).replicas(4.9)
        (4, 5, 1)
        """
        return max(1, ceil(self.load / each - 1e-9))

    def __str__(self) -> str:
        if self.kind == "users":
            return f"{self.load:,.0f} users"
        if not self.load:
            return "no deadline"
        return f"{self.load:,.0f} requests/s" if self.load >= 100 else f"{self.load:.3g} requests/s"


def demand_of(workload: ServingWorkload, seed: int = 0) -> Demand:
    """What a workload asks for."""
    s = workload.serve
    if s.arrival.kind == "closed":
        return Demand("users", float(s.arrival.users))
    if s.arrival.kind == "offline":
        return Demand("job", s.requests / s.deadline_s if s.deadline_s and s.requests else 0.0)
    return Demand("rate", s.arrival.rate if s.arrival.rate > 0 else draw(s, 0, seed).rate)


@dataclass(frozen=True, slots=True)
class Rent:
    """US dollars an hour of the chips, between what the two ends of the capacity would take; and the price."""

    usd_h: Estimate
    price: Price


@dataclass(frozen=True, slots=True, eq=False)
class ServingRow:
    """A chip that carries the demand within the SLO."""

    fleet: Fleet
    split: Split
    demand: Demand
    load: Estimate  # the largest that all replicas carry, in the demand's unit
    limit: str  # what ends it
    served: Served  # the whole fleet at the demand; one replica of an offline job
    alone: Estimate  # time per token (or of the whole answer) of a request that meets no other, s
    ondemand: Rent | None
    spot: Rent | None

    @property
    def accelerators(self) -> Accelerators:
        """All chips."""
        return self.fleet.accelerators

    @property
    def evidence(self) -> str:
        """Of the times."""
        return self.load.evidence

    @property
    def _many(self) -> int:
        return self.fleet.replicas if self.demand.kind == "job" else 1

    @property
    def request_rate(self) -> Estimate:
        """Requests answered a second."""
        return self.served.request_rate.scaled(self._many)

    @property
    def unit_rate(self) -> Estimate:
        """Output tokens a second; requests of a model that answers in one pass."""
        return self.served.token_rate.scaled(self._many) if self.writes else self.request_rate

    @property
    def writes(self) -> bool:
        """Whether the model answers token by token."""
        return self.served.service.target.workload.model.family == "decoder"

    @property
    def headroom(self) -> Estimate | None:
        """The largest load over the demand, less 1; None without a demand."""
        if not self.demand.load:
            return None
        low, value, high = (x / self.demand.load - 1 for x in (self.load.low, self.load.value, self.load.high))
        return Estimate(value, low, high, self.load.evidence, self.load.because)

    @property
    def joules(self) -> Estimate:
        """Energy of an output token or of a request; the ends as if all of it grew with the time."""
        value, by = self.served.measures.joules_per_token, self.served.service.corrections["tpot"]
        return Estimate(value, value * exp(min(by.low, 0.0)), value * exp(max(by.high, 0.0)), by.evidence, by.because)

    @property
    def seconds(self) -> Estimate:
        """To answer a request, the median; to finish an offline job."""
        if self.demand.kind == "job":
            return self.request_rate.inverted(self.served.service.target.workload.serve.requests or 1e6)
        return self.served.e2e.p50

    def per_million(self, rent: Rent | None) -> Estimate | None:
        """US dollars for a million output tokens, or requests of a model that answers in one pass."""
        if rent is None:
            return None
        if self.demand.kind == "job":
            return self.unit_rate.inverted(rent.usd_h.value * 1e6 / HOUR)
        return rent.usd_h.scaled(1e6 / HOUR / self.unit_rate.value)

    def by(self, objective: str) -> Estimate | None:
        """What the row is ranked by; None where it has no price."""
        if objective == "cost":
            if self.demand.kind == "job":
                return self.per_million(self.ondemand)
            return self.ondemand.usd_h if self.ondemand else None
        return self.seconds if objective == "time" else self.joules

    def score(self, objective: str) -> float | None:
        """What the pick minimises: the value, or its high end where only a bound is known."""
        by = self.by(objective)
        return None if by is None else by.high if by.evidence == "bounded" else by.value

    def priced(self, usd_h: float) -> ServingRow:
        """The row at another on-demand price per chip-hour."""
        if self.ondemand is None:
            return self
        factor = usd_h / self.ondemand.price.usd_h
        rent = Rent(self.ondemand.usd_h.scaled(factor), replace(self.ondemand.price, usd_h=usd_h))
        return replace(self, ondemand=rent)


Sized = tuple[Capacity, Fleet]  # one replica with its largest load, and the chips for as many as it takes


@dataclass(frozen=True, slots=True)
class ServingComparer:
    """What every row of a comparison of services shares."""

    workload: ServingWorkload
    terms: Terms
    calibration: Calibration
    taught: Taught
    stack: str
    today: date
    demand: Demand
    book: PriceBook
    seed: int = 0
    known: dict[str, tuple[Capacity, ...]] = field(default_factory=dict, compare=False)
    missed: dict[str, float] = field(default_factory=dict, compare=False)  # chips that hold at no load: how far off

    def times(self, factor: float) -> ServingComparer:
        """The same with another demand; what replicas carry stays known."""
        load = self.demand.load * factor
        if self.demand.kind == "users":
            load = max(1.0, round(load))
        return replace(self, demand=replace(self.demand, load=load))

    def place(self, chip: Chip) -> ServingTarget:
        """Where the workload is served."""
        return serving_target(self.workload, chip, self.calibration, self.taught, self.stack)

    def requests(self, at: ServingTarget) -> Requests:
        """What every load of a replica is tried with."""
        count = JOB if self.demand.kind == "job" else capacity.COUNT
        if self.demand.kind == "users":
            count = min(max(count, TURNS * int(self.demand.load)), MANY)
        return capacity.trial_requests(at, self.seed, count)

    def replicas(self, chip: Chip) -> tuple[Capacity, ...]:
        """One replica of every split, with the largest load that each carries; a `Refusal` where none can be."""
        if chip.id not in self.known:
            self.known[chip.id] = self._replicas(chip)
        return self.known[chip.id]

    def _replicas(self, chip: Chip) -> tuple[Capacity, ...]:
        at = self.place(chip)
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
                        candidate.chip, _each(c), self.demand.replicas(c.load.value), today=self.today, book=self.book
                    ),
                )
                for c in carrying
            ]
        fleets = [(c, fleet) for c in carrying if (fleet := held(named, _each(c), self.today, book=self.book)).replicas]
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
            self.place(candidate.chip)
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
        paid = fleet.usd_h if fleet.usd_h is not None else float(fleet.accelerators.count)
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
            fleet = rent(at.chip, each, self.demand.replicas(load.value), today=self.today, book=self.book)
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
                fleet = rent(at.chip, each, more, today=self.today, book=self.book)
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
            *self._rents(one.service, fleet, load, fixed),
        )

    def _run(self, of: Service, replicas: int) -> Served:
        count = min(max(FEW, capacity.COUNT * replicas), MANY)
        many = of.with_replicas(replicas)
        if self.demand.kind == "users":
            users = int(self.demand.load)
            return run(many, count=max(count, TURNS * users), seed=self.seed, users=users)
        return run(many, count=count, seed=self.seed, rate=self.demand.load)

    def _rents(self, of: Service, fleet: Fleet, load: Estimate, fixed: bool) -> tuple[Rent | None, Rent | None]:
        """What the chips cost on demand and on spot, where that is cheaper."""
        chip, each = of.target.chip, of.replica.split.chips

        def costs(spot: bool) -> Rent | None:
            if fixed:
                now = held(fleet.accelerators, each, self.today, spot, self.book)
            else:
                now = rent(chip, each, fleet.replicas, spot, self.today, self.book) if spot else fleet
            usd_h = now.usd_h
            if usd_h is None or now.price is None:
                return None
            low = high = usd_h
            if not fixed and self.demand.kind != "job":
                low, high = (self._usd_h(of, end, spot) for end in (load.high, load.low))
            spread = Estimate(usd_h, min(low, usd_h), max(high, usd_h), load.evidence, load.because)
            return Rent(spread, now.price)

        ondemand, spot = costs(False), costs(True)
        if ondemand and spot and spot.usd_h.value >= ondemand.usd_h.value:
            spot = None  # another cloud's spot, dearer than this on demand: no use
        return ondemand, spot

    def _usd_h(self, of: Service, each: float, spot: bool) -> float:
        """Dollars an hour if a replica carried so much; without end where it carries nothing."""
        if each <= 0:
            return inf
        needed = self.demand.replicas(each)
        return rent(of.target.chip, of.replica.split.chips, needed, spot, self.today, self.book).usd_h or inf

    def _within_budget(self, row: ServingRow) -> ServingRow | Refused:
        """Refuse what costs more than the budget: dollars an hour, or of the whole offline job."""
        budget, chip = self.terms.budget_usd, row.accelerators.chip
        if budget is None:
            return row
        if row.ondemand is None:
            return Refused(chip, None, "budget", f"{chip.id} has no public price", "no budget can be checked")
        usd, what = row.ondemand.usd_h.value, " an hour"
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
    served = alone(of, requests)
    return served.tpot.mean if served.tpot else served.e2e.mean


def _each(one: Capacity) -> int:
    return one.service.replica.split.chips


def _at_most(load: Estimate, most: float) -> Estimate:
    """A load that a run has shown to be smaller."""
    if load.value <= most:
        return load
    return replace(load, value=most, low=min(load.low, most))


def slo_latencies(row: ServingRow) -> list[tuple[str, Estimate]]:
    """What users see at the percentiles of the SLO; at the 99th of the usual measures without one."""
    served = row.served
    spreads = {"ttft": served.ttft, "tpot": served.tpot, "itl": served.itl, "e2e": served.e2e}
    out: list[tuple[str, Estimate]] = []
    for kept in served.measures.slo_checks:
        bound, spread = kept.bound, spreads[kept.bound.metric]
        name = f"{bound.metric} p{bound.percentile:g}"
        if spread is None:
            continue
        known = getattr(spread, f"p{bound.percentile:g}", None)
        by = served.service.corrections["ttft" if bound.metric == "ttft" else "tpot"]
        out.append(
            (
                name,
                known
                or Estimate(
                    kept.seconds,
                    kept.seconds * exp(min(by.low, 0.0)),
                    kept.seconds * exp(max(by.high, 0.0)),
                    by.evidence,
                ),
            )
        )
    if out:
        return out
    if served.tpot is None:
        return [("e2e p99", served.e2e.p99)]
    return [("ttft p99", served.ttft.p99), ("tpot p99", served.tpot.p99)]

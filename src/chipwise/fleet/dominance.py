"""Units that no plan needs: others do the same work in their place at no higher price, and count in no other limit.

Dropped are a service's use of a pool by the hour, and a run's options by the hour. No plan gets worse by it: whatever
hired them could have hired the others instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from chipwise.fleet.problem import Option, Problem, Run, Service, Supply

EPS = 1e-9


@dataclass(frozen=True, slots=True)
class Dominance:
    """What is compared: units, what they cost, and the limits that they count in."""

    problem: Problem

    def applied(self) -> Problem:
        """The problem without what no plan needs."""
        p = self.problem
        services, runs = tuple(map(self._service, p.services)), tuple(map(self._run, p.runs))
        used = {o.pool for run in runs for o in run.options} | {pool for s in services for pool, _ in s.carries}
        used |= {s.pool for s in p.supplies if s.pricing == "existing"}
        return replace(
            p,
            pools=tuple(pool for pool in p.pools if pool.id in used),
            supplies=tuple(s for s in p.supplies if s.pool in used),
            services=services,
            runs=runs,
        )

    def _service(self, service: Service) -> Service:
        """The service on pools of which no other could take the place; of equal ones the smallest units stay."""
        carries = dict(service.carries)
        for pool in sorted(carries, key=lambda name: -self.problem.pool(name).chips):
            if any(self._carries_for(service, other, pool) for other in carries if other != pool):
                del carries[pool]
        return replace(service, carries=tuple(pair for pair in service.carries if pair[0] in carries))

    def _carries_for(self, service: Service, one: str, other: str) -> bool:
        """Whether units of one pool can stand in for those of another: each of its supplies has one no dearer."""
        load = dict(service.carries)
        if service.spare_units and load[one] > load[other]:
            return False  # more would be lost with a spare one
        units = ceil(load[other] / load[one] - EPS) * service.units(one)
        instead = service.units(other)
        mine, its = self._supplies(one), self._supplies(other)
        return all(s.hourly for s in its) and all(
            any(self._replaces(m, units, s, instead) for m in mine if m.pricing == s.pricing) for s in its
        )

    def _supplies(self, pool: str) -> Sequence[Supply]:
        return [s for s in self.problem.supplies if s.pool == pool]

    def _replaces(self, one: Supply, units: float, other: Supply, instead: float) -> bool:
        """Whether so many units of a supply by the hour cost no more than so many of another, and are no less free."""
        if one.lead > other.lead or units * one.usd_per_unit_hour > instead * other.usd_per_unit_hour * (1 + EPS):
            return False
        mine, its = (self.problem.pool(s.pool) for s in (one, other))
        if units * mine.chips > instead * its.chips + EPS:
            return False
        for busy in (False, True):
            if units * mine.carbon_kg(busy) > instead * its.carbon_kg(busy) + EPS:
                return False
            if units * mine.energy_usd(busy) > instead * its.energy_usd(busy) + EPS:
                return False
        return one.limit is None and self._limits(one) <= self._limits(other)

    def _limits(self, supply: Supply) -> set[str]:
        """The limits and exclusives that name a supply."""
        p = self.problem
        named = {x.name for x in p.limits if supply.id in x.supplies}
        return named | {f"{e.name} {i}" for e in p.exclusives for i, side in enumerate(e.sides) if supply.id in side}

    def _run(self, run: Run) -> Run:
        """The run with the options by the hour of which no other could take the place."""
        options = list(run.options)
        for option in sorted(run.options, key=lambda o: -o.takes * self.problem.pool(o.pool).chips):
            if option.supply and any(self._runs_for(o, option) for o in options if o is not option):
                options.remove(option)
        return replace(run, options=tuple(options))

    def _runs_for(self, one: Option, other: Option) -> bool:
        """Whether an option by the hour can stand in for another: as soon done, at no higher price."""
        if not one.supply or one.hours > other.hours:
            return False
        mine, its = self.problem.supply(one.supply), self.problem.supply(other.supply)
        if one.takes * self.problem.pool(one.pool).chips > other.takes * self.problem.pool(other.pool).chips:
            return False
        shares = (one.paid * one.hours, other.paid * other.hours)
        return self._replaces(mine, one.takes * shares[0], its, other.takes * shares[1])

"""The cheapest fleet plan by trying everything: slow, plain, and with no line in common with the program it checks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil, inf, prod

from scipy.optimize import linprog

from chipwise.fleet.problem import Option, Problem, Run, Supply

EPS = 1e-7


class Enumeration:
    """All plans of a small problem, the cheapest kept."""

    def __init__(self, problem: Problem) -> None:
        self.p = problem
        self.T, self.B = range(len(problem.periods)), range(len(problem.blocks))
        self.pools = {pool.id: pool for pool in problem.pools}
        self.supplies = {s.id: s for s in problem.supplies}
        self.begun = [s for s in problem.supplies if s.pricing in ("year1", "year3", "owned")]
        self.hourly = [s for s in problem.supplies if s.pricing in ("ondemand", "spot")]
        self.there = [s for s in problem.supplies if s.pricing == "existing"]
        self.seen: dict[object, list[tuple[float, float]]] = {}
        self.largest: tuple[float, ...] = ()
        self.turns: set[tuple[str, str, int]] = set()

    def size(self) -> int:
        """How many starts and places of runs there are to try."""
        starts = prod(len(each) for each in self.start_ranges())
        return starts * prod(len(list(self.placings(run))) for run in self.p.runs)

    def cheapest(self) -> float:
        """US dollars of the cheapest plan; infinite where there is none."""
        best = inf
        sizes = [sorted({c for _, c in s.carries}) if s.spare_units else [inf] for s in self.p.services]
        for self.largest in product(*sizes):  # the largest replica that each service may use, and may lose
            self.seen = {}
            best = min(best, self.with_largest())
        return best

    def with_largest(self) -> float:
        best = inf
        starts = sorted(((self.start_cost(s), s) for s in self.all_starts()), key=lambda pair: pair[0])
        placings = list(product(*(list(self.placings(run)) for run in self.p.runs)))
        for cost, start in starts:
            if cost >= best:
                break
            held = self.held(start)
            for placing in placings:
                best = min(best, self.complete(start, held, placing, cost, best))
        return best

    def most(self, pool: str) -> int:
        """Units of a pool that can be of any use at once."""
        total = 0
        for run in self.p.runs:
            total += max((o.units + o.spare for o in run.options if o.pool == pool), default=0)
        for service in self.p.services:
            for name, carries in service.carries:
                if name == pool:
                    top = max(max(row) for row in service.load) * (1 + service.spare_share)
                    top += service.spare_units * max(c for _, c in service.carries)
                    total += ceil(top / carries - 1e-9) * dict(service.spans).get(pool, 1)
        return total

    def start_keys(self) -> list[tuple[str, int]]:
        return [(s.id, t) for s in self.begun for t in self.T if t + s.lead < len(self.T)]

    def start_ranges(self) -> list[range]:
        ranges = []
        for name, _ in self.start_keys():
            supply = self.supplies[name]
            top = self.most(supply.pool)
            ranges.append(range(1 + (top if supply.limit is None else min(top, supply.limit))))
        return ranges

    def all_starts(self) -> Iterator[dict[tuple[str, int], int]]:
        for units in product(*self.start_ranges()):
            yield dict(zip(self.start_keys(), units, strict=True))

    def alive(self, supply: Supply, order: int, t: int) -> bool:
        first = order + supply.lead
        return first <= t and (not supply.term or t < first + supply.term)

    def held(self, start: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        """Units of every supply that is held, by period."""
        out = {(s.id, t): s.existing[t] for s in self.there for t in self.T}
        for s in self.begun:
            for t in self.T:
                out[s.id, t] = sum(n for (name, order), n in start.items() if name == s.id and self.alive(s, order, t))
        return out

    def start_cash(self, start: dict[tuple[str, int], int], t: int) -> float:
        """Dollars paid in a period for what is held, work aside."""
        usd = sum(n * self.supplies[name].capex for (name, order), n in start.items() if order == t)
        for (name, at), n in self.held(start).items():
            if at == t:
                s = self.supplies[name]
                pool, hours = self.pools[s.pool], self.p.periods[t].hours
                usd += n * (
                    s.usd_per_unit_hour * hours + s.usd_period + pool.watts_idle / 1000 * pool.usd_per_kwh * hours
                )
        return usd

    def start_cost(self, start: dict[tuple[str, int], int]) -> float:
        usd = sum(self.start_cash(start, t) for t in self.T)
        for (name, order), n in start.items():
            s = self.supplies[name]
            kept = sum(1 for t in self.T if self.alive(s, order, t))
            usd -= n * s.resale * s.keeps**kept
            if s.pricing != "owned" and not self.p.prorate:
                usd += n * s.usd_per_unit_hour * (s.term - kept) * self.p.overrun_hours
        return usd

    def placings(self, run: Run) -> Iterator[tuple[tuple[Option, int], ...]]:
        """Sets of option and period in which a run is active."""
        span = range(run.first, run.last + 1)
        if run.split:
            pairs = [(o, t) for o in run.options for t in span]
            groups = [pairs]
        else:
            groups = [[(o, t) for t in span] for o in run.options]
        for group in groups:
            for some in product((False, True), repeat=len(group)):
                chosen = tuple(pair for pair, yes in zip(group, some, strict=True) if yes)
                late = any(o.supply and self.supplies[o.supply].lead > t for o, t in chosen)
                if chosen and not late and self.enough(run, chosen):
                    yield chosen

    def enough(self, run: Run, chosen: tuple[tuple[Option, int], ...]) -> bool:
        return sum(self.p.periods[t].hours / o.hours for o, t in chosen) >= 1 - 1e-9

    def complete(
        self,
        start: dict[tuple[str, int], int],
        held: dict[tuple[str, int], int],
        placing: tuple[tuple[tuple[Option, int], ...], ...],
        cost: float,
        best: float,
    ) -> float:
        """The cheapest plan with these starts and these places of the runs."""
        cheapest_hours = sum(min(self.rate(o) * o.hours for o, _ in chosen) for chosen in placing)
        if cost + cheapest_hours >= best:
            return inf
        choices = []
        for t in self.T:
            found = self.period(t, held, placing, start)
            if not found:
                return inf
            choices.append(found)
        for combination in sorted(product(*choices), key=lambda c: sum(usd for usd, _ in c)):
            serving = sum(usd for usd, _ in combination)
            if cost + cheapest_hours + serving >= best:
                break
            hours = self.hours(start, held, placing, combination)
            if hours is not None:
                best = min(best, cost + serving + hours)
        return best

    def rate(self, option: Option) -> float:
        """Dollars for an hour of an option."""
        if option.supply:
            return self.supplies[option.supply].usd_per_unit_hour * (option.units + option.spare) * option.paid
        pool = self.pools[option.pool]
        return (pool.watts_busy - pool.watts_idle) / 1000 * pool.usd_per_kwh * option.units

    def kg_rate(self, option: Option) -> float:
        pool = self.pools[option.pool]
        extra = (pool.watts_busy - pool.watts_idle) * option.units
        idle = pool.watts_idle * (option.units + option.spare) if option.supply else 0.0
        return (extra + idle) / 1000 * pool.kg_per_kwh * option.paid

    def period(
        self,
        t: int,
        held: dict[tuple[str, int], int],
        placing: tuple[tuple[tuple[Option, int], ...], ...],
        start: dict[tuple[str, int], int],
    ) -> list[tuple[float, float]]:
        """Dollars and CO2 of serving in a period, none worse than another in both; empty where it can't be."""
        on_held: dict[str, int] = dict.fromkeys(self.pools, 0)
        by_hour: dict[str, int] = {s.id: 0 for s in self.hourly}
        turns: set[tuple[str, str, int]] = set()  # by the hour, one after another: queue, supply, units
        queues: dict[tuple[str, str], int] = {}
        for run, chosen in zip(self.p.runs, placing, strict=True):
            for option, at in chosen:
                if at != t:
                    continue
                takes = option.units + option.spare
                if option.supply and run.queue:
                    turns.add((run.queue, option.supply, takes))
                elif option.supply:
                    by_hour[option.supply] += takes
                elif run.queue:
                    queues[run.queue, option.pool] = max(queues.get((run.queue, option.pool), 0), takes)
                else:
                    on_held[option.pool] += takes
        for (_, pool), takes in queues.items():
            on_held[pool] += takes
        units = {s: held[s, t] for s, at in held if at == t}
        sides = frozenset(
            (e, side)
            for e, exclusive in enumerate(self.p.exclusives)
            for side, names in enumerate(exclusive.sides)
            if any(n for (name, _), n in start.items() if name in names)
            or any(o.supply in names for chosen in placing for o, _ in chosen)
            or any(s.id in names and any(s.existing) for s in self.there)
        )
        key = (t, tuple(on_held.values()), tuple(by_hour.values()), frozenset(turns), tuple(units.items()), sides)
        if key not in self.seen:
            self.turns = turns
            self.seen[key] = self.serve(t, on_held, by_hour, units, set(sides))
        return self.seen[key]

    def serve(
        self,
        t: int,
        on_held: dict[str, int],
        by_hour: dict[str, int],
        units: dict[str, int],
        sides: set[tuple[int, int]],
    ) -> list[tuple[float, float]]:
        capacity = dict.fromkeys(self.pools, 0)
        for name, n in units.items():
            capacity[self.supplies[name].pool] += n
        if any(on_held[pool] > capacity[pool] for pool in self.pools):
            return []
        totals = [(0.0, 0.0)]
        for b in self.B:
            here = list(self.block(t, b, capacity, on_held, by_hour, units, sides))
            totals = pareto([(u + v, k + g) for u, k in totals for v, g in here])
        return totals

    def block(
        self,
        t: int,
        b: int,
        capacity: dict[str, int],
        on_held: dict[str, int],
        by_hour: dict[str, int],
        units: dict[str, int],
        sides: set[tuple[int, int]],
    ) -> Iterator[tuple[float, float]]:
        hours = self.p.periods[t].hours * self.p.blocks[b].share
        tops = [range(1 + self.most(s.pool)) if s.lead <= t else range(1) for s in self.hourly]
        for hired in product(*tops):
            rented = {s.id: n for s, n in zip(self.hourly, hired, strict=True)}
            if not self.allowed(t, rented, by_hour, units, sides):
                continue
            free = {k: capacity[k] - on_held[k] for k in self.pools}
            for s in self.hourly:
                free[s.pool] += rented[s.id]
            usd = sum(self.supplies[s].usd_per_unit_hour * n * hours for s, n in rented.items())
            idle = sum(
                self.pools[self.supplies[s].pool].watts_idle
                / 1000
                * n
                * hours
                * self.pools[self.supplies[s].pool].kg_per_kwh
                for s, n in rented.items()
            )
            for used in self.covers(t, b, free):
                energy = kg = 0.0
                for pool, n in used.items():
                    at = self.pools[pool]
                    kwh = (at.watts_busy - at.watts_idle) / 1000 * n * hours
                    energy, kg = energy + kwh * at.usd_per_kwh, kg + kwh * at.kg_per_kwh
                yield usd + energy, idle + kg

    def allowed(
        self,
        t: int,
        rented: dict[str, int],
        by_hour: dict[str, int],
        units: dict[str, int],
        sides: set[tuple[int, int]],
    ) -> bool:
        for e, exclusive in enumerate(self.p.exclusives):
            used = {side for which, side in sides if which == e}
            used |= {side for side, names in enumerate(exclusive.sides) if any(rented.get(n, 0) for n in names)}
            if len(used) > 1:  # instances keep hourly supplies out: they would have to be alike in all periods
                return False
        at_once = {**units, **{s: n + by_hour[s] for s, n in rented.items()}}
        for s in (*self.begun, *self.hourly):
            if s.limit is not None and at_once[s.id] + self.in_turns({s.id: 1.0}) > s.limit:
                return False
        for limit in self.p.limits:
            if limit.kind in ("usd", "kg") or (limit.periods and t not in limit.periods):
                continue
            weights = {}
            for s in self.p.supplies:
                pool = self.pools[s.pool]
                of = {"units": 1.0, "chips": pool.chips, "kw": pool.watts_busy / 1000, "rack_units": s.rack_units}
                weights[s.id] = of[limit.kind] if not limit.supplies or s.id in limit.supplies else 0.0
            if sum(n * weights[name] for name, n in at_once.items()) + self.in_turns(weights) > limit.amount + EPS:
                return False
        return True

    def in_turns(self, weights: dict[str, float]) -> float:
        """What the runs of queues take by the hour: of each queue the largest."""
        return sum(
            max((n * weights.get(s, 0.0) for of, s, n in self.turns if of == queue), default=0.0)
            for queue in {queue for queue, _, _ in self.turns}
        )

    def covers(self, t: int, b: int, free: dict[str, int]) -> Iterator[dict[str, int]]:
        """Units by pool with which every service carries its load."""
        ways = []
        for service, largest in zip(self.p.services, self.largest, strict=True):
            need = service.load[t][b] * (1 + service.spare_share)
            if need <= 0:
                ways.append([{}])
                continue
            need += service.spare_units * largest if service.spare_units else 0.0
            names = [pool for pool, carries in service.carries if carries <= largest]
            sizes = dict(service.carries)
            mine = []
            for units in product(*(range(1 + max(0, free[name])) for name in names)):
                carried = sum(sizes[k] * n for k, n in zip(names, units, strict=True))
                if carried >= need - EPS:
                    spans = dict(service.spans)
                    mine.append({k: n * spans.get(k, 1) for k, n in zip(names, units, strict=True)})
            ways.append(mine)
        for combination in product(*ways):
            used = {k: sum(way.get(k, 0) for way in combination) for k in self.pools}
            if all(used[k] <= free[k] for k in self.pools):
                yield used

    def hours(
        self,
        start: dict[tuple[str, int], int],
        held: dict[tuple[str, int], int],
        placing: tuple[tuple[tuple[Option, int], ...], ...],
        serving: tuple[tuple[float, float], ...],
    ) -> float | None:
        """The cheapest hours of the runs in their places within the limits; None where there are none."""
        names = [(r, o, t) for r, chosen in enumerate(placing) for o, t in chosen]
        rows, right, equal, to = [], [], [], []
        for r in range(len(self.p.runs)):
            equal.append([1 / o.hours if which == r else 0.0 for which, o, _ in names])
            to.append(1.0)
            for t in self.T:
                rows.append([1.0 if which == r and at == t else 0.0 for which, _, at in names])
                right.append(self.p.periods[t].hours)
        for queue in {run.queue for run in self.p.runs if run.queue}:
            for t in self.T:
                rows.append([1.0 if self.p.runs[r].queue == queue and at == t else 0.0 for r, _, at in names])
                right.append(self.p.periods[t].hours)
        for limit in self.p.limits:
            if limit.kind not in ("usd", "kg"):
                continue
            over = [t for t in self.T if not limit.periods or t in limit.periods]
            for group in [over] if limit.total else [[t] for t in over]:
                fixed = sum(self.fixed(limit.kind, t, start, held, serving) for t in group)
                each = self.rate if limit.kind == "usd" else self.kg_rate
                rows.append([each(o) if t in group else 0.0 for _, o, t in names])
                right.append(limit.amount - fixed + EPS)
        if not names:
            return 0.0 if all(value >= 0 for value in right) else None
        found = linprog(
            [self.rate(o) for _, o, _ in names],
            rows,
            right,
            equal,
            to,
            [(0.0, self.p.periods[t].hours) for _, _, t in names],
        )
        return float(found.fun) if found.status == 0 else None

    def fixed(
        self,
        kind: str,
        t: int,
        start: dict[tuple[str, int], int],
        held: dict[tuple[str, int], int],
        serving: tuple[tuple[float, float], ...],
    ) -> float:
        if kind == "usd":
            return self.start_cash(start, t) + serving[t][0]
        idle = sum(
            n
            * self.pools[self.supplies[s].pool].watts_idle
            / 1000
            * self.p.periods[t].hours
            * self.pools[self.supplies[s].pool].kg_per_kwh
            for (s, at), n in held.items()
            if at == t
        )
        return idle + serving[t][1]


def pareto(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Pairs of which no other is better in both."""
    out: list[tuple[float, float]] = []
    for usd, kg in sorted(pairs):
        if not out or kg < out[-1][1] - 1e-12:
            out.append((usd, kg))
    return out

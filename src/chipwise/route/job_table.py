"""Pending and running jobs as arrays that are kept up to date: a state of ten thousand costs next to nothing.

A state shows the table's own arrays, read-only: it holds until the table changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InputError
from chipwise.route.cluster_state import ClusterState, Floats, Ints
from chipwise.route.job import Job
from chipwise.route.job_table_columns import (
    ADVANCED,
    BY_BOTH,
    BY_JOB,
    CHOSEN,
    FOLLOWS,
    SCALED,
    WRITTEN,
    Way,
    pool_facts,
)
from chipwise.route.job_table_kernels import (
    advance_running,
    fill_starts,
    in_parts,
    least_needs,
    look_up_starts_in,
    scale_to_remaining,
)
from chipwise.route.job_table_part import Moment, Names, TablePart, column_of
from chipwise.route.late_spread import early_spread, late_spread, within
from chipwise.route.option import Option
from chipwise.route.pool import Pool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job for the table. Options stand in the order in which they are to be tried."""

    id: str
    arrival: float
    options: tuple[Option, ...]
    weight: float = 1.0
    deadline: float = inf
    confidence: float = 0.9
    budget: float = inf  # USD, of all attempts
    restartable: bool = False
    every: float = inf  # seconds of work between checkpoints
    restart: float = 0.0  # seconds until it works again
    done: float = 0.0  # share of the work that checkpoints hold
    spent: float = 0.0  # USD so far
    last_failed: tuple[str, str] | None = None  # pool and variant that failed last
    account: int = -1  # whose quotas it counts against

    @classmethod
    def of(cls, job: Job, id: str, arrival: float, options: tuple[Option, ...], **history: Any) -> Self:
        """A job with its ways to run; `history`: what is done and spent, and where it failed last."""
        checkpoint = job.checkpoint
        return cls(
            id,
            arrival,
            options,
            job.priority,
            job.deadline,
            job.confidence,
            job.budget,
            checkpoint.restartable,
            checkpoint.every,
            checkpoint.restart,
            **history,
        )


Keep = Callable[[ClusterState], tuple[Floats, Ints, Floats]]  # what `JobTable.kept` keeps, for some rows


class JobTable:
    """Open jobs by pools. A change costs one row; a state costs the running jobs and one pass for the starts."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(p.name for p in pools)
        if len(set(self.pools)) != len(self.pools):
            raise InputError("pools", ", ".join(self.pools), "names that differ")
        self._column = {name: k for k, name in enumerate(self.pools)}
        self._facts = pool_facts(pools)
        self._row: dict[str, int] = {}
        self._candidates: list[Candidate] = []
        self._ids: list[str] = []
        self._chosen: list[dict[int, Option]] = []
        self._changes = 0  # of any row: states from before show nothing more
        self._advanced = (nan, 0)  # to when running jobs were brought, and the changes until then
        self._keep: Keep | None = None  # whose numbers `kept` keeps
        self._names: tuple[str, ...] | None = None  # until the jobs change
        self._width = 2  # more than the chips of any job
        self._arrays: dict[str, NDArray[Any]] = {}
        self._grow(64)

    def __len__(self) -> int:
        return len(self._candidates)

    def __contains__(self, job: object) -> bool:
        return job in self._row

    def candidate(self, job: str) -> Candidate:
        """A job as it was last written."""
        return self._candidates[self._row[job]]

    def add(self, candidate: Candidate) -> None:
        """A job comes, to wait."""
        if candidate.id in self._row:
            raise InputError("job", candidate.id, "an id that is not in the table yet")
        j = len(self._candidates)
        if j == len(self._arrays["current_pool"]):
            self._grow(2 * j)
        for name, array in self._arrays.items():
            array[j] = BY_JOB[name] if name in BY_JOB else BY_BOTH[name]
        self._row[candidate.id], self._names = j, None
        self._candidates.append(candidate)
        self._ids.append(candidate.id)
        self._chosen.append({})
        self._write_row(j, candidate)

    def add_all(self, candidates: Sequence[Candidate]) -> None:
        """Many jobs come at once, to wait. Those that have the same options are written from one copy of them."""
        first, count = len(self._candidates), len(candidates)
        if not count:
            return
        new = {candidate.id: first + k for k, candidate in enumerate(candidates)}
        for candidate in candidates:
            if candidate.id in self._row or len(new) < count:
                raise InputError("job", candidate.id, "an id that is not in the table yet")
        room = len(self._arrays["current_pool"])
        while room < first + count:
            room *= 2
        if room > len(self._arrays["current_pool"]):
            self._grow(room)
        kinds: dict[tuple[int, tuple[str, str] | None], int] = {}
        kind = [kinds.setdefault((id(one.options), one.last_failed), len(kinds)) for one in candidates]
        of_kind = dict(zip(kind, candidates, strict=True))
        chosen = [self._choice(of_kind[k].options, of_kind[k].last_failed) for k in range(len(kinds))]
        rows, which, a = np.arange(first, first + count), np.array(kind, dtype=np.int64), self._arrays
        for name in a.keys() - {*WRITTEN, *CHOSEN, *FOLLOWS}:
            a[name][first : first + count] = BY_JOB[name] if name in BY_JOB else BY_BOTH[name]
        for name in WRITTEN:
            a[name][first : first + count] = [getattr(one, name) for one in candidates]
        a["base"][rows], a["restart_cost_s"][rows] = a["done"][rows], a["restart"][rows]
        a["budget"][rows] = [one.budget - one.spent for one in candidates]
        for name, of in CHOSEN.items():
            by_kind = np.full((len(kinds), len(self.pools)), BY_BOTH[name], dtype=a[name].dtype)
            for k, ways in enumerate(chosen):
                by_kind[k, list(ways)] = [of(way) for way in ways.values()]
            by_kind.take(which, axis=0, out=a[name][first : first + count], mode="clip")  # not through a buffer
        options = [{p: option for p, (_, option, _) in ways.items()} for ways in chosen]
        self._row |= new  # from here on nothing can fail: all of them are in the table, or none
        self._candidates += candidates
        self._ids += [one.id for one in candidates]
        self._chosen += [options[k] for k in kind]  # shared: replaced as a whole where one changes
        self._names = None
        self._chosen_late(rows)

    def replace(self, candidate: Candidate) -> None:
        """A job's deadline, budget, options or where it last failed have changed; whether and where it runs has not."""
        j = self._row[candidate.id]
        self._candidates[j] = candidate
        for name in BY_BOTH.keys() - {"served", "before"}:
            self._arrays[name][j] = BY_BOTH[name]
        self._write_row(j, candidate)

    def remove(self, job: str) -> None:
        """A job goes, whether it waits or runs."""
        self._changes += 1
        j, last = self._row.pop(job), len(self._candidates) - 1
        if j != last:
            for array in self._arrays.values():
                array[j] = array[last]
            self._candidates[j], self._chosen[j] = self._candidates[last], self._chosen[last]
            self._ids[j] = self._ids[last]
            self._row[self._ids[j]] = j
        del self._candidates[last], self._chosen[last], self._ids[last]
        self._names = None

    def started(self, job: str, pool: str, now: float) -> None:
        """A job begins to run."""
        j, p, a = self._row[job], self._column[pool], self._arrays
        a["current_pool"][j], a["since"][j], a["usd_once"][j, p] = p, now, 0.0  # its data are there now
        a["base"][j], a["before"][j] = a["done"][j], a["served"][j]
        a["progress_time"][j] = now
        self._scale(np.array([j]))

    def stopped(
        self,
        job: str,
        now: float,
        done: float | None = None,
        spent: float | None = None,
        last_failed: tuple[str, str] | None = None,
    ) -> None:
        """A running job waits again. `done`: the share of the work that is kept; default: all that was done."""
        j, a = self._row[job], self._arrays
        self._advance(np.array([j]), now)
        candidate = self._candidates[j]
        a["current_pool"][j], a["since"][j], a["restart_cost_s"][j] = -1, np.nan, candidate.restart
        a["warming"][j] = candidate.restart if candidate.restartable else 0.0  # the next run begins with that
        if last_failed is not None:
            self._choose(j, last_failed)
        self.progress(job, now, float(a["done"][j]) if done is None else done, spent)

    def progress(self, job: str, now: float, done: float, spent: float | None = None) -> None:
        """What share of the work is done by now, and what the job has cost."""
        if not 0 <= done <= 1:
            raise InputError("done", done, "a share between 0 and 1")
        j = self._row[job]
        self._arrays["done"][j] = self._arrays["base"][j] = done
        self._arrays["progress_time"][j] = now
        if spent is not None:
            self._arrays["budget"][j] = self._candidates[j].budget - spent
        self._scale(np.array([j]))

    def option(self, job: str, pool: str) -> Option:
        """How a job would run in a pool: the first of its options there that did not fail last."""
        return self._chosen[self._row[job]][self._column[pool]]

    def state(
        self,
        now: float,
        free: Mapping[str, int] | Ints,
        total: Mapping[str, int] | Ints,
        *,
        start: Mapping[str, float] | Floats | None = None,
        weights: Mapping[str, float] | None = None,
        shares: Floats | None = None,
    ) -> ClusterState:
        """Everything as it is now.

        `start`: when full pools have free capacity again, as backends predict, by pool or by job and pool; default:
        when enough of the jobs in the table have ended. `shares`: of time, still in force.
        """
        moment = self.moment(now, free, total, start=start, weights=weights)
        return self.part(moment, None, shares)

    def moment(
        self,
        now: float,
        free: Mapping[str, int] | Ints,
        total: Mapping[str, int] | Ints,
        *,
        start: Mapping[str, float] | Floats | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Moment:
        """Bring running jobs up to now, and find when pools have free capacity; the arguments are those of `state`."""
        free_chips, working_chips = self._by_pool(free, 0, np.int64), self._by_pool(total, 0, np.int64)
        running = self.running()
        if len(running) and self._advanced != (now, self._changes):  # else they are there: states from then hold on
            self._advance(running, now)
            self._advanced = now, self._changes
        by_job = start if isinstance(start, np.ndarray) and start.ndim == 2 else None
        table = np.empty((0, 0)) if by_job is not None else self._table(now, free_chips, working_chips, running, start)
        return Moment(now, free_chips, working_chips, table, by_job, dict(weights or {}))

    def part(self, moment: Moment, rows: Ints | None, shares: Floats | None = None) -> ClusterState:
        """Some rows of the table at a moment, all where none are named; those of a part are copies.

        What is not read is not copied; it can be read until the table changes.
        """
        changes = self._changes

        def check(what: str) -> None:
            if self._changes != changes:
                raise RuntimeError(f"{what} of jobs read from a state after the table has changed")

        def read(name: str) -> NDArray[Any]:
            check(name)
            return column_of(self._arrays, slice(len(self._candidates)) if rows is None else rows, name, moment)

        def ids() -> Sequence[str]:
            check("ids")
            return self._ids

        if rows is None and self._names is None:
            self._names = tuple(self._ids)
        names = self._names if rows is None else Names(ids, rows.tolist())
        return TablePart.of(
            read,
            now=moment.now,
            jobs=names,
            pools=self.pools,
            free=moment.free,
            total=moment.total,
            pool_facts=self._facts,
            weights=moment.weights,
            shares=shares if rows is None or shares is None else shares[rows],
            shares_since=nan,
            shared=None,
        )

    def running(self) -> Ints:
        """The rows of jobs that run."""
        return np.flatnonzero(self._arrays["current_pool"][: len(self._candidates)] >= 0)

    def rows(self, jobs: Sequence[str]) -> Ints:
        """The rows of these jobs, as far as they are in the table."""
        return np.array([self._row[job] for job in jobs if job in self._row], dtype=np.int64)

    def column(self, name: str) -> NDArray[Any]:
        """One number of every job, by row: not to be written to. `had`: the seconds that it has run."""
        return self._arrays[name][: len(self._candidates)]

    def ids(self, rows: Ints) -> list[str]:
        """The jobs of these rows."""
        return [self._ids[j] for j in rows.tolist()]

    def kept(self, moment: Moment, keep: Keep) -> tuple[Floats, Ints, Floats]:
        """What `keep` makes of every job that waits, by row, kept while the job does not change.

        It must be a function of the row alone, without its starts and the time. Rows of running jobs say nothing.
        """
        n, a = len(self._candidates), self._arrays
        if keep is not self._keep:
            self._keep = keep
            a["fresh"][:] = False
        stale = np.flatnonzero(~a["fresh"][:n] & (a["current_pool"][:n] < 0))
        for some in in_parts(stale):
            a["ahead"][some], a["where"][some], a["behind"][some] = keep(self.part(moment, some))
            a["fresh"][some] = True
        return a["ahead"][:n], a["where"][:n], a["behind"][:n]

    def least(self) -> tuple[Floats, Floats, Floats]:
        """Chips, chip-hours and dollars that each pending job takes at the least, by row; kept while none changes."""
        n, a = len(self._candidates), self._arrays
        for some in in_parts(np.flatnonzero(~a["counted"][:n] & (a["current_pool"][:n] < 0))):
            needs = least_needs(a["chips"][some], a["seconds"][some], a["usd"][some])
            a["least_chips"][some], a["least_chip_hours"][some], a["least_usd"][some] = needs
            a["counted"][some] = True
        return a["least_chips"][:n], a["least_chip_hours"][:n], a["least_usd"][:n]

    def starts_in(self, moment: Moment, where: Ints) -> Floats:
        """When each job could start in the pool named for its row, with no queue; now where none is (-1)."""
        n, chips = len(self._candidates), self._arrays["chips"]
        starts = np.full(n, moment.now)
        if moment.starts is None:
            look_up_starts_in(where, chips, moment.table, moment.now, starts)
            return starts
        rows = np.flatnonzero(where >= 0)
        p = where[rows]
        starts[rows] = np.where(chips[rows, p] <= moment.free[p], moment.now, moment.starts[rows, p])
        return starts

    def _grow(self, rows: int) -> None:
        for names, shape in ((BY_JOB, (rows,)), (BY_BOTH, (rows, len(self.pools)))):
            for name, empty in names.items():
                kind = {bool: np.bool_, int: np.int64}.get(type(empty), np.float64)
                array: NDArray[Any] = np.empty(shape, dtype=kind)  # a row is written when a job takes it
                if name in self._arrays:
                    array[: len(self._arrays[name])] = self._arrays[name]
                self._arrays[name] = array

    def _write_row(self, j: int, candidate: Candidate) -> None:
        """Write a candidate into its row."""
        a = self._arrays
        for name in WRITTEN:
            a[name][j] = getattr(candidate, name)
        a["base"][j], a["budget"][j] = candidate.done, candidate.budget - candidate.spent
        if a["current_pool"][j] < 0:
            a["restart_cost_s"][j] = candidate.restart
        self._choose(j, candidate.last_failed)

    def _choose(self, j: int, last_failed: tuple[str, str] | None) -> None:
        """Take in each pool the first option that did not fail last, or the one that did where there is no other."""
        a, chosen = self._arrays, self._choice(self._candidates[j].options, last_failed)
        if chosen:
            pools, ways = np.array(list(chosen)), list(chosen.values())
            for name, of in CHOSEN.items():
                a[name][j, pools] = [of(way) for way in ways]
        self._chosen[j] = {p: option for p, (_, option, _) in chosen.items()}
        self._chosen_late(np.array([j]))

    def _choice(self, options: Sequence[Option], last_failed: tuple[str, str] | None) -> dict[int, Way]:
        """By pool, the option to take there: its rank, itself, and whether it failed last."""
        chosen: dict[int, Way] = {}
        for rank, option in enumerate(options):
            p = self._column.get(option.pool)
            if p is None:
                continue
            failed_last = last_failed is not None and (option.pool, option.variant) == last_failed
            if p not in chosen or (chosen[p][2] and not failed_last):
                chosen[p] = rank, option, failed_last
        return chosen

    def _chosen_late(self, rows: Ints) -> None:
        """What follows from the options that some rows take."""
        a = self._arrays
        for part in in_parts(rows):
            some = slice(part[0], part[-1] + 1) if part[-1] - part[0] == len(part) - 1 else part  # no copies of those
            a["late"][some] = late_spread(
                a["all_seconds"][some],
                a["all_high"][some],
                self._facts["interruptions"],
                a["restartable"][some, None],
                a["restart"][some, None],
            )
            early = partial(early_spread, a["all_seconds"][some], a["all_low"][some])
            a["within"][some] = within(a["confidence"][some], a["late"][some], early)
            self._width = max(self._width, int(a["chips"][some].max(initial=0)) + 1)
        self._scale(rows)

    def _scale(self, rows: Ints) -> None:
        """From what whole runs take to what is still to come: the last of every change of rows."""
        a = self._arrays
        self._changes += 1
        scale_to_remaining(rows, *(a[name] for name in SCALED))
        a["fresh"][rows] = a["counted"][rows] = False

    def _advance(self, rows: Ints, now: float) -> None:
        """Where running jobs are by now, as far as estimates tell."""
        a = self._arrays
        advance_running(rows, now, *(a[name] for name in ADVANCED))
        self._scale(rows)

    def _by_pool(self, numbers: Mapping[str, float] | NDArray[Any], missing: float, kind: Any) -> NDArray[Any]:
        if isinstance(numbers, Mapping):
            return np.array([numbers.get(name, missing) for name in self.pools], dtype=kind)
        return np.asarray(numbers, dtype=kind)

    def _table(
        self, now: float, free: Ints, total: Ints, rows: Ints, start: Mapping[str, float] | Floats | None
    ) -> Floats:
        """When so many chips of each pool are free, with no queue."""
        a, pools = self._arrays, self._arrays["current_pool"][rows]
        ends, held = now + a["seconds"][rows, pools], a["chips"][rows, pools]
        soonest = np.argsort(ends, kind="stable")
        table = np.empty((len(self.pools), self._width))
        predicted = self._by_pool({} if start is None else start, nan, np.float64)
        fill_starts(table, now, free, total, predicted, pools[soonest], ends[soonest], held[soonest])
        return table

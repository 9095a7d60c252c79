"""Pending and running jobs as arrays that are kept up to date: a state of ten thousand costs next to nothing.

A state shows the table's own arrays, read-only: it holds until the table changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InputError
from chipwise.route.cluster_state import ClusterState, Floats, Ints
from chipwise.route.job import Job
from chipwise.route.job_table_kernels import advance_running, fill_starts, look_up_starts, scale_to_remaining
from chipwise.route.late_spread import late_spread
from chipwise.route.option import Option
from chipwise.route.pool import Pool

# by job: what is kept, and what an empty row holds
BY_JOB: dict[str, Any] = {
    "arrival": 0.0,
    "weight": 1.0,
    "deadline": inf,
    "confidence": 0.9,
    "budget": inf,
    "restartable": False,
    "restart_cost_s": 0.0,
    "current_pool": -1,
    "since": np.nan,
    "done": 0.0,
    "base": 0.0,
    "every": inf,
    "restart": 0.0,
    "progress_time": 0.0,
    "had": 0.0,
    "fresh": False,
    "ahead": 0.0,
    "where": -1,
    "behind": 0.0,
    "warming": 0.0,
}
# by job and pool: what a state shows, and what the whole run takes, of which that is the part to come
BY_BOTH: dict[str, Any] = {
    "seconds": inf,
    "low": inf,
    "high": inf,
    "usd": inf,
    "joules": inf,
    "chips": 0,
    "variant_order": 0,
    "last_failed": False,
    "served": 0.0,
    "before": 0.0,
    "all_seconds": inf,
    "all_low": inf,
    "all_high": inf,
    "usd_hour": 1.0,
    "usd_once": 0.0,
    "watts": 1.0,
    "late": 0.0,
}
SHOWN_JOB = (
    *("arrival", "weight", "deadline", "confidence", "budget", "restartable", "restart_cost_s"),
    *("current_pool", "since"),
)
# as the kernels of those names take them
SCALED = (
    *("done", "all_seconds", "all_low", "all_high", "usd_hour", "usd_once", "watts"),
    *("seconds", "low", "high", "usd", "joules"),
)
ADVANCED = (
    *("current_pool", "base", "progress_time", "since", "every", "restart", "warming", "all_seconds"),
    *("before", "done", "served", "had", "restart_cost_s"),
)
SHOWN_BOTH = ("seconds", "low", "high", "usd", "joules", "chips", "variant_order", "last_failed", "late", "served")


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


def _pool_facts(pools: Sequence[Pool]) -> dict[str, Floats]:
    """The figures of the pools, by name, in the order of the pools; no policy may write to them."""
    by_pool = [pool.facts() for pool in pools]
    facts = {name: np.array([one[name] for one in by_pool]) for name in (by_pool[0] if by_pool else ())}
    for array in facts.values():
        array.flags.writeable = False
    return facts


Keep = Callable[[ClusterState], tuple[Floats, Ints, Floats]]  # what `JobTable.kept` keeps, for some rows


@dataclass(frozen=True, slots=True)
class Moment:
    """What all rows of one scheduling pass share."""

    now: float
    free: Ints
    total: Ints
    table: Floats  # [P, chips] when so many chips of a pool are free, with no queue
    starts: Floats | None  # [J, P] predicted starts, where they are given by job and pool
    weights: dict[str, float]


class JobTable:
    """Open jobs by pools. A change costs one row; a state costs the running jobs and one pass for the starts."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(p.name for p in pools)
        if len(set(self.pools)) != len(self.pools):
            raise InputError("pools", ", ".join(self.pools), "names that differ")
        self._column = {name: k for k, name in enumerate(self.pools)}
        self._facts = _pool_facts(pools)
        self._row: dict[str, int] = {}
        self._candidates: list[Candidate] = []
        self._ids: list[str] = []
        self._chosen: list[dict[int, Option]] = []
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

    def replace(self, candidate: Candidate) -> None:
        """A job's deadline, budget, options or where it last failed have changed; whether and where it runs has not."""
        j = self._row[candidate.id]
        self._candidates[j] = candidate
        for name in BY_BOTH.keys() - {"served", "before"}:
            self._arrays[name][j] = BY_BOTH[name]
        self._write_row(j, candidate)

    def remove(self, job: str) -> None:
        """A job goes, whether it waits or runs."""
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
        if len(running):
            self._advance(running, now)
        by_job = start if isinstance(start, np.ndarray) and start.ndim == 2 else None
        table = np.empty((0, 0)) if by_job is not None else self._table(now, free_chips, working_chips, running, start)
        return Moment(now, free_chips, working_chips, table, by_job, dict(weights or {}))

    def part(self, moment: Moment, rows: Ints | None, shares: Floats | None = None) -> ClusterState:
        """Some rows of the table at a moment, all where none are named; those of a part are copies."""
        n, a = len(self._candidates), self._arrays
        if rows is None:
            if self._names is None:
                self._names = tuple(self._ids)
            names = self._names
            shown: dict[str, Any] = {name: a[name][:n] for name in (*SHOWN_JOB, *SHOWN_BOTH)}
        else:
            names = tuple([self._ids[j] for j in rows.tolist()])
            shown = {name: a[name].take(rows, axis=0) for name in (*SHOWN_JOB, *SHOWN_BOTH)}
        if moment.starts is not None:
            starts = moment.starts if rows is None else moment.starts[rows]
            shown["start"] = np.where(shown["chips"] <= moment.free, moment.now, starts)
        else:
            shown["start"] = np.empty(shown["chips"].shape)
            look_up_starts(moment.table, shown["chips"], shown["start"])
        for array in shown.values():
            array.flags.writeable = False
        shares_shown = shares if rows is None or shares is None else shares[rows]
        return ClusterState(
            now=moment.now,
            jobs=names,
            pools=self.pools,
            free=moment.free,
            total=moment.total,
            pool_facts=self._facts,
            weights=moment.weights,
            shares=shares_shown,
            shares_since=nan,
            shared=None,
            **shown,
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
        if len(stale):
            a["ahead"][stale], a["where"][stale], a["behind"][stale] = keep(self.part(moment, stale))
            a["fresh"][stale] = True
        return a["ahead"][:n], a["where"][:n], a["behind"][:n]

    def starts_in(self, moment: Moment, where: Ints) -> Floats:
        """When each job could start in the pool named for its row, with no queue; now where none is (-1)."""
        n, rows = len(self._candidates), np.flatnonzero(where >= 0)
        starts = np.full(n, moment.now)
        p = where[rows]
        chips = self._arrays["chips"][rows, p]
        if moment.starts is not None:
            starts[rows] = np.where(chips <= moment.free[p], moment.now, moment.starts[rows, p])
        else:
            starts[rows] = moment.table[p, chips]
        return starts

    def _grow(self, rows: int) -> None:
        for names, shape in ((BY_JOB, (rows,)), (BY_BOTH, (rows, len(self.pools)))):
            for name, empty in names.items():
                kind = {bool: np.bool_, int: np.int64}.get(type(empty), np.float64)
                array: NDArray[Any] = np.full(shape, empty, dtype=kind)
                if name in self._arrays:
                    array[: len(self._arrays[name])] = self._arrays[name]
                self._arrays[name] = array

    def _write_row(self, j: int, candidate: Candidate) -> None:
        """Write a candidate into its row."""
        a = self._arrays
        for name in ("arrival", "weight", "deadline", "confidence", "restartable", "done", "every", "restart"):
            a[name][j] = getattr(candidate, name)
        a["base"][j], a["budget"][j] = candidate.done, candidate.budget - candidate.spent
        if a["current_pool"][j] < 0:
            a["restart_cost_s"][j] = candidate.restart
        self._choose(j, candidate.last_failed)

    def _choose(self, j: int, last_failed: tuple[str, str] | None) -> None:
        """Take in each pool the first option that did not fail last, or the one that did where there is no other."""
        a = self._arrays
        chosen: dict[int, tuple[int, Option, bool]] = {}
        for rank, option in enumerate(self._candidates[j].options):
            p = self._column.get(option.pool)
            if p is None:
                continue
            failed_last = last_failed is not None and (option.pool, option.variant) == last_failed
            if p not in chosen or (chosen[p][2] and not failed_last):
                chosen[p] = rank, option, failed_last
        if chosen:
            pools, taken = np.array(list(chosen)), list(chosen.values())
            a["variant_order"][j, pools], a["last_failed"][j, pools] = (
                [rank for rank, _, _ in taken],
                [failed_last for _, _, failed_last in taken],
            )
            for name, values in (
                ("chips", [o.chips for _, o, _ in taken]),
                ("all_seconds", [o.seconds.value for _, o, _ in taken]),
                ("all_low", [o.seconds.low for _, o, _ in taken]),
                ("all_high", [o.seconds.high for _, o, _ in taken]),
                ("usd_hour", [o.usd_hour for _, o, _ in taken]),
                ("usd_once", [o.usd_once for _, o, _ in taken]),
                ("watts", [o.watts for _, o, _ in taken]),
            ):
                a[name][j, pools] = values
        self._chosen[j] = {p: option for p, (_, option, _) in chosen.items()}
        job, interruptions = self._candidates[j], self._facts["interruptions"]
        a["late"][j] = late_spread(a["all_seconds"][j], a["all_high"][j], interruptions, job.restartable, job.restart)
        self._width = max(self._width, int(a["chips"][j].max(initial=0)) + 1)
        self._scale(np.array([j]))

    def _scale(self, rows: Ints) -> None:
        """From what whole runs take to what is still to come."""
        a = self._arrays
        scale_to_remaining(rows, *(a[name] for name in SCALED))
        a["fresh"][rows] = False

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

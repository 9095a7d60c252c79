"""The jobs that wait or run, as arrays that are kept up to date: a view of ten thousand costs next to nothing.

A view shows the board's own arrays, read-only: it holds until the board changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InputError
from chipwise.route.option import Option
from chipwise.route.pool import Pool
from chipwise.route.view import Floats, Ints, View

LEFT = 0.01  # of a run that is still to come when it has outlasted its estimate: it ends soon, nobody knows when
# by job: what is kept, and what an empty row holds
BY_JOB: dict[str, Any] = {
    "arrival": 0.0, "weight": 1.0, "deadline": inf, "confidence": 0.9, "budget": inf, "restartable": False,
    "again": 0.0, "at": -1, "since": np.nan, "done": 0.0, "base": 0.0,
    "warming": 0.0}
# by job and pool: what a view shows, and what the whole run takes, of which that is the part to come
BY_BOTH: dict[str, Any] = {
    "seconds": inf, "low": inf, "high": inf, "usd": inf, "joules": inf, "chips": 0, "rank": 0, "barred": False,
    "served": 0.0, "before": 0.0, "all_seconds": inf, "all_low": inf, "all_high": inf, "usd_hour": 1.0,
    "usd_once": 0.0, "watts": 1.0, "slot": 0, "share": 0.0,
    "late": 0.0}
SHOWN_JOB = ("arrival", "weight", "deadline", "confidence", "budget", "restartable", "again", "at", "since")
SHOWN_BOTH = ("seconds", "low", "high", "usd", "joules", "chips", "rank", "barred", "late", "served")
Z95 = 1.6448536269514722  # of the normal distribution at 95 %, the high end of a 90 % interval
LOST = 0.5  # of a run that an interruption destroys where nothing is kept: it comes in the middle, on average


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job for the board. Options stand in the order in which they are to be tried."""

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
    barred: tuple[str, str] | None = None  # pool and variant that failed last


def late_spread(seconds: Floats, high: Floats, interruptions: Floats, restartable: Any, again: Any) -> Floats:
    """Spread of log(seconds) on the late side: of the estimate, and of how many interruptions there may be.

    What spot chips lose is in the estimate as far as it is expected. Their number varies like its square root; each
    costs what is repeated, or half the run where nothing is kept. One host is counted, whatever the job's size.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(high / seconds) / Z95
        if interruptions.any():
            lost = np.where(restartable, np.minimum(again / seconds, LOST), LOST)
            spread = np.sqrt(spread**2 + interruptions * seconds / 3600 * lost**2)
    return np.where(np.isfinite(spread) & (spread > 0), spread, 0.0)


class Board:
    """Open jobs by pools. A change costs one row; a view costs the running jobs and one pass for the starts."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(p.name for p in pools)
        if len(set(self.pools)) != len(self.pools):
            raise InputError("pools", ", ".join(self.pools), "names that differ")
        self._column = {name: k for k, name in enumerate(self.pools)}
        self._price = np.array([p.usd_chip_hour for p in pools], dtype=float)
        self._interruptions = np.array([p.interruptions for p in pools], dtype=float)
        self._row: dict[str, int] = {}
        self._candidates: list[Candidate] = []
        self._ids: list[str] = []
        self._chosen: list[dict[int, Option]] = []
        self._running: dict[str, float] = {}  # when its progress was last known
        self._names: tuple[str, ...] | None = None  # until the jobs change
        self._width = 2  # more than the chips of any job
        self._arrays: dict[str, NDArray[Any]] = {}
        self._grow(64)

    def __len__(self) -> int:
        return len(self._candidates)

    def __contains__(self, job: object) -> bool:
        return job in self._row

    def candidate(self, job: str) -> Candidate:
        """A job as it was last told."""
        return self._candidates[self._row[job]]

    def add(self, candidate: Candidate) -> None:
        """A job comes, to wait."""
        if candidate.id in self._row:
            raise InputError("job", candidate.id, "an id that is not on the board")
        j = len(self._candidates)
        if j == len(self._arrays["at"]):
            self._grow(2 * j)
        for name, array in self._arrays.items():
            array[j] = BY_JOB[name] if name in BY_JOB else BY_BOTH[name]
        self._row[candidate.id], self._names = j, None
        self._candidates.append(candidate)
        self._ids.append(candidate.id)
        self._chosen.append({})
        self._tell(j, candidate)

    def replace(self, candidate: Candidate) -> None:
        """A job's promises, options or what it is barred from have changed; whether and where it runs has not."""
        j = self._row[candidate.id]
        self._candidates[j] = candidate
        for name in BY_BOTH.keys() - {"served", "before"}:
            self._arrays[name][j] = BY_BOTH[name]
        self._tell(j, candidate)

    def remove(self, job: str) -> None:
        """A job goes, whether it waits or runs."""
        j, last = self._row.pop(job), len(self._candidates) - 1
        self._running.pop(job, None)
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
        a["at"][j], a["since"][j], a["usd_once"][j, p] = p, now, 0.0  # its data are there now
        a["base"][j], a["before"][j] = a["done"][j], a["served"][j]
        self._running[job] = now
        self._scale(np.array([j]))

    def stopped(self, job: str, now: float, done: float | None = None, spent: float | None = None,
                barred: tuple[str, str] | None = None) -> None:
        """A running job waits again. `done`: the share of the work that is kept; all that was done, where not told."""
        j, a = self._row[job], self._arrays
        self._advance(np.array([j]), now)
        self._running.pop(job, None)
        told = self._candidates[j]
        a["at"][j], a["since"][j], a["again"][j] = -1, np.nan, told.restart
        a["warming"][j] = told.restart if told.restartable else 0.0  # the next run begins with that
        if barred is not None:
            self._choose(j, barred)
        self.progress(job, now, float(a["done"][j]) if done is None else done, spent)

    def progress(self, job: str, now: float, done: float, spent: float | None = None) -> None:
        """What share of the work is done by now, and what the job has cost."""
        if not 0 <= done <= 1:
            raise InputError("done", done, "a share between 0 and 1")
        j = self._row[job]
        self._arrays["done"][j] = self._arrays["base"][j] = done
        if job in self._running:
            self._running[job] = now
        if spent is not None:
            self._arrays["budget"][j] = self._candidates[j].budget - spent
        self._scale(np.array([j]))

    def option(self, job: str, pool: str) -> Option:
        """How a job would run in a pool: the first of its options there that did not fail last."""
        return self._chosen[self._row[job]][self._column[pool]]

    def view(self, now: float, free: Mapping[str, int] | Ints, total: Mapping[str, int] | Ints, *,
             start: Mapping[str, float] | Floats | None = None, weights: Mapping[str, float] | None = None,
             shares: Floats | bool | None = None) -> View:
        """Everything as it is now.

        `start`: when full pools have room again, as their engines say, by pool or by job and pool; where nothing is
        told, when enough of the jobs on the board have ended. `shares`: True for those held since `hold`.
        """
        n = len(self._candidates)
        rooms, chips = self._by_pool(free), self._by_pool(total)
        if self._running:
            self._advance(np.array([self._row[job] for job in self._running]), now)
        if self._names is None:
            self._names = tuple(self._ids)
        shown: dict[str, Any] = {name: self._arrays[name][:n] for name in (*SHOWN_JOB, *SHOWN_BOTH)}
        shown["start"] = self._starts(now, rooms, chips, start)
        for array in shown.values():
            array.flags.writeable = False
        held = self._arrays["share"][:n] if shares is True else None if shares is False else shares
        return View(now=now, jobs=self._names, pools=self.pools, free=rooms, total=chips, usd_chip_hour=self._price,
                    interruptions=self._interruptions, weights=dict(weights or {}), shares=held,
                    shares_since=nan, shared=None, **shown)

    def hold(self, shares: Floats) -> None:
        """Keep the shares of time that a policy gave to the jobs of the last view; later jobs have none."""
        self._arrays["share"][:len(shares)] = shares

    def _grow(self, rows: int) -> None:
        for names, shape in ((BY_JOB, (rows,)), (BY_BOTH, (rows, len(self.pools)))):
            for name, empty in names.items():
                kind = {bool: np.bool_, int: np.int64}.get(type(empty), np.float64)
                array: NDArray[Any] = np.full(shape, empty, dtype=kind)
                if name in self._arrays:
                    array[:len(self._arrays[name])] = self._arrays[name]
                self._arrays[name] = array

    def _tell(self, j: int, candidate: Candidate) -> None:
        """Write a candidate into its row."""
        a = self._arrays
        for name in ("arrival", "weight", "deadline", "confidence", "restartable", "done"):
            a[name][j] = getattr(candidate, name)
        a["base"][j], a["budget"][j] = candidate.done, candidate.budget - candidate.spent
        if a["at"][j] < 0:
            a["again"][j] = candidate.restart
        self._choose(j, candidate.barred)

    def _choose(self, j: int, barred: tuple[str, str] | None) -> None:
        """Take in each pool the first option that is not barred, or the barred one where there is no other."""
        a, chosen = self._arrays, {}
        for rank, option in enumerate(self._candidates[j].options):
            p = self._column.get(option.pool)
            if p is None:
                continue
            out = (option.pool, option.variant) == barred
            if p in chosen and not a["barred"][j, p]:
                continue
            if p in chosen and out:
                continue
            chosen[p] = option
            a["rank"][j, p], a["barred"][j, p], a["chips"][j, p] = rank, out, option.chips
            a["all_seconds"][j, p] = option.seconds.value
            a["all_low"][j, p], a["all_high"][j, p] = option.seconds.low, option.seconds.high
            a["usd_hour"][j, p], a["usd_once"][j, p], a["watts"][j, p] = option.usd_hour, option.usd_once, option.watts
        self._chosen[j] = chosen
        told = self._candidates[j]
        a["late"][j] = late_spread(a["all_seconds"][j], a["all_high"][j], self._interruptions, told.restartable,
                                   told.restart)
        widest = int(a["chips"][j].max(initial=0)) + 1
        if widest > self._width:
            self._width = widest
            self._slots(slice(None))
        else:
            self._slots(j)
        self._scale(np.array([j]))

    def _slots(self, rows: Any) -> None:
        """Where in the table of starts each job and pool looks."""
        a = self._arrays
        a["slot"][rows] = a["chips"][rows] + self._width * np.arange(len(self.pools))

    def _scale(self, rows: Ints) -> None:
        """From what whole runs take to what is still to come."""
        a = self._arrays
        left = np.maximum(1 - a["done"][rows], 1e-12)[:, None]  # more than nothing: 0 * inf is no number
        a["seconds"][rows] = seconds = a["all_seconds"][rows] * left
        a["low"][rows], a["high"][rows] = a["all_low"][rows] * left, a["all_high"][rows] * left
        a["usd"][rows] = a["usd_hour"][rows] * seconds / 3600 + a["usd_once"][rows]
        a["joules"][rows] = a["watts"][rows] * seconds

    def _advance(self, rows: Ints, now: float) -> None:
        """Where running jobs are by now, as far as estimates tell."""
        a = self._arrays
        at, base, since, warming = a["at"][rows], a["base"][rows], a["since"][rows], a["warming"][rows]
        known = np.maximum([self._running[self._candidates[j].id] for j in rows], since + warming)
        gone = (now - known) / np.maximum(a["all_seconds"][rows, at], 1e-9)
        a["done"][rows] = np.minimum(base + np.maximum(gone, 0.0), np.maximum(base, 1 - LEFT))
        ran = np.maximum(now - since, 0.0)
        a["served"][rows, at] = a["before"][rows, at] + ran
        worked = np.maximum(ran - warming, 0.0)  # checkpoints count from there
        every = np.array([self._candidates[j].every for j in rows])
        a["again"][rows] = (np.where(np.isinf(every), ran, np.mod(worked, np.where(np.isinf(every), 1.0, every)))
                            + np.array([self._candidates[j].restart for j in rows]))
        self._scale(rows)

    def _by_pool(self, given: Mapping[str, int] | Ints) -> Ints:
        if isinstance(given, Mapping):
            return np.array([given.get(name, 0) for name in self.pools], dtype=np.int64)
        return np.asarray(given, dtype=np.int64)

    def _starts(self, now: float, free: Ints, total: Ints, given: Mapping[str, float] | Floats | None) -> Floats:
        """When each job could start in each pool, nobody in front of it."""
        n, a = len(self._candidates), self._arrays
        if isinstance(given, np.ndarray) and given.ndim == 2:
            return np.where(a["chips"][:n] <= free, now, given)
        table = np.full((len(self.pools), self._width), inf)
        rows = np.array([self._row[job] for job in self._running], dtype=np.int64)
        at = a["at"][rows]
        ends, held = now + a["seconds"][rows, at], a["chips"][rows, at]
        said = self._said(given)
        for p in range(len(self.pools)):
            mine = np.flatnonzero(at == p)
            mine = mine[np.argsort(ends[mine], kind="stable")]
            if not np.isnan(said[p]):
                table[p] = max(said[p], now)
            else:  # chips of strangers are taken to be free when the last of ours is
                when = np.concatenate([[now], ends[mine], ends[mine][-1:] if len(mine) else [now]])
                room = free[p] + np.concatenate([[0], np.cumsum(held[mine])])
                table[p] = when[np.searchsorted(room, np.arange(self._width))]
            table[p, :int(free[p]) + 1] = now
            table[p, int(total[p]) + 1:] = inf
        return np.take(table.ravel(), a["slot"][:n])

    def _said(self, given: Mapping[str, float] | Floats | None) -> Floats:
        if given is None:
            return np.full(len(self.pools), np.nan)
        if isinstance(given, Mapping):
            return np.array([given.get(name, np.nan) for name in self.pools], dtype=float)
        return np.asarray(given, dtype=float)

"""Decisions in plain words, with the numbers that were compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from chipwise.route.cluster_state import ClusterState, PolicyDecision
from chipwise.units import format_seconds

NO_MORE = 1e299  # scores from there on: what runs where it could not be started now (see allocation)
NO_CHIPS = "no pool has that many working chips"
OTHERS = 2  # pools named beside the chosen one


@dataclass(frozen=True, slots=True)
class Figures:
    """What was compared for one job, by pool in the order of the state's."""

    score: list[float]
    start: list[float]
    seconds: list[float]
    usd: list[float]
    chips: list[int]
    failed_last: list[int]  # pools in which it failed last

    def by_pool(self, pools: Sequence[str]) -> dict[str, Any]:
        """The score, the predicted start, seconds, dollars and chips of each pool where it can run."""
        figures: dict[str, Any] = {}
        columns = (self.score, self.start, self.seconds, self.usd, self.chips)
        for pool, score, start, seconds, usd, chips in zip(pools, *columns, strict=True):
            if seconds < inf:
                figures[pool] = {
                    "score": score if -inf < score < inf else None,
                    "start": start if -inf < start < inf else None,
                    "seconds": seconds,
                    "usd": usd,
                    "chips": chips,
                }
        for p in self.failed_last:
            if pools[p] in figures:
                figures[pools[p]]["last_failed"] = True
        return figures


def compared(state: ClusterState, decision: PolicyDecision, jobs: Sequence[int]) -> dict[int, Figures]:
    """What was compared for some jobs; taken from the arrays at once, since one by one is ten times as long."""
    columns = (decision.score, state.start, state.seconds, state.usd, state.chips, state.last_failed)
    rows = [column[jobs].tolist() for column in columns]
    return {
        j: Figures(score, start, seconds, usd, chips, [p for p, last in enumerate(failed) if last])
        for j, score, start, seconds, usd, chips, failed in zip(jobs, *rows, strict=True)
    }


class Place(NamedTuple):
    """The place of a job that waits: its predicted start, and whether it is kept since the job has waited long."""

    start: float
    aged: bool


def starts(state: ClusterState, decision: PolicyDecision, j: int, p: int, free: Sequence[int], figures: Figures) -> str:
    """Why a job starts where it does. `free`: the chips that are left after the pass."""
    return _with_notes(
        state,
        decision,
        j,
        f"{state.pools[p]}: {amount(figures.score[p], decision.unit)}, starts now"
        + _others(state, decision, p, free, figures)
        + _tied(decision, j, p, figures),
    )


def moves(state: ClusterState, decision: PolicyDecision, j: int, p: int, figures: Figures) -> str:
    """Why a running job goes elsewhere."""
    current, unit = int(state.current_pool[j]), decision.unit
    gone = figures.chips[current] > state.total[current]
    current_score = "no longer possible" if gone else amount(figures.score[current], unit)
    return _with_notes(
        state,
        decision,
        j,
        f"moves from {state.pools[current]} ({current_score}) to "
        f"{state.pools[p]} ({amount(figures.score[p], unit)}); "
        f"repeats {format_seconds(float(state.restart_cost_s[j]))} of work",
    )


def stops(state: ClusterState, decision: PolicyDecision, j: int, preemptor: int) -> str:
    """Why a running job is stopped."""
    return _with_notes(
        state,
        decision,
        j,
        f"makes room in {state.pools[int(state.current_pool[j])]} for {state.jobs[preemptor]}, which is "
        f"ahead; repeats {format_seconds(float(state.restart_cost_s[j]))} of work",
    )


def waits(
    state: ClusterState,
    decision: PolicyDecision,
    j: int,
    p: int,
    free: Sequence[int],
    figures: Figures,
    place: Place,
) -> str:
    """Why a job waits, and for what."""
    if p < 0:
        return _with_notes(state, decision, j, _nowhere(state, j))
    since = " (has waited long: its place is kept)" if place.aged else ""
    return _with_notes(
        state,
        decision,
        j,
        f"{state.pools[p]}: {amount(figures.score[p], decision.unit)}, "
        f"{_start(place.start, state.now)}{_others(state, decision, p, free, figures)}: waits{since}",
    )


def amount(value: float, unit: str) -> str:
    """A score with its unit.

    >>> amount(12.4, "USD"), amount(5400.0, "s"), amount(0.123456, "of its best")
    ('12.4 USD', '90.0 min', '0.123 of its best')
    """
    if not isfinite(value):
        return "not wanted"
    if value >= NO_MORE:
        return "no longer possible"
    if unit == "s" and value >= 0:
        return format_seconds(float(value))
    return f"{float(value):,.3g} {unit}" if abs(value) < 1000 else f"{float(value):,.0f} {unit}"


def _tied(decision: PolicyDecision, j: int, p: int, figures: Figures) -> str:
    """That another pool has a lower score, near enough to count as equal."""
    tie = _of_job(decision.tie, j)
    if not tie:
        return ""
    score, least = figures.score[p], min(figures.score)
    if not least < score <= least + tie * abs(least):
        return ""
    return f"; scores within {tie:.0%} count as equal: it ends first there, or is free"


def _nowhere(state: ClusterState, j: int) -> str:
    can = np.isfinite(state.seconds[j])
    if not can.any():
        return "can't run in any pool: waits"
    dear = can & (state.usd[j] > state.budget[j])
    if dear[can].all():
        return (
            f"costs {float(state.usd[j][can].min()):,.2f} USD at the least and "
            f"{float(state.budget[j]):,.2f} USD of its budget are left: waits"
        )
    if (state.chips[j][can] > state.total[can]).all():
        return f"{NO_CHIPS}: waits"
    return "no pool is wanted for it: waits"


def _others(state: ClusterState, decision: PolicyDecision, p: int, free: Sequence[int], figures: Figures) -> str:
    score, unit = figures.score, decision.unit
    others = [q for q, value in enumerate(score) if q != p and -inf < value < inf]
    others.sort(key=score.__getitem__)
    parts = [f"; {state.pools[q]}: {amount(score[q], unit)}, {_when(state, q, free, figures)}" for q in others[:OTHERS]]
    last_failed = [state.pools[q] for q in figures.failed_last if q != p]
    parts += [f"; {', '.join(last_failed)} failed last"] if last_failed else []
    return "".join(parts)


def _when(state: ClusterState, q: int, free: Sequence[int], figures: Figures) -> str:
    """When a job could start in a pool that it does not get."""
    if figures.start[q] <= state.now and figures.chips[q] > free[q]:
        return "taken by other jobs"
    return _start(figures.start[q], state.now)


def _start(when: float, now: float) -> str:
    if not isfinite(when):
        return "start unknown"
    return "starts now" if when <= now else f"starts in {format_seconds(when - now)}"


def _with_notes(state: ClusterState, decision: PolicyDecision, j: int, text: str) -> str:
    note = decision.notes.get(state.jobs[j], "")
    if not note and decision.wait_note and _of_job(decision.wait, j) > 0:
        note = decision.wait_note
    return text + (f"; {note}" if note else "")


def _of_job(value: Any, j: int) -> float:
    """What a policy says of a job, where it may say the same of all."""
    return float(value[j] if isinstance(value, np.ndarray) and value.ndim else value)

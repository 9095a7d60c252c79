"""Decisions in plain words, with the numbers that were compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.route.view import Floats, View, Wishes
from chipwise.units import format_seconds

OTHERS = 2  # pools named beside the chosen one


def compared(view: View, score: Floats, j: int) -> dict[str, Any]:
    """What was compared for one job: by pool the score, the predicted start, seconds and dollars."""
    found: dict[str, Any] = {}
    for p in np.flatnonzero(np.isfinite(view.seconds[j])):
        row: dict[str, Any] = {
            "score": float(score[j, p]) if np.isfinite(score[j, p]) else None,
            "start": float(view.start[j, p]) if np.isfinite(view.start[j, p]) else None,
            "seconds": float(view.seconds[j, p]), "usd": float(view.usd[j, p]), "chips": int(view.chips[j, p])}
        if view.barred[j, p]:
            row["barred"] = True
        found[view.pools[p]] = row
    return found


def starts(view: View, wishes: Wishes, score: Floats, j: int, p: int) -> str:
    """Why a job starts where it does."""
    return _with_notes(view, wishes, j, f"{view.pools[p]}: {amount(score[j, p], wishes.unit)}, starts now"
                       + _others(view, wishes, score, j, p))


def moves(view: View, wishes: Wishes, score: Floats, j: int, p: int) -> str:
    """Why a running job goes elsewhere."""
    here = int(view.at[j])
    return _with_notes(view, wishes, j,
                       f"moves from {view.pools[here]} ({amount(score[j, here], wishes.unit)}) to {view.pools[p]} "
                       f"({amount(score[j, p], wishes.unit)}); repeats {format_seconds(float(view.again[j]))} of work")


def stops(view: View, wishes: Wishes, j: int, by: int) -> str:
    """Why a running job is stopped."""
    return _with_notes(view, wishes, j, f"makes room in {view.pools[int(view.at[j])]} for {view.jobs[by]}, which is "
                       f"ahead; repeats {format_seconds(float(view.again[j]))} of work")


def waits(view: View, wishes: Wishes, score: Floats, j: int, p: int, predicted: float, aged: bool) -> str:
    """Why a job waits, and for what."""
    if p < 0:
        return _with_notes(view, wishes, j, _nowhere(view, score, j))
    since = " (has waited long: its place is kept)" if aged else ""
    return _with_notes(view, wishes, j, f"{view.pools[p]}: {amount(score[j, p], wishes.unit)}, "
                       f"{_start(predicted, view.now)}{_others(view, wishes, score, j, p)}: waits{since}")


def amount(value: float, unit: str) -> str:
    """A score with its unit.

    >>> amount(12.4, "USD"), amount(5400.0, "s"), amount(0.123456, "of its best")
    ('12.4 USD', '90.0 min', '0.123 of its best')
    """
    if not np.isfinite(value):
        return "not wanted"
    if unit == "s" and value >= 0:
        return format_seconds(float(value))
    return f"{float(value):,.3g} {unit}" if abs(value) < 1000 else f"{float(value):,.0f} {unit}"


def _nowhere(view: View, score: Floats, j: int) -> str:
    can = np.isfinite(view.seconds[j])
    if not can.any():
        return "can't run in any pool: waits"
    dear = can & (view.usd[j] > view.budget[j])
    if dear[can].all():
        return (f"costs {float(view.usd[j][can].min()):,.2f} USD at the least and "
                f"{float(view.budget[j]):,.2f} USD of its budget are left: waits")
    if (view.chips[j][can] > view.total[can]).all():
        return "no pool has that many working chips: waits"
    return "no pool is wanted for it: waits"


def _others(view: View, wishes: Wishes, score: Floats, j: int, p: int) -> str:
    ranked = [int(q) for q in np.argsort(score[j], kind="stable") if q != p and np.isfinite(score[j, q])]
    said = [f"; {view.pools[q]}: {amount(score[j, q], wishes.unit)}, {_start(float(view.start[j, q]), view.now)}"
            for q in ranked[:OTHERS]]
    barred = [view.pools[int(q)] for q in np.flatnonzero(view.barred[j]) if q != p]
    if barred:
        said.append(f"; {', '.join(barred)} failed last")
    return "".join(said)


def _start(when: float, now: float) -> str:
    if not np.isfinite(when):
        return "start unknown"
    return "starts now" if when <= now else f"starts in {format_seconds(when - now)}"


def _with_notes(view: View, wishes: Wishes, j: int, text: str) -> str:
    note = wishes.notes.get(view.jobs[j], "")
    return text + (f"; {note}" if note else "")

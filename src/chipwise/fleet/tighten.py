"""What lets the solver prove a plan soon: roundings of the covering rows, and a good plan to begin with."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from chipwise.fleet.columns import Model
from chipwise.fleet.mip import Floats, as_lp, solve
from chipwise.io.solver import highs

ROUNDS = 8
DIVISORS = np.arange(1.0, 9.0)
VIOLATED = 1e-3
LARGE = 500  # integer columns from which on a first plan is made: smaller programs are solved outright
GUESS_GAP = 0.003  # of the first plan's steps; the plan itself is proved afterwards
MOVE_GAP = 0.001  # of the moves from there, which are quick: what they save needs no proof

Rounding = tuple[npt.NDArray[np.int32], Floats, float]


def rounding(sizes: Floats, need: float, at: Floats) -> tuple[Floats, float] | None:
    """The mixed-integer rounding of `sizes @ units >= need` that the point `at` violates most, if any does.

    Divided by a divisor, whole units satisfy the row with its right side rounded up and each factor's fraction raised
    to at most 1, in proportion to that of the right side.

    >>> factors, least = rounding(np.array([2.0, 3.0]), 7.0, np.array([3.5, 0.0]))
    >>> factors.tolist(), least
    ([1.0, 2.0], 4.0)
    """
    divisors = np.unique(sizes[:, None] / DIVISORS[None, :])
    right = need / divisors
    part = right - np.floor(right + 1e-9)
    usable = (part > 1e-4) & (part < 1 - 1e-6)
    divisors, right, part = divisors[usable], right[usable], part[usable]
    if not divisors.size:
        return None
    ratio = sizes[None, :] / divisors[:, None]
    below = np.floor(ratio + 1e-9)
    factors = below + np.minimum(1.0, np.maximum(ratio - below, 0.0) / part[:, None])
    least = np.ceil(right - 1e-9)
    short = (least - factors @ at) / np.linalg.norm(factors, axis=1)
    best = int(np.argmax(short))
    return (factors[best], float(least[best])) if short[best] > VIOLATED else None


def tighten(model: Model, threads: int = 2) -> None:
    """Add the roundings that the linear program violates, round after round, and keep those that bind at the end."""
    import highspy

    covers = [
        (np.array([c for c, _ in terms], dtype=np.int32), np.array([a for _, a in terms]), need)
        for terms, need in model.covers
    ]
    if not covers:
        return
    solver = highs(threads)
    solver.passModel(as_lp(highspy, model.program, np.zeros(len(model.program.cost), dtype=bool)))
    added: list[Rounding] = []
    for _ in range(ROUNDS):
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return  # infeasible as it stands
        point, before = np.array(solver.getSolution().col_value), len(added)
        for columns, sizes, need in covers:
            found = rounding(sizes, need, point[columns])
            if found:
                added.append((columns, *found))
                solver.addRow(found[1], highspy.kHighsInf, len(columns), columns, found[0])
        if len(added) == before:
            break
    for columns, factors, least in added:
        if factors @ point[columns] < least + 1e-6:
            model.program.row([(int(c), float(f)) for c, f in zip(columns, factors, strict=True)], low=least)


def first_guess(model: Model, gap: float, time_limit: float, threads: int) -> dict[int, float]:
    """A good plan for a large program, or nothing.

    Services in fractions first, then in whole units near those; where that is not yet within the gap of what the
    fractions bound, runs are let move with commitments as they are, then commitments with runs as they are.
    """
    program = model.program
    if sum(program.integer) < LARGE:
        return {}
    serving = [*model.x.values(), *model.hired.values()]
    step, each = min(gap / 3, GUESS_GAP), time_limit / 4
    rough = solve(program, step, each, threads, relaxed=serving)
    if not rough.found:
        return {}
    best = solve(program, step, each, threads, box=_near(model, rough.values, begun=1))
    if not best.found:
        return {}
    for begun, move in ((0, True), (3, False)):
        if best.objective - rough.bound <= gap * abs(best.objective):
            break
        start = dict(enumerate(best.values.tolist()))
        found = solve(program, min(step, MOVE_GAP), each, threads, start, _near(model, best.values, begun, move))
        best = found if found.found and found.objective < best.objective else best
    return dict(enumerate(best.values.tolist()))


def _near(model: Model, values: Floats, begun: int, move: bool = False) -> tuple[Floats, Floats]:
    """Bounds around a plan: so many units begun more or less, two replicas that serve; the pools that a service uses in
    a period or beside it, and no others; runs as they are unless they may `move`."""
    program = model.program
    lower, upper = np.zeros(len(program.cost)), np.array(program.upper)
    for column in () if move else (*model.chosen.values(), *model.active.values()):
        lower[column] = upper[column] = round(float(values[column]))
    for column in model.begun.values():
        middle = round(float(values[column]))
        lower[column], upper[column] = max(0, middle - begun), min(upper[column], middle + begun)
    used: dict[tuple[int, str], set[int]] = defaultdict(set)
    for (w, pool, t, _), column in model.x.items():
        if values[column] > 1e-6:
            used[w, pool] |= {t - 1, t, t + 1}
    for (w, pool, t, _), column in model.x.items():
        value = float(values[column])
        lower[column] = max(0.0, np.floor(value + 1e-6) - 2)
        upper[column] = min(upper[column], np.ceil(value - 1e-6) + 2) if t in used[w, pool] else 0.0
    return lower, upper

"""Shares of time as a linear program in HiGHS: the most that all can have alike, then the most in all.

    maximize t, then the sum of a x
    sum over pools of x[g, p] <= m[g]                       nobody runs for more than all the time
    sum over groups of c[g, p] x[g, p] <= 1                 c: chips of a job over those of the pool
    sum over pools of a[g, p] x[g, p] >= t m[g] d[g]        a: what a job gets there; d: what it is to get, over t

Jobs whose rows are alike are one group of m. Few of the columns can matter: the program begins with the pools that are
best for each group by speed and by chips taken, and the others come in when their price says so, which keeps it exact.
The bases of the last solution are kept (`Bases`), by the names of the groups: the next program begins with the columns
that were in use and from the basis they had, as far as its groups are the same; groups that have come begin with their
slacks, and the solver completes what those that have gone leave open. That changes the time alone, as long as the
optimum is unique; which of several equal optima comes out may differ.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.io.solver import highs
from chipwise.route.cluster_state import Flags, Floats, Ints

FIRST = 2  # pools of each kind of best that a group begins with; 2 to 6 took alike
TOLERANCE = 1e-9
PRIMAL = 4  # HiGHS's primal simplex: three times as fast here as its dual one


BASIC = 1  # HiGHS's number of a basic variable
ALIKE, IN_ALL = "alike", "in all"  # the two things a program is solved for
KEPT = 16  # clusters and policies whose bases are kept


@dataclass(frozen=True, slots=True)
class Basis:
    """Where a solution stood, in HiGHS's numbers of a variable's status."""

    row: dict[bytes, int]  # of each group
    columns: NDArray[np.int8]  # [G, P]; -1: not in the program
    time: NDArray[np.int8]
    gets: NDArray[np.int8]
    pools: NDArray[np.int8]
    level: int


@dataclass(slots=True)
class Bases:
    """The last bases of a kind of program, by what it was solved for."""

    last: dict[str, Basis] = field(default_factory=dict)


_BASES: OrderedDict[object, Bases] = OrderedDict()


def bases_of(kind: object) -> Bases:
    """The bases that are kept for a kind of program; those not asked for longest are forgotten."""
    bases = _BASES.setdefault(kind, Bases())
    _BASES.move_to_end(kind)
    while len(_BASES) > KEPT:
        _BASES.popitem(last=False)
    return bases


class Sharing:
    """One program, solved as often as needed. Rows: time of groups, chips of pools, then what groups get."""

    def __init__(
        self, gains: Floats, takes: Floats, many: Floats, names: Sequence[bytes] = (), bases: Bases | None = None
    ) -> None:
        """`bases`: where to begin from and to keep where it ended; `names` then says which group is which."""
        import highspy

        self._highs = highspy
        self.gains, self.takes, self.many = gains, takes, many
        self.groups, self.pools = gains.shape
        self.names, self.bases = names, bases or Bases()
        self._kept: dict[str, tuple[Ints, Ints, Basis]] = {}  # groups here, their rows there
        self._in = _first(gains, takes)
        for aim, basis in self.bases.last.items():
            rows = np.array([basis.row.get(name, -1) for name in names], dtype=np.int64)
            same = np.flatnonzero(rows >= 0)
            if len(same) and basis.columns.shape[1] == self.pools:
                self._kept[aim] = (same, rows[same], basis)
                self._in[same] |= (basis.columns[rows[same]] == BASIC) & (gains[same] > 0)
        self._g, self._p = np.nonzero(self._in)
        solver = highs(1)
        for name, setting in (("solver", "simplex"), ("simplex_strategy", PRIMAL), ("presolve", "off")):
            solver.setOptionValue(name, setting)
        self._solver = solver
        self._level = 0  # t's column
        self._pass()

    def most_alike(self, demand: Floats) -> float:
        """The greatest t."""
        self._demand(demand)
        self._costs(alike=True)
        self._solver.changeColBounds(self._level, 0.0, self._highs.kHighsInf)
        self._begin(ALIKE)
        self._run(np.zeros_like(self.gains))
        self._keep(ALIKE)
        return float(self._solver.getInfo().objective_function_value) * -1

    def most_in_all(self, level: float, worth: Floats) -> None:
        """Keep t, and hand out what is left for the greatest sum of worth x."""
        self._costs(alike=False, worth=worth)
        self._solver.changeColBounds(self._level, level * (1 - TOLERANCE), level * (1 - TOLERANCE))
        self._begin(IN_ALL)
        self._run(-worth)
        self._keep(IN_ALL)

    def shares(self) -> Floats:
        """x by group and pool, of each job in the group."""
        x = np.zeros_like(self.gains)
        x[self._g, self._p] = np.clip(np.array(self._solver.getSolution().col_value)[1:], 0.0, None)
        return np.asarray(x / self.many[:, None])

    def _pass(self) -> None:
        highs, n = self._highs, self.groups
        lp = highs.HighsLp()
        k = len(self._g)
        lp.num_col_, lp.num_row_ = k + 1, 2 * n + self.pools
        lp.col_cost_ = np.concatenate([[-1.0], np.zeros(k)])
        lp.col_lower_, lp.col_upper_ = np.zeros(k + 1), np.full(k + 1, highs.kHighsInf)
        lp.row_lower_ = np.concatenate([np.full(n + self.pools, -highs.kHighsInf), np.zeros(n)])
        lp.row_upper_ = np.concatenate([self.many, np.ones(self.pools), np.full(n, highs.kHighsInf)])
        index, value = self._columns(self._g, self._p)
        lp.a_matrix_.format_ = highs.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.concatenate([[0], n + 3 * np.arange(k + 1)])
        lp.a_matrix_.index_ = np.concatenate([n + self.pools + np.arange(n), index])
        lp.a_matrix_.value_ = np.concatenate([-self.many, value])
        self._solver.passModel(lp)

    def _begin(self, aim: str) -> None:
        """Begin from the basis of the last program that was solved for this, once."""
        if aim not in self._kept:
            return
        same, rows, basis = self._kept.pop(aim)
        columns = np.zeros(self.gains.shape, dtype=np.int8)
        time, gets = np.full(self.groups, BASIC, dtype=np.int8), np.full(self.groups, BASIC, dtype=np.int8)
        columns[same] = np.maximum(basis.columns[rows], 0)
        time[same], gets[same] = basis.time[rows], basis.gets[rows]
        start = self._highs.HighsBasis()
        start.col_status = self._statuses([basis.level, *columns[self._g, self._p].tolist()])
        start.row_status = self._statuses([*time.tolist(), *basis.pools.tolist(), *gets.tolist()])
        start.valid = start.alien = True  # alien: it may have a variable too many or too few
        self._solver.setBasis(start)

    def _keep(self, aim: str) -> None:
        """Remember where the solution stands."""
        if not len(self.names):
            return
        basis = self._solver.getBasis()
        row_status = np.array([int(status) for status in basis.row_status], dtype=np.int8)
        columns = np.full(self.gains.shape, -1, dtype=np.int8)
        level, *rest = (int(status) for status in basis.col_status)
        columns[self._g, self._p] = rest
        n = self.groups
        self.bases.last[aim] = Basis(
            {name: g for g, name in enumerate(self.names)},
            columns,
            row_status[:n],
            row_status[n + self.pools :],
            row_status[n : n + self.pools],
            level,
        )

    def _statuses(self, numbers: Sequence[int]) -> list[Any]:
        kinds = {int(kind): kind for kind in self._highs.HighsBasisStatus.__members__.values()}
        return [kinds[number] for number in numbers]

    def _columns(self, g: Ints, p: Ints) -> tuple[NDArray[np.int32], Floats]:
        index = np.stack([g, self.groups + p, self.groups + self.pools + g], axis=1).ravel()
        value = np.stack([np.ones(len(g)), self.takes[g, p], self.gains[g, p]], axis=1).ravel()
        return index.astype(np.int32), value

    def _demand(self, demand: Floats) -> None:
        first = self.groups + self.pools
        for g, much in enumerate(demand * self.many):
            self._solver.changeCoeff(first + g, self._level, -float(much))

    def _costs(self, alike: bool, worth: Floats | None = None) -> None:
        k = len(self._g)
        cost = np.zeros(k + 1)
        if alike:
            cost[0] = -1.0
        if worth is not None:
            cost[1:] = -worth[self._g, self._p]
        self._solver.changeColsCost(k + 1, np.arange(k + 1, dtype=np.int32), cost)

    def _run(self, cost: Floats) -> None:
        """Solve, let in the best column of each group whose price says so, and again until there are none.

        All of them at once would more than double the program, and the time, for few that are ever used.
        """
        n, kinds = self.groups, self._highs.HighsModelStatus
        while True:
            self._solver.run()
            status = self._solver.getModelStatus()
            if status != kinds.kOptimal:
                raise RuntimeError(f"the solver ended with {self._solver.modelStatusToString(status)}")
            dual = np.array(self._solver.getSolution().row_dual)
            reduced = (
                cost
                - dual[:n, None]
                - self.takes * dual[n : n + self.pools]
                - self.gains * dual[n + self.pools :, None]
            )
            scale = max(1.0, float(np.abs(cost).max(initial=0.0)))
            more: Flags = (reduced < -TOLERANCE * scale) & (self.gains > 0) & ~self._in
            rows = np.flatnonzero(more.any(axis=1))
            if not len(rows):
                return
            self._add(rows, np.argmin(np.where(more[rows], reduced[rows], np.inf), axis=1), cost)

    def _add(self, g: Ints, p: Ints, cost: Floats) -> None:
        index, value = self._columns(g, p)
        k = len(g)
        self._solver.addCols(
            k,
            cost[g, p],
            np.zeros(k),
            np.full(k, self._highs.kHighsInf),
            3 * k,
            3 * np.arange(k, dtype=np.int32),
            index,
            value,
        )
        self._in[g, p] = True
        self._g, self._p = np.concatenate([self._g, g]), np.concatenate([self._p, p])


def _first(gains: Floats, takes: Floats) -> Flags:
    """The columns to begin with: the best pools of each group, by speed and by speed for the chips taken."""
    chosen = np.zeros(gains.shape, dtype=bool)
    for worth in (gains, gains / np.where(takes > 0, takes, np.inf)):
        np.put_along_axis(chosen, np.argsort(-worth, axis=1, kind="stable")[:, :FIRST], True, axis=1)
    return chosen & (gains > 0)

"""A mixed-integer program as arrays, and HiGHS to solve it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from chipwise.io.solver import highs

Floats = npt.NDArray[np.float64]

SCALE = 1e-3  # dollars enter as thousands: the solver's tolerances are absolute
PROVE = 0.01  # share of the effort for heuristics where a good plan is there to begin with: the rest goes to the proof


@dataclass(slots=True)
class MixedIntegerProgram:
    """Columns with cost, upper bound and kind (all at least 0), rows with bounds; grown one by one, solved at once."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def column(self, upper: float = inf, integer: bool = False, cost: float = 0.0) -> int:
        """A new column; its number."""
        self.cost.append(cost)
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, terms: Sequence[tuple[int, float]], low: float = -inf, high: float = inf) -> int:
        """A new row; its number. Terms of one column are added up."""
        merged: dict[int, float] = {}
        for column, value in terms:
            merged[column] = merged.get(column, 0.0) + value
        self.starts.append(len(self.index))
        for column, value in merged.items():
            if value:
                self.index.append(column)
                self.value.append(value)
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1


@dataclass(frozen=True, slots=True)
class Solved:
    """What the solver found. `values` is empty where it found nothing."""

    status: str  # "optimal", "nodes", "time" or "infeasible"
    values: Floats
    objective: float
    bound: float
    duals: Floats  # of rows; of a program without integers alone

    @property
    def found(self) -> bool:
        """Whether there is a solution."""
        return self.values.size > 0


def solve(
    program: MixedIntegerProgram,
    gap: float,
    time_limit: float,
    threads: int = 2,
    start: Mapping[int, float] | None = None,
    box: tuple[Floats, Floats] | None = None,
    relaxed: Sequence[int] = (),
    nodes: int | None = None,
) -> Solved:
    """The program solved to a relative gap, within other bounds of its columns (`box`) or some of them fractional.

    Seconds differ from machine to machine; `nodes` of the search limit it alike everywhere.
    """
    import highspy

    program = program if program.cost else _with_a_column(program)
    whole = np.array(program.integer, dtype=bool)
    whole[list(relaxed)] = False
    solver = highs(threads)
    for name, setting in (("mip_rel_gap", gap), ("time_limit", max(0.1, float(time_limit))), ("mip_abs_gap", 1e-9)):
        solver.setOptionValue(name, setting)
    if nodes is not None:
        solver.setOptionValue("mip_max_nodes", nodes)
    solver.passModel(as_lp(highspy, program, whole, box))
    if start and len(start) == len(program.cost):
        solver.setOptionValue("mip_heuristic_effort", PROVE)
    if start:
        solver.setSolution(len(start), np.array(list(start)), np.array(list(start.values())))
    solver.run()
    return _read(highspy, solver, not whole.any())


def _with_a_column(program: MixedIntegerProgram) -> MixedIntegerProgram:
    """A program without columns gets an idle one: the solver says nothing of the rows of an empty one."""
    return replace(program, cost=[0.0], upper=[0.0], integer=[False])


def as_lp(
    highspy: Any, program: MixedIntegerProgram, whole: npt.NDArray[np.bool_], box: tuple[Floats, Floats] | None = None
) -> Any:
    """The program as HiGHS takes it."""
    lp = highspy.HighsLp()
    lower, upper = box or (np.zeros(len(program.cost)), np.array(program.upper))
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.low)
    lp.col_cost_ = np.array(program.cost) * SCALE
    lp.col_lower_, lp.col_upper_ = lower, upper
    lp.row_lower_, lp.row_upper_ = np.array(program.low), np.array(program.high)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array([*program.starts, len(program.index)])
    lp.a_matrix_.index_ = np.array(program.index)
    lp.a_matrix_.value_ = np.array(program.value)
    if whole.any():
        lp.integrality_ = [highspy.HighsVarType.kInteger if i else highspy.HighsVarType.kContinuous for i in whole]
    return lp


def _read(highspy: Any, solver: Any, linear: bool) -> Solved:
    kinds, status = highspy.HighsModelStatus, solver.getModelStatus()
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return Solved("infeasible", np.array([]), inf, inf, np.array([]))
    if status not in (kinds.kOptimal, kinds.kTimeLimit, kinds.kSolutionLimit):  # the last: enough nodes
        raise RuntimeError(f"the solver ended with {solver.modelStatusToString(status)}")
    info, solution = solver.getInfo(), solver.getSolution()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    objective = solver.getObjectiveValue() / SCALE if found else inf
    bound = objective if linear else info.mip_dual_bound / SCALE
    word = {kinds.kOptimal: "optimal", kinds.kTimeLimit: "time"}.get(status, "nodes")
    return Solved(
        word,
        np.array(solution.col_value) if found else np.array([]),
        objective,
        bound,
        np.array(solution.row_dual) / SCALE if linear and found else np.array([]),
    )

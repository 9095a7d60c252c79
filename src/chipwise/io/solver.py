"""HiGHS, set up alike wherever a program is solved."""

from __future__ import annotations

from typing import Any

SEED = 6


def highs(threads: int = 2) -> Any:
    """A solver that prints nothing and answers alike each time."""
    import highspy

    highspy.Highs.resetGlobalScheduler(True)  # the number of threads is else that of the first solve
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, setting in (("output_flag", False), ("threads", threads), ("random_seed", SEED)):
        solver.setOptionValue(name, setting)
    return solver

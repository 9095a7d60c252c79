"""Chips side by side by what a workload costs on them, trained or served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from chipwise.compare import Candidate, Refused, Terms, comparer_of
from chipwise.compare.training.comparer import Change
from chipwise.cost import brief, view
from chipwise.cost.answer import CostAssumptions, state_cost
from chipwise.cost.focus import focus_bill
from chipwise.cost.statement import CostOption, Statement
from chipwise.errors import InputError, Refusal
from chipwise.present.result import Result
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Costs(Result):
    """A statement for each set of chips that can do the work, in the order asked for, and those that can't."""

    VERB: ClassVar[str] = "cost"
    workload: Workload | ServingWorkload
    assumptions: CostAssumptions
    statements: tuple[Statement, ...]
    refused: tuple[Refused, ...]

    @property
    def basis(self) -> str:
        """What every total is for: run, job or month."""
        return self.statements[0].basis

    @property
    def cheapest(self) -> CostOption | None:
        """The cheapest option of all; None where nothing has a public price."""
        every = [option for s in self.statements for option in s.options]
        return min(every, key=lambda option: option.total, default=None)

    record = view.record
    blocks = brief.blocks
    full_blocks = view.blocks
    flat_rows = view.flat_rows
    focus_rows = focus_bill


def cost_of(
    workload: Workload | ServingWorkload,
    candidates: Sequence[Candidate],
    assumptions: CostAssumptions,
    terms: Terms | None = None,
    progress: Progress | None = None,
    change: Change | None = None,
) -> Costs:
    """What a workload costs on chips; a `Refusal` where none of them can do it."""
    if assumptions.epochs is not None and not isinstance(workload, Workload):
        raise InputError("epochs", assumptions.epochs, "a workload that is trained")
    comparer = comparer_of(workload, terms or Terms(), assumptions.knowledge, change)
    statements: list[Statement] = []
    refused: list[Refused] = []
    for i, candidate in enumerate(candidates):
        if progress:
            progress(i, len(candidates), candidate.chip.id)
        row = comparer.evaluate(candidate)
        if isinstance(row, Refused):
            refused.append(row)
        else:
            statements.append(state_cost(row, assumptions))
    if not statements:
        first = refused[0]
        raise Refusal(first.reason, first.unlock)
    return Costs(comparer.workload, assumptions, tuple(statements), tuple(refused))

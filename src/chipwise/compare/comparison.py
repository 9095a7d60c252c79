"""Chips side by side on one workload: ranked, with a pick, the reason, and what would flip it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload

from chipwise.catalog import Accelerators
from chipwise.compare.decision import DecisionSummary, Flip, R, Refused, Row, pick_of, rank
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.flips import Relaxed
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.terms import Candidate, Terms, every_chip
from chipwise.compare.training.comparer import Change, TrainingComparer
from chipwise.compare.training.front import FrontPoint, draw, front
from chipwise.compare.training.row import TrainingRow
from chipwise.errors import InputError, Refusal
from chipwise.knowledge import Knowledge
from chipwise.launch.launch import Launch, launch
from chipwise.present.blocks import Block
from chipwise.present.result import Result
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

Progress = Callable[[int, int, str], None]
C = TypeVar("C")


class Comparer(Protocol[R]):
    """What evaluates candidates for one kind of workload, and words the decision; `compare` does the rest."""

    @property
    def terms(self) -> Terms:
        """What to rank by, and how many chips."""

    def named(self, candidate: Candidate) -> Accelerators | None:
        """The chips asked for by count, if any."""

    def evaluate(self, candidate: Candidate) -> R | Refused:
        """The row of a candidate, or why there is none."""

    def flips(self, candidates: Sequence[Candidate], rows: Sequence[R], pick: R) -> tuple[Flip, ...]:
        """Changes that flip the decision, smallest first."""

    def relaxed(self, candidates: Sequence[Candidate], rows: Sequence[R], pick: R) -> Relaxed | None:
        """The pick if the bound that limits it were looser; None where none does."""

    def words(
        self, rows: Sequence[R], pick: R | None, flips: Sequence[Flip], looser: Relaxed | None
    ) -> DecisionSummary:
        """The decision in three sentences."""

    def assumptions(self, rows: Sequence[R], fixed: bool) -> tuple[str, ...]:
        """What the comparison took for granted; `fixed`: all counts were named."""

    def nowhere(self, refused: Sequence[Refused]) -> Refusal:
        """One refusal for all, where no chip can do the work."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result, Generic[R, C]):
    """Rows ranked best first (those without a price last on cost), the refused, and the decision."""

    VERB: ClassVar[str] = "compare"
    comparer: C
    terms: Terms
    rows: tuple[R, ...]
    refused: tuple[Refused, ...]
    pick: R | None
    flips: tuple[Flip, ...]
    relaxed: Relaxed | None  # of services: the pick with twice the bound that limits it
    words: DecisionSummary
    assumptions: tuple[str, ...]
    front: tuple[FrontPoint, ...] = ()  # of training runs: the counts of the finalists, where asked for

    def headline(self) -> str:
        """The pick, and how many rows it was picked from."""
        rows = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        return rows if self.pick is None else f"pick {self.pick.accelerators}, {rows}"

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        from chipwise.compare.view import record

        return record(self)

    def blocks(self) -> list[Block]:
        """For people: the best rows."""
        from chipwise.compare.view import blocks

        return blocks(self)

    def launch(self, tool: str | None = None, file: str | Path | None = None) -> Launch:
        """The command, config or task that starts the pick; for a `tool`, or by the ending of a `file`."""
        from chipwise.compare.launched import pick_of

        return launch(pick_of(self), tool, file)

    def all_blocks(self) -> list[Block]:
        """For people who want every row and refusal."""
        from chipwise.compare.view import blocks

        return blocks(self, everything=True)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the refused too, with the reason."""
        from chipwise.compare.view import flat_rows

        return flat_rows(self)


class TrainingComparison(Comparison[TrainingRow, TrainingComparer]):
    """Of a workload that is trained."""

    __slots__ = ()

    @property
    def workload(self) -> Workload:
        """What is trained."""
        return self.comparer.workload

    def with_front(self) -> TrainingComparison:
        """The comparison with cost against time over the counts of its finalists."""
        return replace(self, front=front(self.comparer, self.rows, self.pick))

    def plot(self, target: str | Path) -> None:
        """Draw cost against time over the counts of the finalists into a file, .svg or .png."""
        draw(self.front or self.with_front().front, self.workload.name, self.terms, Path(target))


class ServingComparison(Comparison[ServingRow, ServingComparer]):
    """Of a workload that is served."""

    __slots__ = ()

    @property
    def workload(self) -> ServingWorkload:
        """What is served."""
        return self.comparer.workload


@overload
def compare(
    workload: Workload,
    candidates: Sequence[Candidate] | None = ...,
    knowledge: Knowledge | None = ...,
    terms: Terms | None = ...,
    progress: Progress | None = ...,
    change: Change | None = ...,
) -> TrainingComparison: ...


@overload
def compare(
    workload: ServingWorkload,
    candidates: Sequence[Candidate] | None = ...,
    knowledge: Knowledge | None = ...,
    terms: Terms | None = ...,
    progress: Progress | None = ...,
    change: Change | None = ...,
) -> ServingComparison: ...


def compare(
    workload: Workload | ServingWorkload,
    candidates: Sequence[Candidate] | None = None,
    knowledge: Knowledge | None = None,
    terms: Terms | None = None,
    progress: Progress | None = None,
    change: Change | None = None,
) -> TrainingComparison | ServingComparison:
    """Compare chips (the whole catalog unless named) on a workload of either kind; a `Refusal` where none can do it.

    `change` gives each prediction of a training run better evidence where there is some; it may find that it doesn't
    fit.
    """
    comparer = comparer_of(workload, terms or Terms(), knowledge or Knowledge(), change)
    if isinstance(comparer, TrainingComparer):
        return TrainingComparison(comparer, *_compared(comparer, candidates, progress))
    return ServingComparison(comparer, *_compared(comparer, candidates, progress))


def comparer_of(
    workload: Workload | ServingWorkload, terms: Terms, knowledge: Knowledge, change: Change | None = None
) -> TrainingComparer | ServingComparer:
    """What evaluates candidates for a workload of either kind."""
    if isinstance(workload, Workload):
        if terms.disaggregate is not None:
            raise InputError("disaggregate", terms.disaggregate, "a model that is served: training has no prompts")
        return TrainingComparer.of(workload, terms, knowledge, change)
    if change is not None:
        raise InputError("evidence", "compiled", "modelled: services are simulated, not compiled")
    if terms.headroom is not None:
        raise InputError(
            "headroom", f"{terms.headroom * 100:g}", "a training run: a server's stack takes its own share"
        )
    if terms.disaggregate is None:
        return ServingComparer.of(workload, terms, knowledge)
    from chipwise.compare.serving.disaggregated import DisaggregatedComparer

    return DisaggregatedComparer.of(workload, terms, knowledge)


def _compared(
    comparer: Comparer[R], candidates: Sequence[Candidate] | None, progress: Progress | None
) -> tuple[
    Terms,
    tuple[R, ...],
    tuple[Refused, ...],
    R | None,
    tuple[Flip, ...],
    Relaxed | None,
    DecisionSummary,
    tuple[str, ...],
]:
    chips = list(candidates) if candidates is not None else every_chip()
    rows: list[R] = []
    refused: list[Refused] = []
    for i, candidate in enumerate(chips):
        if progress:
            progress(i, len(chips), candidate.chip.id)
        evaluated = comparer.evaluate(candidate)
        if isinstance(evaluated, Refused):
            refused.append(evaluated)
        else:
            rows.append(evaluated)
    if not rows:
        raise comparer.nowhere(refused)
    if progress:
        progress(len(chips), len(chips), "what would flip it")
    objective = comparer.terms.objective
    ranked = tuple(sorted(rows, key=lambda row: rank(row, objective)))
    pick = pick_of(ranked, objective)
    flips = comparer.flips(chips, ranked, pick) if pick else ()
    looser = comparer.relaxed(chips, ranked, pick) if pick else None
    return (
        comparer.terms,
        ranked,
        tuple(refused),
        pick,
        flips,
        looser,
        comparer.words(ranked, pick, flips, looser),
        comparer.assumptions(ranked, all(comparer.named(c) for c in chips)),
    )


AnyComparison = TrainingComparison | ServingComparison
AnyRow = TrainingRow | ServingRow
__all__ = ["AnyComparison", "AnyRow", "Comparer", "Comparison", "Progress", "Row", "compare", "comparer_of"]

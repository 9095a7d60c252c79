"""What would flip the decision: the smallest change that makes another chip the pick.

Sizes of changes are compared as ratios: a price that falls by half is as large a change as a batch that doubles.
Prices and efficiencies are solved for and checked by picking again. Half and twice the batch are evaluated again for
the leading rows; other counts, deadlines and budgets, and batches further off, only where no smaller change has
flipped the decision already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log

from chipwise.compare.decision import HAIR, Flip, percent, pick_of, price_flip, runner_up, score
from chipwise.compare.terms import DEFAULT_CHIPS, Candidate, Terms
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.row import TrainingRow
from chipwise.units import format_money, format_seconds
from chipwise.workload.model import Workload

LEADING = 4  # rows that are evaluated again: those behind would need a larger change
NEAR = 2  # rows that are evaluated again where a smaller change is known already
FACTORS = (0.5, 2.0, 0.25, 4.0)
FAR = (0.25, 4.0)


def flips(comparer: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow) -> tuple[Flip, ...]:
    """Changes that flip the decision, smallest first."""
    found = [
        *(price_flip(rows, pick) if comparer.terms.objective == "cost" else ()),
        *_by_efficiency(rows, pick, comparer.terms.objective),
    ]
    leading = sorted(rows, key=lambda r: (s := score(r, comparer.terms.objective)) is None or s)
    leading = [r for r in leading if score(r, comparer.terms.objective) is not None][:LEADING]
    if len(leading) > 1:
        for factor in FACTORS:
            known = any(flip.size <= abs(log(factor)) - HAIR for flip in found)
            if known and factor in FAR:
                break  # nothing further can be smaller
            found += _other_batch(comparer, leading[:NEAR] if known else leading, pick, factor)
            if not known:
                found += _on_other_terms(comparer, leading, pick, factor)
    kinds = ("price", "efficiency")  # of changes of one size, the price first: it can be asked for
    return tuple(sorted(found, key=lambda f: (round(f.size, 4), kinds.index(f.kind) if f.kind in kinds else 2)))


def _by_efficiency(rows: Sequence[TrainingRow], pick: TrainingRow, objective: str) -> Iterator[Flip]:
    """The smallest loss of efficiency of the pick that makes another row the pick."""
    second = runner_up(rows, pick, objective)
    if second is None:
        return
    best, other = score(pick, objective), score(second, objective)
    assert best is not None and other is not None
    slower = pick.slower(other / best * (1 + HAIR))
    now = pick_of([slower if row is pick else row for row in rows], objective)
    if now is None or now is slower:
        return
    before, after = pick.prediction.mfu, slower.prediction.mfu
    yield Flip(
        "efficiency",
        str(now.accelerators),
        pick.accelerators.chip.id,
        before,
        after,
        f"{now.accelerators} wins on {objective} if {pick.accelerators} is {percent(1 - after / before)} "
        f"less efficient than predicted (MFU {after:.1%} instead of {before:.1%})",
    )


def _other_batch(
    comparer: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow, factor: float
) -> Iterator[Flip]:
    """Evaluate the leading rows on the same chips with another batch."""
    before, objective = comparer.workload.train.global_batch, comparer.terms.objective
    batch = before * factor
    if batch < 1 or not batch.is_integer():
        return
    same = [Candidate(row.accelerators.chip, row.accelerators) for row in rows]
    changed = replace(comparer, workload=with_batch(comparer.workload, int(batch)), terms=Terms(objective), known={})
    now = _picked(changed, same)
    if now and now.accelerators != pick.accelerators:
        yield Flip(
            "batch",
            str(now.accelerators),
            "",
            before,
            batch,
            f"{now.accelerators} wins on {objective} with a global batch of {int(batch):,} instead of {before:,}",
        )


def _on_other_terms(
    comparer: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow, factor: float
) -> Iterator[Flip]:
    """Evaluate the leading rows with another count, deadline or budget."""
    changed = _other_terms(comparer.terms, factor)
    if changed is None:
        return
    kind, before, after, shown, terms = changed
    now = _picked(replace(comparer, terms=terms), [Candidate(row.accelerators.chip) for row in rows])
    if now and now.accelerators.chip != pick.accelerators.chip:
        yield Flip(
            kind, str(now.accelerators), "", before, after, f"{now.accelerators} wins on {terms.objective} with {shown}"
        )


def _picked(comparer: TrainingComparer, candidates: Sequence[Candidate]) -> TrainingRow | None:
    rows = [row for c in candidates if isinstance(row := comparer.evaluate(c), TrainingRow)]
    return pick_of(rows, comparer.terms.objective)


def _other_terms(terms: Terms, factor: float) -> tuple[str, float, float, str, Terms] | None:
    """The terms with the deadline, else the budget, else the count multiplied: kind, before, after, in words, terms."""
    if terms.deadline_s is not None:
        after = terms.deadline_s * factor
        return (
            "deadline",
            terms.deadline_s,
            after,
            f"a deadline of {format_seconds(after)}",
            replace(terms, deadline_s=after),
        )
    if terms.budget_usd is not None:
        after = terms.budget_usd * factor
        return (
            "budget",
            terms.budget_usd,
            after,
            f"a budget of {format_money(after)}",
            replace(terms, budget_usd=after, budget_note=""),
        )
    before = terms.chips or DEFAULT_CHIPS
    chips = int(before * factor)
    if chips < 1 or chips != before * factor:
        return None
    return "chips", before, chips, f"{chips:,} chips of each instead of {before:,}", Terms(terms.objective, chips=chips)


def with_batch(workload: Workload, batch: int) -> Workload:
    """The same samples in steps of another size.

    >>> from chipwise.workload.model import Train
    >>> from chipwise.workload.presets import preset
    >>> run = Workload("run", preset("gpt2"), Train(global_batch=8, sequence=1024, steps=10))
    >>> with_batch(run, 16).train.steps
    5
    """
    train = workload.train
    return replace(workload, train=replace(train, global_batch=batch, steps=-(-train.samples // batch)))

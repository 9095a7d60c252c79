"""What would flip the decision: the smallest change that makes another chip the pick.

Sizes of changes are compared as ratios: a price that falls by half is as large a change as a batch that doubles.
Prices and efficiencies are solved for and checked by picking again. Half and twice the batch are evaluated anew for
the leading rows; other counts, deadlines and budgets, and batches further off, only where no smaller change has
flipped the decision already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from chipwise.compare.terms import DEFAULT_CHIPS, Candidate, Terms
from chipwise.compare.training.comparer import TrainingComparer, TrainingRow
from chipwise.units import format_money, format_seconds
from chipwise.workload.model import Workload

LEADING = 4  # rows that are evaluated anew: those behind would need a larger change
NEAR = 2  # rows that are evaluated anew where a smaller change is known already
FACTORS = (0.5, 2.0, 0.25, 4.0)
FAR = (0.25, 4.0)
HAIR = 1e-6  # past a tie


@dataclass(frozen=True, slots=True)
class Flip:
    """A change after which `winner` is the pick."""

    kind: str  # "price", "efficiency", "batch", "chips", "deadline" or "budget"
    winner: str
    subject: str  # the chip whose price or efficiency changes; "" for the terms
    before: float
    after: float
    words: str

    @property
    def size(self) -> float:
        """How large the change is: the logarithm of its ratio, either way."""
        return abs(log(self.after / self.before))


def score(row: TrainingRow, objective: str) -> float | None:
    """What the pick minimises: the estimate, or its high end where only a bound is known."""
    by = row.by(objective)
    if by is None:
        return None
    return by.high if by.evidence == "bounded" else by.value


def pick_of(rows: Sequence[TrainingRow], objective: str) -> TrainingRow | None:
    """The row to pick: the best score; None where no row has one."""
    scored = [(s, str(row.accelerators), row) for row in rows if (s := score(row, objective)) is not None]
    return min(scored, key=lambda each: each[:2])[2] if scored else None


def runner_up(rows: Sequence[TrainingRow], pick: TrainingRow, objective: str) -> TrainingRow | None:
    """The row that would be picked without `pick`."""
    return pick_of([row for row in rows if row is not pick], objective)


def flips(place: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow) -> tuple[Flip, ...]:
    """Changes that flip the decision, smallest first."""
    found = [*_by_price(rows, pick, place.terms), *_by_efficiency(rows, pick, place.terms.objective)]
    leading = sorted(rows, key=lambda r: (s := score(r, place.terms.objective)) is None or s)
    leading = [r for r in leading if score(r, place.terms.objective) is not None][:LEADING]
    if len(leading) > 1:
        for factor in FACTORS:
            known = any(flip.size <= abs(log(factor)) - HAIR for flip in found)
            if known and factor in FAR:
                break  # nothing further can be smaller
            found += _other_batch(place, leading[:NEAR] if known else leading, pick, factor)
            if not known:
                found += _on_other_terms(place, leading, pick, factor)
    kinds = ("price", "efficiency")  # of changes of one size, the price first: it can be asked for
    return tuple(sorted(found, key=lambda f: (round(f.size, 4), kinds.index(f.kind) if f.kind in kinds else 2)))


def _by_price(rows: Sequence[TrainingRow], pick: TrainingRow, terms: Terms) -> Iterator[Flip]:
    """The smallest fall of a rival's price that makes it the pick."""
    second = runner_up(rows, pick, "cost")
    if terms.objective != "cost" or second is None or second.ondemand is None:
        return
    best, other = score(pick, "cost"), score(second, "cost")
    assert best is not None and other is not None
    before = second.ondemand.price.usd_h
    after = before * best / other * (1 - HAIR)
    changed = [second.priced(after) if row is second else row for row in rows]
    now = pick_of(changed, "cost")
    if now is None or now.accelerators != second.accelerators:
        return
    name = str(second.accelerators)
    yield Flip(
        "price",
        name,
        second.accelerators.chip.id,
        before,
        after,
        f"{name} wins on cost if its price falls by {_percent(1 - after / before)} "
        f"to ${after:.2f}/h (from ${before:.2f}/h)",
    )


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
        f"{now.accelerators} wins on {objective} if {pick.accelerators} is {_percent(1 - after / before)} "
        f"less efficient than predicted (MFU {after:.1%} instead of {before:.1%})",
    )


def _other_batch(
    place: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow, factor: float
) -> Iterator[Flip]:
    """Evaluate the leading rows on the same chips with another batch."""
    before, objective = place.workload.train.global_batch, place.terms.objective
    batch = before * factor
    if batch < 1 or not batch.is_integer():
        return
    same = [Candidate(row.accelerators.chip, row.accelerators) for row in rows]
    changed = replace(place, workload=with_batch(place.workload, int(batch)), terms=Terms(objective))
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
    place: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow, factor: float
) -> Iterator[Flip]:
    """Evaluate the leading rows with another count, deadline or budget."""
    changed = _other_terms(place.terms, factor)
    if changed is None:
        return
    kind, before, after, shown, terms = changed
    now = _picked(replace(place, terms=terms), [Candidate(row.accelerators.chip) for row in rows])
    if now and now.accelerators.chip != pick.accelerators.chip:
        yield Flip(
            kind, str(now.accelerators), "", before, after, f"{now.accelerators} wins on {terms.objective} with {shown}"
        )


def _picked(place: TrainingComparer, candidates: Sequence[Candidate]) -> TrainingRow | None:
    rows = [row for c in candidates if isinstance(row := place.evaluate(c), TrainingRow)]
    return pick_of(rows, place.terms.objective)


def _other_terms(terms: Terms, factor: float) -> tuple[str, float, float, str, Terms] | None:
    """The terms with their one number multiplied: kind, before, after, in words, terms."""
    if terms.deadline_s is not None:
        after = terms.deadline_s * factor
        return (
            "deadline",
            terms.deadline_s,
            after,
            f"a deadline of {format_seconds(after)}",
            Terms(terms.objective, deadline_s=after),
        )
    if terms.budget_usd is not None:
        after = terms.budget_usd * factor
        return (
            "budget",
            terms.budget_usd,
            after,
            f"a budget of {format_money(after)}",
            Terms(terms.objective, budget_usd=after),
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


def _percent(share: float) -> str:
    """A share in per cent, never rounded to nothing.

    >>> _percent(0.1234), _percent(0.0004)
    ('12 %', '0.04 %')
    """
    return f"{share:.0%}".replace("%", " %") if share >= 0.0095 else f"{share * 100:.1g} %"

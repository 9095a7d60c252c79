"""Chips side by side on one workload: ranked, with a pick, the reason, and what would flip it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from chipwise.catalog import Stack
from chipwise.catalog.calibration import Calibration
from chipwise.compare.terms import Candidate, Terms, every_chip
from chipwise.compare.training.comparer import Change, Refused, TrainingComparer, TrainingRow
from chipwise.compare.training.flips import Flip, flips, pick_of
from chipwise.compare.training.sentences import Words, in_words
from chipwise.errors import DoesNotFit, NoLayout, Refusal
from chipwise.predict.prediction import lora_in_words
from chipwise.predict.setup import named_stack
from chipwise.prices import PriceBook, listed, prices_in_words
from chipwise.units import format_money
from chipwise.workload.model import Workload

Progress = Callable[[int, int, str], None]
HOLDS = "by doubling, the smallest that holds it is "  # how a refusal for lack of memory ends


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows ranked best first (those without a price last on cost), the refused, and the decision."""

    workload: Workload
    terms: Terms
    rows: tuple[TrainingRow, ...]
    refused: tuple[Refused, ...]
    pick: TrainingRow | None
    flips: tuple[Flip, ...]
    words: Words
    assumptions: tuple[str, ...]


def compare(
    workload: Workload,
    candidates: Sequence[Candidate] | None,
    calibration: Calibration,
    terms: Terms | None = None,
    stack: Stack | None = None,
    today: date | None = None,
    progress: Progress | None = None,
    change: Change | None = None,
    book: PriceBook | None = None,
) -> Comparison:
    """Compare chips (the whole catalog unless named) on a workload; a `Refusal` where none can run it.

    `change` gives each row's prediction better evidence where there is some; it may find that it doesn't fit.
    """
    terms = terms or Terms()
    chips = list(candidates) if candidates is not None else every_chip()
    place = TrainingComparer(
        workload, terms, calibration, stack or named_stack(workload), today or date.today(), book or listed()
    )
    rows: list[TrainingRow] = []
    refused: list[Refused] = []
    for i, candidate in enumerate(chips):
        if progress:
            progress(i, len(chips), candidate.chip.id)
        got = place.evaluate(candidate)
        if change and isinstance(got, TrainingRow):
            got = place.changed(got, change)
        if isinstance(got, TrainingRow):
            rows.append(got)
        else:
            refused.append(got)
    if not rows:
        raise _nowhere(workload, refused)
    if progress:
        progress(len(chips), len(chips), "what would flip it")
    ranked = sorted(rows, key=lambda row: _rank(row, terms.objective))
    pick = pick_of(ranked, terms.objective)
    found = flips(place, ranked, pick) if pick else ()
    return Comparison(
        workload,
        terms,
        tuple(ranked),
        tuple(refused),
        pick,
        found,
        in_words(place, ranked, pick, found),
        _assumptions(place, ranked, all(c.fixed for c in chips)),
    )


def _rank(row: TrainingRow, objective: str) -> tuple[bool, float, str]:
    by = row.by(objective)
    value = by.value if by else row.prediction.duration.value
    return by is None, value, str(row.accelerators)


def _assumptions(place: TrainingComparer, rows: Sequence[TrainingRow], fixed: bool) -> tuple[str, ...]:
    t = place.workload.train
    stacks = dict.fromkeys(f"{r.prediction.stack.name} on {r.accelerators.chip.family}" for r in rows)
    said = [
        "counts: as named" if fixed else f"counts (where not named): {place.terms.in_words()}",
        "software: " + (place.stack.name if place.stack else f"{', '.join(stacks)} (assumed: none was named)"),
        "prices: the cheapest listed instances that hold the chips, paid whole; whether so many are free and joined by "
        "a fast network is not known; storage, network, support and discounts come on top (see chipwise cost)",
        "spot: no interruptions are counted" + _on_spot(rows),
        f"precision {t.precision}, {t.optimizer} with {t.state_precision} state",
        *lora_in_words(place.workload),
        f"calibration of {place.calibration.date} on {place.calibration.rows:,} published rows",
    ]
    if any(r.prediction.step.evidence == "bounded" for r in rows):
        said.append("bounded rows are ranked by value and picked by the high end of their interval")
    uncompiled = {a: None for r in rows for a in r.prediction.assumptions if a.startswith("not compiled")}
    if any(r.prediction.step.evidence == "compiled" for r in rows) or uncompiled:
        said.append("layouts are chosen by the model; compiled rows time that layout by the compiler's schedule")
        said += uncompiled
    used = [q.price for r in rows for q in (r.ondemand, r.spot) if q]
    return (*said, *prices_in_words(place.book, used))


def _on_spot(rows: Sequence[TrainingRow]) -> str:
    """The cheapest row on spot, in words."""
    priced = [(r.spot.usd.value, r) for r in rows if r.spot]
    if not priced:
        return ""
    usd, row = min(priced, key=lambda pair: pair[0])
    return f"; the cheapest on spot is {row.accelerators} at {format_money(usd)}"


def _nowhere(workload: Workload, refused: Sequence[Refused]) -> Refusal:
    """One refusal for all: the smallest slice of each chip that would hold the work."""
    if len(refused) == 1:
        only = refused[0]
        kind: type[Refusal] = {"memory": DoesNotFit, "layout": NoLayout}.get(only.kind, Refusal)
        return kind(only.reason, only.unlock)
    reason = f"none of the {len(refused)} chips compared can run {workload.name}"
    held = [r.unlock.removeprefix(HOLDS) for r in refused if r.unlock.startswith(HOLDS)]
    if held:
        other = len(refused) - len(held)
        also = f"; {other} more are refused for other reasons" if other else ""
        return DoesNotFit(
            reason + ": it does not fit", f"by doubling, the smallest of each that hold it are {', '.join(held)}{also}"
        )
    why = dict.fromkeys(f"{r.reason}; {r.unlock}" if r.unlock else r.reason for r in refused)
    first = next(iter(why))
    return Refusal(reason, f"for one, {first}")

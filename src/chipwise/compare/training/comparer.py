"""One chip of a comparison: how many are taken, its best layout, what the run takes and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from chipwise.catalog import Accelerators, Chip, Stack
from chipwise.catalog.stacks import runs_on, where
from chipwise.compare.decision import DecisionSummary, Flip, Refused
from chipwise.compare.terms import DEFAULT_CHIPS, Candidate, Terms, at_least, ladder
from chipwise.compare.training.counts import Bounds, Counts, broken
from chipwise.compare.training.counts import tried as try_counts
from chipwise.compare.training.row import TrainingRow
from chipwise.errors import DoesNotFit, NoLayout, Refusal
from chipwise.io.brief import brief
from chipwise.knowledge import Knowledge
from chipwise.layout import HEADROOM, Enumeration, SearchResult, TimedLayout, enumerate_layouts, search, search_in
from chipwise.layout.headroom import allocatable, required
from chipwise.layout.splits import domain
from chipwise.predict.prediction import Prediction, predict
from chipwise.predict.setup import named_stack, set_up, stack_of
from chipwise.prices import quote, supply, why_no_price
from chipwise.workload.model import Workload

Change = Callable[[Prediction], Prediction]


@brief
@dataclass(frozen=True, slots=True)
class TrainingComparer:
    """What every row of a comparison shares."""

    workload: Workload
    terms: Terms
    knowledge: Knowledge
    stack: Stack | None = None
    change: Change | None = None  # gives a prediction better evidence
    legal: dict[object, Enumeration] = field(default_factory=dict, compare=False)  # chips share layouts
    known: dict[str, TrainingRow | Refusal] = field(default_factory=dict, compare=False)  # rows by chips and count

    @classmethod
    def of(
        cls, workload: Workload, terms: Terms, knowledge: Knowledge, change: Change | None = None
    ) -> TrainingComparer:
        """The comparer of a workload on the stack that it names."""
        return cls(workload, terms, knowledge, named_stack(workload), change)

    def named(self, candidate: Candidate) -> Accelerators | None:
        """The chips asked for by count, if any."""
        return candidate.fixed

    @property
    def headroom(self) -> float:
        """The share of a chip's memory that a layout leaves free."""
        return HEADROOM if self.terms.headroom is None else self.terms.headroom

    def row(self, acc: Accelerators) -> TrainingRow:
        """The best layout on these chips, timed and priced; a `Refusal` where there is none."""
        work = set_up(self.workload, acc, self.knowledge.calibration, self.stack)
        legal = self._legal(acc)
        free = required(acc.chip, self.headroom)
        found = search_in(work, legal, allocatable(acc.chip) - free, free=free)
        if isinstance(found, TimedLayout):
            raise DoesNotFit(f"no layout fits on {acc}")  # `why` finds out what would
        return self.priced(
            acc, found, predict(self.workload, acc, found.best.layout, self.knowledge.calibration, self.stack)
        )

    def priced(self, acc: Accelerators, found: SearchResult | None, said: Prediction) -> TrainingRow:
        """The row of a prediction, with what it costs."""
        ondemand, spot = (
            quote(acc, said.duration, spot, self.knowledge.today, self.knowledge.prices) for spot in (False, True)
        )
        if ondemand and spot and spot.usd.value >= ondemand.usd.value:
            spot = None  # another cloud's spot, more expensive than this on demand: no use
        return TrainingRow(acc, found, said, ondemand, spot)

    def _changed(self, row: TrainingRow, change: Change) -> TrainingRow | Refused:
        """The row with better evidence for its prediction, and priced again."""
        try:
            return self.priced(row.accelerators, row.search, change(row.prediction))
        except DoesNotFit as refusal:
            return Refused(row.accelerators.chip, row.accelerators, refusal.kind, refusal.reason, refusal.unlock)

    def _legal(self, acc: Accelerators) -> Enumeration:
        """The legal layouts, which depend on how many chips lie in which domains and not on their speed."""
        w = self.workload
        parallel = stack_of(w, acc.chip, self.stack).parallel
        key = (w.model, w.train, acc.count, acc.shape, domain(acc), parallel)
        if key not in self.legal:
            self.legal[key] = enumerate_layouts(w.model, w.train, acc, parallel)
        return self.legal[key]

    def evaluate(self, candidate: Candidate) -> TrainingRow | Refused:
        """The row of a candidate at the count the terms ask for, or why there is none."""
        row = self.modelled(candidate)
        return self._changed(row, self.change) if self.change and isinstance(row, TrainingRow) else row

    def modelled(self, candidate: Candidate, fewest: bool = False) -> TrainingRow | Refused:
        """The row of a candidate by the model alone; with `fewest` of the fewest chips within the limits."""
        chip, stack = candidate.chip, self.stack
        if stack is not None and not runs_on(stack, chip):
            return Refused(
                chip, candidate.fixed, "stack", f"{stack.name} does not run on {chip.id}", f"it runs on {where(stack)}"
            )
        counts = self.counts(candidate)
        if len(counts) == 1 and not self.terms.limited:
            row = self.at(counts[0])
            return row if isinstance(row, TrainingRow) else self._why(counts[0], row)
        try:
            bounds = self._bounds(chip, counts[0])
        except Refusal as refusal:
            return self._why(counts[0], refusal)
        tried = try_counts(counts, self.terms, bounds, self.at, fewest)
        return tried.best() or self._none(chip, counts[-1], tried, bounds)

    def _none(self, chip: Chip, most: Accelerators, tried: Counts, bounds: Bounds) -> Refused:
        """Why no count is within the limits."""
        if tried.rows:
            row, kind, reason, unlock = broken(tried, self.knowledge.prices)
            if kind == "deadline" and self.terms.chips is None and most.count > 1 and row.accelerators == most:
                unlock = f"no offer is known to join more {chip.id} without a contract; --chips names a count"
            return Refused(chip, row.accelerators, kind, reason, unlock)
        if not tried.refusals:
            return bounds.refused(chip, most, self.terms)
        refused = self._why(*tried.refusals[-1])
        more = next((acc for acc in ladder(chip) if acc.count > most.count), None)
        if self.terms.chips is None and more is not None and refused.kind == "memory":
            why = why_no_price(chip, more.count, False, self.knowledge.prices)
            return replace(refused, unlock=f"{refused.unlock}, but {why}" if refused.unlock else why)
        return refused

    def counts(self, candidate: Candidate) -> tuple[Accelerators, ...]:
        """The counts of a candidate that come into question, ascending."""
        if candidate.fixed is not None:
            return (candidate.fixed,)
        if self.terms.chips is None and self.terms.limited:
            return self.buyable(candidate.chip)
        if self.terms.chips is None:
            return (replace(at_least(candidate.chip, DEFAULT_CHIPS), assumed=True),)
        return (at_least(candidate.chip, self.terms.chips),)

    def buyable(self, chip: Chip) -> tuple[Accelerators, ...]:
        """The counts of a chip that an offer could supply, by doubling."""
        most = supply(chip, self.knowledge.prices)
        return tuple(acc for acc in ladder(chip) if acc.count <= most)

    def flips(
        self, candidates: Sequence[Candidate], rows: Sequence[TrainingRow], pick: TrainingRow
    ) -> tuple[Flip, ...]:
        """Changes that flip the decision, smallest first."""
        from chipwise.compare.training.flips import flips

        return flips(self, rows, pick)

    def relaxed(self, candidates: Sequence[Candidate], rows: Sequence[TrainingRow], pick: TrainingRow) -> None:
        """A training run has no SLO to relax."""

    def words(
        self, rows: Sequence[TrainingRow], pick: TrainingRow | None, flips: Sequence[Flip], looser: object = None
    ) -> DecisionSummary:
        """The decision in three sentences."""
        from chipwise.compare.training.sentences import in_words

        return in_words(self, rows, pick, flips)

    def assumptions(self, rows: Sequence[TrainingRow], fixed: bool) -> tuple[str, ...]:
        """What the comparison took for granted."""
        from chipwise.compare.training.sentences import assumptions

        return assumptions(self, rows, fixed)

    def nowhere(self, refused: Sequence[Refused]) -> Refusal:
        """One refusal for all."""
        from chipwise.compare.training.sentences import nowhere

        return nowhere(self.workload, refused)

    def at(self, acc: Accelerators) -> TrainingRow | Refusal:
        """The row of these chips or why there is none, found once whatever the terms."""
        name = str(acc)
        if name not in self.known:
            try:
                self.known[name] = self.row(acc)
            except Refusal as refusal:
                self.known[name] = refusal
        return self.known[name]

    def _why(self, acc: Accelerators, refusal: TrainingRow | Refusal) -> Refused:
        """The refusal in full: where memory is short, with the smallest slice that holds the work."""
        if isinstance(refusal, DoesNotFit):
            try:
                search(self.workload, acc, self.knowledge.calibration, self.stack, headroom=self.headroom)
            except Refusal as full:
                refusal = full
        assert isinstance(refusal, Refusal)
        holds = refusal.holds if isinstance(refusal, DoesNotFit) else ""
        unlock = refusal.unlock
        if acc.assumed and isinstance(refusal, NoLayout) and (fewer := self._fewer(acc)):
            unlock = f"no count was named: `--chips {fewer.count}` would do; {unlock}"
        return Refused(acc.chip, acc, refusal.kind, refusal.reason, unlock, holds)

    def _fewer(self, acc: Accelerators) -> Accelerators | None:
        """The most chips below those assumed that can do the work, by halving."""
        below = [fewer for fewer in ladder(acc.chip) if fewer.count < acc.count]
        return next((fewer for fewer in reversed(below) if isinstance(self.at(fewer), TrainingRow)), None)

    def _bounds(self, chip: Chip, acc: Accelerators) -> Bounds:
        """What no run on a chip can beat; a `Refusal` where the chip can't do the work at all."""
        work = set_up(self.workload, acc, self.knowledge.calibration, self.stack)
        offers = self.knowledge.prices.offers_for(chip.id)
        chip_seconds = work.model_flops * self.workload.train.samples / work.target.low.peak
        return Bounds(chip_seconds, offers[0].price() if offers else None)

"""One chip of a comparison: how many are taken, its best layout, what the run takes and costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from chipwise.catalog import Accelerators, Chip, Stack
from chipwise.compare.decision import DecisionSummary, Flip, Refused
from chipwise.compare.terms import DEFAULT_CHIPS, Candidate, Terms, at_least, ladder
from chipwise.errors import DoesNotFit, Refusal
from chipwise.knowledge import Knowledge
from chipwise.layout import RESERVE, Enumeration, SearchResult, TimedLayout, enumerate_layouts, search, search_in
from chipwise.layout.splits import domain
from chipwise.predict.estimate import Estimate
from chipwise.predict.prediction import Prediction, model_flops, predict
from chipwise.predict.setup import named_stack, set_up
from chipwise.prices import Quote, price_of, quote, run_cost, why_no_price
from chipwise.units import format_money, format_seconds
from chipwise.workload.model import Workload

Change = Callable[[Prediction], Prediction]
USUAL_MFU = 0.4  # where the ladder of counts is entered; the count found does not depend on it


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A chip that can run the workload."""

    accelerators: Accelerators
    search: SearchResult | None  # None: the layout was named
    prediction: Prediction
    ondemand: Quote | None  # None: no public price
    spot: Quote | None

    @property
    def tokens_per_s_per_chip(self) -> Estimate:
        """Tokens (or images) a second of one chip."""
        return self.prediction.tokens_per_s.scaled(1 / self.accelerators.count)

    @property
    def evidence(self) -> str:
        """Of the times."""
        return self.prediction.step.evidence

    @property
    def unpriced_rank(self) -> float:
        """Rows without a price are ordered by how long they take."""
        return self.prediction.duration.value

    def by(self, objective: str) -> Estimate | None:
        """What the row is ranked by; None where it has no price."""
        if objective == "time":
            return self.prediction.duration
        if objective == "energy":
            return self.prediction.kwh
        return self.ondemand.usd if self.ondemand else None

    def slower(self, factor: float) -> TrainingRow:
        """The row with every time multiplied, as if the chip were less efficient."""
        p = self.prediction
        parts = {name: seconds * factor for name, seconds in p.parts.items()}
        return replace(
            self,
            prediction=replace(p, step=p.step.scaled(factor), parts=parts),
            ondemand=_scaled(self.ondemand, factor),
            spot=_scaled(self.spot, factor),
        )

    def priced(self, usd_per_chip_hour: float) -> TrainingRow:
        """The row at another on-demand price."""
        return replace(self, ondemand=self.ondemand.at(usd_per_chip_hour)) if self.ondemand else self


@dataclass(frozen=True, slots=True)
class TrainingComparer:
    """What every row of a comparison shares."""

    workload: Workload
    terms: Terms
    knowledge: Knowledge
    stack: Stack | None = None
    change: Change | None = None  # gives a prediction better evidence
    legal: dict[object, Enumeration] = field(default_factory=dict, compare=False)  # chips share layouts

    @classmethod
    def of(
        cls, workload: Workload, terms: Terms, knowledge: Knowledge, change: Change | None = None
    ) -> TrainingComparer:
        """The comparer of a workload on the stack that it names."""
        return cls(workload, terms, knowledge, named_stack(workload), change)

    def named(self, candidate: Candidate) -> Accelerators | None:
        """The chips asked for by count, if any."""
        return candidate.fixed

    def row(self, acc: Accelerators) -> TrainingRow:
        """The best layout on these chips, timed and priced; a `Refusal` where there is none."""
        work = set_up(self.workload, acc, self.knowledge.calibration, self.stack)
        legal = self._legal(acc)
        found = search_in(work, legal, acc.chip.usable_bytes * (1 - RESERVE))
        if isinstance(found, TimedLayout):
            raise DoesNotFit(f"no layout fits on {acc}")  # `why` finds out what would
        return self.priced(
            acc, found, predict(self.workload, acc, found.best.layout, self.knowledge.calibration, self.stack)
        )

    def priced(self, acc: Accelerators, found: SearchResult | None, said: Prediction) -> TrainingRow:
        """The row of a prediction, with what it costs."""
        ondemand, spot = (
            quote(
                acc.chip,
                acc.count,
                said.duration,
                spot,
                self.knowledge.today,
                self.knowledge.prices,
                acc.count // acc.slices,
            )
            for spot in (False, True)
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
        key = (w.model, w.train, acc.count, acc.shape, domain(acc))
        if key not in self.legal:
            self.legal[key] = enumerate_layouts(w.model, w.train, acc)
        return self.legal[key]

    def evaluate(self, candidate: Candidate) -> TrainingRow | Refused:
        """The row of a candidate at the count the terms ask for, or why there is none."""
        row = self.modelled(candidate)
        return self._changed(row, self.change) if self.change and isinstance(row, TrainingRow) else row

    def modelled(self, candidate: Candidate) -> TrainingRow | Refused:
        """The row of a candidate by the model alone."""
        chip, stack = candidate.chip, self.stack
        if stack is not None and chip.family not in stack.families:
            runs = " and ".join(f"{f} chips" for f in stack.families)
            return Refused(
                chip, candidate.fixed, "stack", f"{stack.name} does not run on {chip.id}", f"it runs on {runs}"
            )
        if self.terms.deadline_s is None and self.terms.budget_usd is None:
            acc = candidate.fixed or at_least(chip, self.terms.chips or DEFAULT_CHIPS)
            tried = self._try(acc)
            return tried if isinstance(tried, TrainingRow) else self._why(acc, tried)
        counts = (candidate.fixed,) if candidate.fixed else ladder(chip)
        if self.terms.deadline_s is not None:
            return self._fewest(chip, counts, self.terms.deadline_s)
        assert self.terms.budget_usd is not None
        return self._fastest(chip, counts, self.terms.budget_usd)

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

    def _try(self, acc: Accelerators) -> TrainingRow | Refusal:
        try:
            return self.row(acc)
        except Refusal as refusal:
            return refusal

    def _why(self, acc: Accelerators, refusal: TrainingRow | Refusal) -> Refused:
        """The refusal in full: where memory is short, with the smallest slice that holds the work."""
        if isinstance(refusal, DoesNotFit):
            try:
                search(self.workload, acc, self.knowledge.calibration, self.stack)
            except Refusal as full:
                refusal = full
        assert isinstance(refusal, Refusal)
        return Refused(acc.chip, acc, refusal.kind, refusal.reason, refusal.unlock)

    def _peak_seconds(self, acc: Accelerators) -> float:
        """Chip-seconds of the whole run at the dense peak: no run needs fewer."""
        work = set_up(self.workload, acc, self.knowledge.calibration, self.stack)
        return model_flops(work) * self.workload.train.samples / work.target.low.peak

    def _fewest(self, chip: Chip, counts: tuple[Accelerators, ...], deadline_s: float) -> TrainingRow | Refused:
        """The fewest chips that meet a deadline: up the ladder until it is met, down while it still is."""
        tried: dict[int, TrainingRow | Refusal] = {}

        def meets(i: int) -> bool:
            if i not in tried:
                tried[i] = self._try(counts[i])
            got = tried[i]
            return isinstance(got, TrainingRow) and got.prediction.duration.high <= deadline_s

        try:
            need = self._peak_seconds(counts[0]) / (USUAL_MFU * deadline_s)
        except Refusal as refusal:
            return self._why(counts[0], refusal)
        i = next((i for i, acc in enumerate(counts) if acc.count >= need), len(counts) - 1)
        while not meets(i) and i + 1 < len(counts):
            i += 1
        while i > 0 and meets(i) and meets(i - 1):
            i -= 1
        got = tried[i]
        if meets(i) and isinstance(got, TrainingRow):
            return got
        rows = [row for row in tried.values() if isinstance(row, TrainingRow)]
        if not rows:
            return self._why(counts[i], tried[i])
        best = min(rows, key=lambda row: row.prediction.duration.high)
        high = format_seconds(best.prediction.duration.high)
        reason = f"{best.accelerators} takes up to {high}, the deadline is {format_seconds(deadline_s)}"
        fixed = len(counts) == 1
        return Refused(
            chip,
            best.accelerators,
            "deadline",
            reason,
            "more chips may do" if fixed else f"no count up to {counts[-1].count:,} is faster",
        )

    def _fastest(self, chip: Chip, counts: tuple[Accelerators, ...], budget: float) -> TrainingRow | Refused:
        """The count that finishes first within a budget: the largest that the budget allows, or near it."""
        price = price_of(chip, counts[0].count, today=self.knowledge.today, book=self.knowledge.prices)
        if price is None:
            return Refused(chip, None, "budget", f"{chip.id} has no public price", "no budget can be checked")
        try:
            least_usd = run_cost(1, self._peak_seconds(counts[0]), price.usd_per_chip_hour)
        except Refusal as refusal:
            return self._why(counts[0], refusal)
        if least_usd > budget:
            return Refused(
                chip,
                None,
                "budget",
                f"{chip.id} costs {format_money(least_usd)} at its peak rate",
                f"the budget is {format_money(budget)}",
            )
        tried: dict[int, TrainingRow | Refusal] = {}

        def within(i: int) -> bool:
            if i not in tried:
                tried[i] = self._try(counts[i])
            got = tried[i]
            return isinstance(got, TrainingRow) and got.ondemand is not None and got.ondemand.usd.high <= budget

        def usd(i: int) -> float:
            within(i)
            got = tried[i]
            return got.ondemand.usd.high if isinstance(got, TrainingRow) and got.ondemand else inf

        # few chips recompute or don't fit, many wait for wires: the cost falls first and grows later
        i = next((i for i, acc in enumerate(counts) if acc.count >= DEFAULT_CHIPS), len(counts) - 1)
        while not within(i) and i + 1 < len(counts) and (usd(i) == inf or usd(i + 1) < usd(i)):
            i += 1
        while not within(i) and i > 0 and usd(i - 1) < usd(i):
            i -= 1
        top = len(counts) - 1
        while i < top and within(i):
            middle = (i + top + 1) // 2
            i, top = (middle, top) if within(middle) else (i, middle - 1)
        fitting = [tried[i] for i in tried if within(i)]
        rows = [row for row in fitting if isinstance(row, TrainingRow)]
        if rows:
            return min(rows, key=lambda row: row.prediction.duration.value)
        priced = [row for row in tried.values() if isinstance(row, TrainingRow) and row.ondemand]
        if not priced and isinstance(tried[i], TrainingRow):
            why = why_no_price(chip, counts[i].count, False, self.knowledge.prices)
            return Refused(chip, counts[i], "budget", why, "no budget can be checked")
        if not priced:
            return self._why(counts[i], tried[i])
        least = min(priced, key=lambda row: row.ondemand.usd.high if row.ondemand else 0.0)
        assert least.ondemand is not None
        return Refused(
            chip,
            least.accelerators,
            "budget",
            f"{least.accelerators} costs up to {format_money(least.ondemand.usd.high)}",
            f"the budget is {format_money(budget)}",
        )


def _scaled(q: Quote | None, factor: float) -> Quote | None:
    return None if q is None else replace(q, usd=q.usd.scaled(factor))

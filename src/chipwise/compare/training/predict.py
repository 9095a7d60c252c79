"""One workload on one set of chips, with a layout that is named or the best one: predicted and priced."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.catalog import Accelerators
from chipwise.catalog.stacks import runs_on, where
from chipwise.compare.terms import Terms
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.row import TrainingRow
from chipwise.compiled.evidence import Stage, known_evidence, with_evidence
from chipwise.errors import DoesNotFit, Refusal
from chipwise.knowledge import Knowledge
from chipwise.launch.launch import Launch, launch, section_of
from chipwise.layout import HEADROOM, search
from chipwise.layout.headroom import allocatable, required
from chipwise.layout.headroom import in_words as headroom_in_words
from chipwise.layout.named import read_layout
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.layouts import Layout
from chipwise.predict.prediction import Prediction, collectives
from chipwise.predict.prediction import predict as predict_layout
from chipwise.present.blocks import Block, Text
from chipwise.present.result import Result
from chipwise.prices import Quote, custom_prices_in_words
from chipwise.units import format_bytes
from chipwise.workload.model import Workload


@dataclass(frozen=True, slots=True, repr=False)
class PricedPrediction(Result):
    """A prediction with what the run costs on demand and on spot."""

    VERB: ClassVar[str] = "predict"
    row: TrainingRow
    knowledge: Knowledge
    headroom: float = HEADROOM  # the share of a chip's memory that should stay free

    @property
    def prediction(self) -> Prediction:
        """Everything predicted."""
        return self.row.prediction

    @property
    def accelerators(self) -> Accelerators:
        """Chips and how many."""
        return self.row.accelerators

    @property
    def layout(self) -> Layout:
        """How the work is split."""
        return self.row.prediction.layout

    @property
    def step(self) -> Estimate:
        """Seconds of one optimizer step."""
        return self.row.prediction.step

    @property
    def duration(self) -> Estimate:
        """Seconds of the whole run."""
        return self.row.prediction.duration

    @property
    def kwh(self) -> Estimate:
        """Energy of the chips over the whole run."""
        return self.row.prediction.kwh

    @property
    def mfu(self) -> float:
        """Model FLOPs over the dense peak of the training precision."""
        return self.row.prediction.mfu

    @property
    def memory(self) -> dict[str, float]:
        """Bytes of a chip, by class."""
        return dict(self.row.prediction.memory)

    @property
    def ondemand(self) -> Quote | None:
        """What the run costs on demand; None without a public price."""
        return self.row.ondemand

    @property
    def spot(self) -> Quote | None:
        """What the run costs on spot, where that is cheaper."""
        return self.row.spot

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        from chipwise.compare.columns import TRAINING
        from chipwise.present.columns import record

        return {
            "workload": self.prediction.workload,
            **record(TRAINING, self.row),
            "collectives_seconds": collectives(self.prediction, self.knowledge.calibration),
            "prices": self.knowledge.prices.origin,
        }

    def blocks(self) -> list[Block]:
        """What people ask first."""
        from chipwise.compare.launched import launchable
        from chipwise.compare.training.explain import summary

        return [
            *summary(self.prediction, self.ondemand, self.spot),
            *self._short_of_headroom(),
            *self._own_prices(),
            *section_of(launchable(self.row)),
        ]

    def launch(self, tool: str | None = None, file: str | Path | None = None) -> Launch:
        """The command, config or task that starts the run; for a `tool`, or by the ending of a `file`."""
        from chipwise.compare.launched import launchable

        return launch(launchable(self.row), tool, file)

    def explanation(self) -> list[Block]:
        """How the number comes about: bounds, estimate, breakdown, collectives, memory, assumptions."""
        from chipwise.compare.training.explain import explanation

        return [*explanation(self.prediction, self.knowledge.calibration), *self.blocks()[1:]]

    @property
    def headroom_bytes(self) -> float:
        """Of a chip, free beside the runtime's reserve."""
        return allocatable(self.accelerators.chip) - self.memory["total"]

    def _short_of_headroom(self) -> list[Block]:
        """That a layout named leaves less free than it should."""
        if self.headroom_bytes >= required(self.accelerators.chip, self.headroom):
            return []
        share = max(self.headroom_bytes, 0.0) / self.accelerators.chip.usable_bytes
        return [
            Text(
                f"  {self.layout} leaves {format_bytes(max(self.headroom_bytes, 0.0))} of a chip free, "
                f"{share * 100:.1f} %: less than the headroom of {headroom_in_words(self.headroom)}"
            )
        ]

    def _own_prices(self) -> list[Block]:
        used = [quote.price if quote else None for quote in (self.ondemand, self.spot)]
        return [Text(f"  {line}") for line in custom_prices_in_words(self.knowledge.prices, used)]


def predict_training(
    workload: Workload,
    acc: Accelerators,
    layout: str | None = None,
    evidence: str = "modelled",
    knowledge: Knowledge | None = None,
    stage: Stage | None = None,
    headroom: str | float | None = None,
) -> PricedPrediction:
    """Predict a training run by the layout named, or by the best one; a `Refusal` where it can't run."""
    known = knowledge or Knowledge()
    known_evidence(evidence)
    comparer = TrainingComparer.of(workload, Terms.read(headroom=headroom), known)
    free = comparer.headroom
    calibration, stack = known.calibration, comparer.stack
    if stack is not None and not runs_on(stack, acc.chip):
        raise Refusal(f"{stack.name} does not run on {acc.chip.id}", f"it runs on {where(stack)}")
    searched = search(workload, acc, calibration, stack, headroom=free) if layout is None else None
    split = searched.best.layout if searched else read_layout(layout or "", workload, acc, calibration, stack, free)
    prediction = predict_layout(workload, acc, split, calibration, stack)
    if searched is None and not prediction.fits:
        raise DoesNotFit(
            f"{workload.name} does not fit on {acc} with {split}: it needs "
            f"{format_bytes(prediction.memory['total'])} a chip, {format_bytes(prediction.capacity)} can be allocated",
            f"see `chipwise layouts WORKLOAD --on {acc}`",
        )
    prediction = with_evidence(prediction, evidence, calibration, stage)
    return PricedPrediction(comparer.priced(acc, searched, prediction), known, free)

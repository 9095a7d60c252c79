"""A row of a comparison: a chip that can run the workload, its best layout, what the run takes and costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.catalog import Accelerators
from chipwise.layout import SearchResult
from chipwise.predict.estimate import Estimate
from chipwise.predict.prediction import Prediction
from chipwise.prices import Quote


@dataclass(frozen=True, slots=True, repr=False)
class TrainingRow:
    """A chip that can run the workload."""

    accelerators: Accelerators
    search: SearchResult | None  # None: the layout was named
    prediction: Prediction
    ondemand: Quote | None  # None: no public price
    spot: Quote | None

    def __repr__(self) -> str:
        return f"<TrainingRow {self.accelerators} as {self.prediction.layout}: {self.prediction.step.value:.3g} s>"

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


def _scaled(q: Quote | None, factor: float) -> Quote | None:
    return None if q is None else replace(q, usd=q.usd.scaled(factor))

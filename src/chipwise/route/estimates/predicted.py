"""What a job's workload takes on the chips of a pool, by the predictor; each question is asked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chipwise.errors import Refusal
from chipwise.predict.estimate import Estimate
from chipwise.route.job import Job, Variant
from chipwise.route.pool import Pool


@dataclass(frozen=True, slots=True)
class Predicted:
    """A run that nothing interrupts."""

    seconds: Estimate
    layout: str = ""
    write_s: float = 0.0  # to write a checkpoint
    watts: float | None = None  # of the whole job; None: by the pool's
    note: str = ""


@dataclass(slots=True)
class Predictor:
    """Predictions by workload, chips and layout, kept."""

    known: dict[Any, Predicted | Refusal] = field(default_factory=dict)

    def predicted(self, job: Job, variant: Variant, pool: Pool, chips: int, topology: str) -> Predicted:
        """The prediction, or a `Refusal`."""
        raise Refusal("predictions are not ready")

"""What happened against what was predicted: the only measure that sees a run that was slow from its first step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chipwise.observe.log import Log
from chipwise.predict.estimate import Estimate
from chipwise.predict.prediction import Prediction


class Verdict(StrEnum):
    """Where what happened lies in the interval of what was predicted."""

    FASTER = "faster"
    AS_PREDICTED = "as predicted"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Actual over predicted, of a figure."""

    figure: str
    unit: str
    actual: float
    predicted: Estimate
    larger_is_faster: bool

    @property
    def ratio(self) -> float:
        """Actual over predicted."""
        return self.actual / self.predicted.value

    @property
    def verdict(self) -> Verdict:
        """Where the actual figure lies."""
        if self.predicted.low <= self.actual <= self.predicted.high:
            return Verdict.AS_PREDICTED
        return Verdict.FASTER if (self.actual > self.predicted.high) == self.larger_is_faster else Verdict.SLOWER


def ratios(log: Log, prediction: Prediction) -> list[Ratio]:
    """The figures that a log has and a prediction too: seconds of a step, tokens a second of a chip."""
    rate = prediction.tokens_per_s.scaled(1 / prediction.accelerators.count)
    pairs = (
        ("step", "s", log.typical("step_seconds"), prediction.step, False),
        ("rate of a chip", "tokens/s", log.typical("tokens_per_s_per_device"), rate, True),
        ("rate", "tokens/s", log.typical("tokens_per_s"), prediction.tokens_per_s, True),
    )
    return [
        Ratio(figure=figure, unit=unit, actual=actual, predicted=predicted, larger_is_faster=larger)
        for figure, unit, actual, predicted, larger in pairs
        if actual
    ]

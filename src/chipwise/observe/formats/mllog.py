"""The log of MLPerf Training: a line of JSON after :::MLLOG for everything that happens.

The rules are those of mlcommons/training_policies (read 2026-11-18): keys, values, and metadata in which a step may be
counted in samples.
"""

from __future__ import annotations

import json
from typing import Any

from chipwise.observe.formats.line_format import Findings
from chipwise.observe.records import Step

MARK = ":::MLLOG"
_LOSSES = ("train_loss", "reduced_train_loss", "loss")
_METRICS = ("global_batch_size", "gradient_accumulation_steps", "max_sequence_length", "eval_accuracy")


class MlperfReader:
    """Steps from `tracked_stats` and `train_loss`, and how long the run took."""

    name = "mlperf"

    def __init__(self) -> None:
        self.findings = Findings()
        self._began: dict[str, float] = {}

    def read(self, line: str) -> bool:
        """Take an event."""
        _, mark, rest = line.partition(MARK)
        if not mark:
            return False
        try:
            event = json.loads(rest.strip())
        except (ValueError, RecursionError):
            self.findings.unread += 1
            return False
        if not isinstance(event, dict):
            return False
        self._take(str(event.get("key", "")), event.get("value"), event)
        return True

    def _take(self, key: str, value: Any, event: dict[str, Any]) -> None:
        metadata = event.get("metadata")
        step = _step(metadata if isinstance(metadata, dict) else {})
        if key == "tracked_stats" and isinstance(value, dict):
            loss = next((amount for name in _LOSSES if (amount := _amount(value.get(name))) is not None), None)
            self.findings.steps.append(Step(step=step, step_seconds=_amount(value.get("train_step_time")), loss=loss))
        elif key in _LOSSES and (loss := _amount(value)) is not None:
            last = self.findings.steps[-1] if self.findings.steps else None
            if last is not None and step is not None and last.step == step and last.loss is None:
                last.loss = loss
            else:
                self.findings.steps.append(Step(step=step, loss=loss))
        elif key in _METRICS and (amount := _amount(value)) is not None:
            self.findings.metrics[key] = amount
        at = _amount(event.get("time_ms"))
        what, _, end = key.rpartition("_")
        if at is not None and what in ("run", "init") and end in ("start", "stop"):
            if end == "start":
                self._began[what] = at
            elif what in self._began:
                self.findings.metrics[f"{what}_seconds"] = (at - self._began[what]) / 1e3


def _amount(value: Any) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else None
    )


def _step(metadata: dict[str, Any]) -> int | None:
    """The step of an event, where it is counted in steps."""
    step = _amount(metadata.get("step_num", metadata.get("step")))
    return int(step) if step is not None and step >= 0 and step.is_integer() else None

"""Progress bars, and what trainers print between their states: Hugging Face's dictionaries, Lightning's bars, Levanter.

Read from published logs on 2026-11-18: Lightning-AI/pytorch-lightning issues 4225 and 6206, huggingface/transformers
pull request 9613, microsoft/huggingface-transformers pull request 7, and the format of tqdm-loggable, which Levanter
prints through.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from chipwise.observe.formats.line_format import Findings, rank_of
from chipwise.observe.numbers import NUMBER, number, whole
from chipwise.observe.records import Step

# 22%|##2  | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=193315]
_BAR = re.compile(
    rf"(?<!\d)(?P<share>\d{{1,3}})%\|[^|]*\|\s*(?P<at>[\d.]+[kM]?)/(?P<of>[\d.]+[kM]?)\s*\[(?P<spent>[\d:]+)<[^,\]]{{0,40}},\s*"
    rf"(?:(?P<rate>{NUMBER}|\?)\s*(?P<unit>it/s|s/it|step/s|s/step|steps/s|batch/s|s/batch))?(?P<rest>[^\]]*)\]?"
)
_EPOCH = re.compile(r"[Ee]poch:?\s+(\d+)")
_LOSS = re.compile(rf"(?<![\w_])(?:train[_/])?(?:reduced_train_)?loss(?:_step)?[=:]\s*({NUMBER})")
_GLOBAL_STEP = re.compile(rf"\bglobal_step[=:]\s*({NUMBER})")
# Progress on:train 1.20kit/10.0kit rate:2.3it/s remaining:1:02:03 elapsed:08:11 postfix:loss=3.21
_LOGGED = re.compile(
    rf"Progress on:\s*(?P<what>\S+)\s+(?P<at>[\d.]+[kM]?)(?:it|step)?/(?P<of>[\d.?]+[kM]?)(?:it|step)?\s+"
    rf"rate:\s*(?P<rate>{NUMBER}|\?)\s*(?P<unit>it/s|s/it|step/s|s/step)(?P<rest>.*)"
)


def bar_step(line: str) -> Step | None:
    """The step that the last state of a bar in a line shows.

    >>> made = bar_step("Epoch 1:  22%|##2 | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=1]")
    >>> made.step, made.step_seconds, made.loss
    (22, 4.47, 10.072)
    """
    matches = list(_BAR.finditer(line))
    match = matches[-1] if matches else None
    if match is None:
        return None
    at, of = whole(match["at"]), whole(match["of"])
    if at is None:
        return None
    epoch, named = _EPOCH.search(line[: match.start()]), _GLOBAL_STEP.search(match["rest"])
    step = whole(named[1]) if named else at + (int(epoch[1]) * of if epoch and of else 0)
    loss = _LOSS.search(match["rest"])
    return Step(
        step=step,
        step_seconds=_seconds(match["rate"], match["unit"]),
        loss=number(loss[1]) if loss else None,
        rank=rank_of(line),
    )


def _seconds(rate: str | None, unit: str | None) -> float | None:
    amount = number(rate) if rate else None
    if not amount or unit is None:
        return None
    return amount if unit.startswith("s/") else 1.0 / amount


class BarReader:
    """Bars of Lightning and of whoever else shows one."""

    name = "lightning"

    def __init__(self) -> None:
        self.findings = Findings()

    def read(self, line: str) -> bool:
        """Take the step that a bar shows; a state without progress is none."""
        if "it/s" not in line and "s/it" not in line and "/s" not in line:
            return False
        if not _EPOCH.search(line) or "alidat" in line:
            return False
        made = bar_step(line)
        if made is None or not made.step:
            return False
        self.findings.steps.append(made)
        return True


class LevanterReader:
    """Levanter logs its bar as lines."""

    name = "levanter"

    def __init__(self) -> None:
        self.findings = Findings()

    def read(self, line: str) -> bool:
        """Take the step of the bar of training."""
        match = _LOGGED.search(line) if "Progress on:" in line else None
        if match is None or not match["what"].startswith("train"):
            return False
        loss = _LOSS.search(match["rest"])
        self.findings.steps.append(
            Step(
                step=whole(match["at"]),
                step_seconds=_seconds(match["rate"], match["unit"]),
                loss=number(loss[1]) if loss else None,
                rank=rank_of(line),
            )
        )
        return True


class HuggingFaceReader:
    """The dictionaries of Hugging Face's Trainer; the bar before one says which step it is of."""

    name = "hf-trainer"
    SUMMARY = ("train_runtime", "train_loss")
    TOKENS = ("tokens_per_second_per_gpu", "train_tokens_per_second_per_gpu")

    def __init__(self) -> None:
        self.findings = Findings()
        self._bar: Step | None = None

    def read(self, line: str) -> bool:
        """Take a dictionary with a loss as a step, and the last one as metrics."""
        if "%|" in line:
            self._bar = bar_step(line) or self._bar
        start = line.find("{'")
        start = start if start >= 0 else line.find('{"loss"')
        if start < 0:
            return False
        record = _dictionary(line[start : line.rfind("}") + 1])
        if record is None:
            return False
        numbers = {str(key): number(str(amount)) for key, amount in record.items()}
        if "train_runtime" in record:
            self.findings.metrics.update({key: amount for key, amount in numbers.items() if amount is not None})
            return True
        if "loss" not in record:
            return False
        step = numbers.get("step", numbers.get("global_step"))
        speeds = (numbers.get(key) for key in self.TOKENS)
        self.findings.steps.append(
            Step(
                step=whole(repr(step)) if step is not None else self._bar.step if self._bar else None,
                step_seconds=numbers.get("step_time") or (self._bar.step_seconds if self._bar else None),
                loss=numbers["loss"],
                tokens_per_s_per_device=next((speed for speed in speeds if speed is not None), None),
                tokens_per_s=numbers.get("train_tokens_per_second", numbers.get("tokens_per_second")),
                rank=rank_of(line),
            )
        )
        return True


def _dictionary(text: str) -> dict[Any, Any] | None:
    """A dictionary as Python prints it, with nan and inf, or as JSON."""
    for read in (json.loads, lambda t: ast.literal_eval(re.sub(r"(?<=[:\s,\[])(-?)(nan|inf)(?=[,}\]\s])", "None", t))):
        try:
            with warnings.catch_warnings(action="ignore"):  # Python's about escapes in what it parses
                record = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(record, dict):
            return record
    return None

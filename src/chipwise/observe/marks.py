"""What a program says that it does between steps: saves a checkpoint, evaluates, waits for data.

Words of MaxText, torchtitan, Megatron-LM, DeepSpeed, NeMo, Lightning and Hugging Face's Trainer (their repositories,
read 2026-11-19).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Pause(StrEnum):
    """What is done instead of steps."""

    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that says so."""

    pause: Pause
    line: int  # from 1


_WORDS: tuple[tuple[Pause, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        Pause.CHECKPOINT,
        ("heckpoint", "CHECKPOINT"),
        re.compile(
            r"(?i)\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing|ten)|wrote|persist\w*|stag(?:ed|ing))\b.{0,60}checkpoint"
            r"|checkpoint.{0,60}\b(?:sav(?:ed|ing)|writ(?:ten|ing)|finaliz\w+)"
        ),
    ),
    (
        Pause.EVALUATION,
        ("valuat", "alidat", "eval"),
        re.compile(
            r"(?i)\b(?:running|start(?:ing|ed)?|begin(?:ning)?|finished|completed|end of)\b.{0,20}"
            r"\b(?:validation|evaluation|eval)\b|\b(?:validation|eval(?:uation)?)[ _](?:loss|step)"
        ),
    ),
    (
        Pause.DATA,
        ("data", "Data", "batch"),
        re.compile(
            r"(?i)\bwait(?:ing|ed)\b.{0,40}\b(?:data|batch|input)"
            r"|\bdata\s?load(?:er|ing)\b.{0,40}\b(?:slow|stall\w*|wait\w*|timed? ?out|starv\w*)"
        ),
    ),
)


def mark_of(line: str, number: int) -> Mark | None:
    """What a line says is done instead of steps; None where it says nothing of it.

    >>> mark_of("saving checkpoint at iteration      40 to /data/run in torch_dist format", 7).pause.value
    'checkpoint'
    """
    for pause, words, pattern in _WORDS:
        if any(word in line for word in words) and pattern.search(line):
            return Mark(pause, number)
    return None

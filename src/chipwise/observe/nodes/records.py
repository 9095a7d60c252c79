"""Nodes with what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.observe.nodes.symptoms import Symptom
from chipwise.observe.records import Severity


class Verdict(StrEnum):
    """What is to be thought of a node."""

    SICK = "sick"  # a grave fault that is certain: nothing is to start there
    SUSPECT = "suspect"  # what is not grave, or not certain yet
    WELL = "well"


class Step(StrEnum):
    """What was done about a node in a pool."""

    DRAINED = "drained"  # now
    ALREADY = "already drained"
    RESUMED = "resumed"  # by somebody, after the fault was last seen: that counts
    TOO_MANY = "too many"  # of the pool's nodes would be drained


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A host by what its exporters said."""

    host: str
    seen: int  # seconds since 1970: the newest of its samples
    symptoms: Sequence[Symptom] = ()  # the gravest first
    pools: Sequence[str] = ()  # that have it
    name: str = ""  # as the pools' backends call it
    steps: Sequence[tuple[str, Step]] = ()  # by pool

    @property
    def verdict(self) -> Verdict:
        """By its gravest symptom."""
        if any(one.confirmed and one.severity is Severity.CRITICAL for one in self.symptoms):
            return Verdict.SICK
        return Verdict.SUSPECT if self.symptoms else Verdict.WELL

    @property
    def last_fault(self) -> int:
        """When what makes it sick was last seen."""
        return max((s.last for s in self.symptoms if s.confirmed and s.severity is Severity.CRITICAL), default=0)

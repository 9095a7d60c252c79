"""What an agent reads: one small interface for every vendor, for the host, for its kernel and for its cloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value of a series (data/series.csv) of one device; of the host itself where `device` is empty."""

    series: str
    value: float
    device: str = ""
    labels: Labels = ()


class Instrument(Protocol):
    """Something on this node that can be asked. Making one raises `Unreadable` where there is none, with the reason."""

    name: str
    every_s: float  # the least that makes sense between two looks

    def read(self) -> Sequence[Measurement]:
        """What it says now. What it can't tell is absent, not zero."""

    def close(self) -> None:
        """Let go of what is held."""

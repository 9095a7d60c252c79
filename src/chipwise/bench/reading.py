"""What a device says of itself when it is asked, and what can be asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a device; None where it says nothing."""

    time_s: float = 0.0  # time.monotonic
    power_w: float | None = None
    energy_j: float | None = None  # since some moment in the past
    utilization: float | None = None
    memory_bytes: float | None = None
    temperature_c: float | None = None
    clock_hz: float | None = None
    throttled: tuple[str, ...] | None = None


class Unreadable(Exception):
    """A source that can't be read here; the message says why, in one line."""


class Source(Protocol):
    """One device that can be asked about itself."""

    name: str

    def read(self) -> Reading:
        """How the device is now."""

    def settings(self) -> Mapping[str, float | str]:
        """Power limit, clocks and driver, as they were before anything ran."""

    def close(self) -> None:
        """Let go of the device."""


class Silent:
    """A source with nothing to say, and why."""

    name = ""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def read(self) -> Reading:
        """Nothing."""
        return Reading(time.monotonic())

    def settings(self) -> Mapping[str, float | str]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Nothing is held."""

"""TPUs through the monitoring library inside libtpu (`libtpu.sdk.tpumonitoring`): utilization, memory, throttling.

It tells neither power nor temperature nor clocks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from chipwise.bench.reading import Reading, Unreadable

UTILISATION, MEMORY, THROTTLE = "duty_cycle_pct", "hbm_capacity_usage", "tpu_throttle_score"


class TpuMonitor:
    """One chip of this host. A metric is a list of numbers as text, one per chip."""

    name = "libtpu"

    def __init__(self, index: int = 0, library: Any = None) -> None:
        self._sdk, self._index = library if library is not None else _library(), index
        self._metrics = set(self._sdk.list_supported_metrics())
        if not self._metrics & {UTILISATION, MEMORY, THROTTLE}:
            raise Unreadable("this libtpu monitors neither utilization nor memory nor throttling")

    def read(self) -> Reading:
        """How the chip is now."""
        busy = self._value(UTILISATION)
        return Reading(
            time_s=time.monotonic(),
            utilization=None if busy is None else busy / 100,
            memory_bytes=self._value(MEMORY),
            throttled=throttled(self._value(THROTTLE)),
        )

    def settings(self) -> Mapping[str, float | str]:
        """Nothing that libtpu tells."""
        return {}

    def close(self) -> None:
        """Nothing is held."""

    def _value(self, metric: str) -> float | None:
        """The chip's number, or None; a metric that can't be read is not asked again."""
        if metric not in self._metrics:
            return None
        try:
            data = self._sdk.get_metric(metric).data()
        except Exception:  # libtpu raises RuntimeError and its own kinds
            self._metrics.discard(metric)
            return None
        return nth(data, self._index)


def nth(data: Sequence[str], index: int) -> float | None:
    """The number of one chip; metrics are empty before the first program has run.

    >>> nth(["12.5", "80"], 1), nth([], 0), nth(["n/a"], 0)
    (80.0, None, None)
    """
    if index >= len(data):
        return None
    try:
        return float(data[index])
    except ValueError:
        return None


def throttled(score: float | None) -> tuple[str, ...]:
    """The throttle score in words: 0 is none, 1 to 10 that the chip is slowed by 10 to 100 %.

    >>> throttled(0.0), throttled(3.0)
    ((), ('throttled by 30 %',))
    """
    return (f"throttled by {score * 10:.0f} %",) if score else ()


def _library() -> Any:
    try:
        return import_module("libtpu.sdk").tpumonitoring
    except (ImportError, AttributeError) as error:
        raise Unreadable(f"no TPU monitoring: libtpu can't be used ({error})") from None

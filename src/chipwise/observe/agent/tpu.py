"""TPU chips of this node through libtpu's monitoring, in a process of its own.

libtpu ends the whole process where it finds no TPU, and waits for its runtime: neither must reach the agent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chipwise.bench.reading import Unreadable
from chipwise.bench.tpu import nth
from chipwise.observe.agent.child import Child
from chipwise.observe.agent.instrument import Measurement

LIMIT_S = 20.0  # for one answer, importing libtpu included
AGAIN_S = 300.0  # until a library that died is tried again
# What libtpu calls it, what it is here, and what to multiply with: names by libtpu 0.0.42.1's
# list_supported_metrics() and descriptions, 2026-11-16
METRICS: tuple[tuple[str, str, float], ...] = (
    ("duty_cycle_pct", "device_busy", 0.01),
    ("tensorcore_util", "device_tensor_active", 0.01),
    ("hbm_capacity_usage", "device_memory_used", 1.0),
    ("hbm_capacity_total", "device_memory_total", 1.0),
    ("tpu_throttle_score", "device_throttle_share", 0.1),
)
LINKS = "ici_link_health"  # per link: 0 healthy, to 5 transient, to 9 persistent but minor, 10 unusable
_DEVICES = ("accel*", "vfio/[0-9]*")
_CHILD = "chipwise.observe.agent.tpu_child"


def check_device(dev: Path) -> None:
    """Refuse a node that has no TPU."""
    if not any(path for pattern in _DEVICES for path in dev.glob(pattern)):
        raise Unreadable(f"no TPU: neither {dev}/accel* nor {dev}/vfio is there")


class TpuChips:
    """Every chip of the node."""

    name = "tpu"
    every_s = 5.0  # libtpu renews its figures about as often

    def __init__(self, argv: Sequence[str] = (), limit_s: float = LIMIT_S, dev: Path = Path("/dev")) -> None:
        if not argv:
            if find_spec("libtpu") is None:
                raise Unreadable("no TPU monitoring: libtpu is not installed")
            check_device(dev)
        names = [name for name, _, _ in METRICS]
        self._child = Child(argv or (sys.executable, "-m", _CHILD, *names, LINKS), limit_s, AGAIN_S)

    def read(self) -> Sequence[Measurement]:
        """What libtpu says; nothing before a program has run."""
        return list(measurements(json.loads(self._child.ask())))

    def close(self) -> None:
        """End the process."""
        self._child.close()


def measurements(data: dict[str, Any]) -> Sequence[Measurement]:
    """The measurements in what libtpu says: lists of numbers as text, one a chip (a core, a link) each.

    >>> [m.value for m in measurements({"duty_cycle_pct": ["12.5", "80"]})]
    [0.125, 0.8]
    """
    out = []
    for name, series, scale in METRICS:
        values = data.get(name, ())
        for place in range(len(values)):
            value = nth(values, place)
            if value is not None:
                out.append(Measurement(series, value * scale, str(place)))
    for link in data.get(LINKS, ()):
        where, colon, score = str(link).rpartition(":")
        try:
            value = float(score)
        except ValueError:
            continue
        labels = (("link", where.strip()),) if colon else ()
        out.append(Measurement("device_link_health", value, "", labels))
    return out

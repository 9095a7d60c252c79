"""What a router tells Prometheus, as text of its exposition format 0.0.4.

Written by the loop after a tick, read by the endpoint from another thread: a scrape never touches the ledger.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chipwise.route.ledger.records import PENDING, JobRow
from chipwise.route.router.loop import TickReport

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # of a tick, up to a lease
Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]


@dataclass(slots=True)
class Family:
    """A metric with its samples."""

    name: str
    kind: str
    help: str
    samples: list[Sample] = field(default_factory=list)

    def text(self) -> str:
        """As Prometheus reads it."""
        lines = [f"# HELP {self.name} {_escaped(self.help)}", f"# TYPE {self.name} {self.kind}"]
        return "\n".join(lines + [f"{name}{_labels(labels)} {_number(value)}" for name, labels, value in self.samples])


class Metrics:
    """Counts kept over ticks, and the text of the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""
        self._ticks = [0] * (len(BUCKETS_S) + 1)
        self._seconds = 0.0
        self._decisions: dict[str, int] = {"start": 0, "stop": 0, "wait": 0}
        self._failures: dict[str, int] = {}

    def count(self, report: TickReport) -> None:
        """Take a tick in."""
        self._ticks[bisect_left(BUCKETS_S, report.seconds)] += 1
        self._seconds += report.seconds
        for kind, count in report.decisions.items():
            self._decisions[kind] = self._decisions.get(kind, 0) + count
        for backend in report.down:
            self._failures[backend] = self._failures.get(backend, 0) + 1

    def write(self, report: TickReport, rows: Iterable[JobRow], totals: Mapping[str, Mapping[str, float]]) -> None:
        """Write the text anew; `report` is of the last tick."""
        text = "\n".join(family.text() for family in self._families(report, rows, totals)) + "\n"
        with self._lock:
            self._text = text

    def text(self) -> str:
        """The metrics of the last tick; nothing before the first."""
        with self._lock:
            return self._text

    def _families(
        self, report: TickReport, rows: Iterable[JobRow], totals: Mapping[str, Mapping[str, float]]
    ) -> list[Family]:
        waiting = [row.submitted for row in rows if row.state == PENDING]
        oldest = report.at - min(waiting) if waiting else 0.0
        under_way = {"intended", "submitted", "running"}
        ends = {state: n for state, n in totals["attempts"].items() if state not in under_way}
        active = {state: n for state, n in totals["attempts"].items() if state in under_way}
        up = {**dict.fromkeys(report.up, 1.0), **dict.fromkeys(report.down, 0.0)}
        pools = report.spaces
        return [
            _family("chipwise_jobs", "gauge", "Jobs in the ledger.", "state", totals["jobs"]),
            _family("chipwise_attempts_under_way", "gauge", "Attempts under way.", "state", active),
            _family("chipwise_attempts_total", "counter", "Attempts that have ended.", "end", ends),
            _family("chipwise_decisions_total", "counter", "Decisions of this router.", "kind", self._decisions),
            self._histogram(),
            _family("chipwise_backend_up", "gauge", "Whether a backend answered in the last tick.", "backend", up),
            _family(
                "chipwise_backend_silent_ticks_total",
                "counter",
                "Ticks in which a backend did not answer.",
                "backend",
                self._failures,
            ),
            _family("chipwise_pool_chips", "gauge", "Chips that work.", "pool", {k: s.total for k, s in pools.items()}),
            _family(
                "chipwise_pool_chips_free",
                "gauge",
                "Chips that jobs could start on.",
                "pool",
                {k: s.free for k, s in pools.items()},
            ),
            _family(
                "chipwise_pool_chips_held",
                "gauge",
                "Chips of attempts under way.",
                "pool",
                {**dict.fromkeys(pools, 0.0), **totals["chips"]},
            ),
            _family(
                "chipwise_spent_usd_total",
                "counter",
                "Dollars of attempts that have ended.",
                "pool",
                {**dict.fromkeys(pools, 0.0), **totals["spent"]},
            ),
            Family(
                "chipwise_oldest_wait_seconds",
                "gauge",
                "Age of the oldest job that waits; 0: none waits.",
                [("chipwise_oldest_wait_seconds", (), max(0.0, oldest))],
            ),
            Family(
                "chipwise_last_tick_timestamp_seconds",
                "gauge",
                "When the last tick began, since 1970.",
                [("chipwise_last_tick_timestamp_seconds", (), report.at)],
            ),
        ]

    def _histogram(self) -> Family:
        name, total = "chipwise_tick_seconds", 0
        found = Family(name, "histogram", "How long a tick took.")
        for bound, count in zip((*BUCKETS_S, float("inf")), self._ticks, strict=True):
            total += count
            found.samples.append((f"{name}_bucket", (("le", _number(bound)),), total))
        found.samples += [(f"{name}_sum", (), self._seconds), (f"{name}_count", (), total)]
        return found


def _family(name: str, kind: str, words: str, label: str, values: Mapping[str, float]) -> Family:
    return Family(name, kind, words, [(name, ((label, key),), value) for key, value in sorted(values.items())])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _labels(labels: Labels) -> str:
    """Labels in braces; names of pools may hold anything.

    >>> print(_labels((("pool", 'a"b'),)))
    {pool="a\\"b"}
    """
    if not labels:
        return ""
    quoted = (f'{key}="' + _escaped(value).replace('"', '\\"') + '"' for key, value in labels)
    return "{" + ",".join(quoted) + "}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))

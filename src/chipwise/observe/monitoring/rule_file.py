"""A file of rules, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from chipwise.observe.monitoring.alerts import alerts
from chipwise.observe.monitoring.recordings import PERCENTILES, recordings
from chipwise.observe.monitoring.records import Alert, Recording, Topic
from chipwise.workload.serve import Bound

_SERIES = "chipwise series"
_NEEDED = frozenset({Topic.DEVICES, Topic.SERVING})  # topics that rest on recorded series


def groups(topics: Sequence[Topic] = tuple(Topic), slo: Iterable[Bound] = ()) -> list[dict[str, Any]]:
    """The groups of rules about some topics."""
    bounds = tuple(slo)
    extra = sorted({f"{bound.percentile:g}" for bound in bounds} - set(PERCENTILES), key=float)
    out: list[dict[str, Any]] = []
    if _NEEDED & set(topics):
        out.append({"name": _SERIES, "rules": [_recording(one) for one in recordings((*PERCENTILES, *extra))]})
    for topic, own in groupby(alerts(topics, bounds), lambda alert: alert.topic):
        out.append({"name": f"chipwise {topic}", "rules": [_alert(alert) for alert in own]})
    return out


def _recording(rule: Recording) -> dict[str, Any]:
    out: dict[str, Any] = {"record": rule.record, "expr": rule.expression}
    return {**out, "labels": dict(rule.labels)} if rule.labels else out


def _alert(alert: Alert) -> dict[str, Any]:
    hold = {"for": alert.hold} if alert.hold else {}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **hold,
        "labels": {"severity": alert.severity.value, **alert.labels},
        "annotations": {"summary": alert.summary, "description": alert.action},
    }

"""Rules and panels as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chipwise.observe.records import Severity

PREFIX = "chipwise:"  # of recorded series: a colon is for what rules record, and no exporter has one of this name


class Topic(StrEnum):
    """What alerts are about."""

    DEVICES = "devices"
    SERVING = "serving"
    ROUTER = "router"
    JOBS = "jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording rule: a series made of others."""

    record: str
    expression: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alerting rule."""

    name: str
    topic: Topic
    expression: str
    hold: str  # for how long it has to be so, as Prometheus writes it; empty: at once
    severity: Severity
    summary: str
    action: str
    labels: Mapping[str, str] = field(default_factory=dict)


class PanelKind(StrEnum):
    """How Grafana draws a panel."""

    TIMESERIES = "timeseries"
    STAT = "stat"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A picture of one query."""

    dashboard: str
    row: str
    title: str
    kind: PanelKind
    unit: str  # as Grafana names it
    expression: str
    legend: str
    help: str

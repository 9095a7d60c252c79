"""Dashboards as Grafana reads them (classic JSON, Grafana 10 and newer), made of data/panels.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from chipwise.observe.data_files import rows
from chipwise.observe.monitoring.records import Panel, PanelKind

SCHEMA = 39  # of the JSON: Grafana 11's; older ones read what they know, newer ones migrate it
TAG = "chipwise"
_WIDTH, _HEIGHT = 24, 8  # of a row, and of a panel, in Grafana's grid
_WIDTHS = {PanelKind.STAT: 6, PanelKind.TIMESERIES: 8, PanelKind.TABLE: 12}
_HEIGHTS = {PanelKind.STAT: 4, PanelKind.TIMESERIES: _HEIGHT, PanelKind.TABLE: _HEIGHT}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_CHOICES = {  # variables with values of a label: the label, and a series that has it
    "host": ("host", "chipwise:device_busy"),
    "server": ("host", "chipwise:serving_running"),
    "pool": ("pool", "chipwise_pool_chips"),
    "job_id": ("job_id", "chipwise_job_step"),
}
_TITLES = {
    "fleet": ("chipwise: fleet", "Devices of every vendor: use, power, heat, faults"),
    "pool": ("chipwise: pools", "Pools of the router: chips, jobs, backends"),
    "job": ("chipwise: jobs", "Jobs against their predictions: steps, goodput, health, what is left"),
    "serving": ("chipwise: serving", "Servers: requests, KV cache, tokens, latency"),
    "cost": ("chipwise: cost", "What chips and electricity cost, held and idle"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Electricity:
    """What energy is reckoned at, until a reader of the dashboard says another."""

    usd_per_kwh: float
    pue: float


def panels() -> list[Panel]:
    """The panels of all dashboards, in their order."""
    return [
        Panel(
            dashboard=row["dashboard"],
            row=row["row"],
            title=row["title"],
            kind=PanelKind(row["kind"]),
            unit=row["unit"],
            expression=row["expr"],
            legend=row["legend"],
            help=row["help"],
        )
        for row in rows("panels.csv")
    ]


def dashboards(electricity: Electricity) -> dict[str, dict[str, Any]]:
    """The documents by the name of the dashboard."""
    return {
        name: _dashboard(name, list(own), electricity) for name, own in groupby(panels(), lambda panel: panel.dashboard)
    }


def _dashboard(name: str, own: Sequence[Panel], electricity: Electricity) -> dict[str, Any]:
    title, description = _TITLES[name]
    return {
        "uid": f"{TAG}-{name}",
        "title": title,
        "description": description,
        "tags": [TAG],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [{"type": "dashboards", "title": TAG, "tags": [TAG], "asDropdown": True, "includeVars": True}],
        "annotations": {"list": []},
        "templating": {"list": _variables(own, electricity)},
        "panels": _placed(own),
    }


def _variables(own: Sequence[Panel], electricity: Electricity) -> list[dict[str, Any]]:
    source = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"}
    choices = [
        {
            "type": "query",
            "name": name,
            "label": name,
            "datasource": _SOURCE,
            "query": {"query": f"label_values({series}, {label})", "refId": name},
            "refresh": 2,  # whenever the time range changes
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }
        for name, (label, series) in _CHOICES.items()
        if any(f"${name}" in panel.expression for panel in own)
    ]
    figures = {"usd_per_kwh": electricity.usd_per_kwh, "pue": electricity.pue}
    boxes = [
        {"type": "textbox", "name": name, "label": name, "query": f"{value:g}", "current": _text(f"{value:g}")}
        for name, value in figures.items()
        if any(f"${name}" in panel.expression for panel in own)
    ]
    return [source, *choices, *boxes]


def _text(value: str) -> Mapping[str, str]:
    return {"text": value, "value": value}


def _placed(own: Sequence[Panel]) -> list[dict[str, Any]]:
    """Panels in the grid: a row's from left to right, on the next line where there is no room."""
    out: list[dict[str, Any]] = []
    top = 0
    for name, group in groupby(own, lambda panel: panel.row):
        box = {"h": 1, "w": _WIDTH, "x": 0, "y": top}
        out.append({"id": len(out) + 1, "type": "row", "title": name, "collapsed": False, "gridPos": box, "panels": []})
        top, left, tallest = top + 1, 0, 0
        for panel in group:
            width, height = _WIDTHS[panel.kind], _HEIGHTS[panel.kind]
            if left + width > _WIDTH:
                top, left, tallest = top + tallest, 0, 0
            out.append(_panel(panel, len(out) + 1, {"h": height, "w": width, "x": left, "y": top}))
            left, tallest = left + width, max(tallest, height)
        top += tallest
    return out


def _panel(panel: Panel, number: int, box: Mapping[str, int]) -> dict[str, Any]:
    table = panel.kind is PanelKind.TABLE
    target = {
        "refId": "A",
        "datasource": _SOURCE,
        "expr": panel.expression,
        "legendFormat": panel.legend or "__auto",
        "instant": table,
        "range": not table,
        "format": "table" if table else "time_series",
    }
    options: dict[PanelKind, dict[str, Any]] = {
        PanelKind.STAT: {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}, "colorMode": "none"},
        PanelKind.TIMESERIES: {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        PanelKind.TABLE: {"showHeader": True},
    }
    return {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "gridPos": dict(box),
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": options[panel.kind],
        "targets": [target],
    }

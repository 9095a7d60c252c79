"""Rules and dashboards, as every face shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.errors import InputError
from chipwise.io.atomic import atomic_write
from chipwise.observe.monitoring.dashboards import panels
from chipwise.observe.monitoring.records import Alert, Panel
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe

ALERT_COLUMNS: tuple[Column[Alert], ...] = (
    Column("alert", lambda a: a.name, "alert", words=True),
    Column("topic", lambda a: a.topic, "about", words=True),
    Column("severity", lambda a: a.severity, "severity", words=True),
    Column("expr", lambda a: a.expression, "when", words=True, under=True, help="in PromQL"),
    Column("for", lambda a: a.hold or None, "for", lambda a: a.hold or "–", help="as long as this"),
    Column("action", lambda a: a.action, "what to do", words=True, under=True),
)
PANEL_COLUMNS: tuple[Column[Panel], ...] = (
    Column("dashboard", lambda p: p.dashboard, "dashboard", words=True),
    Column("row", lambda p: p.row, "row", words=True),
    Column("panel", lambda p: p.title, "panel", words=True),
    Column("unit", lambda p: p.unit, "", help="as Grafana names it"),
    Column("expr", lambda p: p.expression, "shows", words=True, under=True, help="in PromQL"),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rules(Result):
    """Rules for Prometheus."""

    VERB: ClassVar[str] = "observe rules"
    groups: Sequence[Mapping[str, Any]]
    alerts: Sequence[Alert]

    @property
    def text(self) -> str:
        """The file that Prometheus reads."""
        import yaml

        head = "# Written by chipwise observe rules: recording rules, and alerts on them.\n"
        return head + str(
            yaml.safe_dump({"groups": list(self.groups)}, sort_keys=False, allow_unicode=True, width=1_000)
        )

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"groups": list(self.groups)}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row an alert."""
        return [flat(ALERT_COLUMNS, alert) for alert in self.alerts]

    def blocks(self) -> list[Block]:
        """For people."""
        recorded = sum("record" in rule for group in self.groups for rule in group["rules"])
        return [
            Text(f"{plural(recorded, 'recording rule')}, {plural(len(self.alerts), 'alert')}"),
            table(ALERT_COLUMNS, self.alerts),
        ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dashboards(Result):
    """Dashboards for Grafana."""

    VERB: ClassVar[str] = "observe dashboards"
    documents: Mapping[str, Mapping[str, Any]]
    files: Sequence[Path] = ()

    def write(self, folder: Path) -> Sequence[Path]:
        """A file a dashboard, in a folder that is made where there is none."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("to", str(folder), f"a folder that can be written ({error.strerror or error})") from None
        out = []
        for name, document in self.documents.items():
            path = folder / f"chipwise-{name}.json"
            atomic_write((json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode(), path, "to")
            out.append(path)
        return out

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        shown = [record(PANEL_COLUMNS, panel) for panel in panels()]
        return {"files": [str(path) for path in self.files], "panels": shown}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a panel."""
        return [flat(PANEL_COLUMNS, panel) for panel in panels()]

    def blocks(self) -> list[Block]:
        """For people."""
        counts = f"{plural(len(self.documents), 'dashboard')}, {plural(len(panels()), 'panel')}"
        if self.files:
            return [Text(counts), *(Text(safe(str(path))) for path in self.files)]
        return [Text(counts), table(PANEL_COLUMNS, panels())]

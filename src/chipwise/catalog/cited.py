"""Numbers by name that share one source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class CitedTable:
    """Numbers by name, with where they come from and when."""

    values: Mapping[str, float]
    source: str = ""
    date: str = ""


NOTHING = CitedTable(MappingProxyType({}))


def cited_table(table: Mapping[str, Any] | None) -> CitedTable:
    """A `CitedTable` from a table whose other keys are numbers; nothing from no table."""
    if table is None:
        return NOTHING
    values = {name: float(value) for name, value in table.items() if name not in ("source", "date")}
    return CitedTable(MappingProxyType(values), table["source"], table["date"])

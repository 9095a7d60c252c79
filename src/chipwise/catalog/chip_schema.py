"""The JSON Schema (2020-12) of a file that describes a chip, made of what its reader accepts."""

from __future__ import annotations

import json
import re
from typing import Any

from chipwise.catalog.chip import DTYPES
from chipwise.catalog.chip_file import CITATION, DATE, ID, MEASURES, MISSING_PRECISION, MOST_USD, PEAK, Measure
from chipwise.units import units_of

WORDS = {
    "memory": "Memory of a chip.",
    "usable_memory": "What of it a program can have.",
    "bandwidth": "Of the memory.",
    "onchip_memory": "Caches or scratch memory on the chip.",
    "cores": "Streaming multiprocessors, compute units or cores.",
    "clock": "Of the matrix units, boosted.",
    "power": "Most power.",
    "idle_power": "Power without work.",
    "links": "All fast links of a chip, one way.",
    "linked_chips": "Chips that the fast links join.",
    "host_chips": "Chips of a host.",
    "network": "Of a chip, one way.",
    "host_link": "Between a chip and its host.",
}
_NUMBER = r"(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d{1,3})?"
_TEXT = {"type": "string", "minLength": 1}
_DAY = {
    "anyOf": [{"type": "string", "pattern": f"^{DATE.pattern}$"}, {"type": "integer", "minimum": 2000, "maximum": 2099}]
}


def schema() -> dict[str, Any]:
    """The schema.

    >>> schema()["required"], schema()["properties"]["bandwidth"]["description"]
    (['name', 'like'], 'Of the memory.')
    """
    peak = {"anyOf": [{"const": MISSING_PRECISION}, *_entry(_quantity(PEAK))]}
    price = [{"type": "number", "exclusiveMinimum": 0, "maximum": MOST_USD}, _TEXT]
    properties: dict[str, Any] = {
        "name": {"type": "string", "pattern": f"^({ID.pattern})$", "description": "What to call the chip."},
        "like": {**_TEXT, "description": "A known chip that has all figures which the file leaves out."},
        "title": {**_TEXT, "description": "A longer name."},
        "source": {"type": "string", "description": "Where the figures are from that name no source."},
        "date": {**_DAY, "description": "Of that source."},
        "note": {"type": "string", "description": "Shown beside the figures."},
        "peak": {
            "type": "object",
            "description": f"Dense rates by precision; {MISSING_PRECISION}: the chip lacks it.",
            "properties": dict.fromkeys(DTYPES, peak),
            "additionalProperties": False,
        },
        **{
            key: {"anyOf": _entry(_quantity(measure)), "description": WORDS[key], "examples": [_example(measure)]}
            for key, measure in MEASURES.items()
        },
        "price": {"anyOf": _entry({"anyOf": price}), "description": "Of a chip-hour: US dollars, or in any currency."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "chipwise chip",
        "type": "object",
        "properties": properties,
        "required": ["name", "like"],
        "additionalProperties": False,
    }


def schema_text() -> str:
    """The schema as `chipwise schema chip` prints it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _example(measure: Measure) -> object:
    return int(measure.such) if measure.unit == "count" else measure.such


def _quantity(measure: Measure) -> dict[str, Any]:
    if measure.unit == "count":
        count = {"type": "integer", "minimum": measure.least, "maximum": measure.most}
        return {"anyOf": [count, {"type": "string", "pattern": rf"^\s*(?=[\d.]){_NUMBER}\s*[kKmM]?\s*$"}]}
    names = "|".join(sorted(map(re.escape, units_of(measure.unit)), key=len, reverse=True))
    return {"type": "string", "pattern": rf"^\s*(?=[\d.]){_NUMBER}\s*({names})(\s+one way)?\s*$"}


def _entry(value: dict[str, Any]) -> list[dict[str, Any]]:
    """A figure alone, or with where it is from."""
    cited = {"value": value, "source": {"type": "string"}, "date": _DAY, "note": {"type": "string"}}
    assert tuple(cited) == CITATION
    return [value, {"type": "object", "properties": cited, "required": ["value"], "additionalProperties": False}]

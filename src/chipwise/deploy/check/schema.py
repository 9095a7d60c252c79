"""Documents held to a schema: types, fields that exist, values that are listed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
Violation = tuple[str, str, str]  # the field, what is wrong, what would do


def violations(value: Any, schema: Mapping[str, Any], field: str) -> Iterator[Violation]:
    """What is wrong with a value, field by field.

    >>> list(violations({"clusterQeue": "a"}, {"type": "object", "properties": {"clusterQueue": {}},
    ...      "additionalProperties": False}, "spec"))
    [('spec.clusterQeue', 'no such field', 'clusterQueue')]
    """
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else list(kinds or [])
    if names and not any(_is(value, name) for name in names):
        yield field, f"{_shown(value)} is no {' or '.join(names)}", f"a value of type {' or '.join(names)}"
        return
    if "const" in schema and value != schema["const"]:
        yield field, f"{_shown(value)} is not accepted", str(schema["const"])
    if "enum" in schema and value not in schema["enum"]:
        yield field, f"{_shown(value)} is not accepted", f"one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        yield from _object(value, schema, field)
    elif isinstance(value, list):
        yield from _items(value, schema, field)


def nearest(name: str, names: Iterable[str]) -> str:
    """The names nearest to one that is unknown, or the first of all."""
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    return " or ".join(near) if near else f"one of {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"


def _object(value: dict[str, Any], schema: Mapping[str, Any], field: str) -> Iterator[Violation]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{field}.{name}", "missing", f"set {name}"
    if len(value) > schema.get("maxProperties", len(value)):
        yield field, f"{len(value)} entries", f"at most {schema['maxProperties']}"
    for name, inner in value.items():
        if name in properties:
            yield from violations(inner, properties[name], f"{field}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{field}.{name}", "no such field", nearest(str(name), properties)


def _items(value: list[Any], schema: Mapping[str, Any], field: str) -> Iterator[Violation]:
    if len(value) > schema.get("maxItems", len(value)) or len(value) < schema.get("minItems", 0):
        yield field, f"{len(value)} entries", f"{schema.get('minItems', 0)} to {schema.get('maxItems', 'any number')}"
    for index, inner in enumerate(value):
        yield from violations(inner, schema.get("items", {}), f"{field}[{index}]")


def _is(value: Any, name: str) -> bool:
    expected = TYPES[name]
    return isinstance(value, expected) and (name == "boolean" or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

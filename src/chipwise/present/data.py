"""Values as JSON and CSV have them: SI units, no NaN, an estimate with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

ENDS = ("value", "low", "high")  # what makes a record an estimate


def to_data(value: Any) -> Any:
    """A value as JSON has it: results, estimates and records by their `to_dict`; what isn't finite is null.

    >>> to_data({"share": 0.5, "high": float("inf"), "shape": (4, 4)})
    {'share': 0.5, 'high': None, 'shape': [4, 4]}
    """
    if hasattr(value, "to_dict"):
        return to_data(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_data(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value


def flatten(key: str, value: Any) -> dict[str, Any]:
    """A value as columns of a flat table: an estimate is `key`, `key_low` and `key_high`, a record a column a field
    (its `name` that of the key).

    >>> flatten("step_seconds", {"value": 2.0, "low": 1.0, "high": 3.0, "evidence": "modelled"})
    {'step_seconds': 2.0, 'step_seconds_low': 1.0, 'step_seconds_high': 3.0}
    >>> flatten("shape", [4, 4]), flatten("price", {"usd": 2, "cloud": "gcp"})
    ({'shape': '4 4'}, {'price_usd': 2, 'price_cloud': 'gcp'})
    """
    value = to_data(value)
    if isinstance(value, dict):
        if all(end in value for end in ENDS):
            return {key: value["value"], f"{key}_low": value["low"], f"{key}_high": value["high"]}
        out: dict[str, Any] = {}
        for field, item in value.items():
            out |= flatten(key if field == "name" else f"{key}_{field}", item)
        return out
    if isinstance(value, list):
        return {key: " ".join(map(str, value))}
    return {key: value}

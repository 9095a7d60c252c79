"""A short `repr` for records that hold tables, calibrations or runs: a notebook shows it, and nobody reads pages."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

C = TypeVar("C")
MOST = 300  # characters of a record
EACH = 48  # of a field


def brief(cls: type[C]) -> type[C]:
    """A dataclass whose `repr` has its plain fields, and of others what they are.

    >>> from dataclasses import dataclass
    >>> @brief
    ... @dataclass
    ... class Run:
    ...     name: str
    ...     seconds: list[float]
    >>> Run("first", [1.0] * 1000)
    Run(name='first', seconds=<1000 items>)
    """
    cls.__repr__ = _shown  # type: ignore[method-assign]
    return cls


def _shown(record: Any) -> str:
    parts = [f"{field.name}={_value(getattr(record, field.name))}" for field in fields(record) if field.repr]
    inside = ", ".join(parts)
    return f"{type(record).__name__}({inside if len(inside) <= MOST else inside[:MOST] + '...'})"


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        text = repr(value)
        return text if len(text) <= EACH else f"{text[:EACH]}..."
    if hasattr(value, "__len__"):
        return f"<{len(value)} items>"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    return f"<{type(value).__name__}>" if len(repr(value)) > EACH else repr(value)

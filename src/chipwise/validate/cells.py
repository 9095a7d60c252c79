"""Cells of published rows as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from chipwise.errors import InputError


def has(row: Mapping[str, str], key: str) -> bool:
    """Whether a cell says anything."""
    return bool(row.get(key, "").strip())


def number(row: Mapping[str, str], key: str, default: float = 0.0) -> float:
    """A cell's number, also of a limit (``<= 1024``)."""
    text = row.get(key, "").strip()
    if not text:
        return default
    match = re.match(r"[<=~ ]*([-+0-9.eE]+)", text)
    try:
        value = float(match[1]) if match else float(text)
    except ValueError:
        raise InputError(key, text, "a number") from None
    if not 0 <= value < 1e15:
        raise InputError(key, text, "a finite number that isn't negative")
    return value


def some(row: Mapping[str, str], key: str) -> float:
    """A cell's number, which is above 0."""
    value = number(row, key)
    if value <= 0:
        raise InputError(key, row.get(key, ""), "a number above 0")
    return value

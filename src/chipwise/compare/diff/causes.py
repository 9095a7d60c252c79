"""Why a row of a comparison changed: its price, count, layout, software or evidence, the question, or the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.units import format_seconds

SAME = 1e-4  # of a number: rounding, not a change
KINDS = ("question", "price", "count", "layout", "software", "evidence", "model")


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is no longer as it was."""

    kind: str  # one of `KINDS`
    before: Any
    after: Any
    words: str


def causes(before: Mapping[str, Any], after: Mapping[str, Any], question: bool) -> tuple[Cause, ...]:
    """What changed in a row; `question`: another one was asked, which explains what nothing else does."""
    found = [*_price(before, after), *_count(before, after), *_layout(before, after)]
    for kind, key, words in (("software", "stack", "software"), ("evidence", "", "evidence")):
        old, new = (row.get(key) if key else evidence(row) for row in (before, after))
        if old != new:
            found.append(Cause(kind, old, new, f"{words} {old or 'none'} to {new or 'none'}"))
    found += _time(before, after, question, bool({"count", "layout", "software", "evidence"} & {c.kind for c in found}))
    return tuple(sorted(found, key=lambda cause: KINDS.index(cause.kind)))


def evidence(row: Mapping[str, Any]) -> str:
    """What the times of a row rest on."""
    for key in ("step_seconds", "unloaded_seconds"):
        if isinstance(row.get(key), Mapping):
            return str(row[key].get("evidence", ""))
    return ""


def percent(before: float, after: float) -> str:
    """A change in percent.

    >>> percent(4.0, 3.0), percent(1.0, 1.005), percent(0.0, 1.0)
    ('-25 %', '+0.5 %', 'from nothing')
    """
    if not before:
        return "from nothing"
    change = (after / before - 1) * 100
    return f"{change:+.0f} %" if abs(change) >= 1 else f"{change:+.1f} %"


def _price(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Cause]:
    old, new = before.get("ondemand"), after.get("ondemand")
    if old is None and new is None:
        return []
    if old is None or new is None:
        words = "no longer has a public price" if new is None else f"has a price now: {_offer(new)}"
        return [Cause("price", old, new, words)]
    a, b = (float(quote.get("usd_per_chip_hour") or 0.0) for quote in (old, new))
    if not _differ(a, b):
        return []
    return [Cause("price", a, b, f"price {_offer(old)} to {_offer(new)} ({percent(a, b)})")]


def _offer(quote: Mapping[str, Any]) -> str:
    return f"${quote.get('usd_per_chip_hour') or 0.0:.2f}/h ({quote.get('cloud') or 'own'}, {quote.get('date')})"


def _count(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Cause]:
    old, new = (row["accelerators"] for row in (before, after))
    if old["name"] == new["name"]:
        return []
    if old.get("count") == new.get("count"):
        return [Cause("count", old["name"], new["name"], f"slices {old['name']} to {new['name']}")]
    return [Cause("count", old.get("count"), new.get("count"), f"{old.get('count')} to {new.get('count')} chips")]


def _layout(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Cause]:
    old, new = _split(before), _split(after)
    return [Cause("layout", old, new, f"layout {old} to {new}")] if old != new else []


def _split(row: Mapping[str, Any]) -> str:
    """How the work is split: the layout of a run, that of a replica of a service."""
    split = row.get("split")
    return str(split.get("name", "")) if isinstance(split, Mapping) else str(row.get("layout", ""))


def _time(before: Mapping[str, Any], after: Mapping[str, Any], question: bool, explained: bool) -> list[Cause]:
    """The time that changed: by the question, by another cause, or else by the model (a calibration or a version)."""
    for key, name in (("step_seconds", "step"), ("unloaded_seconds", "unloaded time")):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            a, b = float(old["value"]), float(new["value"])
            if not _differ(a, b):
                return []
            words = f"{name} {format_seconds(a)} to {format_seconds(b)} ({percent(a, b)})"
            if question:
                return [Cause("question", a, b, words)]
            return [] if explained else [Cause("model", a, b, words)]
    return []


def _differ(a: float, b: float) -> bool:
    return abs(a - b) > SAME * max(abs(a), abs(b))

"""Assumptions in a file (YAML): figures of one's own, dated and sourced, in place of those of the same names.

`chipwise observe rates --to FILE` writes one of what a ledger's jobs met; people write others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any

from chipwise.catalog.economics import CHIP_IDLE_WATTS, CHIP_WATTS, Assumption, Basis, Economics, check_amount
from chipwise.catalog.files import rows
from chipwise.catalog.load import load
from chipwise.errors import BrokenFile, InputError, UnknownName
from chipwise.io.atomic import atomic_write
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text

OWNED = "owned"  # the cloud of chips of one's own
BY_CLOUD = (  # assumptions that are asked for by cloud: these may be of one cloud alone
    "failure_chip_hour",
    "spot_per_hour",
    "price_drift",
    "spot_price_drift",
    "egress_usd_gb",
    "storage_usd_gb_month",
    "restart_s",
    "checkpoint_gb_s_node",
    "checkpoint_gb_s_all",
    "checkpoints_kept",
    "engineer_week_usd",
)
TOP = ("assumptions", "date", "source")
FIGURE = ("value", "low", "high", "evidence", "note")
SUCH = "`assumptions: {failure_chip_hour.aws: {value: 1.0e-5, low: 6.0e-6, high: 2.0e-5}}`, a date and a source"


def read_assumption_file(path: Path, know: Economics) -> tuple[Assumption, ...]:
    """The figures of a file; every one names what it replaces."""
    raw = parse_yaml(read_text(path, MAX_YAML_BYTES, "assumptions_file"), path.name, such=SUCH)
    wrong = next((key for key in raw if key not in TOP), None)
    if wrong is not None:
        raise UnknownName(path.name, wrong, TOP, what="key")
    day, source, figures = raw.get("date"), raw.get("source"), raw.get("assumptions")
    if not isinstance(figures, dict) or not figures:
        raise BrokenFile(f"{path.name} assumptions", "nothing" if not figures else str(figures), f"figures: {SUCH}")
    for name, text in (("date", day), ("source", source)):
        if not isinstance(text, str) or not text.strip():
            raise BrokenFile(f"{path.name} {name}", "nothing" if text is None else str(text), f"a {name} as text")
    try:
        date.fromisoformat(str(day))
    except ValueError:
        raise BrokenFile(f"{path.name} date", str(day), "a day such as 2026-11-19") from None
    read = [_figure(path.name, name, figure, know, str(source), str(day)) for name, figure in figures.items()]
    return (*_of_clouds(read, know), *read)


def write_assumption_file(path: Path, figures: Sequence[Assumption], source: str, day: date) -> None:
    """Write figures that `read_assumption_file` reads."""
    lines = [f"date: {_text(day.isoformat())}", f"source: {_text(source)}", "assumptions:"]
    for figure in figures:
        lines.append(f"  {figure.name}:  # {figure.unit}")
        lines += [f"    {end}: {getattr(figure, end)!r}" for end in ("value", "low", "high")]
        lines += [f"    evidence: {figure.evidence.value}", f"    note: {_text(figure.note)}"]
    atomic_write(("\n".join(lines) + "\n").encode(), path, "to")


def _of_clouds(figures: Sequence[Assumption], know: Economics) -> list[Assumption]:
    """A figure of no cloud is that of all clouds, but for those that the file has apart."""
    return [
        replace(figure, name=name)
        for figure in figures
        for name in know.table
        if figure.name in BY_CLOUD and name.startswith(f"{figure.name}.")
    ]


def _text(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)  # JSON's strings are YAML's


def _figure(file: str, name: str, figure: Any, know: Economics, source: str, day: str) -> Assumption:
    replaced, where = _replaced(file, name, know), f"{file} {name}"
    if not isinstance(figure, Mapping):
        raise InputError(where, str(figure), f"a mapping of {', '.join(FIGURE)}")
    wrong = next((key for key in figure if key not in FIGURE), None)
    if wrong is not None:
        raise UnknownName(where, str(wrong), FIGURE, what="key")
    amounts = {end: _amount(f"{where}.{end}", figure.get(end)) for end in ("value", "low", "high")}
    for end, amount in amounts.items():
        check_amount(f"{name}.{end}", amount, replaced.unit, file)
    low, value, high = amounts["low"], amounts["value"], amounts["high"]
    if not low <= value <= high:
        raise InputError(where, f"{low:g} to {high:g}", f"a range that holds the value, {value:g}")
    if low == 0.0 and replaced.low > 0.0:
        raise InputError(f"{where}.low", low, "more than 0")
    basis, note = figure.get("evidence", Basis.GIVEN.value), figure.get("note", "")
    if basis not in list(Basis):
        raise UnknownName(f"{where}.evidence", str(basis), list(Basis), what="evidence")
    if not isinstance(note, str):
        raise InputError(f"{where}.note", str(note), "text")
    evidence = Basis(basis)
    return replace(
        replaced,
        name=name,
        value=value,
        low=low,
        high=high,
        source=f"{evidence.value}: {source}" if evidence is not Basis.PUBLISHED else source,
        date=day,
        note=note,
        evidence=evidence,
    )


def _replaced(file: str, name: str, know: Economics) -> Assumption:
    """What a figure stands in place of: the one of its cloud, or that of all clouds."""
    if name in know.table:
        return know.table[name]
    base, _, cloud = name.partition(".")
    if base in (CHIP_WATTS, CHIP_IDLE_WATTS):
        return of_chip(file, base, cloud)
    clouds = [row["cloud"] for row in rows("clouds.csv")]
    if base not in BY_CLOUD or base not in know.table:
        raise UnknownName(f"{file} assumptions", name, know.table, "; docs/cost.md lists them", what="assumption")
    if cloud not in (*clouds, OWNED):
        raise UnknownName(f"{file} {base}", cloud, (*clouds, OWNED), what="cloud")
    return know(base, cloud)


def of_chip(file: str, base: str, name: str) -> Assumption:
    """What the power of a chip is without a figure: between what its data sheet says of idling and of the most."""
    chip = load().chips.get(name)
    if chip is None:
        raise UnknownName(f"{file} {base}", name, load().chips, what="chip")
    value = chip.idle_w if base == CHIP_IDLE_WATTS else chip.tdp_w
    return Assumption(f"{base}.{name}", value, chip.idle_w, chip.tdp_w, "W", "its data sheet", "", "")


def _amount(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(where, "nothing" if value is None else str(value), "a number")
    return float(value)

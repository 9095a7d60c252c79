"""A demand file for `fleet plan`, with what it rests on beside each figure, so that people can review and change it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from chipwise.observe.demand.records import Case, Expected, Kind, Past, Trend, month_name
from chipwise.present.numbers import plural
from chipwise.route.pool import Pool
from chipwise.units import HOUR, format_seconds

MONTH_S = 365.25 * 24 * HOUR / 12
FILLED = 0.8  # of the time between runs' beginnings and a window's end that runs one after another may fill (own)
FEWEST_RUNS = 2  # in a window: fewer are asked for in longer ones
OWNED = frozenset({"owned", "reserved"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDemand:
    """A workload as it was wanted, and as it will be."""

    past: Past
    trend: Trend


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a file is of, beside the workloads."""

    name: str
    case: Case
    source: str  # in words
    day: str
    first: int  # month
    months: int
    pools: Sequence[Pool]
    chips: Sequence[str]  # that may be rented


def demand_text(demands: Sequence[WorkloadDemand], frame: Frame) -> str:
    """The file."""
    which = "the median of each month" if frame.case is Case.LIKELY else f"the {frame.case} end of 90 % intervals"
    lines = [
        f"# Demand observed: {frame.source}, on {frame.day}; {which}.",
        "# `chipwise fleet plan` plans it. Growth and intervals stand beside each workload: change what you know best.",
        f"name: {_text(frame.name)}",
        f"start: {month_name(frame.first)}",
        f"months: {frame.months}",
        "workloads:",
    ]
    for one in demands:
        lines += _workload(one, frame)
    if frame.chips:
        lines += ["candidates:", *(f"  - {{chip: {chip}}}" for chip in frame.chips)]
    existing = [pool for pool in frame.pools if pool.terms in OWNED and pool.family != "cpu" and pool.count > 0]
    if existing:
        lines.append(
            "existing:  # chips that are paid for: those of the pools file, which says neither since nor until when"
        )
        lines += [_existing(pool) for pool in existing]
    return "\n".join(lines) + "\n"


def _workload(one: WorkloadDemand, frame: Frame) -> Iterator[str]:
    past, trend = one.past, one.trend
    unit = "requests/s" if past.kind is Kind.SERVICE else "runs a month"
    span = f"{month_name(past.months[0].index)} to {month_name(past.months[-1].index)}"
    amounts = ", ".join(f"{month.amount / _per(past, month.share):.3g}" for month in past.months[-12:])
    yield f"  # {past.name}: {plural(past.jobs, 'job')}, {past.chip_hours:,.4g} chip-hours, {span}; {unit}: {amounts}"
    first, last = trend.months[0], trend.months[-1]
    yield (
        f"  # {unit} in {month_name(first.index)}: {_range(first)}; in {month_name(last.index)}: {_range(last)}; "
        f"growth a month {trend.growth:+.1%} ({trend.growth_low:+.1%} to {trend.growth_high:+.1%})"
    )
    if past.declared:
        yield "  # the rate is the workload's own: nothing that its servers printed is to be had"
    if past.counted:
        yield "  # by what its servers counted, where they printed nothing"
    if past.kind is Kind.SERVICE:
        yield from _entry(past.name, past.workload, "serve", _serve(past, trend, frame.case))
        return
    if past.run_seconds is not None:
        yield f"  # a run held its chips for {format_seconds(past.run_seconds)} (median), {_chips(past)} of them"
    windows = list(_windows(past, trend, frame))
    if not windows:
        yield "  # too few are expected for a run within the plan: left out"
    for name, settings in windows:
        yield from _entry(name, past.workload, "train", settings)


def _entry(name: str, workload: Mapping[str, object], section: str, settings: Mapping[str, str]) -> Iterator[str]:
    inside = ", ".join(f"{key}: {value}" for key, value in settings.items())
    yield f"  - name: {_text(name)}"
    yield f"    {section}: {{{inside}}}"
    yield f"    workload: {json.dumps(workload, ensure_ascii=False)}"


def _per(past: Past, share: float) -> float:
    return share if past.kind is Kind.RUNS else 1.0


def _range(month: Expected) -> str:
    return f"{month.value:.3g} ({month.low:.3g} to {month.high:.3g})"


def _chips(past: Past) -> str:
    return " or ".join(str(count) for count in past.chips) or "an unknown number"


def _serve(past: Past, trend: Trend, case: Case) -> dict[str, str]:
    rates = ", ".join(f"{month_name(month.index)}: {month.of(case):.6g}" for month in trend.months)
    settings = {"rates": f"{{{rates}}}"}
    if past.peak is not None:
        settings |= {"peak": f"{past.peak.times:.3g}", "peak_hours": past.peak.hours}
    return settings


def _windows(past: Past, trend: Trend, frame: Frame) -> Iterator[tuple[str, dict[str, str]]]:
    """Runs one after another in windows of months, alike ones told together; in lanes where one would not hold them."""
    wanted = [month.of(frame.case) for month in trend.months]
    total = sum(wanted)
    if round(total) < 1:
        return
    lengths = [n for n in range(1, frame.months + 1) if frame.months % n == 0]
    length = next((n for n in lengths if total * n / frame.months >= FEWEST_RUNS), frame.months)
    ends = [sum(wanted[:month]) for month in range(0, frame.months + 1, length)]
    counts = [round(after) - round(before) for before, after in pairwise(ends)]
    place = 0
    while place < len(counts):
        many = 1
        while place + many < len(counts) and counts[place + many] == counts[place]:
            many += 1
        runs = counts[place]
        begin, end = frame.first + place * length, frame.first + (place + many) * length - 1
        lanes = _lanes(runs, past.run_seconds, length)
        for lane in range(lanes):
            theirs = runs // lanes + (lane < runs % lanes)
            if theirs:
                settings = {"runs": str(theirs), "every": str(length)} if many > 1 else {"runs": str(theirs)}
                settings |= {"start": month_name(begin), "deadline": month_name(end)}
                whole = place == 0 and many == len(counts)
                name = (
                    past.name + ("" if whole else f" from {month_name(begin)}") + (f" #{lane + 1}" if lanes > 1 else "")
                )
                yield name, settings
        place += many


def _lanes(runs: int, run_seconds: float | None, months: int) -> int:
    """How many lanes runs take that last as long as those that were seen."""
    return max(1, min(runs, ceil(runs * (run_seconds or 0.0) / (months * MONTH_S * FILLED))))


def _existing(pool: Pool) -> str:
    settings = {"contract": _text(f"pool {pool.name}"), "chip": pool.chip, "chips": str(pool.count)}
    if pool.cloud:
        settings["cloud"] = pool.cloud
        if pool.region:
            settings["region"] = _text(pool.region)
    settings["usd_chip_hour"] = "0" if pool.terms == "owned" else f"{pool.usd_per_chip_hour:g}"
    return "  - {" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"


def _text(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)  # JSON's strings are YAML's

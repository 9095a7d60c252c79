"""Requests a second of an attempt of a service, by hours: by what its server printed, else by what it counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from chipwise.observe.goodput.from_ledger import zone_of
from chipwise.observe.log import Log
from chipwise.observe.records import ServingWindow
from chipwise.observe.serving.counters import Counted, requests_per_s
from chipwise.units import HOUR
from chipwise.workload.serve import ServingWorkload

Rate = tuple[int, str, float]  # place of a window in the log, its engine, requests/s


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRates:
    """Requests a second in hours that were told of, and all in all."""

    by_hour: Mapping[int, float]
    mean: float


def printed_rates(log: Log, workload: ServingWorkload, span: tuple[float, float]) -> RequestRates | None:
    """By the windows of a log: all engines that print in it together."""
    rates = [
        (place, window.engine, rate)
        for place, window in enumerate(log.serving)
        if (rate := _requests_per_s(window, workload)) is not None
    ]
    if not rates:
        return None
    zone, theirs = zone_of(log, *span), _places(rates)
    by_hour: dict[int, list[Rate]] = {}
    for row in rates:
        at = log.serving[row[0]].at
        if at is not None and zone is not None:
            by_hour.setdefault(int((at + zone) // HOUR), []).append(row)
    return RequestRates(
        by_hour={hour: _together(rows, theirs) for hour, rows in by_hour.items()}, mean=_together(rates, theirs)
    )


def counted_rates(counted: Counted, workload: ServingWorkload) -> RequestRates | None:
    """By the counters of its engines."""
    serve = workload.serve
    by_hour = requests_per_s(counted, serve.output.mean, serve.input.mean * (1 - serve.prefix_hit))
    seconds = sum(counted.seconds[hour] for hour in by_hour)
    if not seconds:
        return None
    return RequestRates(
        by_hour=by_hour, mean=sum(rate * counted.seconds[hour] for hour, rate in by_hour.items()) / seconds
    )


def add_requests(hours: dict[int, float], rates: RequestRates, span: tuple[float, float]) -> set[int]:
    """Count the requests of an attempt by hour; those hours of which nothing is told, at the mean of all others."""
    silent = set()
    hour = int(span[0] // HOUR)
    while hour * HOUR < span[1]:
        seconds = min(span[1], (hour + 1) * HOUR) - max(span[0], hour * HOUR)
        if hour not in rates.by_hour:
            silent.add(hour)
        hours[hour] = hours.get(hour, 0.0) + rates.by_hour.get(hour, rates.mean) * seconds
        hour += 1
    return silent


def _places(rates: Sequence[Rate]) -> dict[str, tuple[float, float]]:
    """The part of a log in which each engine prints: from one usual gap before its first line to one after its last.

    Engines of one server print in turns; one that took another's place prints behind it.
    """
    by_engine: dict[str, list[int]] = {}
    for place, engine, _ in rates:
        by_engine.setdefault(engine, []).append(place)
    out = {}
    for engine, places in by_engine.items():
        gaps = [after - before for before, after in pairwise(places)]
        gap = median(gaps) if gaps else len(by_engine)
        out[engine] = (places[0] - gap, places[-1] + gap)
    return out


def _together(rates: Sequence[Rate], places: Mapping[str, tuple[float, float]]) -> float:
    """What engines serve at once: the mean of each, for the part of these windows in which it prints."""
    first, last = rates[0][0], rates[-1][0] + 1
    by_engine: dict[str, list[float]] = {}
    for _, engine, rate in rates:
        by_engine.setdefault(engine, []).append(rate)
    shares = {
        engine: (min(places[engine][1], last) - max(places[engine][0], first)) / (last - first) for engine in by_engine
    }
    covered = max(1e-9, min(1.0, sum(shares.values())))
    return sum(sum(theirs) / len(theirs) * shares[engine] for engine, theirs in by_engine.items()) / covered


def _requests_per_s(window: ServingWindow, workload: ServingWorkload) -> float | None:
    """By the tokens written, else by those read: of a model that writes nothing, and of a window that does not say."""
    for rate, tokens in (
        (window.generation_tokens_per_s, workload.serve.output.mean),
        (window.prompt_tokens_per_s, workload.serve.input.mean * (1 - workload.serve.prefix_hit)),
    ):
        if rate is not None and tokens > 0:
            return rate / tokens
    return None

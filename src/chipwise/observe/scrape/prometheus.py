"""Telemetry that a Prometheus has already, by its query API: window after window, mapped to the same series.

A value counts for the step in which it was scraped and for no other: what Prometheus has no sample of is absent.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request

from chipwise.errors import ChipwiseError, InputError
from chipwise.observe.exporters import PREFIX, Sample, mapping, sample_of, without_port
from chipwise.observe.scrape.fetch import UNANSWERED, TooLarge, fetch, http_url, problem_of
from chipwise.observe.scrape.scraper import Page, Tell
from chipwise.observe.store.store import TelemetryStore

TIMEOUT_S = 60.0  # of one query
SETTLE_S = 10  # what was scraped within them may not be stored yet
MOST_POINTS = 120  # of a query: Prometheus takes 11,000, and what it answers has to be held
OVERWRITTEN = "exported_"  # what Prometheus calls a label that it had to make room for


class Unanswered(StrEnum):
    """Why a query has no answer."""

    TOO_MUCH = "too much"  # it can be asked in parts
    REFUSED = "refused"
    SILENT = "silent"


class PrometheusError(ChipwiseError):
    """A query that was not answered."""

    def __init__(self, reason: Unanswered, problem: str) -> None:
        self.reason, self.problem = reason, problem
        super().__init__(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A Prometheus, or what speaks as one, and what is wanted of it."""

    url: str
    token: str = field(default="", repr=False)
    match: str = ""  # matchers of labels, as PromQL has them between braces
    step_s: int


def server_url(text: str) -> str:
    """The address of a Prometheus, without a stroke at its end.

    >>> server_url("prometheus:9090"), server_url("https://metrics.example.com/tenant/")
    ('http://prometheus:9090', 'https://metrics.example.com/tenant')
    """
    expected = "http://host:9090, without a user, a password or a query"
    url, parts = http_url(text, "prometheus", expected)
    if parts.query or parts.username:
        raise InputError("prometheus", text, expected)
    return url.rstrip("/")


def pull(
    server: Server, store: TelemetryStore, since: int, interval_s: float, rounds: int | None, tell: Tell
) -> list[Page]:
    """Keep what a Prometheus has since a moment, then what is new, so many rounds or until stopped; the last page.

    A round that fails is told once, and asked again from where it was.
    """
    done, position, problem = 0, since // server.step_s * server.step_s, ""
    page = Page(server.url)
    while True:
        began = time.time()
        end = int(began - SETTLE_S) // server.step_s * server.step_s
        try:
            while position < end:
                until = min(end, position + MOST_POINTS * server.step_s)
                page = _keep(server, store, position, until, tell)
                position = until
        except PrometheusError as error:
            if not problem:
                tell(f"{server.url}: {error.problem}")
            problem, page = error.problem, Page(server.url, problem=error.problem)
        else:
            if problem:
                tell(f"{server.url} answers again")
            problem = ""
        done += 1
        if rounds is not None and done >= rounds:
            return [page]
        time.sleep(max(0.0, interval_s - (time.time() - began)))


def _keep(server: Server, store: TelemetryStore, since: int, until: int, tell: Tell) -> Page:
    """Keep one window: every step after `since`, up to `until`."""
    by_moment: dict[int, list[Sample]] = defaultdict(list)
    names = [*mapping(), *(PREFIX + name for name, mapped in mapping().items() if mapped.exporter == "amd")]
    for row in _parts(server, names, since + server.step_s, until):
        for at, sample in _samples(row):
            by_moment[at].append(sample)
    late = 0
    for at in sorted(by_moment):
        unique = {(one.series, one.host, one.device, one.labels) for one in by_moment[at]}
        late += len(unique) - store.write(by_moment[at], at)
    if late > 0:
        tell(f"{server.url}: {late} values are older than what is packed already, and left out")
    store.roll_up(until)
    return Page(server.url, [sample for samples in by_moment.values() for sample in samples])


def _parts(server: Server, names: Sequence[str], since: int, until: int) -> Iterator[Mapping[str, object]]:
    """The series of a window; asked in halves where that is too much at once."""
    try:
        yield from _query(server, names, since, until)
    except PrometheusError as error:
        steps = (until - since) // server.step_s
        if error.reason is not Unanswered.TOO_MUCH or (steps < 1 and len(names) < 2):
            raise
        if steps >= 1:
            middle = since + steps // 2 * server.step_s
            halves = [(names, since, middle), (names, middle + server.step_s, until)]
        else:
            halves = [(names[: len(names) // 2], since, until), (names[len(names) // 2 :], since, until)]
        for half in halves:
            yield from _parts(server, *half)


def _query(server: Server, names: Sequence[str], since: int, until: int) -> list[Mapping[str, object]]:
    matchers = ", ".join(filter(None, (f'__name__=~"{"|".join(names)}"', server.match)))
    body = urlencode(
        {
            "query": f"{{{matchers}}}",
            "start": since,
            "end": until,
            "step": server.step_s,
            "lookback_delta": f"{server.step_s}s",
            "timeout": f"{TIMEOUT_S:g}s",
        }
    ).encode()
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    if server.token:
        headers["Authorization"] = f"Bearer {server.token}"
    request = Request(f"{server.url}/api/v1/query_range", body, headers)
    try:
        text = fetch(request, TIMEOUT_S, "an answer")
    except HTTPError as error:
        raise _refused(error) from None
    except TooLarge as error:
        raise PrometheusError(Unanswered.TOO_MUCH, str(error)) from None
    except UNANSWERED as error:
        raise PrometheusError(Unanswered.SILENT, problem_of(error)) from None
    try:
        return [row for row in json.loads(text)["data"]["result"] if isinstance(row["values"], list)]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PrometheusError(Unanswered.REFUSED, "it does not answer as Prometheus' query API does") from None


def _refused(error: HTTPError) -> PrometheusError:
    """By the type of error that the API names (prometheus.io/docs/prometheus/latest/querying/api, 2026-11-19)."""
    try:
        document = json.loads(error.read(65536))
        kind, words = str(document["errorType"]), str(document["error"])
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        kind, words = "", f"it answers with status {error.code}"
    too_much = kind in ("execution", "timeout", "canceled")
    return PrometheusError(Unanswered.TOO_MUCH if too_much else Unanswered.REFUSED, words)


def _samples(row: Mapping[str, object]) -> Iterator[tuple[int, Sample]]:
    labels: dict[str, str] = dict(row["metric"])  # type: ignore[call-overload]
    name = labels.pop("__name__", "")
    for label in [label for label in labels if label.startswith(OVERWRITTEN)]:
        labels[label.removeprefix(OVERWRITTEN)] = labels[label]
    host = without_port(labels.get("instance", ""))
    values: Sequence[tuple[float, str]] = row["values"]  # type: ignore[assignment]
    for at, text in values:
        sample = sample_of(name, labels, float(text), host)
        if sample is not None:
            yield int(at), sample

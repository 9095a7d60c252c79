"""Endpoints asked again and again, and what they say kept in the store. One that is down does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import Request

from chipwise.observe.exporters import Sample, samples_of
from chipwise.observe.scrape.fetch import UNANSWERED, fetch, http_url, problem_of
from chipwise.observe.store.store import TelemetryStore
from chipwise.observe.text import clean

TIMEOUT_S = 5.0  # of one endpoint: half of the usual interval
AT_ONCE = 16  # endpoints
PACKING = 0.2  # of the interval: hosts whose half hour is over are packed a few a round, so that no round is late
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Page:
    """What an endpoint said, or why it said nothing."""

    url: str
    samples: Sequence[Sample] = ()
    problem: str = ""


def endpoint(text: str) -> str:
    """The address of an endpoint; host:port alone means its page of metrics.

    >>> endpoint("gpu-1:9400"), endpoint("http://gpu-1:9400/metrics")
    ('http://gpu-1:9400/metrics', 'http://gpu-1:9400/metrics')
    """
    url, parts = http_url(text, "endpoint", "host:port, or http://host:port/metrics")
    return url if parts.path not in ("", "/") else f"{url.rstrip('/')}/metrics"


def ask(url: str, timeout_s: float = TIMEOUT_S) -> Page:
    """Ask an endpoint once."""
    try:
        body = fetch(Request(url, headers={"Accept": "text/plain"}), timeout_s, "its page")
    except UNANSWERED as error:
        return Page(url, problem=problem_of(error))
    parts = urlsplit(url)
    lines = clean(body.splitlines(keepends=True))
    return Page(url, samples_of(lines, parts.hostname or "", parts.netloc.rpartition("@")[2]))


def scrape(
    urls: Sequence[str], store: TelemetryStore, interval_s: float, rounds: int | None, tell: Tell = lambda words: None
) -> list[Page]:
    """Ask endpoints every so often and keep what they say, so many rounds or until stopped; the last pages.

    An endpoint that fails is told when it begins to and when it is back.
    """
    failing: dict[str, str] = {}
    done = 0
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(urls))) as pool:
        while True:
            began = time.time()
            pages = list(pool.map(ask, urls))
            store.write([sample for page in pages for sample in page.samples], int(began))
            store.roll_up(int(began), most_s=PACKING * interval_s)
            for page in pages:
                if page.problem and page.url not in failing:
                    tell(f"{page.url}: {page.problem}")
                elif not page.problem and page.url in failing:
                    tell(f"{page.url} answers again")
            failing = {page.url: page.problem for page in pages if page.problem}
            done += 1
            if rounds is not None and done >= rounds:
                return pages
            time.sleep(max(0.0, interval_s - (time.time() - began)))

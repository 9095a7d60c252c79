"""What jobs really do, for Prometheus: a page written anew for each look at a ledger.

Importing this module imports prometheus-client: only `observe jobs --metrics` does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from chipwise.errors import ChipwiseError
from chipwise.io.endpoint import Endpoint
from chipwise.observe.exposition import exposition
from chipwise.observe.jobs.observation import Observation

LABELS = ("job_id", "name", "owner", "pool")
Figure = Callable[[Observation], float | None]
_FIGURES: tuple[tuple[str, str, Figure], ...] = (
    ("chipwise_job_step", "The last step that was told.", lambda o: o.step),
    ("chipwise_job_steps", "Steps of the whole run.", lambda o: o.total_steps),
    ("chipwise_job_step_seconds", "A step as it usually is.", lambda o: o.ratio.actual if o.ratio else None),
    (
        "chipwise_job_step_predicted_low_seconds",
        "The least that a step was predicted to take (90 %).",
        lambda o: o.ratio.predicted.low if o.ratio else None,
    ),
    (
        "chipwise_job_step_predicted_high_seconds",
        "The most that a step was predicted to take (90 %).",
        lambda o: o.ratio.predicted.high if o.ratio else None,
    ),
    ("chipwise_job_step_ratio", "A step: actual over predicted.", lambda o: o.ratio.ratio if o.ratio else None),
    ("chipwise_job_goodput_ratio", "Productive time over time with chips.", lambda o: o.account.goodput),
    (
        "chipwise_job_remaining_seconds",
        "What is left, at the pace of now.",
        lambda o: o.remaining.value if o.remaining else None,
    ),
    (
        "chipwise_job_remaining_usd",
        "What is left costs so much.",
        lambda o: o.remaining_usd.value if o.remaining_usd else None,
    ),
)


def page(observations: Sequence[Observation]) -> str:
    """The page of metrics of some jobs."""
    return exposition(_families(observations))


def serve(
    look: Callable[[], Sequence[Observation]],
    address: str,
    token: str,
    every_s: float,
    opened: Callable[[Endpoint], None],
    tell: Callable[[str], None],
) -> None:
    """The page at an address, looked at again and again until stopped. A failure is told when it begins.

    While looking fails the page is empty: figures that are absent say so, and old ones would be wrong.
    """
    text = page(look())
    endpoint = Endpoint(address, token, lambda: text)
    endpoint.start()
    opened(endpoint)
    trouble = ""
    try:
        while True:
            time.sleep(every_s)
            try:
                text, problem = page(look()), ""
            except ChipwiseError as error:
                text, problem = "", str(error)
            if problem and problem != trouble:
                tell(problem)
            trouble = problem
    finally:
        endpoint.stop()


def _labels(o: Observation) -> list[str]:
    return [o.job.id, o.job.job.name, o.job.user, o.attempt.pool if o.attempt is not None else ""]


def _families(observations: Iterable[Observation]) -> Iterator[Metric]:
    listed = list(observations)
    for name, documentation, figure in _FIGURES:
        family = GaugeMetricFamily(name, documentation, labels=LABELS)
        for o in listed:
            value = figure(o)
            if value is not None:  # what nobody has told is absent, not zero
                family.add_metric(_labels(o), value)
        yield family
    findings = GaugeMetricFamily(
        "chipwise_job_findings", "What is wrong with a job.", labels=[*LABELS, "condition", "fault", "severity"]
    )
    for o in listed:
        kinds = Counter((f.condition.value, f.fault.value if f.fault else "", f.severity.value) for f in o.findings)
        for kind, count in sorted(kinds.items()):
            findings.add_metric([*_labels(o), *kind], count)
    yield findings
    unread = GaugeMetricFamily("chipwise_jobs_unread", "Jobs whose output is not to be had.")
    unread.add_metric([], sum(1 for o in listed if o.problem))
    yield unread

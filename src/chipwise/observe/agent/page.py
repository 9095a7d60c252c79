"""What an agent says, for Prometheus: under the names by which data/series.csv knows them.

Importing this module imports prometheus-client: only an agent that serves a page does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from chipwise.observe.exporters import Mapped, Sample, mapping
from chipwise.observe.exposition import exposition

EXPORTER = "chipwise"


def page(samples: Sequence[Sample]) -> str:
    """The page of metrics of some samples."""
    return exposition(_families(samples))


@cache
def _names() -> dict[str, tuple[str, Mapped]]:
    return {mapped.series: (name, mapped) for name, mapped in mapping().items() if mapped.exporter == EXPORTER}


def _families(samples: Sequence[Sample]) -> Iterator[Metric]:
    by_series: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_series[sample.series].append(sample)
    for series, rows in by_series.items():
        name, mapped = _names()[series]
        labels = sorted({label for row in rows for label, _ in row.labels})
        family = (CounterMetricFamily if mapped.kind == "counter" else GaugeMetricFamily)(
            name, f"{series} ({mapped.unit})", labels=["node", "device", *labels]
        )
        for row in rows:
            has = dict(row.labels)
            family.add_metric(
                [row.host, row.device, *(has.get(label, "") for label in labels)], row.value / mapped.scale
            )
        yield family

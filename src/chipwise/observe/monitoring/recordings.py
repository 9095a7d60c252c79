"""Recording rules: what exporters call by many names, in many units, as one set of series (those of the store).

Every recorded series has the labels `host`, `device` and `exporter`, beside those that its exporter gives it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from chipwise.observe.data_files import rows
from chipwise.observe.exporters import HISTOGRAM, INSTANCE, Exporter, Mapped, exporters, mapping
from chipwise.observe.formats.documents import BLANKS_32, BLANKS_64
from chipwise.observe.monitoring.records import PREFIX, Recording

PERCENTILES = ("50", "90", "99")
WINDOW = "5m"  # over which quantiles are taken: 20 scrapes of 15 s
_SHARE = (  # exporters tell of two of three
    f"{PREFIX}device_memory_used / ({PREFIX}device_memory_used + {PREFIX}device_memory_free)"
    f" or {PREFIX}device_memory_used / {PREFIX}device_memory_total"
)


@cache
def recordings(percentiles: Sequence[str] = PERCENTILES) -> tuple[Recording, ...]:
    """The rules, in the order in which they rest on one another."""
    sources: dict[tuple[str, str], list[str]] = defaultdict(list)
    histograms = {row["series"] + part for row in rows("histograms.csv") for part in HISTOGRAM}  # have their quantiles
    for metric, mapped in mapping().items():
        if mapped.series in histograms:
            continue
        sources[mapped.series, mapped.exporter].append(_scaled(metric, mapped))
    plain = [
        Recording(
            record=f"{PREFIX}{series}",
            expression=_named(whole[0] if len(whole) == 1 else f"({' or '.join(whole)})", exporters()[exporter]),
            labels={"exporter": exporter},
        )
        for (series, exporter), whole in sources.items()
    ]
    share = Recording(record=f"{PREFIX}device_memory_share", expression=_SHARE)
    return (*plain, share, *_quantiles(percentiles))


def quantile_series(series: str, percentile: str) -> str:
    """The name of a recorded quantile: a name has no dot.

    >>> quantile_series("serving_request_seconds", "99.9")
    'chipwise:serving_request_seconds:p99_9'
    """
    return f"{PREFIX}{series}:p{percentile.replace('.', '_')}"


def _scaled(metric: str, mapped: Mapped) -> str:
    whole = metric
    if mapped.exporter == "dcgm":
        readable = f"{metric} < {BLANKS_32.start} or {metric} > {BLANKS_32[-1]}"
        whole = f"(({readable}) < {BLANKS_64.start})"
    return whole if mapped.scale == 1 else f"{whole} * {mapped.scale:.12g}"


def _quantiles(percentiles: Iterable[str]) -> Iterable[Recording]:
    for row in rows("histograms.csv"):
        for percentile in percentiles:
            spread = f"sum by (job, instance, model_name, le) (rate({row['metric']}_bucket[{WINDOW}]))"
            quantile = f"histogram_quantile({float(percentile) / 100:.6g}, {spread})"
            yield Recording(
                record=quantile_series(row["series"], percentile),
                expression=_named(quantile, exporters()[row["exporter"]]),
                labels={"exporter": row["exporter"], "percentile": percentile},
            )


def _named(expression: str, exporter: Exporter) -> str:
    """With `host` and `device`: of the first label that there is, so the last one is written first."""
    named = _replaced(expression, "host", "$1", "instance", "(.+?)(?::[0-9]+)?")
    for label in reversed(exporter.hosts):
        named = _replaced(named, "host", "$1", label, "(.+)")
    for label in reversed(exporter.devices):
        named = _replaced(named, "device", "$1", label, "(.+)")
    if exporter.name == "dcgm":
        named = f'label_join({named}, "device", "/", "device", "{INSTANCE}")'
        named = _replaced(named, "device", "$1", "device", "(.+)/")  # no MIG instance: no stroke
    return named


def _replaced(expression: str, label: str, value: str, source: str, pattern: str) -> str:
    return f'label_replace({expression}, "{label}", "{value}", "{source}", "{pattern}")'

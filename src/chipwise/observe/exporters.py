"""A page of metrics as samples of one set of series, whichever exporter made it: names and units mapped by data.

What an exporter leaves out, or blanks, is absent and not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isfinite

from chipwise.observe.data_files import rows
from chipwise.observe.formats.documents import ExpositionReader, labels_of, readable

INSTANCE = "GPU_I_ID"  # of a MIG instance
INSTANCE_LABEL = "instance"  # by which Prometheus tells endpoints apart
KEPT = (
    "gpu", "modelName", "card_model", "model", "model_name", "pod", "namespace", "container", "job_id",
    "attempt", "pod_uid", "pci", "link", "fault", "xid", "notice", "instrument", "flavor", "resource", "status",
    "reason", "service_name", "rank",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exporter:
    """An exporter, by the labels that name a machine and a device of it, best first; and labels of its own to keep."""

    name: str
    hosts: tuple[str, ...]
    devices: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a metric of an exporter is here."""

    series: str
    scale: float
    unit: str
    kind: str  # gauge or counter
    exporter: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a series, of a device of a host."""

    series: str
    host: str
    device: str
    labels: tuple[tuple[str, str], ...]  # what else is known of the device, or of what runs there
    value: float


@cache
def exporters() -> Mapping[str, Exporter]:
    """Exporters by name."""
    return {
        row["exporter"]: Exporter(
            row["exporter"], tuple(row["host"].split()), tuple(row["device"].split()), tuple(row["labels"].split())
        )
        for row in rows("exporters.csv")
    }


@cache
def mapping() -> Mapping[str, Mapped]:
    """Metrics by the name that their exporter gives them."""
    plain = {
        row["metric"]: Mapped(row["series"], float(row["scale"]), row["unit"], row["kind"], row["exporter"])
        for row in rows("series.csv")
    }
    return plain | {
        f"{row['metric']}{part}": Mapped(f"{row['series']}{part}", 1.0, unit, "counter", row["exporter"])
        for row in rows("histograms.csv")
        for part, unit in HISTOGRAM.items()
    }


BUCKET, SUM = "_bucket", "_sum"  # how a histogram's counters end: a bucket for each bound (label le), "+Inf" has all
HISTOGRAM = {BUCKET: "count", SUM: "s"}  # and their units
PREFIX = "amd_"  # that AMD's exporter may be told to write before its names


def mapped_metric(name: str) -> Mapped | None:
    """What a metric is here, if anything.

    >>> mapped_metric("amd_gpu_package_power").series, mapped_metric("up")
    ('device_power', None)
    """
    return mapping().get(name) or mapping().get(name.removeprefix(PREFIX))


def without_port(instance: str) -> str:
    """The host of an address.

    >>> without_port("gpu-1:9400"), without_port("gpu-1")
    ('gpu-1', 'gpu-1')
    """
    host, _, port = instance.rpartition(":")
    return host if port.isdigit() and host else instance


def sample_of(name: str, labels: Mapping[str, str], amount: float, host: str) -> Sample | None:
    """The sample of a metric with its labels, as Prometheus gives them; `host` where it names none."""
    mapped = mapped_metric(name)
    if mapped is None or not readable(amount) or not isfinite(amount * mapped.scale):
        return None
    their_host, device, more_labels = _named(mapped.exporter, labels)
    return Sample(mapped.series, their_host or host, device, more_labels, amount * mapped.scale)


def samples_of(lines: Iterable[str], host: str, instance: str = "") -> list[Sample]:
    """The samples of a page; `host` and `instance` (with a port) are where it came from, where metrics name none."""
    reader = ExpositionReader()
    reader.typed = 1  # an exporter may leave its comments out: here every page is one
    for line in lines:
        reader.read(line)
    out = []
    for name, values in reader.series.items():
        mapped = mapped_metric(name)
        if mapped is None:
            continue
        for text, amount in values.items():
            value = amount * mapped.scale
            if isfinite(value):
                their_host, device, more_labels = _whose(mapped.exporter, text, instance)
                out.append(Sample(mapped.series, their_host or host, device, more_labels, value))
    return out


@lru_cache(maxsize=2**16)  # an exporter says the same of a device every few seconds, for each of its metrics
def _whose(exporter: str, text: str, instance: str) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The host and the device that labels name, and the labels that are kept."""
    labels = labels_of(text)
    return _named(exporter, {INSTANCE_LABEL: instance, **labels} if instance else labels)


def _named(exporter: str, labels: Mapping[str, str]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    of = exporters()[exporter]
    more_labels = tuple((label, labels[label]) for label in (*KEPT, *of.labels) if labels.get(label))
    device = "/".join(filter(None, (_first(labels, of.devices), labels.get(INSTANCE))))
    return _first(labels, of.hosts), device, more_labels


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")

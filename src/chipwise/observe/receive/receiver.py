"""What programs send, as samples of the same set of series, kept in the store."""

from __future__ import annotations

import gzip
import io
import re
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chipwise.errors import ChipwiseError
from chipwise.io.endpoint import MAX_POST_BYTES
from chipwise.observe.exporters import Sample, mapped_metric, sample_of, without_port
from chipwise.observe.protobuf import Malformed
from chipwise.observe.receive.otlp import NumberPoint, points_of_json, points_of_protobuf
from chipwise.observe.store.store import TelemetryStore

PATH = "/v1/metrics"
JSON, PROTOBUF = "application/json", "application/x-protobuf"
MAX_BODY_BYTES = 4 * MAX_POST_BYTES  # once it is unpacked
PACKING_S = 0.5  # of a request: senders wait
MOST_STREAMS = 100_000  # sums told by what they rose by, which are added up here
Tell = Callable[[str], None]
# What Prometheus' names have at their end for units (OpenTelemetry: compatibility with Prometheus, 2026-11-19)
_UNITS = {
    "s": "seconds", "ms": "milliseconds", "By": "bytes", "MiBy": "mebibytes", "W": "watts", "J": "joules",
    "Cel": "celsius", "Hz": "hertz", "%": "percent",
}  # fmt: skip
# OpenTelemetry's attributes (semantic conventions of host, k8s, hw) by the labels that exporters have
_LABELS = {
    "k8s.pod.name": "pod", "k8s.namespace.name": "namespace", "k8s.container.name": "container",
    "k8s.pod.uid": "pod_uid", "chipwise.attempt": "attempt", "slurm.job.id": "job_id", "hw.model": "model",
    "gen_ai.request.model": "model_name",
}  # fmt: skip
_HOSTS = ("host.name", "k8s.node.name", "instance", "service.instance.id")
_NO_NAME = re.compile(r"[^A-Za-z0-9_:]")


@dataclass(slots=True)
class Count:
    """What came so far."""

    requests: int = 0
    points: int = 0
    kept: int = 0
    late: int = 0
    refused: int = 0  # requests that are not what they say


class Receiver:
    """Takes requests of many threads, one at a time."""

    def __init__(self, store: TelemetryStore, tell: Tell) -> None:
        self.count = Count()
        self._store, self._tell = store, tell
        self._lock = threading.Lock()
        self._totals: dict[Sample, float] = {}  # of samples without their value

    def take(self, path: str, headers: Mapping[str, str], body: bytes, sender: str) -> tuple[int, str, bytes]:
        """Answer a request: status, type and body, as the protocol has them."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if path.partition("?")[0] != PATH:
            return 404, "text/plain", f"only {PATH} is here\n".encode()
        if kind not in (JSON, PROTOBUF):
            return 415, "text/plain", f"{JSON} or {PROTOBUF}\n".encode()
        try:
            plain = _unpacked(headers.get("content-encoding", ""), body)
            points = points_of_json(plain) if kind == JSON else points_of_protobuf(plain)
        except Malformed as error:
            with self._lock:
                self.count.refused += 1
            return 400, "text/plain", f"{error}\n".encode()
        try:
            late = self._keep(points, sender)
        except ChipwiseError as error:  # it is sent again
            self._tell(str(error))
            return 503, "text/plain", b"the store can't be written now\n"
        return 200, kind, _answer(kind, late)

    def _keep(self, points: Sequence[NumberPoint], sender: str) -> int:
        """Keep what has a series here; how many samples came too late."""
        with self._lock:
            by_moment: dict[int, dict[Sample, float]] = defaultdict(dict)
            for point in points:
                sample = self._sample(point, sender)
                if sample is not None:
                    by_moment[point.at_s or int(time.time())][_key(sample)] = sample.value
            late = 0
            for at in sorted(by_moment):
                samples = [_valued(key, value) for key, value in by_moment[at].items()]
                count = self._store.write(samples, at)
                self.count.kept += count
                late += len(samples) - count
            self.count.requests += 1
            self.count.points += len(points)
            self.count.late += late
            self._store.roll_up(int(time.time()), most_s=PACKING_S)
            return late

    def _sample(self, point: NumberPoint, sender: str) -> Sample | None:
        name = next((name for name in metric_names(point) if mapped_metric(name) is not None), None)
        if name is None:
            return None
        labels = {key.replace(".", "_"): value for key, value in point.attributes.items()}
        labels |= {label: point.attributes[key] for key, label in _LABELS.items() if key in point.attributes}
        host = next((point.attributes[key] for key in _HOSTS if point.attributes.get(key)), sender)
        sample = sample_of(name, labels, point.value, without_port(host))
        if sample is None or not point.is_delta:
            return sample
        key = _key(sample)
        if key not in self._totals and len(self._totals) >= MOST_STREAMS:
            return None
        self._totals[key] = self._totals.get(key, 0.0) + sample.value
        return _valued(key, self._totals[key])


def metric_names(point: NumberPoint) -> list[str]:
    """What Prometheus would call a metric, and as it is: collectors pass on what they scraped by its own name.

    >>> point = NumberPoint(name="train.step.duration", unit="s", is_counter=False, is_delta=False, at_s=0, value=1.0,
    ...                     attributes={})
    >>> metric_names(point)[0]
    'train_step_duration_seconds'
    """
    plain = _NO_NAME.sub("_", point.name)
    unit = _UNITS.get(point.unit, "ratio" if point.unit == "1" and not point.is_counter else "")
    whole = plain if not unit or plain.endswith(f"_{unit}") else f"{plain}_{unit}"
    total = "" if not point.is_counter or plain.endswith("_total") else "_total"
    return list(dict.fromkeys([whole + total, plain + total, plain, point.name]))


def _key(sample: Sample) -> Sample:
    return _valued(sample, 0.0)


def _valued(sample: Sample, value: float) -> Sample:
    return Sample(sample.series, sample.host, sample.device, sample.labels, value)


def _unpacked(encoding: str, body: bytes) -> bytes:
    if encoding.strip().lower() in ("", "identity"):
        return body
    if encoding.strip().lower() not in ("gzip", "deflate"):
        raise Malformed(f"an encoding that is not known: {encoding[:40]!r}")
    try:
        if encoding.strip().lower() == "gzip":
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
                plain = file.read(MAX_BODY_BYTES + 1)
        else:
            plain = zlib.decompressobj().decompress(body, MAX_BODY_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise Malformed(f"it is no {encoding[:40]}") from None
    if len(plain) > MAX_BODY_BYTES:
        raise Malformed(f"it is larger than {MAX_BODY_BYTES // 2**20} MiB once unpacked")
    return plain


def _answer(kind: str, late: int) -> bytes:
    """Nothing, or how many points were left out and why (ExportMetricsPartialSuccess)."""
    why = "older than what is packed already"
    if kind == JSON:
        partial = f'{{"partialSuccess":{{"rejectedDataPoints":"{late}","errorMessage":"{why}"}}}}'
        return partial.encode() if late else b"{}"
    if not late:
        return b""
    number, left = b"", late
    while left >= 0x80:
        number, left = number + bytes([left & 0x7F | 0x80]), left >> 7
    message = b"\x08" + number + bytes([left]) + b"\x12" + bytes([len(why)]) + why.encode()
    return b"\x0a" + bytes([len(message)]) + message

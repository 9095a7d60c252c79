"""What programs send by OpenTelemetry's own SDK, and what nobody should: malformed, cut, too large, late."""

import gzip
import json
import random
import struct
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from command import running

import chipwise as cw
from chipwise.io.endpoint import Endpoint
from chipwise.observe.exporters import Sample
from chipwise.observe.receive.otlp import Malformed, points_of_json, points_of_protobuf
from chipwise.observe.receive.receiver import MAX_BODY_BYTES, Receiver
from chipwise.observe.store.store import open_store
from patience import until

TOKEN = "a-token-of-the-test"


@pytest.fixture
def receiving(tmp_path):
    """A receiver, its store and the address."""
    with open_store(str(tmp_path / "telemetry.db")) as store:
        receiver = Receiver(store, lambda words: None)
        endpoint = Endpoint("127.0.0.1:0", "", lambda: "", receiver.take)
        endpoint.start()
        yield receiver, store, f"http://127.0.0.1:{endpoint.port}/v1/metrics"
        endpoint.stop()


def post(url, body, **headers):
    request = Request(url, body, {key.replace("_", "-"): value for key, value in headers.items()})
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def document(at, value=3.5, name="train.step.duration", unit="s", **sum_settings):
    point = {
        "timeUnixNano": str(at * 10**9),
        "asDouble": value,
        "attributes": [{"key": "rank", "value": {"intValue": "0"}}],
    }
    kind = {"sum": {"dataPoints": [point], **sum_settings}} if sum_settings else {"gauge": {"dataPoints": [point]}}
    resource = {"attributes": [{"key": "host.name", "value": {"stringValue": "n1"}}]}
    metric = {"name": name, "unit": unit, **kind}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": {}, "metrics": [metric]}]}]}


@pytest.mark.parametrize("compression", ["NoCompression", "Gzip", "Deflate"])
def test_a_program_with_opentelemetrys_sdk_is_read(receiving, compression):
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.metrics import Observation
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    receiver, store, url = receiving
    sender = exporter.OTLPMetricExporter(endpoint=url, compression=getattr(Compression, compression))
    reader = PeriodicExportingMetricReader(sender, export_interval_millis=3_600_000)
    resource = Resource.create({"host.name": "n1", "service.name": "train", "slurm.job.id": "17", "hosts": ["a", "b"]})
    provider = sdk.MeterProvider(metric_readers=[reader], resource=resource)
    meter = provider.get_meter("loop")
    tokens = meter.create_counter("train.tokens", unit="{token}")
    meter.create_observable_gauge("train.loss", [lambda options: [Observation(2.25, {"rank": 0})]])
    meter.create_observable_gauge("train.step.duration", [lambda options: [Observation(0.5)]], unit="s")
    meter.create_observable_gauge(
        "hw.gpu.utilization", [lambda options: [Observation(0.9, {"hw.id": "GPU-1"})]], unit="1"
    )
    meter.create_histogram("train.other").record(3)
    tokens.add(4096)
    tokens.add(4096)
    assert provider.force_flush()
    provider.shutdown()
    newest = {one.series: one for one in store.newest(int(time.time()) - 60)}
    figures = {series: one.value for series, one in newest.items()}
    assert figures == {
        "job_tokens": 8192, "job_loss": 2.25, "job_step_seconds": 0.5, "device_busy": pytest.approx(0.9),
    }  # fmt: skip
    assert newest["device_busy"].device == "GPU-1" and {one.host for one in newest.values()} == {"n1"}
    assert newest["job_loss"].labels == {"rank": "0", "job_id": "17", "service_name": "train"}
    assert receiver.count.requests >= 1 and receiver.count.refused == 0


def test_json_and_sums_by_what_they_rose(receiving):
    receiver, store, url = receiving
    at = int(time.time())
    for number in range(3):
        body = json.dumps(
            document(at + number, 100.0, "train.tokens", "{token}", isMonotonic=True, aggregationTemporality=1)
        )
        assert post(url, body.encode(), Content_Type="application/json") == (200, b"{}")
    body = gzip.compress(json.dumps(document(at)).encode())
    assert post(url, body, Content_Type="application/json; charset=utf-8", Content_Encoding="gzip")[0] == 200
    assert [value.mean for value in store.values("job_tokens", "n1", "", at, at + 10)] == [100.0, 200.0, 300.0]
    assert [value.mean for value in store.values("job_step_seconds", "n1", "", at, at + 10)] == [3.5]
    of_a_collector = json.dumps(document(at, 4, "vllm:num_requests_running", ""))
    assert post(url, of_a_collector.encode(), Content_Type="application/json")[0] == 200
    assert [value.mean for value in store.values("serving_running", "n1", "", at, at + 10)] == [4]
    assert (receiver.count.points, receiver.count.kept) == (5, 5)


def test_what_is_late_is_said_in_the_protocols_words(receiving):
    _, store, url = receiving
    now = int(time.time())
    store.write([Sample("job_loss", "n1", "", (), 1.0)], now - 7200)
    store.roll_up(now)
    body = json.dumps(document(now - 7200)).encode()
    status, answer = post(url, body, Content_Type="application/json")
    assert status == 200 and json.loads(answer)["partialSuccess"]["rejectedDataPoints"] == "1"


def test_what_is_no_request_is_refused(receiving):
    receiver, store, url = receiving
    jason, proto = {"Content_Type": "application/json"}, {"Content_Type": "application/x-protobuf"}
    bomb = gzip.compress(b"\0" * (MAX_BODY_BYTES + 2))
    for body, headers, status in (
        (b"{", jason, 400),
        (b"[1]", jason, 400),
        (
            b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"gauge": {"dataPoints": [{"asInt": "x"}]}}]}]}]}',
            jason,
            400,
        ),
        (b"\x0a\xff", proto, 400),
        (b"\x0b", proto, 400),
        (b"hello", {"Content_Type": "text/plain"}, 415),
        (b"no gzip", {**proto, "Content_Encoding": "gzip"}, 400),
        (b"x", {**proto, "Content_Encoding": "br"}, 400),
        (bomb, {**proto, "Content_Encoding": "gzip"}, 400),
    ):
        assert post(url, body, **headers)[0] == status, (body[:40], headers)
    assert post(url.replace("metrics", "traces"), b"{}", **jason)[0] == 404
    assert post(url, b"", **proto) == (200, b"")
    assert store.newest(0) == [] and receiver.count.refused == 8


def message(*fields):
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += bytes([number << 3]) + varint(value)
        elif isinstance(value, float):
            out += bytes([number << 3 | 1]) + struct.pack("<d", value)
        else:
            out += bytes([number << 3 | 2]) + varint(len(value)) + value
    return out


def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def test_no_body_ends_in_anything_but_points_or_a_refusal():
    attribute = message((1, b"host.name"), (2, message((1, b"n1"))))
    point = bytes([3 << 3 | 1]) + struct.pack("<Q", 10**18) + message((4, 2.5), (7, attribute))
    metric = message((1, b"train.loss"), (5, message((1, point))))
    whole = message((1, message((1, message((1, attribute))), (2, message((2, metric))))))
    (read,) = points_of_protobuf(whole)
    assert (read.name, read.value, read.at_s, read.attributes) == ("train.loss", 2.5, 10**9, {"host.name": "n1"})
    rng = random.Random(0)
    text = json.dumps(document(5)).encode()
    outcomes = {"read": 0, "refused": 0}
    for read_body, body in ((points_of_protobuf, whole), (points_of_json, text)):
        for _ in range(4000):
            octets = bytearray(body[: rng.randrange(len(body) + 1)] if rng.random() < 0.3 else body)
            for _ in range(rng.randrange(4)):
                if octets:
                    octets[rng.randrange(len(octets))] = rng.randrange(256)
            try:
                read_body(bytes(octets))
                outcomes["read"] += 1
            except Malformed:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 500


def test_the_command_takes_what_is_sent_until_it_is_over(tmp_path):
    path = tmp_path / "telemetry.db"
    with running("observe", "receive", "--listen", "127.0.0.1:0", "--for", "1h", "--store", path) as process:
        words = process.stderr.readline()
        port = int(words.partition("port ")[2].partition(",")[0])
        body = json.dumps(document(int(time.time()))).encode()
        url = f"http://127.0.0.1:{port}/v1/metrics"
        assert post(url, body, Content_Type="application/json")[0] == 200
        until(lambda: cw.devices(str(path)).newest)
    with pytest.raises(cw.InputError, match="bearer token"):
        cw.receive_telemetry("0.0.0.0:0", str(path))
    assert cw.receive_telemetry("127.0.0.1:0", str(path), seconds=0.1).count.requests == 0

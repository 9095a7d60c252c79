"""What a router tells Prometheus: read by Prometheus's own parser, really fetched over HTTP, and only with the token."""

import http.client
import math
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families
from route_cases import job, option

from chipwise.errors import InputError
from chipwise.io.endpoint import Endpoint, parse_address, read_token
from chipwise.route.ledger.records import JobRow
from chipwise.route.pool import Pool
from chipwise.route.router.capacity import PoolChips
from chipwise.route.router.loop import TickReport
from chipwise.route.router.metrics import Metrics
from patience import PATIENCE_S

TOKEN = "a-token-of-some-length"
HOSTILE = 'a"b\\c\nd{}µ'
TOTALS = {
    "jobs": {"succeeded": 3.0, "pending": 1.0},
    "attempts": {"succeeded": 3.0, "lost": 2.0, "running": 1.0},
    "chips": {HOSTILE: 4.0},
    "spent": {HOSTILE: 12.5},
}


def told(ticks=1):
    metrics = Metrics([Pool("near", "local", "cpu", "cpu", 2, usd_per_chip_hour=1.5)], 30.0)
    report = TickReport(
        1_000.0,
        0.03,
        decisions={"start": 2},
        pool_chips={HOSTILE: PoolChips(8, 8, 4), "near": PoolChips(2, 2, 2)},
        down={"slurm": "no answer"},
        up=["local"],
    )
    waiting = JobRow("1", job("run"), "pending", 400.0, (option(),), ())
    for _ in range(ticks):
        metrics.count(report)
        metrics.write(report, [waiting], TOTALS)
    return metrics


def samples(text):
    return {
        (s.name, *sorted(s.labels.items())): s.value for f in text_string_to_metric_families(text) for s in f.samples
    }


def test_prometheus_reads_every_metric():
    found = samples(told(ticks=3).text())
    assert found["chipwise_lease_seconds",] == 30 and found["chipwise_pool_usd_per_chip_hour", ("pool", "near")] == 1.5
    assert found["chipwise_jobs", ("state", "failed")] == 0 == found["chipwise_attempts_total", ("end", "failed")]
    assert found["chipwise_jobs", ("state", "pending")] == 1 and found["chipwise_attempts_total", ("end", "lost")] == 2
    assert found["chipwise_attempts_under_way", ("state", "running")] == 1
    assert found["chipwise_decisions_total", ("kind", "start")] == 6
    assert (
        found["chipwise_backend_up", ("backend", "slurm")] == 0
        and found["chipwise_backend_up", ("backend", "local")] == 1
    )
    assert (
        found["chipwise_pool_chips_free", ("pool", HOSTILE)] == 4
        and found["chipwise_pool_chips_held", ("pool", HOSTILE)] == 4
    )
    assert (
        found["chipwise_spent_usd_total", ("pool", HOSTILE)] == 12.5 and found["chipwise_oldest_wait_seconds",] == 600
    )
    assert found["chipwise_tick_seconds_count",] == 3 and found["chipwise_tick_seconds_sum",] == pytest.approx(0.09)
    buckets = {float(key[1][1]): value for key, value in found.items() if key[0] == "chipwise_tick_seconds_bucket"}
    assert buckets[0.025] == 0 and buckets[0.05] == 3 and buckets[math.inf] == 3


def test_every_family_has_its_kind_and_help():
    families = list(text_string_to_metric_families(told().text()))
    assert len(families) >= 12 and all(
        f.documentation and f.type in ("gauge", "counter", "histogram") for f in families
    )


@pytest.fixture
def served():
    made = []

    def serve(address="127.0.0.1:0", token=""):
        made.append(Endpoint(address, token, told().text))
        made[-1].start()
        return made[-1].port

    yield serve
    for each in made:
        each.stop()


def get(port, path="/metrics", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("Content-Type")
    finally:
        connection.close()


def test_metrics_are_scraped_over_http(served):
    status, text, kind = get(served())
    assert status == 200 and "version=0.0.4" in kind and samples(text)["chipwise_jobs", ("state", "succeeded")] == 3
    assert get(served(), "/")[0] == 404 and get(served(), "/metrics?x=1")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {TOKEN}x"},
    ],
)
def test_without_the_token_nothing_is_told(served, headers):
    status, text, _ = get(served(token=TOKEN), **headers)
    assert status == 401 and "chipwise_" not in text


def test_with_the_token_all_is_told(served):
    port = served("127.0.0.1:0", TOKEN)
    assert get(port, Authorization=f"Bearer {TOKEN}")[0] == get(port, Authorization=f"bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_off_loopback_a_token_is_needed(address):
    if "::" in address and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with pytest.raises(InputError, match="bearer token"):
        Endpoint(address, "", str)
    with pytest.raises(InputError, match="at least 16"):
        Endpoint(address, "short", str)


def test_off_loopback_with_a_token_it_serves(served):
    port = served("0.0.0.0:0", TOKEN)
    assert get(port)[0] == 401 and get(port, Authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize(
    "address",
    [
        "",
        "9464",
        ":9464",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:70000",
        "127.0.0.1:-1",
        "no.such.host.invalid:1",
        "127.0.0.1:²",
    ],
)
def test_addresses_that_are_none_are_refused(address):
    with pytest.raises(InputError, match=r"^metrics: "):
        Endpoint(address, "", str)


def test_an_address_in_use_is_refused(served):
    with pytest.raises(InputError, match="is free"):
        Endpoint(f"127.0.0.1:{served()}", "", str)
    assert parse_address("127.0.0.1:1") == ("127.0.0.1", 1)


def test_the_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("CHIPWISE_METRICS_TOKEN", raising=False)
    assert read_token(None) == ""
    monkeypatch.setenv("CHIPWISE_METRICS_TOKEN", f" {TOKEN}\n")
    assert read_token(None) == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN}2\n")
    assert read_token(tmp_path / "token") == f"{TOKEN}2"
    for bad in ("", "two words", "\x01"):
        (tmp_path / "token").write_text(bad)
        with pytest.raises(InputError, match=r"one word|isn't empty"):
            read_token(tmp_path / "token")
    with pytest.raises(InputError, match="no such file"):
        read_token(tmp_path / "none")

"""Telemetry kept: from real endpoints of prometheus-client into SQLite and PostgreSQL, rolled up and removed."""

import json
import random
import sqlite3
import time
from contextlib import closing
from statistics import mean

import pytest
from command import chipwise_here, good_here
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

import chipwise as cw
from chipwise.observe.exporters import Sample, mapping, samples_of
from chipwise.observe.scrape.scraper import ask, scrape
from chipwise.observe.store.schema import ROLL_UPS, SAMPLES_KEEP_S
from chipwise.observe.store.store import open_store
from chipwise.route.ledger import open_ledger

BLANK = 9223372036854775794.0  # DCGM's word for what it can't read
START = 1_800_000_000


@pytest.fixture
def exporters():
    """Pages as dcgm-exporter and vLLM serve them, on ports of their own."""
    registry, serving = CollectorRegistry(), CollectorRegistry()
    labels = ("gpu", "UUID", "Hostname", "modelName")
    gauges = {}
    for name in ("POWER_USAGE", "GPU_UTIL", "FB_USED", "GPU_TEMP", "SM_CLOCK"):
        gauges[name] = Gauge(f"DCGM_FI_DEV_{name}", name, labels, registry=registry)
    for gpu in range(2):
        of = (str(gpu), f"GPU-{gpu}", "node-1", "NVIDIA H100")
        gauges["POWER_USAGE"].labels(*of).set(600 + gpu)
        gauges["GPU_UTIL"].labels(*of).set(98)
        gauges["FB_USED"].labels(*of).set(40960)
        gauges["GPU_TEMP"].labels(*of).set(61)
        gauges["SM_CLOCK"].labels(*of).set(BLANK if gpu else 1755)
    Gauge("vllm:num_requests_running", "", ("model_name", "engine"), registry=serving).labels("m", "0").set(12)
    Counter("vllm:generation_tokens", "", ("model_name", "engine"), registry=serving).labels("m", "0").inc(5000)
    servers = [start_http_server(0, "127.0.0.1", registry=each) for each in (registry, serving)]
    yield [f"127.0.0.1:{server.server_port}" for server, _ in servers], gauges
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service)])
def store(request, tmp_path):
    """A store of each kind."""
    if request.param == "sqlite":
        url = str(tmp_path / "telemetry.db")
    else:
        url = request.getfixturevalue("postgres").database(f"telemetry_{time.monotonic_ns()}")
    with open_store(url) as opened:
        yield opened


def test_exporters_are_read_as_one_set_of_series(exporters, store):
    urls, _ = exporters
    pages = scrape([f"http://{url}/metrics" for url in urls], store, 0.01, rounds=2)
    assert [page.problem for page in pages] == ["", ""]
    values = {(one.host, one.device, one.series): one.value for one in store.newest(int(time.time()) - 60)}
    assert values["node-1", "GPU-1", "device_power"] == 601.0
    assert values["node-1", "GPU-0", "device_busy"] == pytest.approx(0.98)
    assert values["node-1", "GPU-0", "device_memory_used"] == 40 * 2**30
    assert values["node-1", "GPU-0", "device_clock"] == 1.755e9
    assert ("node-1", "GPU-1", "device_clock") not in values  # blank is absent, and not zero
    assert (
        values["127.0.0.1", "0", "serving_running"] == 12
        and values["127.0.0.1", "0", "serving_generated_tokens"] == 5000
    )


def test_an_endpoint_that_is_down_does_not_stop_the_others(exporters, store):
    urls, _ = exporters
    told = []
    pages = scrape(["http://127.0.0.1:9/metrics", f"http://{urls[0]}/metrics"], store, 0.01, 3, told.append)
    assert "refused" in pages[0].problem and pages[1].samples
    assert len(told) == 1  # once, not every round
    assert "page" not in ask(f"http://{urls[0]}/metrics").problem


def series(store, count, every, value):
    for number in range(count):
        store.write([Sample("device_power", "n1", "GPU-0", (), value(number))], START + number * every)


def test_values_are_rolled_up_and_removed(store):
    rng = random.Random(1)
    values = [rng.uniform(100, 700) for _ in range(2 * 360)]  # two hours
    series(store, len(values), 10, lambda n: values[n])
    store.roll_up(START + 7200 + 61)
    five = store._db.all("SELECT at, count, mean, least, most FROM telemetry_5min ORDER BY at")
    assert [row[:2] for row in five] == [(START + 300 * n, 30) for n in range(24)]
    for n, (_, _, average, least, most) in enumerate(five):
        part = values[30 * n : 30 * n + 30]
        assert (average, least, most) == (pytest.approx(mean(part)), min(part), max(part))
    hours = store._db.all("SELECT at, count, mean FROM telemetry_1h ORDER BY at")
    assert [(row[1], row[2]) for row in hours] == [
        (360, pytest.approx(mean(values[:360]))),
        (360, pytest.approx(mean(values[360:]))),
    ]
    assert len(store.values("device_power", "n1", "GPU-0", START, START + 7200)) == 720
    store.roll_up(START + 7200 + 61)  # again: nothing twice
    assert len(store._db.all("SELECT at FROM telemetry_5min")) == 24

    later = START + SAMPLES_KEEP_S + 7200 + 3600
    store.roll_up(later)
    assert store._db.one("SELECT count(*) FROM telemetry_samples")[0] == 0
    of_five = store.values("device_power", "n1", "GPU-0", START, START + 7200)
    assert len(of_five) == 24 and of_five[0].least < of_five[0].mean < of_five[0].most
    store.roll_up(START + ROLL_UPS[0].keep_s + 2 * 7200 + 3600)
    assert len(store.values("device_power", "n1", "GPU-0", START, START + 7200)) == 2
    store.roll_up(START + ROLL_UPS[1].keep_s + 3 * 7200 + 3600)
    assert store.values("device_power", "n1", "GPU-0", START, START + 7200) == []


def test_a_late_sample_and_a_second_one_change_nothing(store):
    power = Sample("device_power", "n1", "GPU-0", (), 500.0)
    assert store.write([power], START) == 1
    store.write([Sample("device_power", "n1", "GPU-0", (), 900.0)], START)
    assert [value.mean for value in store.values("device_power", "n1", "GPU-0", START, START + 1)] == [500.0]
    store.roll_up(START + 1000)
    assert store.write([power], START + 10) == 0


def test_a_batch_is_kept_whole_or_not_at_all(store):
    good = Sample("device_power", "n1", "GPU-0", (), 500.0)
    with pytest.raises(Exception, match=r".*"):
        store.write([good, Sample("device_power", "n1", "GPU-1", (), None)], START)
    assert store.newest(0) == []
    assert store.write([good], START) == 1 and len(store.newest(0)) == 1


def test_the_store_may_lie_beside_the_ledger(tmp_path):
    path = str(tmp_path / "ledger.db")
    with open_ledger(path) as ledger, open_store(path) as store:
        store.write([Sample("device_power", "n1", "GPU-0", (), 1.0)], START)
        assert ledger.check() == []


def test_pages_without_comments_and_with_mig_are_read():
    lines = [
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-7",GPU_I_ID="5",Hostname="n1"} 70',
        "other_metric 5",
        "# HELP x y",
    ]
    (sample,) = samples_of(lines, "10.0.0.1")
    assert (sample.device, sample.host, sample.value) == ("GPU-7/5", "n1", 70.0)
    (plain,) = samples_of(['duty_cycle{make="cloud-tpu",accelerator_id="t-0-3"} 55'], "10.0.0.1")
    assert (plain.series, plain.host, plain.device, plain.value) == (
        "device_busy",
        "10.0.0.1",
        "t-0-3",
        pytest.approx(0.55),
    )


def test_a_series_has_one_unit_and_one_kind():
    by_series = {}
    for mapped in mapping().values():
        assert by_series.setdefault(mapped.series, (mapped.unit, mapped.kind)) == (mapped.unit, mapped.kind)


def test_the_commands_keep_and_show(exporters, tmp_path):
    urls, _ = exporters
    path = tmp_path / "telemetry.db"
    env = {"CHIPWISE_STORE": str(path)}
    scraped = chipwise_here("observe", "scrape", *urls, "127.0.0.1:9", "--rounds", "1", env=env)
    assert scraped.returncode == 0 and "127.0.0.1:9" in scraped.stderr and "refused" in scraped.stdout
    shown = good_here("observe", "devices", "--store", path)
    assert "GPU-1" in shown and "601 W" in shown and "98%" in shown and "40.0 GiB" in shown
    document = json.loads(good_here("observe", "devices", "--store", path, "-o", "json"))
    assert {"host", "device", "series", "value", "unit", "at", "labels"} == set(document["values"][0])
    with closing(sqlite3.connect(path)) as link:  # the SQL of the page
        rows = link.execute(
            "SELECT host, device, avg(value) FROM telemetry_samples JOIN telemetry_series ON id = series "
            "WHERE name = 'device_power' GROUP BY host, device ORDER BY device"
        ).fetchall()
    assert rows == [("node-1", "GPU-0", 600.0), ("node-1", "GPU-1", 601.0)]
    for words, expected in (
        (["scrape", "127.0.0.1:9", "--rounds", "1"], "no endpoint answers"),
        (["scrape", "ftp://x"], "host:port"),
        (["scrape", "x:9400", "--interval", "soon"], "interval"),
        (["devices", "--store", str(tmp_path / "none.db")], "observe scrape"),
        (["devices", "--store", "mysql://x"], "postgresql"),
    ):
        done = chipwise_here("observe", *words, env=env)
        assert done.returncode == 2 and expected in done.stderr, done.stderr
    assert cw.devices(str(path)).newest

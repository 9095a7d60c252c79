"""Telemetry kept: from real endpoints of prometheus-client into SQLite and PostgreSQL, rolled up and removed."""

import json
import random
import time
from statistics import mean

import pytest
from command import chipwise_here, good_here
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

import chipwise as cw
from chipwise.observe.exporters import Sample, mapping, samples_of
from chipwise.observe.scrape.scraper import ask, scrape
from chipwise.observe.store.schema import DAY, FIVE_MINUTES, HOURS, SAMPLES
from chipwise.observe.store.store import open_store
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.database import SQLite
from chipwise.route.ledger.postgres import PostgreSQL

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

    def kept(resolution):
        return store.points("n1", START, START + 7200, "GPU-0", resolution)

    live = kept(FIVE_MINUTES), kept(HOURS)
    store.roll_up(START + 7200 + 61)
    assert store._db.one("SELECT count(*) FROM telemetry_rounds")[0] == 0
    for five, hours in (live, (kept(FIVE_MINUTES), kept(HOURS))):
        assert list(five.at) == [START + 300 * n for n in range(24)] and set(five.count) == {30}
        for n in range(24):
            part = values[30 * n : 30 * n + 30]
            assert five.mean[n] == pytest.approx(mean(part), abs=0.7)  # a step is a 512th of the largest
            assert (five.least[n], five.most[n]) == (
                pytest.approx(min(part), abs=1.4),
                pytest.approx(max(part), abs=1.4),
            )
        assert list(hours.count) == [360, 360]
        assert hours.mean[1] == pytest.approx(mean(values[360:]), abs=0.7)
    samples = store.values("device_power", "n1", "GPU-0", START, START + 7200)
    assert [value.mean for value in samples] == [pytest.approx(value, abs=0.006) for value in values]
    store.roll_up(START + 7200 + 61)  # again: nothing twice
    assert len(kept(FIVE_MINUTES)) == 24

    store.roll_up(START + SAMPLES.keep_s + 7200 + 3600)
    assert store._db.one("SELECT count(*) FROM telemetry_samples")[0] == 0
    assert [tuple(row) for row in store._db.all("SELECT span FROM telemetry_5min")] == [(DAY,)]
    of_five = store.values("device_power", "n1", "GPU-0", START, START + 7200)
    assert len(of_five) == 24 and of_five[0].least < of_five[0].mean < of_five[0].most
    store.roll_up(START + FIVE_MINUTES.keep_s + DAY)
    assert store._db.one("SELECT count(*) FROM telemetry_5min")[0] == 0
    assert len(store.values("device_power", "n1", "GPU-0", START, START + 7200)) == 2
    store.roll_up(START + HOURS.keep_s + DAY)
    assert store.values("device_power", "n1", "GPU-0", START, START + 7200) == []


def test_what_is_packed_is_what_was_written(store):
    """Numbers, flags and counters to the last digit; the newest of each, whether it is packed or not."""
    rows = {
        "device_last_xid": [79.0] * 50 + [31.0] * 150,
        "device_uncorrected_errors": [float(n // 70) for n in range(200)],
        "device_remap_failed": [0.0] * 200,
        "device_energy": [1.5e9 + 6512.125 * n for n in range(200)],
        "device_memory_total": [85_899_345_920.0] * 200,
        "host_notice": [float(START + 86400)] * 200,
    }
    for number in range(200):
        samples = [Sample(name, "n1", "GPU-0", (("gpu", "0"),), values[number]) for name, values in rows.items()]
        if number % 3:
            samples.append(Sample("device_power", "n1", "GPU-1", (), 100.0 + number))
        store.write(samples, START + 10 * number)
    store.roll_up(START + 1861)  # the first half hour, and the rest as it came
    for name, values in rows.items():
        of = store.values(name, "n1", "GPU-0", START, START + DAY)
        tolerance = 2.0 if name == "device_energy" else 0  # a millionth of what it rises by in half an hour
        assert [value.mean for value in of] == [pytest.approx(value, abs=tolerance) for value in values], name
        assert [value.at for value in of] == [START + 10 * number for number in range(200)]
    assert len(store.values("device_power", "n1", "GPU-1", START, START + DAY)) == 133
    newest = {one.series: one for one in store.newest(START)}
    assert newest["device_last_xid"].value == 31.0 and newest["device_power"].value == 299.0
    assert newest["device_energy"].labels == {"gpu": "0"} and newest["device_energy"].at == START + 1990
    store.roll_up(START + 2 * DAY)
    assert {one.series: one.value for one in store.newest(START)} == {name: one.value for name, one in newest.items()}
    packed = store.points("n1", START, START + DAY, "GPU-0", FIVE_MINUTES)
    assert set(packed.most[packed.at == START]) >= {79.0, 0.0, float(START + 86400), 85_899_345_920.0}
    assert store.newest(START + 2000) == []


def test_hosts_of_a_scraper_are_packed_a_few_at_a_time(store):
    for number in range(200):
        store.write([Sample("device_power", f"n{n}", "0", (), 1.0) for n in range(3)], START + 10 * number)
    left = "SELECT count(DISTINCT host) FROM telemetry_rounds WHERE at < ?"
    for hosts in (2, 1, 0, 0):
        store.roll_up(START + 1861, most_s=0.0)
        assert store._db.one(left, START + 1800)[0] == hosts
    with_series = store._db.one("SELECT count(*) FROM telemetry_series WHERE at IS NOT NULL")[0]
    assert with_series == 3


def test_who_wrote_packs_and_orphans_are_packed_by_others(tmp_path):
    url = str(tmp_path / "telemetry.db")
    with open_store(url) as ours, open_store(url) as theirs:
        ours.write([Sample("device_power", "n1", "0", (), 1.0)], START)
        theirs.write([Sample("device_power", "n2", "0", (), 1.0)], START)
        ours.write([Sample("device_busy", "n1", "0", (), 1.0)], START + 10)  # it knows of n2 by now, and leaves it
        ours.roll_up(START + 1861)
        assert ours._db.all("SELECT host FROM telemetry_rounds") == [(2,)]
        ours.roll_up(START + 3 * 1800 + 61)
        assert ours._db.all("SELECT host FROM telemetry_rounds") == []


VERSION_1 = (
    "CREATE TABLE telemetry_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "CREATE TABLE telemetry_series (id BIGINT PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL, device TEXT NOT NULL, "
    "labels TEXT NOT NULL, UNIQUE (name, host, device, labels))",
    "CREATE TABLE telemetry_rounds (at BIGINT PRIMARY KEY)",
    "CREATE TABLE telemetry_samples (at BIGINT NOT NULL, series BIGINT NOT NULL REFERENCES telemetry_series (id), "
    "value DOUBLE PRECISION NOT NULL, PRIMARY KEY (at, series))",
    *(
        f"CREATE TABLE {table} (series BIGINT NOT NULL REFERENCES telemetry_series (id), at BIGINT NOT NULL, "
        "count BIGINT NOT NULL, mean DOUBLE PRECISION NOT NULL, least DOUBLE PRECISION NOT NULL, "
        "most DOUBLE PRECISION NOT NULL, PRIMARY KEY (series, at))"
        for table in ("telemetry_5min", "telemetry_1h")
    ),
)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.service)])
def test_a_store_of_rows_is_brought_to_blocks(kind, tmp_path, request):
    """As chipwise wrote it until November 2026: three days and a quarter of two devices."""
    if kind == "sqlite":
        url = str(tmp_path / "old.db")
        db = SQLite(tmp_path / "old.db", create=True)
    else:
        url = request.getfixturevalue("postgres").database(f"old_{time.monotonic_ns()}")
        db = PostgreSQL(url)
    begin, end = START // DAY * DAY, START // DAY * DAY + 3 * DAY + 6 * 3600 + 17 * 60
    rolled = (end - 60) // 300 * 300
    with db.write():
        for statement in VERSION_1:
            db.run(statement)
        for name, value in (
            ("version", 1),
            ("telemetry_5min", rolled),
            ("telemetry_1h", rolled // 3600 * 3600),
            ("removed telemetry_samples", end - 2 * DAY),
            ("removed telemetry_5min", end - 31 * DAY),
        ):
            db.run("INSERT INTO telemetry_meta (name, value) VALUES (?, ?)", name, value)
        for number, device in ((1, "GPU-0"), (2, "GPU-1")):
            db.run("INSERT INTO telemetry_series VALUES (?, 'device_power', 'n1', ?, '{}')", number, device)
            for table, seconds, until in (
                ("telemetry_5min", 300, rolled),
                ("telemetry_1h", 3600, rolled // 3600 * 3600),
            ):
                db.many(
                    f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)",
                    [(number, at, seconds // 60, 500.0, 400.0, 600.0) for at in range(begin, until, seconds)],
                )
        moments = range(end - 2 * DAY, end, 60)
        db.many("INSERT INTO telemetry_rounds VALUES (?)", [(at,) for at in moments])
        db.many(
            "INSERT INTO telemetry_samples VALUES (?, ?, ?)",
            [(at, n, 500.0 + n + at % 7) for at in moments for n in (1, 2)],
        )
    db.close()
    with open_store(url) as store:
        five = store.points("n1", begin, end, "GPU-1", FIVE_MINUTES)
        assert list(five.at) == list(range(begin, end, 300))
        assert (five.mean[5], five.count[5]) == (500.0, 5)
        assert (five.least[5], five.most[5]) == (pytest.approx(400, abs=1.2), pytest.approx(600, abs=1.2))
        hours = store.points("n1", begin, end, "GPU-1", HOURS)
        assert list(hours.at) == list(range(begin, end, 3600)) and set(hours.count[:-1]) == {60}
        values = store.values("device_power", "n1", "GPU-1", end - DAY, end)
        assert [(value.at, value.mean) for value in values] == [
            (at, 502.0 + at % 7) for at in range(end - DAY, end, 60)
        ]
        assert {one.value for one in store.newest(end - 120)} == {501.0 + (end - 60) % 7, 502.0 + (end - 60) % 7}
        assert store.write([Sample("device_power", "n1", "GPU-1", (), 555.0)], end) == 1
        store.roll_up(end + 2 * DAY)
        assert len(store.points("n1", begin, end, "GPU-0", FIVE_MINUTES)) == len(five)
        assert not {"telemetry_5min_1", "telemetry_meta_1"} & store._db.tables()
    with open_store(url) as again:
        assert again.newest(end)[0].value == 555.0


def test_a_late_sample_and_a_second_one_change_nothing(store):
    power = Sample("device_power", "n1", "GPU-0", (), 500.0)
    assert store.write([power], START) == 1
    store.write([Sample("device_power", "n1", "GPU-0", (), 900.0)], START)
    assert [value.mean for value in store.values("device_power", "n1", "GPU-0", START, START + 1)] == [500.0]
    store.roll_up(START + 1861)
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

"""Rates of a real ledger's jobs beside what is assumed, and the file by which they replace it."""

import json
import re
import time

import pytest
from command import chipwise_here
from ledger_cases import POOLS, start, submission

import chipwise as cw
from chipwise.observe.exporters import Sample
from chipwise.observe.store.store import open_store
from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.records import AttemptEnd

HOUR = 3600.0
FILE = """pools:
  - {name: h100, backend: local, chip: h100, count: 8, price: 3.0, terms: owned}
  - {name: v5e, backend: local, chip: v5e, count: 16, shapes: [2x2], price: 0.4, terms: spot, cloud: gcp}
"""
JOB = "examples/llama-3.1-8b-pretrain.yaml"


def attempt(ledger, job, pool, began, hours, state, following="pending"):
    """An attempt from a moment on, for so many hours."""
    (row,) = ledger.decide("r1", "fastest", [start(job, pool)], began, 30.0, POOLS)
    ledger.mark_submitted(row.id, "4711", began)
    ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=began), began)
    ended = began + hours * HOUR
    ledger.end(row.id, AttemptEnd(state, following, done=0.0, ended=ended), ended)
    return row.id


@pytest.fixture
def book(tmp_path):
    """60 days of two pools: 2 of 40 attempts of 10 hours were lost on each; one failed by a device, one by itself."""
    url, first = str(tmp_path / "ledger.db"), time.time() - 60 * 24 * HOUR
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(tmp_path))}, "r1", "host", 1, "fastest", first, 30.0)
        for pool in ("h100", "v5e"):
            (job,) = ledger.submit([submission(pool)], first)
            names = [
                attempt(ledger, job, pool, first + 24 * HOUR * n, 10.0, "lost" if n in (10, 20) else "preempted")
                for n in range(38)
            ]
            names += [attempt(ledger, job, pool, first + 24 * HOUR * n, 10.0, "failed") for n in (38, 39)]
            ledger.change("cancel", [job], first + 40 * 24 * HOUR)
            for name, line in ((names[-2], "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."),
                               (names[-1], "ValueError: no such file")):  # fmt: skip
                place = tmp_path / "attempts" / name
                place.mkdir(parents=True)
                (place / "output").write_text(f"kernel: {line}\n", encoding="utf-8")
    pools = tmp_path / "pools.yaml"
    pools.write_text(FILE, encoding="utf-8")
    return url, pools, tmp_path


def test_jobs_are_counted_by_what_they_met(book):
    answer = cw.observe_rates(book[1], book[0])
    failures, interruptions, use = answer.rates
    assert (failures.name, failures.exposure.count) == ("failure_chip_hour.owned", 3)
    assert failures.exposure.hours == pytest.approx(40 * 10 * 2)
    assert (interruptions.name, interruptions.exposure.count) == ("spot_per_hour.gcp", 2)
    assert interruptions.exposure.hours == pytest.approx(40 * 10)  # a slice of four chips is one
    assert use.exposure.hours == pytest.approx(60 * 24 * 8, rel=1e-3) and use.exposure.count == pytest.approx(800)
    assert failures.assumed.value < failures.value < 3 / 800 and use.low < use.value < use.assumed.low
    assert 2 / 400 < interruptions.value < interruptions.assumed.value
    assert answer.met.attempts == 80 and answer.met.unread == 0


def test_a_day_and_a_time_ago_bound_what_counts(book):
    whole, part = cw.observe_rates(book[1], book[0]), cw.observe_rates(book[1], book[0], since="30d")
    assert part.rates[0].exposure.hours == pytest.approx(whole.rates[0].exposure.hours / 4, rel=0.03)
    assert part.rates[1].exposure.count == 0
    assert part.rates[2].exposure.hours == pytest.approx(30 * 24 * 8, rel=0.04)
    for wrong in ("soon", "2026-13-01"):
        with pytest.raises(cw.InputError, match="90d"):
            cw.observe_rates(book[1], book[0], since=wrong)


def test_what_cannot_be_counted_is_said(book):
    book[1].write_text(FILE.replace(", terms: owned", ", terms: reserved").replace("v5e,", "v6,", 1), encoding="utf-8")
    answer = cw.observe_rates(book[1], book[0])
    assert [(pool, why.value, round(hours)) for pool, why, hours in answer.met.left_out] == [
        ("h100", "no_cloud", 800),
        ("v5e", "no_pool", 1600),
    ]
    assert [rate.name for rate in answer.rates] == ["utilization"] and "names no cloud" in str(answer)


def test_the_file_replaces_what_costs_assume(book):
    url, pools, folder = book
    env = {"CHIPWISE_LEDGER": url, "CHIPWISE_TODAY": "2026-11-18"}
    file = folder / "rates.yaml"
    table = chipwise_here("observe", "rates", "--pools", str(pools), "--to", str(file), env=env).stdout
    assert "3 failures in 800 chip-hours" in table and "a slice counts as one instance" in table
    document = json.loads(chipwise_here("observe", "rates", "--pools", str(pools), "-o", "json", env=env).stdout)
    measured = {rate["name"]: rate for rate in document["rates"]}
    costs = ["cost", JOB, "--on", "h100:64", "--pricing", "on-premises", "-o", "json", "--assumptions", str(file)]
    said = json.loads(chipwise_here(*costs, env=env).stdout)["statements"][0]["assumed"]
    used = {figure["name"]: figure for figure in said}
    for name in ("failure_chip_hour.owned", "utilization"):
        assert used[name]["value"] == pytest.approx(measured[name]["value"], rel=1e-3)
        assert used[name]["evidence"] == "measured" and used[name]["date"] == "2026-11-18"
        assert "ledger.db" in used[name]["source"]
    brief = chipwise_here(*costs[:6], *costs[8:], env=env).stdout
    assert re.search(r"In place of assumptions: .*utilization [\d.]+ \(measured: jobs of ledger ledger.db, ", brief)
    given = chipwise_here(*costs, "--set", "utilization=0.5", env=env).stdout
    assert f"50% are used (given, in place of {measured['utilization']['value']:.2g}" in given


def telemetry(path, now, devices=4, hot=None, sick=None):
    """A day of 10-second samples: H100s at 500 W for the first half of it, at 90 W for the second."""
    with open_store(str(path)) as store:
        for step in range(0, 24 * 3600, 60):
            at, busy = int(now) - 24 * 3600 + step, step < 12 * 3600
            samples = []
            for gpu in range(devices):
                labels = (("gpu", str(gpu)), ("model", "NVIDIA H100 80GB HBM3"))
                one = {"device_power": (500.0 + gpu if busy else 90.0), "device_busy": 0.97 if busy else 0.0}
                one["device_throttled_by_heat"] = float(gpu == hot and step < 6 * 3600)
                one["device_remap_failed"] = float(gpu == sick)
                if gpu in (hot, sick):
                    one["device_power"] -= 200.0 * busy * (gpu == sick or step < 6 * 3600)
                samples += [Sample(series, "gpu-1:9400", f"GPU-{gpu}", labels, value) for series, value in one.items()]
            store.write(samples, at)
    return path


def test_power_is_measured_and_carried_into_costs(book):
    url, pools, folder = book
    store = telemetry(folder / "telemetry.db", time.time())
    answer = cw.observe_rates(pools, url, store=store, to=folder / "rates.yaml")
    by_name = {rate.name: rate for rate in answer.rates}
    busy, idle = by_name["chip_watts.h100"], by_name["chip_idle_watts.h100"]
    assert busy.value == pytest.approx(501.5, rel=0.1) and busy.low < 501.5 < busy.high
    assert idle.value == pytest.approx(90.0, rel=0.1)
    assert (busy.exposure.devices, busy.exposure.hours) == (4, pytest.approx(48, rel=0.02))
    assert [(row.pool, row.use.value, round(row.drawn.watts, -1)) for row in answer.power.pools] == [
        ("h100", "idle", 90),
        ("h100", "work", 500),
    ]
    env = {"CHIPWISE_TODAY": "2026-11-19"}
    costs = ["cost", JOB, "--on", "h100:64", "--pricing", "on-premises"]
    with_file = [*costs, "--assumptions", str(folder / "rates.yaml")]
    before, after = (json.loads(chipwise_here(*a, "-o", "json", env=env).stdout) for a in (costs, with_file))
    assert before["statements"][0]["options"][0]["meter_kwh"] > after["statements"][0]["options"][0]["meter_kwh"] * 1.1
    assert re.search(
        r"In place of assumptions: chip_idle_watts.h100 [\d.]+, chip_watts.h100 [\d.]+, .*of 2026-",
        chipwise_here(*with_file, env=env).stdout,
    )
    known = cw.Knowledge.default(assumptions_file=folder / "rates.yaml")
    row = cw.compare(JOB, on="h100:64", knowledge=known).rows[0]
    assert row.prediction.watts == pytest.approx(busy.value, rel=1e-6)
    compared = chipwise_here("compare", JOB, "--on", "h100:64", "--assumptions", str(folder / "rates.yaml")).stdout
    assert f"h100 draws {busy.value:.0f} W while a job holds it" in compared
    serving = cw.compare("examples/llama-3.1-70b-serve.yaml", on="h100", knowledge=known).rows[0]
    drawn = serving.joules.value * serving.unit_rate.value / serving.accelerators.count
    assert drawn == pytest.approx(busy.value, rel=0.02)


def test_sick_and_throttled_devices_teach_no_power_and_are_named(book):
    store = telemetry(book[2] / "telemetry.db", time.time(), hot=0, sick=1)
    answer = cw.observe_rates(book[1], book[0], store=store, since="2d")
    (work,) = [row for row in answer.power.pools if row.use.value == "work"]
    assert work.drawn.watts == pytest.approx((500 * 0.5 + 502 + 503) / 2.5, abs=0.5)
    assert {(d.device, d.why.value) for d in answer.power.left_out} == {("GPU-0", "throttled"), ("GPU-1", "sick")}
    assert "sick: gpu-1:9400 GPU-1 (a row of memory could not be remapped)" in str(answer)
    assert "throttled for 6" in str(answer)


def test_without_a_store_power_stays_as_assumed(book, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(book[2] / "data"))
    answer = cw.observe_rates(book[1], book[0])
    assert answer.power is None and "Power is as assumed" in str(answer)
    with pytest.raises(cw.InputError, match="store"):
        cw.observe_rates(book[1], book[0], store=str(book[2] / "nowhere.db"))


WRONG = [
    ("date: 2026-11-18\nsource: x\nassumptions: {chip_watts.h10: {value: 1, low: 1, high: 1}}", "h100"),
    ("date: 2026-11-18\nsource: x\nassumptions: {chip_watts: {value: 1, low: 1, high: 1}}", "chip"),
    ("assumptions: {}", "assumptions: missing"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilisation: {value: 1, low: 1, high: 1}}", "utilization"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilization: {value: 0.9, low: 0.95, high: 1}}", "holds the value"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilization: {value: 2, low: 1, high: 3}}", "at most 1"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilization: {value: 0.5, low: 0.4}}", "high: missing"),
    ("date: 2026-11-18\nsource: x\nassumptions: {spot_per_hour.asw: {value: 1, low: 1, high: 1}}", "aws"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilization.aws: {value: 1, low: 1, high: 1}}", "utilization"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilization: 0.5}", "a mapping"),
    ("date: 2026-11-18\nsource: x\nassumptions: {utilization: {value: .nan, low: 0, high: 1}}", "a number"),
    ("date: soon\nsource: x\nassumptions: {utilization: {value: 0.5, low: 0.4, high: 1}}", "a day"),
    ("date: 2026-11-18\nassumptions: {utilization: {value: 0.5, low: 0.4, high: 1}}", "source"),
    ("date: 2026-11-18\nsource: x\nrates: {}", "unknown key 'rates'"),
    ("date: 2026-11-18\nsource: x\nassumptions: {failure_chip_hour: {value: 1e-5, low: 0, high: 1}}", "more than 0"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_a_file_that_is_wrong_is_one_line(tmp_path, text, words):
    file = tmp_path / "rates.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(cw.InputError, match=r"rates\.yaml") as error:
        cw.Knowledge.default(assumptions_file=file)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_figure_of_no_cloud_is_that_of_all_but_those_named(tmp_path):
    file = tmp_path / "rates.yaml"
    head = "date: 2026-11-18\nsource: our own\nassumptions:\n"
    file.write_text(
        head + "  spot_per_hour: {value: 0.1, low: 0.05, high: 0.2}\n"
        "  spot_per_hour.gcp: {value: 0.3, low: 0.2, high: 0.4, evidence: measured}\n"
        "  spot_per_hour.lambda: {value: 0.4, low: 0.2, high: 0.5}\n", encoding="utf-8"
    )  # fmt: skip
    know = cw.Knowledge.default(assumptions_file=file).economics
    assert [know.value("spot_per_hour", c) for c in ("aws", "gcp", "lambda", "vast")] == [0.1, 0.3, 0.4, 0.1]
    assert know("spot_per_hour", "aws").source == "given: our own"
    changed = cw.Knowledge.default(assumptions_file=file, assumptions={"spot_per_hour": 0.7}).economics
    assert changed("spot_per_hour", "gcp").note == "in place of 0.3, measured: our own"
    assert {changed.value("spot_per_hour", c) for c in ("aws", "gcp", "lambda", "vast")} == {0.7}


def test_a_file_that_is_not_there_is_named_by_its_flag():
    done = chipwise_here("cost", "llama-3.1-8b", "--on", "h100:8", "--assumptions", "nowhere.yaml")
    assert (done.returncode, done.stderr) == (2, "chipwise: --assumptions: no such file: 'nowhere.yaml'\n")

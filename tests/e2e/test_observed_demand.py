"""Demand of a real ledger's jobs read back, written as a demand file, and planned."""

import json
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from command import chipwise_here
from ledger_cases import POOLS, options, start

import chipwise as cw
from chipwise.fleet.demand import read_demand
from chipwise.observe.exporters import samples_of
from chipwise.observe.store.store import open_store
from chipwise.route.backend import AttemptStatus
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import NewJob, open_ledger
from chipwise.route.ledger.records import AttemptEnd

HOUR, DAY = 3600.0, 86400.0
PER_MONTH, RATE = 6.0, 3.0
TRAIN = {"model": "gpt2", "train": {"tokens": "100M", "global_batch": 64, "sequence": 1024}}
SERVE = {"model": "llama-3.1-8b", "serve": {"input": 500, "output": 100, "arrival": {"rate": 9}}}
FILE = """pools:
  - {name: h100, backend: local, chip: h100, count: 8, price: 3.0, terms: owned}
  - {name: v5e, backend: local, chip: v5e, count: 16, shapes: [2x2], price: 0.4, terms: ondemand, cloud: gcp}
"""


def submission(name, workload):
    variants = (Variant("gpu", "gpu", 2, command=("x",)), Variant("tpu", "tpu", 4, command=("x",)))
    return NewJob(Job(name, variants, workload=json.dumps(workload) if workload else ""), options())


def run(ledger, job, began, hours, end="succeeded"):
    (row,) = ledger.decide("r1", "fastest", [start(job)], began, 30.0, POOLS)
    ledger.mark_submitted(row.id, "4711", began)
    ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=began), began)
    if end:
        ledger.end(row.id, AttemptEnd(end, end, ended=began + hours * HOUR), began + hours * HOUR)
    return row.id


def server_log(began, days):
    """A window of vLLM each hour: three times as busy from 8 to 18 o'clock (UTC)."""
    lines = []
    for hour in range(days * 24):
        at = datetime.fromtimestamp(began + hour * HOUR + 600, UTC)
        rate = RATE * 100 * (2.0 if 8 <= at.hour < 18 else 2 / 7)
        lines.append(
            f"INFO {at:%m-%d %H:%M:%S} [loggers.py:271] Engine 000: Avg prompt throughput: {5 * rate:.1f} tokens/s, "
            f"Avg generation throughput: {rate:.1f} tokens/s, Running: 9 reqs, Waiting: 0 reqs, GPU KV cache usage: 8.1%"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Nine months of training runs, twelve days of a service, and jobs that say nothing of what they run."""
    folder = tmp_path_factory.mktemp("demand")
    url, now, rng = str(folder / "ledger.db"), time.time(), np.random.default_rng(7)
    first = now - 270 * DAY
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(folder))}, "r1", "host", 1, "fastest", first, 30.0)
        for at in np.sort(rng.uniform(first, now - DAY, rng.poisson(PER_MONTH * 270 / 30.44))):
            (job,) = ledger.submit([submission("tune", TRAIN)], at)
            run(ledger, job, at, 8.0)
        (job,) = ledger.submit([submission("secret", None)], first)
        run(ledger, job, first, 100.0)
        began = (now - 12 * DAY) // DAY * DAY
        (job,) = ledger.submit([submission("chat", SERVE)], began)
        name = run(ledger, job, began, 0.0, end="")
        (gone,) = ledger.submit([submission("never", TRAIN)], now - DAY)
        ledger.change("cancel", [gone], now)
    place = folder / "attempts" / name
    place.mkdir(parents=True)
    (place / "output").write_text(server_log(began, 11), encoding="utf-8")
    pools = folder / "pools.yaml"
    pools.write_text(FILE, encoding="utf-8")
    return url, pools, folder


def test_a_known_demand_is_read_back(book):
    answer = cw.observe_demand(book[1], book[0], months=6)
    by_name = {one.past.name: one for one in answer.demands}
    tune, chat = by_name["tune"], by_name["chat"]
    month = tune.trend.months[0]
    assert month.low <= PER_MONTH <= month.high and month.high / month.low < 3
    assert tune.past.run_seconds == pytest.approx(8 * HOUR) and tune.past.chips == [2]
    assert chat.trend.months[0].low <= RATE <= chat.trend.months[0].high
    assert (chat.past.peak.begin, chat.past.peak.end) == (8, 18)
    assert chat.past.peak.times == pytest.approx(2.0, rel=0.05)
    assert chat.trend.months[-1].high / chat.trend.months[-1].low > 1.5  # twelve days say little of half a year
    (left,) = answer.skipped
    assert (left.name, left.why.value, round(left.chip_hours)) == ("secret", "no_workload", 200)
    assert "secret, 1 job, 200 chip-hours" in str(answer)


def test_the_file_is_planned_as_it_is(book):
    url, pools, folder = book
    file = folder / "demand.yaml"
    env = {"CHIPWISE_LEDGER": url}
    words = ["observe", "demand", "--pools", str(pools), "--months", "2", "--on", "h100,v5e", "--to", str(file)]
    said = chipwise_here(*words, env=env).stdout
    assert f"review it, then `chipwise fleet plan {file}`" in said
    demand = read_demand(file)
    assert {w.name.partition(" from ")[0] for w in demand.spec.workloads} == {"tune", "chat"}
    chat = next(w.serve for w in demand.spec.workloads if w.serve)
    assert chat.peak == pytest.approx(2.0, rel=0.05) and chat.peak_hours == "8-18"
    assert [(e.contract, e.chips, e.usd_chip_hour) for e in demand.spec.existing] == [("pool h100", 8, 0.0)]
    assert "growth a month" in file.read_text() and "8.00 h (median), 2 of them" in file.read_text()
    plan = json.loads(chipwise_here("fleet", "plan", str(file), "--no-sensitivity", "-o", "json", env=env).stdout)
    assert plan["plan"]["usd"] > 0 and not plan["relax"]


def vllm_page(counts, engines=("0", "1")):
    """What two engines of a server say, each of its own."""
    lines = []
    for engine, count in zip(engines, counts, strict=True):
        for reason, share in (("stop", 0.75), ("length", 0.25)):
            labels = f'engine="{engine}",model_name="m",finished_reason="{reason}"'
            lines.append(f"vllm:request_success_total{{{labels}}} {count * share}")
        lines.append(f'vllm:num_requests_running{{engine="{engine}",model_name="m"}} 3')
    return lines


def test_servers_that_print_nothing_are_known_by_their_counters(book, tmp_path):
    """Two servers of two engines on one host, told apart by their ports; one of them starts again."""
    url, store, now = str(tmp_path / "ledger.db"), str(tmp_path / "telemetry.db"), time.time()
    began = (now - 6 * DAY) // DAY * DAY
    rates = {8000: 2.0, 8001: 0.5}  # of an engine: a service of 4/s and one of 1/s
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(tmp_path))}, "r1", "host", 1, "fastest", began, 30.0)
        for port in rates:
            work = {**SERVE, "serve": {**SERVE["serve"], "input": port}}
            variants = tuple(Variant(n, n, 2, command=("vllm", "serve", "--port", str(port))) for n in ("gpu", "tpu"))
            (job,) = ledger.submit([NewJob(Job(f"s{port}", variants, workload=json.dumps(work)), options())], began)
            (row,) = ledger.decide("r1", "fastest", [start(job)], began, 30.0, POOLS)
            ledger.mark_submitted(row.id, "4711", began)
            ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=began, where="gpu-7"), began)
    with open_store(store) as telemetry:
        for second in range(0, int(5.5 * DAY), 600):
            samples = []
            for port, rate in rates.items():
                again = second - 2 * DAY if port == 8000 and second >= 2 * DAY else second
                samples += samples_of(vllm_page([again * rate] * 2), "gpu-7.example.com", f"gpu-7.example.com:{port}")
            telemetry.write(samples, int(began) + second)
        telemetry.roll_up(int(now))
    answer = cw.observe_demand(book[1], url, store=store, months=2)
    means = {one.past.workload["serve"]["input"]: one.past for one in answer.demands}
    assert {port: past.counted for port, past in means.items()} == {8000: True, 8001: True}
    for port, rate in rates.items():
        shown = sum(m.amount * m.share for m in means[port].months) / sum(m.share for m in means[port].months)
        assert shown == pytest.approx(2 * rate, rel=0.01)
    assert "by what its servers counted" in str(answer) and "by what its servers counted" in answer.text


def test_what_is_observed_is_planned_without_a_file(book):
    url, pools, _ = book
    env = {"CHIPWISE_LEDGER": url}
    words = ["fleet", "plan", "--demand", "observed", "--pools", str(pools), "--months", "2", "--on", "h100,v5e"]
    answer = chipwise_here(*words, "--no-sensitivity", "-o", "json", env=env)
    file = cw.observe_demand(pools, url, months=2, on="h100,v5e").contents()
    assert json.loads(answer.stdout)["plan"]["usd"] == cw.plan_fleet(file, sensitivity=False).plan.usd
    assert "secret, 1 job, 200 chip-hours" in answer.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "DEMAND: missing"),
        (["--demand", "guessed"], "--demand: 'guessed'"),
        (["--demand", "observed"], "--pools FILE beside it"),
        (["mixed.yaml", "--months", "3"], "--months: '3'"),
        (["mixed.yaml", "--demand", "observed"], "can't combine"),
    ],
)
def test_a_plan_has_one_demand(words, sentence):
    answer = chipwise_here("fleet", "plan", *words)
    assert answer.returncode == 2 and sentence in answer.stderr and answer.stderr.count("\n") == 1


def test_the_high_case_asks_for_more(book):
    cases = {case: cw.observe_demand(book[1], book[0], case=case).text for case in ("low", "likely", "high")}
    runs = {case: sum(int(line.split("runs: ")[1].split(",")[0].rstrip("}")) for line in text.splitlines() if "train: {runs" in line)
            for case, text in cases.items()}  # fmt: skip
    assert runs["low"] < runs["likely"] < runs["high"]


def test_what_is_wrong_is_one_line(book):
    for words in ({"case": "worst"}, {"start": "soon"}, {"start": "2020-01"}, {"months": 0}, {"on": "h1000x"}):
        with pytest.raises(cw.InputError):
            cw.observe_demand(book[1], book[0], **words)

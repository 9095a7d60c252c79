"""Pools judged by a real ledger's attempts, and its jobs replayed on other pools."""

import json
import time

import pytest
from command import chipwise_here, good_here
from ledger_cases import start

import chipwise as cw
from chipwise.predict.estimate import Estimate
from chipwise.report.fleet.observed import observed_section
from chipwise.route.backend import AttemptStatus
from chipwise.route.job import DeclaredRuntime, Job, Variant
from chipwise.route.ledger import NewJob, open_ledger
from chipwise.route.ledger.records import AttemptEnd
from chipwise.route.option import Option

HOUR, DAY = 3600.0, 86400.0
DAYS, CHIPS, TAKES = 10, 4, 6 * HOUR
FILE = """pools:
  - {name: h100, backend: local, chip: h100, count: 8, price: 3.0, terms: owned}
  - {name: v5e, backend: local, chip: v5e, count: 16, shapes: [1x1, 2x2], price: 0.5, terms: reserved, cloud: gcp}
"""
CAPACITY = {"h100": 8, "v5e": 16}


def submission(n, pool="h100", chips=CHIPS):
    family, variant = {"h100": ("gpu", "gpu"), "v5e": ("tpu", "tpu")}[pool]
    seconds = Estimate(TAKES / 2, TAKES / 3, TAKES, "measured")  # half of what they really take
    job = Job(f"job-{n}", (Variant(variant, family, chips, command=("x",)),), given=(DeclaredRuntime(family, seconds),))
    option = Option(pool, variant, chips, "2x2" if pool == "v5e" else "", seconds, chips * 3.0, 1400.0)
    return NewJob(job, (option,))


def run(ledger, job, pool, began, seconds, state="succeeded", following="succeeded"):
    (row,) = ledger.decide("r1", "fastest", [start(job, pool)], began, 30.0, CAPACITY)
    ledger.mark_submitted(row.id, "4711", began)
    ledger.observe(row.id, AttemptStatus(row.id, "4711", "running", started=began), began)
    ledger.end(row.id, AttemptEnd(state, following, ended=began + seconds), began + seconds)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Ten days: four chips for six hours are asked of the h100s every three hours, and hardly anything of the v5es."""
    folder = tmp_path_factory.mktemp("advice")
    url, now = str(folder / "ledger.db"), time.time()
    first = now - DAYS * DAY
    with open_ledger(url) as ledger:
        ledger.settle({"local": ("mark", str(folder))}, "r1", "host", 1, "cheapest", first, 30.0)
        free = [first, first]
        for n in range(int(DAYS * DAY / (2.5 * HOUR)) - 8):
            at = first + n * 2.5 * HOUR
            (job,) = ledger.submit([submission(n)], at)
            slot = min(range(2), key=lambda place: free[place])
            began = max(at, free[slot])
            if began + TAKES < now:
                run(ledger, job, "h100", began, TAKES)
                free[slot] = began + TAKES
            else:
                ledger.change("cancel", [job], now)
        for n in range(6):
            (job,) = ledger.submit([submission(f"t{n}", "v5e")], first + n * DAY)
            run(ledger, job, "v5e", first + n * DAY, TAKES)
        (job,) = ledger.submit([submission("wrong")], first)
        run(ledger, job, "h100", first, 60.0, "failed", "failed")
    pools = folder / "pools.yaml"
    pools.write_text(FILE, encoding="utf-8")
    return url, pools, folder


def test_pools_are_judged_by_what_held_them(book):
    answer = cw.observe_advice(book[1], book[0])
    h100, v5e = answer.pools
    assert [state.value for state in h100.states] == ["saturated"] and h100.share > 0.85 and h100.full_share > 0.8
    assert [state.value for state in v5e.states] == ["idle"] and v5e.busy_chips == 4 and v5e.share < 0.1
    assert h100.usd == pytest.approx(8 * DAYS * 24 * 3.0, rel=0.01) and v5e.usd == pytest.approx(
        16 * DAYS * 24 * 0.5, rel=0.01
    )
    assert "v5e is idle: 4% of what is paid for was held; 4 of its 16 chips would have done" in str(answer)
    assert "h100 is saturated" in str(answer)


def test_the_jobs_replayed_as_they_were_meet_what_they_met(book):
    replay = cw.observe_advice(book[1], book[0]).replayed
    now = replay.tried[0]
    assert replay.policy == "cheapest" and now.refused == 0
    assert now.wait.median_s == pytest.approx(replay.real_wait.median_s, rel=0.25)
    assert replay.measured > 0.8 * replay.jobs  # each by its own run, twice as long as declared
    assert dict(replay.left_out) == {"cancelled": dict(replay.left_out)["cancelled"], "failed": 1}


def test_other_mixes_cost_what_their_chips_do_and_wait_accordingly(book):
    answer = cw.observe_advice(book[1], book[0], change={"h100": 4})
    by_name = {one.mix.name: one for one in answer.replayed.tried}
    now, fewer, more = by_name["as it is"], by_name["without what lay idle"], by_name["more where jobs waited"]
    assert fewer.mix.changes == [("v5e", 16, 4)] and more.mix.changes == [("h100", 8, 12)]
    assert fewer.usd == pytest.approx(now.usd - 12 * DAYS * 24 * 0.5, rel=0.01)
    assert more.usd == pytest.approx(now.usd + 4 * DAYS * 24 * 3.0, rel=0.01)
    assert more.wait.p90_s < 0.3 * now.wait.p90_s and by_name["as asked"].wait.p90_s > 2 * now.wait.p90_s
    assert by_name["as asked"].late > 0
    assert "without what lay idle (v5e 16 to 4) would have cost" in str(answer)


def test_a_mix_of_another_file_is_estimated_there(book):
    other = book[2] / "cloud.yaml"
    other.write_text(
        "pools:\n  - {name: big, backend: local, chip: h200, count: 64, price: 2.0, terms: ondemand, cloud: gcp}\n"
    )
    answer = cw.observe_advice(book[1], book[0], mix=[other])
    cloud = answer.replayed.tried[-1]
    jobs = cloud.done
    assert cloud.mix.name == "cloud" and cloud.refused == 6  # those for TPUs alone
    assert cloud.usd == pytest.approx(jobs * CHIPS * TAKES / HOUR * 2.0, rel=0.15) and cloud.wait.p90_s < 60
    assert dict(answer.replayed.left_out)["no_pool"] == 6


def test_the_report_of_a_demand_has_it_as_a_section(book):
    section = observed_section(cw.observe_advice(book[1], book[0]))
    assert [getattr(part, "title", "") for part in section.parts][1:3] == [
        "What was held of what there was",
        "What to do",
    ]
    assert not observed_section(None).parts
    demand = book[2] / "demand.yaml"
    demand.write_text(
        "start: 2027-01\nmonths: 1\nworkloads:\n  - {name: a, train: {}, workload: {model: gpt2, train: {tokens: 100M, "
        "global_batch: 64, sequence: 1024}}}\ncandidates: [{chip: v5e, terms: [ondemand]}]\n"
    )
    page = book[2] / "report.html"
    words = ["report", str(demand), "--pools", str(book[1]), "--ledger", book[0], "--out", str(page)]
    good_here(*words)
    text = page.read_text(encoding="utf-8")
    assert "Pools as they were used" in text and "v5e is idle" in text and "What a replay can" in text
    wrong = chipwise_here("report", "gpt2", "--tokens", "1B", "--pools", str(book[1]), "--out", str(page))
    assert wrong.returncode == 2 and "--pools" in wrong.stderr


def test_the_command_says_what_a_replay_cannot_know(book):
    env = {"CHIPWISE_LEDGER": book[0]}
    words = ["observe", "advice", "--pools", str(book[1])]
    table = chipwise_here(*words, env=env).stdout
    assert "What a replay can't know" in table and "really $" in table
    document = json.loads(good_here(*words, "--change", "v5e=4", "-o", "json", env=env))
    assert document["pools"][1]["states"] == ["idle"] and document["mixes"][-1]["mix"] == "as asked"
    for wrong in (["--change", "v6e=4"], ["--change", "h100=few"], ["--policy", "best"], ["--mix", "nowhere.yaml"]):
        result = chipwise_here(*words, *wrong, env=env)
        assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr

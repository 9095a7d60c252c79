"""chipwise simulate as people run it: tables, JSON, CSV, pictures, and every bad input in one line."""

import csv
import io
import json
import os

import pytest
from command import ROOT, chipwise, good

DAY = str(ROOT / "examples" / "traces" / "mixed-day.yaml")
POOLS = str(ROOT / "examples" / "traces" / "mixed-pools.yaml")
PHILLY = str(ROOT / "examples" / "traces" / "philly-days-20-21.csv")
GPUS = str(ROOT / "examples" / "traces" / "gpu-pools.yaml")
GAVEL = str(ROOT / "examples" / "traces" / "gavel-seed0")
PROMISED = {"avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s", "cost_usd", "completed", "refused", "cpu_s"}


def test_policies_stand_side_by_side_with_pools_and_assumptions():
    text = good("simulate", DAY, "--pools", POOLS, "--policy", "fastest,cheapest,cheapest-within-deadline")
    lines = text.splitlines()
    assert lines[0].startswith("mixed day: 37 jobs")
    assert [line.split()[0] for line in lines[3:6]] == ["fastest", "cheapest", "cheapest-within-deadline"]
    assert "* best of its column. Every policy met the same jobs, pools, prices and luck." in text
    assert "Chips in use, and what they cost" in text and "runs take exactly what was estimated" in text
    assert "price 10.98 USD a chip-hour" in text


def test_json_has_the_figures_of_every_policy_and_deadlines_cost_no_more_here():
    said = json.loads(
        good("simulate", DAY, "--pools", POOLS, "--policy", "fastest,cheapest,cheapest-within-deadline", "-o", "json")
    )
    by = said["policies"]
    assert all(set(figures) >= PROMISED for figures in by.values())
    assert all(figures["completed"] == 37 and figures["refused"] == 0 for figures in by.values())
    assert (
        by["fastest"]["avg_jct_s"] < by["cheapest"]["avg_jct_s"]
        and by["fastest"]["cost_usd"] > by["cheapest"]["cost_usd"]
    )
    assert by["cheapest-within-deadline"]["deadline_misses"] <= by["cheapest"]["deadline_misses"]
    assert sum(p["usd"] for p in by["cheapest"]["pools"]) == pytest.approx(by["cheapest"]["cost_usd"])


def test_the_same_seed_says_the_same_and_another_does_not():
    def figures(seed, **env):
        said = json.loads(
            good(
                "simulate",
                DAY,
                "--pools",
                POOLS,
                "--policy",
                "cheapest",
                "--seed",
                seed,
                "--failures",
                "0.01",
                "-o",
                "json",
                env={**os.environ, **env},
            )
        )["policies"]["cheapest"]
        return {key: value for key, value in said.items() if key != "cpu_s"}

    assert figures(3) == figures(3, PYTHONHASHSEED="5") != figures(4)  # another order of sets, in another process


def test_recorded_jobs_are_replayed_and_drawn_and_listed(tmp_path):
    picture, rows = tmp_path / "p.svg", tmp_path / "jobs.csv"
    said = list(
        csv.DictReader(
            io.StringIO(
                good(
                    "simulate",
                    PHILLY,
                    "--pools",
                    GPUS,
                    "--policy",
                    "fastest,cheapest",
                    "--speed",
                    "a100-80gb=2",
                    "-o",
                    "csv",
                    "--plot",
                    picture,
                    "--jobs-out",
                    rows,
                )
            )
        )
    )
    assert [row["policy"] for row in said] == ["fastest", "cheapest"]
    assert all(int(row["completed"]) == 446 for row in said) and "utilization_v100" in said[0]
    assert picture.read_bytes().startswith(b"<?xml") and picture.stat().st_size > 20_000
    jobs = list(csv.DictReader(io.StringIO(rows.read_text(encoding="utf-8"))))
    assert len(jobs) == 2 * 446 and all(float(j["end_s"]) > float(j["arrival_s"]) for j in jobs)
    assert sum(float(j["cost_usd"]) for j in jobs if j["policy"] == "cheapest") == pytest.approx(
        float(said[1]["cost_usd"])
    )


def test_a_gavel_trace_is_replayed_by_events_in_its_own_pools():
    text = good("simulate", "--gavel-trace", GAVEL, "--policy", "max-throughput-per-dollar")
    assert text.startswith("gavel-seed0: 300 jobs") and "nothing is repeated, and restarting takes no time" in text
    said = json.loads(good("simulate", "--gavel-trace", GAVEL, "--policy", "fastest", "--tick", "6min", "-o", "json"))
    figures = said["policies"]["fastest"]
    assert set(figures) >= PROMISED and figures["completed"] == 300 and said["trace"]["kind"] == "gavel"
    assert [pool["pool"] for pool in figures["pools"]] == ["v100", "p100", "k80"] and figures["energy_kwh"] is None


def test_a_job_that_fits_nowhere_is_refused_with_the_reason_of_every_pool(tmp_path):
    (tmp_path / "t.csv").write_text("job_id,arrival_s,gpus,duration_s\nbig,0,64,60\nsmall,1,1,60\n", encoding="utf-8")
    said = json.loads(good("simulate", tmp_path / "t.csv", "--pools", GPUS, "--policy", "fastest", "-o", "json"))
    figures = said["policies"]["fastest"]
    assert (figures["completed"], figures["refused"]) == (1, 1)
    [no] = figures["refused_jobs"]
    assert no["job"] == "big" and "v100" in no["reason"] and "a100" in no["reason"]


def test_jobs_of_a_csv_come_from_job_files(tmp_path):
    (tmp_path / "job.yaml").write_text("name: one\nestimates: {h100: 1h, v5e: 2h}\nchips: 8\n", encoding="utf-8")
    (tmp_path / "t.csv").write_text(
        "arrival_s,job,deadline_s,owner\n0,job.yaml,5000,a\n60,job.yaml,,b\n", encoding="utf-8"
    )
    said = json.loads(good("simulate", tmp_path / "t.csv", "--pools", POOLS, "--policy", "fastest", "-o", "json"))
    figures = said["policies"]["fastest"]
    assert (figures["completed"], figures["deadlines"], figures["deadline_misses"]) == (2, 1, 0)


TRACE = "name: t\njobs:\n  - arrival: 0s\n    job: {name: a, estimates: {h100: 1h}, chips: 8}\n"
CASES = {
    "no trace": (("simulate", "--pools", POOLS), "TRACE"),
    "no pools": (("simulate", DAY), "--pools"),
    "no such trace": (("simulate", "nowhere.yaml", "--pools", POOLS), "no such file"),
    "no such pools": (
        ("simulate", DAY, "--pools", "nowhere.yaml"),
        "--pools: no such file: 'nowhere.yaml'",
    ),
    "an unknown policy": (("simulate", DAY, "--pools", POOLS, "--policy", "cheapst"), "did you mean cheapest"),
    "no policy": (("simulate", DAY, "--pools", POOLS, "--policy", ","), "--policy"),
    "a trace and a Gavel trace": (("simulate", DAY, "--gavel-trace", GAVEL), "can't combine TRACE with --gavel-trace"),
    "no such folder": (("simulate", "--gavel-trace", "nowhere"), "a folder with jobs.csv"),
    "pools beside a Gavel trace": (("simulate", "--gavel-trace", GAVEL, "--pools", POOLS), "can't combine --pools"),
    "speeds beside a Gavel trace": (
        ("simulate", "--gavel-trace", GAVEL, "--speed", "v100=2"),
        "can't combine --speed with a Gavel trace",
    ),
    "energy without watts": (("simulate", "--gavel-trace", GAVEL, "--policy", "least-energy"), "no watts"),
    "a negative seed": (("simulate", DAY, "--pools", POOLS, "--seed", "-1"), "--seed"),
    "failures beyond reason": (("simulate", DAY, "--pools", POOLS, "--failures", "7"), "--failures"),
    "failures that are no number": (("simulate", DAY, "--pools", POOLS, "--failures", "nan"), "--failures"),
    "a repair without time": (("simulate", DAY, "--pools", POOLS, "--repair", "soon"), "--repair"),
    "a tick of nothing": (("simulate", DAY, "--pools", POOLS, "--tick", "0s"), "--tick"),
    "a speed without a factor": (("simulate", PHILLY, "--pools", GPUS, "--speed", "v100"), "--speed"),
    "a speed of an unknown chip": (("simulate", PHILLY, "--pools", GPUS, "--speed", "h100=2"), "a chip of the pools"),
    "a speed of predicted jobs": (("simulate", DAY, "--pools", POOLS, "--speed", "h100=2"), "predicted on every chip"),
    "a picture of another kind": (("simulate", DAY, "--pools", POOLS, "--plot", "x.gif"), ".svg or .png"),
    "too many policies to draw": (
        ("simulate", DAY, "--pools", POOLS, "--policy", "all", "--plot", "x.svg"),
        "at most 4",
    ),
    "an unknown format": (("simulate", DAY, "--pools", POOLS, "-o", "xml"), "one of table, json, csv"),
    "a weight of nothing": (("simulate", DAY, "--pools", POOLS, "--weight", "cost"), "--weight"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line(case, tmp_path):
    refused(*CASES[case], tmp_path)


FILES = {
    "empty.yaml": ("", "isn't empty"),
    "unknown-key.yaml": (TRACE + "    dedline: 3h\n", "did you mean deadline"),
    "no-jobs.yaml": ("jobs: []\n", "at least one entry"),
    "negative.yaml": (TRACE.replace("0s", "-5s"), "jobs[0].arrival"),
    "calendar.yaml": (TRACE.replace("chips: 8", "chips: 8, deadline: 2027-01-01T00:00Z"), "a trace has no calendar"),
    "no-estimate.yaml": (TRACE.replace("estimates: {h100: 1h}, ", ""), "jobs[0].job.workload"),
    "missing-file.yaml": ("jobs:\n  - {arrival: 0s, job: nowhere.yaml}\n", "no such file"),
    "column.csv": ("arrival_s,jobs\n0,a.yaml\n", "the column job"),
    "row.csv": ("arrival_s,job\nsoon,a.yaml\n", "no such file"),
    "recorded.csv": ("job_id,arrival_s,gpus,duration_s\na,0,0,5\n", "line 2 gpus"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_trace_is_one_line(name, tmp_path):
    content, said = FILES[name]
    (tmp_path / name).write_text(content, encoding="utf-8")
    refused(("simulate", name, "--pools", POOLS), said, tmp_path)


def refused(arguments, said, folder):
    before = sorted(folder.iterdir())
    done = chipwise(*arguments, cwd=folder)
    assert done.returncode == 2, done
    assert done.stdout == "" and done.stderr.count("\n") == 1 and done.stderr.startswith("chipwise: "), done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr and sorted(folder.iterdir()) == before, done.stderr

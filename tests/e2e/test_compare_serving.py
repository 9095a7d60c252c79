"""`chipwise compare` of workloads that are served, as people run it."""

import csv
import io
import json

import pytest
from command import ROOT, chipwise, good

SERVE = str(ROOT / "examples" / "llama-3.1-70b-serve.yaml")
SMALL = str(ROOT / "examples" / "trace-serve.yaml")


def refused(*arguments):
    """The one line of a command that must be refused."""
    done = chipwise("compare", *arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def shown():
    return good("compare", SERVE, "--on", "h100,h200:16,v5p,l4")


def test_the_table_has_rows_a_decision_refusals_and_assumptions(shown):
    lines = shown.splitlines()
    assert lines[0].startswith("llama-3.1-70b-serve: 20 requests/s") and lines[0].endswith("by cost")
    for column in ("replicas", "ttft p99", "tpot p99", "unloaded", "headroom", "$/h", "$/M tokens", "J/token"):
        assert column in lines[1]
    for heading in ("Decision", "Refused", "What decides this workload", "Assumptions"):
        assert heading in lines
    assert "Pick h100:" in shown and "h200:16: sustains" in shown
    assert "tpot p99 of 50 ms can't be met" in next(line for line in lines if line.startswith("  l4: "))
    assert "seed 0" in shown and "idle hours" in shown and "no interruptions" in shown


def test_json_tells_the_same(shown):
    said = json.loads(good("compare", SERVE, "--on", "h100,h200:16,v5p,l4", "-o", "json"))
    assert said["command"] == "compare" and said["pick"] in shown and said["demand"] == {"kind": "rate", "load": 20.0}
    for row in said["rows"]:
        assert row["accelerators"]["name"] in shown
        assert row["replicas"] * row["chips_per_replica"] <= row["accelerators"]["count"]
        assert set(row["latencies_seconds"]) == {"ttft_p99", "tpot_p99"}
    assert [r["chip"] for r in said["refused"]] == ["h200", "l4"]


def test_csv_has_a_line_for_every_chip():
    lines = list(csv.DictReader(io.StringIO(good("compare", SMALL, "--on", "h100,l4,p4", "-o", "csv"))))
    assert [line["accelerators_chip"] for line in lines if line["refused"]] == ["p4"]
    assert len(lines) == 3 and [line["pick"] for line in lines].count("True") == 1


def test_flags_change_what_is_served():
    text = good("compare", SMALL, "--on", "h100", "--rate", "16", "--precision", "fp8")
    assert text.startswith("trace-serve: 16 requests/s") and "fp8" in text.splitlines()[0]


def test_a_model_and_flags_need_no_file():
    text = good("compare", "llama-3.1-8b", "--input-len", "500", "--output-len", "100", "--users", "32", "--on", "h100")
    assert text.startswith("llama-3.1-8b: 32 users") and "no SLO" in text.splitlines()[0]


def test_an_answer_is_the_same_every_time():
    line = ("compare", SMALL, "--on", "h100,l40s")
    assert good(*line) == good(*line)


def test_what_does_not_apply_is_one_line():
    assert "a service has no end" in refused(SMALL, "--deadline", "2h")
    assert "services are simulated" in refused(SMALL, "--evidence", "compiled")
    assert "how a model is trained" in refused(SMALL, "--batch", "8")
    assert "is for models served" in refused(ROOT / "examples" / "llama-3.1-8b-pretrain.yaml", "--rate", "8")
    assert "sustains" in refused(SERVE, "--on", "h100:8")
    assert "can't be met: the nearest is" in refused(SERVE, "--on", "l4")

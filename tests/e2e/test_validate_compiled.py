"""Published TPU steps by the compiler: the kept schedules, one of them compiled again, and predictions built on it."""

from __future__ import annotations

import json

import pytest
from command import chipwise, good

ROW = "T0043"  # the cheapest of the kept programs to compile
TINY = ("gpt2", "--batch", "16", "--sequence", "256", "--steps", "10", "--on", "v5e:2x2", "--layout", "fsdp=4")


@pytest.fixture(scope="module")
def scored():
    return json.loads(good("validate", "--evidence", "compiled", "-o", "json"))


def test_kept_schedules_hold_against_published_steps(scored):
    rows = [r for r in scored["rows"] if r["predicted"]]
    assert len(rows) >= 25
    assert len({r["chip"] for r in rows}) >= 4
    assert scored["summary"]["mape"] <= 0.12
    assert {r["evidence"] for r in rows} == {"compiled"}


def test_no_published_run_is_refused_as_out_of_memory(scored):
    assert not [r["id"] for r in scored["rows"] if "memory" in (r["refusal"] or "")]


def test_rows_without_a_schedule_say_why_or_how_to_get_one(scored):
    for row in scored["rows"]:
        if not row["predicted"]:
            assert "modelled, not compiled" in row["refusal"] or f"--row {row['id']}" in row["refusal"]


def test_our_bookkeeping_agrees_with_the_compilers_memory(scored):
    assert scored["memory"]["programs"] >= 8
    assert scored["memory"]["mean_difference"] <= 0.08


def test_each_row_says_where_its_seconds_go_and_which_compiler_said_so(scored):
    for row in scored["rows"]:
        if row["predicted"]:
            parts = row["compiled"]["by_kind_seconds"]
            whole = sum(parts.values()) + row["compiled"]["between_slices_seconds"]
            assert whole == pytest.approx(row["predicted"], rel=1e-6)
            assert row["compiled"]["versions"]["libtpu"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--evidence", "guessed"), "--evidence"),
        (("--recompile",), "--recompile needs --evidence compiled"),
        (("--evidence", "compiled", "--row", "T9999"), "T9999"),
    ],
)
def test_bad_input_is_one_line(arguments, said):
    done = chipwise("validate", *arguments)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_compiled_evidence_of_a_gpu_is_refused_with_the_reason():
    done = chipwise(
        "predict",
        "gpt2",
        "--batch",
        "16",
        "--sequence",
        "256",
        "--steps",
        "1",
        "--on",
        "h100:8",
        "--evidence",
        "compiled",
    )
    assert done.returncode == 2 and "TPU" in done.stderr


@pytest.mark.compiler("tpu")
@pytest.mark.slow
def test_a_row_compiled_again_gives_the_kept_answer():
    kept = json.loads(good("validate", "--evidence", "compiled", "--row", ROW, "-o", "json"))["rows"][0]
    again = json.loads(good("validate", "--evidence", "compiled", "--row", ROW, "--recompile", "-o", "json"))["rows"][0]
    assert again["predicted"] == pytest.approx(kept["predicted"], rel=0.03)
    assert again["predicted"] == pytest.approx(again["observed"], rel=0.12)
    assert again["compiled"]["compiler_bytes"] == pytest.approx(kept["compiled"]["compiler_bytes"], rel=0.03)


@pytest.mark.compiler("tpu")
@pytest.mark.slow
def test_a_compiled_prediction_is_used_again_by_auto_and_in_a_comparison():
    made = json.loads(good("predict", *TINY, "--evidence", "compiled", "-o", "json"))
    assert made["step_seconds"]["evidence"] == "compiled"
    assert sum(made["parts_seconds"].values()) == pytest.approx(made["step_seconds"]["value"])
    again = json.loads(good("predict", *TINY, "--evidence", "auto", "-o", "json"))
    assert again["step_seconds"] == made["step_seconds"]
    plain = json.loads(good("predict", *TINY, "-o", "json"))
    assert plain["step_seconds"]["evidence"] != "compiled"
    shown = good("predict", *TINY, "--evidence", "auto", "--explain")
    assert "compiled" in shown and "reference JAX program" in shown

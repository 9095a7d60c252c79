"""Two decisions held against each other: what changed, and why."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from chipwise import api
from chipwise.errors import InputError, NoSuchFile

ROOT = Path(__file__).resolve().parents[2]
LIST, CONTRACT = (ROOT / "examples" / "decisions" / f"{name}.json" for name in ("list", "contract"))


@pytest.fixture
def decision():
    return json.loads(LIST.read_text(encoding="utf-8"))


def row(decision, chip):
    return next(row for row in decision["rows"] if row["accelerators"]["chip"] == chip)


def changed(decision, change):
    """The difference to the decision after `change` was done to a copy of it."""
    after = copy.deepcopy(decision)
    change(after)
    return api.diff(decision, after)


def of(difference, name):
    return next(row for row in difference.rows if row.name == name)


def kinds(difference, name):
    return [cause.kind for cause in of(difference, name).causes]


def test_a_decision_is_the_same_as_itself(decision):
    difference = api.diff(LIST, decision)
    assert not difference.pick_changed and not any(row.changed for row in difference.rows)
    assert difference.question == difference.assumed_before == difference.assumed_after == ()
    assert "as before" in str(difference) and "3 rows are as before" in str(difference)


def test_a_price_that_falls_changes_the_pick_and_is_named():
    difference = api.diff(LIST, CONTRACT)
    assert difference.headline() == "Pick h100:64 instead of h200:64"
    assert "h100:64 went from $88,901 to $56,952 (-36 %): price $3.20/h" in difference.why()
    assert "h200:64 is at $66,957 as before" in difference.why()
    assert kinds(difference, "h100:64") == ["price"] and kinds(difference, "h200:64") == []
    assert kinds(difference, "b200:64") == ["count", "layout"]  # 32 chips before
    assert of(difference, "v5p:4x4x4").missing == "not compared before"
    assert [row.rank_after for row in difference.rows] == [1, 2, 3, 4]
    assert any("contract.csv" in line for line in difference.assumed_after)


def test_the_other_way_round_what_is_gone_comes_last():
    difference = api.diff(CONTRACT, LIST)
    assert difference.rows[-1].name == "v5p:4x4x4" and difference.rows[-1].missing == "not compared now"
    assert difference.rows[-1].rank_after is None and difference.rows[-1].after is None


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("layout", lambda r: r.update(layout="dp=32,tp=2,mbs=2")),
        ("software", lambda r: r.update(stack="torchtitan")),
        ("evidence", lambda r: r["step_seconds"].update(evidence="measured")),
        ("model", lambda r: r["step_seconds"].update(value=2 * r["step_seconds"]["value"])),
        ("price", lambda r: r["ondemand"].update(usd_per_chip_hour=9.99)),
    ],
)
def test_each_cause_is_named_by_its_kind(decision, kind, change):
    difference = changed(decision, lambda after: change(row(after, "h100")))
    assert kinds(difference, "h100:64") == [kind] and kinds(difference, "h200:64") == []


def test_a_step_that_the_question_changed_is_not_the_models(decision):
    def longer(after):
        after["workload"]["sequence"] = 16384
        row(after, "h100")["step_seconds"]["value"] *= 2

    difference = changed(decision, longer)
    assert kinds(difference, "h100:64") == ["question"]
    assert [str(asked) for asked in difference.question] == ["sequence: 8,192 to 16,384"]


def test_a_price_that_is_gone_is_said(decision):
    difference = changed(decision, lambda after: row(after, "h100").update(ondemand=None))
    assert "no longer has a public price" in of(difference, "h100:64").why
    assert of(difference, "h100:64").after is None and "no price" in str(difference)


def test_chips_that_are_refused_now_say_why(decision):
    def refuse(after):
        after["rows"] = [r for r in after["rows"] if r["accelerators"]["chip"] != "h100"]
        after["refused"] = [{"chip": "h100", "accelerators": None, "kind": "memory", "reason": "no room", "unlock": ""}]

    assert of(changed(decision, refuse), "h100:64").missing == "refused now: no room"


def test_a_deadline_is_said_as_people_write_it(decision):
    difference = changed(decision, lambda after: after["terms"].update(deadline_seconds=2592000.0))
    assert "deadline: none to 30.0 days" in str(difference)


def test_results_are_taken_as_well_as_files_and_show_themselves(decision):
    job = api.load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    comparison = api.compare(job, on="h100:64")
    difference = api.diff(comparison, comparison.to_dict())
    document = difference.to_dict()
    assert document["command"] == "diff" and document["pick"]["changed"] is False
    assert json.loads(json.dumps(document)) == document
    assert difference.flat_rows()[0]["accelerators"] == "h100:64" and "<table" in api.diff(LIST, CONTRACT)._repr_html_()


def test_what_is_no_decision_is_refused(decision, tmp_path):
    with pytest.raises(InputError, match="not one of cost"):
        api.diff(decision, {**decision, "command": "cost"})
    with pytest.raises(InputError, match=r"after: .*compare -o json"):
        api.diff(decision, {"command": "compare", "schema": 1})
    with pytest.raises(InputError, match="schema"):
        api.diff({**decision, "schema": 99}, decision)
    with pytest.raises(InputError, match="a decision on a training run as before"):
        api.diff(decision, {**decision, "demand": {"kind": "rate", "load": 1.0}})
    with pytest.raises(NoSuchFile, match="after"):
        api.diff(decision, tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(InputError, match="valid JSON"):
        api.diff(decision, broken)

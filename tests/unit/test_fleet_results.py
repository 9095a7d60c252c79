"""A planned fleet and a report as results: the same data in JSON, rows, text and HTML."""

import json
from html import unescape

import pytest
from report_cases import REPORTS, fleet, training

from chipwise import api
from chipwise.errors import InputError

TRAIN = {"model": "llama-3.1-8b", "train": {"steps": 100, "global_batch": 256, "sequence": 4096}}
DEMAND = {
    "start": "2027-01",
    "months": 2,
    "workloads": [{"name": "run", "workload": TRAIN, "train": {"chips": [16]}}],
    "candidates": [{"chip": chip, "clouds": ["gcp"], "terms": ["ondemand"]} for chip in ("v5e", "h100")],
}


@pytest.fixture(scope="module")
def planned():
    return api.plan_fleet(DEMAND, sensitivity=False)


def test_a_plan_is_the_same_in_json_rows_and_text(planned):
    said = json.loads(json.dumps(planned.to_dict()))
    assert said["command"] == "fleet plan" and said["plan"]["usd"] == planned.plan.usd
    rows = planned.flat_rows()
    assert [row["supply"] for row in rows] == [row["supply"] for row in said["plan"]["holdings"]]
    assert all(set(row) == set(said["plan"]["holdings"][0]) for row in rows)
    assert {row["pricing"] for row in rows} <= {s["pricing"] for s in said["supplies"]}
    assert f"no plan is cheaper by more than {planned.plan.gap:.2%}" in str(planned)
    assert "What runs where" in planned._repr_html_()


def test_a_plan_that_no_demand_allows_says_what_gives_way_in_every_format():
    short = {**DEMAND, "limits": {"budget_period": 1}}
    found = api.plan_fleet(short, sensitivity=False)
    assert found.plan is None and found.to_dict()["plan"] is None
    assert [row["constraint"] for row in found.flat_rows()] == [r["constraint"] for r in found.to_dict()["relax"]]
    assert "no plan meets the demand" in str(found)
    with pytest.raises(InputError, match=r"^plot: "):
        found.plot("plan.svg")


@pytest.mark.parametrize("options, field", [({"gap": 0.6}, "^gap: "), ({"time_limit": "2d"}, "^time_limit: ")])
def test_options_that_no_solver_can_keep_are_refused(options, field):
    with pytest.raises(InputError, match=field):
        api.plan_fleet(DEMAND, **options)


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_report_is_a_result(report):
    said = json.loads(json.dumps(report().to_dict()))
    assert said["command"] == "report" and said["decision"]["headline"] == report().decision.headline
    assert [s["id"] for s in said["sections"]] == [s.id for s in report().sections]
    assert [row["label"] for row in report().flat_rows()] == [t["label"] for t in said["decision"]["tiles"]]
    assert all(s.title in str(report()) for s in report().sections)
    framed = report()._repr_html_()
    assert framed.startswith('<iframe srcdoc="') and report().html() in unescape(framed)


def test_a_report_is_written_whole_or_not_at_all(tmp_path):
    training().write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == training().html()
    with pytest.raises(InputError, match=r"^out: "):
        fleet().write(tmp_path / "report.docx")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]

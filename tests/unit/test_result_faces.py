"""A result looks the same everywhere: one declaration of a column reaches every face."""

import csv
import io
import json
from importlib import import_module
from pathlib import Path

import pytest

import chipwise
from chipwise import api
from chipwise.catalog.calibration import load_calibration
from chipwise.compare import columns
from chipwise.cost import columns as cost_columns
from chipwise.knowledge import Knowledge
from chipwise.present.columns import Column, flat, padded, record, table
from chipwise.present.data import flatten, to_data
from chipwise.present.output import emit_csv
from chipwise.present.result import Result
from chipwise.report.comparison import comparison_report
from chipwise.serving import capacity_view

SOURCE = Path(chipwise.__file__).parent
JOB = {"tokens": "1T", "batch": 1024, "sequence": 8192}
KNOWN = Knowledge(load_calibration(bench=False))


@pytest.fixture(scope="module")
def job():
    return api.load("llama-3.1-8b", **JOB)


@pytest.fixture(scope="module")
def comparison(job):
    return api.compare(job, on="h100,v5p,v100", knowledge=KNOWN)


@pytest.fixture(scope="module")
def service():
    chat = api.load("llama-3.1-8b", input_len=500, output_len=100, rate=2, ttft="2s")
    return api.compare(chat, on="h100,t4", knowledge=KNOWN)


@pytest.mark.parametrize("declared, name", [("TRAINING", "comparison"), ("SERVING", "service")])
def test_one_line_adds_a_column_to_every_face(declared, name, request, monkeypatch, capsys):
    result = request.getfixturevalue(name)
    counts = [row.accelerators.count for row in result.rows]
    total = Column("total_chips", lambda r: r.accelerators.count, "total", help="of all hosts", unit="chips")
    monkeypatch.setattr(columns, declared, [*getattr(columns, declared), total])
    emit_csv(result.flat_rows())
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    html = comparison_report(result).html()
    assert "total" in str(result).splitlines()[1].split()
    assert [row["total_chips"] for row in result.to_dict()["rows"]] == counts
    assert [row["total_chips"] for row in rows if not row["refused"]] == list(map(str, counts))
    assert all(page.count(">total<") == 1 for page in (result._repr_html_(), html))
    assert all('title="of all hosts (chips)"' in page for page in (result._repr_html_(), html))
    assert list(result.to_pandas()["total_chips"])[: len(counts)] == counts


DECLARED = {
    "TRAINING": columns.TRAINING,
    "SERVING": columns.SERVING,
    "OPTION": cost_columns.OPTION,
    "SPLITS": capacity_view.SPLITS,
    "FRONT": capacity_view.FRONT,
}
UNITS = {"_seconds": "s", "_bytes": "bytes", "kwh": "kWh", "usd": "USD", "hours": "h", "watts_per_chip": "W"}


@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)
def test_every_column_says_what_it_holds_and_in_which_unit(declared):
    for column in declared:
        assert column.help, f"{column.key or column.header} has no help"
        assert column.key or column.header, "a column is in the data, in tables, or both"
        unit = next((unit for end, unit in UNITS.items() if column.key.endswith(end)), column.unit)
        assert column.unit == unit, f"{column.key} has the unit {column.unit!r}"
    keys = [c.key for c in declared if c.key]
    assert len(keys) == len(set(keys))


def test_what_a_header_says_is_escaped_and_free_of_markdown():
    from chipwise.present.html import table as html

    page = html(table([Column("a", str, "a", help='"`x`" <b>', unit="s")], [1]))
    assert 'title="&quot;x&quot; &lt;b&gt; (s)"' in page


def test_the_document_is_json_without_nan(comparison):
    text = json.dumps(comparison.to_dict(), allow_nan=False)
    document = json.loads(text)
    assert document["command"] == "compare" and document["rows"][0]["ondemand"]["usd"]["value"] > 0
    assert {"step_seconds", "lower_bound_seconds", "mfu", "memory_bytes"} <= set(document["rows"][0])


def test_flat_rows_have_the_same_columns_and_name_the_refused(comparison):
    rows = comparison.flat_rows()
    assert len({tuple(row) for row in rows}) == 1
    assert [row["pick"] for row in rows] == [True, False, False] and "bf16" in rows[-1]["refused"]


def test_texts_of_users_are_escaped_in_a_notebook(job):
    from dataclasses import replace

    html = api.compare(replace(job, name="<script>x</script>"), on="h100", knowledge=KNOWN)._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_a_prediction_shows_itself(job):
    run = api.predict(job, on="h100:64", knowledge=KNOWN)
    document = run.to_dict()
    assert (
        document["step_seconds"]["value"] == run.step.value and document["memory_bytes"]["total"] == run.memory["total"]
    )
    assert "MFU" in str(run) and "T_math" in "".join(map(str, run.explanation()))
    assert run.to_pandas()["step_seconds"][0] == run.step.value


def test_a_served_workload_has_one_shape():
    service = api.load("llama-3.1-8b", input_len=500, output_len=100, rate=2, ttft="2s")
    document = api.compare(service, on="h100", knowledge=KNOWN).to_dict()
    assert document["workload"] == to_data(service) and document["workload"]["slo"][0]["metric"] == "ttft"
    assert document["rows"][0]["ondemand"]["per"] == "hour"


def test_an_offline_job_is_shown_by_its_time():
    comparison = api.compare("examples/llama-3.1-8b-offline.yaml", on="h100", knowledge=KNOWN)
    headers = str(comparison).splitlines()[1].split()
    assert "time" in headers and comparison._repr_html_().count(">time<") == 1


def test_unknown_names_of_changes_are_refused():
    from chipwise.errors import UnknownName

    with pytest.raises(UnknownName, match="tokenz"):
        api.load("llama-3.1-8b", tokenz="1T")


def test_columns_without_a_header_stay_out_of_tables():
    pair = (
        Column("a", lambda r: r),
        Column("", None, "b", str),
        Column("c", lambda r: {"value": r, "low": 0, "high": 9}),
    )
    assert table(pair, [1]).headers == ("b",)
    assert record(pair, 1) == {"a": 1, "c": {"value": 1, "low": 0, "high": 9}}
    assert flat(pair, 1) == {"a": 1, "c": 1, "c_low": 0, "c_high": 9}
    assert padded([{"a": 1}, {"b": 1}]) == [{"a": 1, "b": None}, {"a": None, "b": 1}]


def test_what_is_not_finite_is_null():
    assert to_data([float("inf"), float("nan"), 1.0]) == [None, None, 1.0]
    assert flatten("x", None) == {"x": None}


def result_types(base=Result):
    return {base, *(each for kind in base.__subclasses__() for each in result_types(kind))}


def test_no_result_prints_all_it_rests_on_as_its_repr():
    for path in SOURCE.rglob("*.py"):
        if "chipwise.present.result import" in path.read_text(encoding="utf-8"):
            import_module(".".join(("chipwise", *path.relative_to(SOURCE).with_suffix("").parts)))
    types = result_types()
    assert len(types) > 30
    assert {kind.__name__ for kind in types if kind.__repr__ is not Result.__repr__} == set()


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda job: api.predict(job, on="h100:64"), "<PricedPrediction: llama-3.1-8b on h100:64>"),
        (lambda job: api.chips(), "<ChipList: "),
        (lambda job: api.chips("v5e"), "<ChipSheet: "),
        (lambda job: api.models("mixtral"), "<ModelList: 2 rows>"),
        (lambda job: api.layouts(job, on="v5p:64"), "<LayoutSearch: llama-3.1-8b on v5p:4x4x4: the best of "),
        (lambda job: api.report(job, on="h100:64"), "<Report: Pick 64 "),
    ],
)
def test_the_repr_of_a_result_is_one_line(job, call, line):
    shown = repr(call(job))
    assert shown.startswith(line) and shown.endswith(">") and len(shown) < 130 and "\n" not in shown


def test_the_repr_of_a_comparison_is_its_pick(comparison):
    assert repr(comparison) == "<TrainingComparison: pick h100:64, 2 rows>"


def test_nothing_that_a_result_has_is_shown_in_pages():
    """In a notebook everybody looks at `row.accelerators`, `answer.knowledge` or `largest.search`."""
    job = chipwise.load("llama-3.2-1b", steps=10, batch=16, sequence="2k")
    chat = chipwise.load("llama-3.2-1b", input_len=100, output_len=100, rate=1)
    results = [
        chipwise.predict(job, on="h100:8"),
        chipwise.compare(job, on="h100:8,v5e:8"),
        chipwise.layouts(job, on="h100:8"),
        chipwise.capacity(chat, on="h100:1", tp=1),
        chipwise.compare(chat, on="h100:1"),
        chipwise.cost(job, on="h100:8"),
        chipwise.models(),
        chipwise.chips(),
    ]
    reached, alive, waiting = set(), [], [(result, 0) for result in results]
    while waiting:
        each, depth = waiting.pop()
        if id(each) in reached or depth > 5:
            continue
        reached.add(id(each))
        alive.append(each)  # or another may get its number
        inside = list(each)[:3] if isinstance(each, list | tuple) else []
        if type(each).__module__.startswith("chipwise"):
            assert len(repr(each)) < 1_000, type(each)
            names = [name for name in dir(type(each)) if not name.startswith("_")]
            inside = [getattr(each, name, None) for name in names if not callable(getattr(type(each), name, None))]
        waiting += [(one, depth + 1) for one in inside]
    assert len(reached) > 200

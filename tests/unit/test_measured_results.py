"""check, bench, numerics, doctor, calibrate and validate: results of the library that the commands print."""

import json
from pathlib import Path

import pytest

from chipwise import api
from chipwise.bench.measurement import COLUMNS, MORE_COLUMNS
from chipwise.calibrate.measured import calibrate_bench
from chipwise.catalog.calibration import load_calibration
from chipwise.cli.main import run
from chipwise.compiled.check.columns import COLLECTIVES, PADDING, TARGETS, trial_columns
from chipwise.compiled.check.request import ProgramOptions, read_request
from chipwise.compiled.check.tune import Trial
from chipwise.compiled.doctor import COMPILERS, diagnose
from chipwise.errors import ChipwiseError, InputError
from chipwise.numerics.compare import compared, margins
from chipwise.numerics.optimizers import Optimizer
from chipwise.numerics.programs import Program
from chipwise.numerics.recipes import RECIPES
from chipwise.numerics.runs import Count, Run
from chipwise.numerics.study import Study, StudySettings, verdict
from chipwise.numerics.view import recipe_columns
from chipwise.observe.agent.doctor import examine
from chipwise.validate.view import GROUPS

BENCH = Path("examples/bench")
CARD, FLAT = BENCH / "h200-1.json.gz", BENCH / "h200-held-out.csv"
BEFORE, AFTER = BENCH / "cpu.json", BENCH / "cpu-avx2.json"


def printed(capsys, *arguments):
    """What a command prints, and its exit status."""
    status = run([str(argument) for argument in arguments])
    return capsys.readouterr().out, status


def faces(result, capsys, *command, status=0):
    """The document of a result, which the command must print, and which every face must show."""
    text, left = printed(capsys, *command, "-o", "json")
    document = json.loads(text)
    assert document == result.to_dict() and left == status
    assert document["command"] == result.VERB and document["schema"] == 1
    words, left = printed(capsys, *command)
    assert words == str(result) + "\n" and left == status
    assert result._repr_html_().startswith('<div class="chipwise">') and "<table" in result._repr_html_()
    rows = result.flat_rows()
    assert rows and len({tuple(row) for row in rows}) == 1, "every flat row has the same columns"
    assert len(result.to_pandas()) == len(rows)
    return document


def test_a_check_that_refuses_a_workload_needs_no_compiler(capsys):
    command = ("check", "llama-3.1-8b", "--batch", 8, "--sequence", 8192, "--on", "h100:1")
    report = api.check("llama-3.1-8b", on="h100:1", changes={"batch": 8, "sequence": 8192})
    document = faces(report, capsys, *command, status=1)
    (row,) = document["rows"]
    assert (document["ok"], row["compiles"], row["refused"]["stage"]) == (False, False, "memory")
    assert report.flat_rows()[0]["accelerators_chip"] == "h100" and report.flat_rows()[0]["refused_stage"] == "memory"


def test_a_check_takes_a_workload_as_an_object():
    work = api.load("llama-3.1-8b", steps=1, batch=8, sequence=8192)
    report = api.check(work, on=["h100:1"])
    assert report.program == "llama-3.1-8b" and report.kind == "workload" and not report.ok


def test_options_of_a_check_are_read_from_pairs_and_from_text():
    text = ProgramOptions(["xla_a=1"], "data=2,model=-1", ["remat=full", "depth=3"], ["batch=8"])
    pairs = ProgramOptions({"xla_a": "1"}, {"data": 2, "model": -1}, {"remat": "full", "depth": 3}, {"batch": 8})
    program, known = "examples/programs/jax_mlp.py:train", load_calibration(bench=False)
    one, other = (read_request(program, "v5e:4,v5e:2x2", how, known) for how in (text, pairs))
    assert one.questions == other.questions and len(one.questions) == 1, "a target named twice is checked once"
    job = one.questions[0].job
    assert job.options == {"xla_a": "1"} and job.mesh == {"data": 2, "model": -1}
    assert job.spec.data["choices"] == {"remat": "full", "depth": 3}
    command = (
        "chipwise check examples/programs/jax_mlp.py:train --on v5e:2x2 --axes data=2,model=-1 --choose remat=full"
    )
    assert one.command(one.questions[0], {}) == other.command(other.questions[0], {})
    assert one.command(one.questions[0], {}).startswith(command)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"options": ["x"]}, "options: 'x' is not accepted; expected KEY=VALUE"),
        ({"mode": "sleep"}, "mode: 'sleep'"),
        ({"axes": "data=x"}, "axes: 'x' is not accepted; expected a whole number"),
        ({"layout": "fsdp=4"}, "layout: can't be given ('fsdp=4')"),
        ({"limit_seconds": "0"}, "limit_seconds: '0' is not accepted; expected more than 0"),
        ({"limit_memory": "lots"}, "limit_memory: 'lots'"),
        ({"changes": {"batchs": 8}}, "batchs"),
    ],
)
def test_a_check_that_can_not_be_made_is_one_line(change, words):
    with pytest.raises(ChipwiseError) as caught:
        api.check("examples/programs/jax_mlp.py:train", on="v5e:2x2", **change)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_bench_file_shows_itself(capsys):
    document = faces(api.bench.show(CARD), capsys, "bench", "show", CARD)
    assert document["points"][0]["figures"] and document["measured_by"]
    few = api.bench.show(str(CARD), framework="jax")
    assert {point.framework for point in few.points} == {"jax"}
    with pytest.raises(InputError, match="framework: 'tf'"):
        api.bench.show(CARD, framework="tf")


def test_a_bench_file_without_usable_points_is_a_csv_of_its_header(capsys, tmp_path):
    from dataclasses import replace

    from chipwise.bench.file import write

    card = api.bench.show(CARD)
    write(replace(card, points=()), tmp_path / "none.json")
    text, _ = printed(capsys, "bench", "show", tmp_path / "none.json", "-o", "csv")
    assert text == ",".join((*COLUMNS, *MORE_COLUMNS)) + "\n"


def test_a_diff_shows_itself_and_fails_above_what_is_allowed(capsys):
    changes = api.bench.diff(BEFORE, AFTER, fail_above=5)
    document = faces(
        changes, capsys, "bench", "diff", BEFORE, AFTER, "--fail-above", 5, status=1 if changes.failures else 0
    )
    assert document["regressions"] == len(changes.failures) and document["fail_above_percent"] == 5
    assert api.bench.diff(BEFORE, AFTER).failures == () and "Verdict" not in str(api.bench.diff(BEFORE, AFTER))


def test_a_roofline_shows_itself(capsys, tmp_path):
    document = faces(api.bench.roofline(CARD), capsys, "bench", "roofline", CARD)
    assert document["flops_per_s_by_dtype"]["bf16"] < document["stated_flops_per_s_by_dtype"]["bf16"]
    api.bench.roofline(CARD, plot=tmp_path / "roof.svg")
    assert (tmp_path / "roof.svg").read_text().startswith("<?xml")


def test_quick_and_another_size_are_refused_together():
    with pytest.raises(ChipwiseError, match="can't combine quick with suite_size tiny"):
        api.bench.plan("kernels", quick=True, suite_size="tiny")


def made_up_study():
    """A study of runs that were never trained."""
    names = {recipe.name: recipe for recipe in RECIPES}

    def runs(recipe, finals):
        counts = {("fc", "gradients"): Count(100, 40, 2)}
        return tuple(Run(recipe, i, (10.0, *[final] * 50), (), (), (), None, counts) for i, final in enumerate(finals))

    reference = runs("fp32", [1.0, 1.05, 0.95])
    m = margins(reference, 0.02)
    good = compared(names["bf16+master"], runs("bf16+master", [1.0, 1.05, 0.95]), reference, m, False)
    dead = compared(names["fp16"], runs("fp16", [float("nan")] * 3), reference, m, False)
    program = Program("mine", Path("mine.py"), "torch", max, max, list, Optimizer("adamw", 1e-3), 51)
    verdicts = tuple(verdict([row]) for row in (good, dead))
    return Study(
        program, "torch 2", "cpu", 10, 3, 51, 1024.0, 0.02, m, reference, (good, dead), verdicts, ("<b>a note</b>",)
    )


def test_a_study_shows_itself_and_what_is_not_finite_is_null():
    study = made_up_study()
    document = study.to_dict()
    json.dumps(document, allow_nan=False)
    good, dead = document["recipes"]
    assert good["final_difference"]["mean"] == 0 and dead["final_difference"] is None
    assert dead["runs"][0]["final_loss"] is None and good["layers"][0]["underflows"] == 120
    lines = str(study).splitlines()
    assert any(line.startswith("fp32") and line.endswith("reference") for line in lines)
    assert any(line.split()[:4] == ["fp16", "fc", "gradients", "40.0%"] for line in lines)
    assert "&lt;b&gt;a note" in study._repr_html_()
    assert [row["recipe"] for row in study.flat_rows()] == ["bf16+master", "fp16"] and len(study.to_pandas()) == 2


def test_settings_of_a_study_are_refused_before_anything_is_imported():
    assert StudySettings.read(quick=True) == StudySettings(3, 40)
    for change, words in (
        ({"steps": 1}, "steps: "),
        ({"margin": 3.0}, "margin: "),
        ({"loss_scale": 0.0}, "loss_scale: "),
    ):
        with pytest.raises(InputError, match=words):
            api.numerics("digits-cnn", **change)


def test_a_diagnosis_shows_itself(capsys):
    document = faces(examine(), capsys, "doctor")
    assert [compiler["id"] for compiler in document["compilers"]] == ["tpu", "cuda", "torch", "export"]
    with pytest.raises(InputError, match="require: 'fpga' is not accepted; expected some of tpu, gpu, torch, export"):
        diagnose("tpu,fpga")
    required = diagnose("gpu,torch")
    assert required.required == {"cuda", "torch"}
    assert {state.toolchain.id for state in (*required.lacking, *required.impossible)} <= required.required


def test_calibrations_show_themselves(capsys, tmp_path):
    result = calibrate_bench([CARD], "jax", folder=tmp_path)
    document = faces(result, capsys, "calibrate", "bench", CARD, "--framework", "jax", "--folder", tmp_path)
    (kept,) = document["calibrations"]
    assert kept["chip"] == "h200" and Path(kept["file"]).parent == tmp_path
    assert set(kept["kernels"]["gemm/bf16"]) == {"points", "error"}


def test_flat_rows_of_a_measured_chip_are_scored(capsys):
    scores = api.validate(FLAT, on="h200")
    document = faces(scores, capsys, "validate", "--rows", FLAT, "--on", "h200")
    assert set(document["summary"]) == {"eligible", "predicted", "median_ape", "mape", "bias", "coverage90"}
    row = {"id", "kind", "unit", "observed", "predicted", "low", "high"}
    assert row <= set(document["rows"][0]) and "gemm" in document["by_kind"]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"evidence": "guessed"}, "evidence: 'guessed' is not accepted; expected modelled or compiled"),
        ({"recompile": True}, "recompile needs evidence compiled"),
        ({"on": "h200"}, "on: 'h200' is not accepted; expected only beside flat rows"),
        ({"rows": FLAT}, "on: missing; expected the chip"),
        ({"rows": FLAT, "on": "h200:8"}, "one chip with no count"),
        ({"rows": FLAT, "on": "h200", "ids": ["T1"]}, "can't combine ids with flat rows"),
        ({"rows": "nowhere.csv"}, "rows: no such file: 'nowhere.csv'"),
    ],
)
def test_a_validation_that_can_not_be_made_is_one_line(options, words):
    with pytest.raises(ChipwiseError) as caught:
        api.validate(**options)
    assert words in str(caught.value)


def test_every_column_says_what_it_holds():
    base = Trial({}, frozenset(), 1.0, 1.0)
    tables = [TARGETS, COLLECTIVES, PADDING, trial_columns(base), COMPILERS, recipe_columns(1.0), GROUPS]
    for columns in tables:
        keys = [column.key for column in columns if column.key]
        assert len(keys) == len(set(keys))
        for column in columns:
            assert column.help or not column.key, f"{column.key} has no help"
            assert column.key or column.header

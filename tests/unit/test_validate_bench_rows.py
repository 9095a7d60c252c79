"""Flat rows of measurements: read as bench files write them, scored by kind, refused one by one."""

import csv
from pathlib import Path

import pytest

from chipwise.bench.measurement import COLUMNS
from chipwise.catalog import load
from chipwise.errors import InputError, Refusal
from chipwise.ops.point import KINDS
from chipwise.predict.learn.points import point_id, predict_point
from chipwise.units import GiB
from chipwise.validate.bench_rows import flag, framework_of, number, point_of
from chipwise.validate.bench_score import PEAK, measured_of, score_rows
from chipwise.validate.score import FLAT, read_rows

ROOT = Path(__file__).resolve().parents[2]
H200, A100 = load().chips["h200"], load().chips["a100-80gb"]
IN_COLUMNS = [kind for kind, sizes in KINDS.items() if set(sizes) <= set(COLUMNS)]
TRAIN = {
    "kind": "train",
    "dtype": "bf16",
    "b": "8",
    "s": "1024",
    "layers": "9",
    "d": "768",
    "h": "12",
    "hk": "12",
    "f": "3072",
    "vocab": "50304",
    "seconds": "0.03",
    "peak_gib": "9.5",
}
GEMM = {"kind": "gemm", "dtype": "bf16", "m": "4000", "n": "3000", "k": "2000", "seconds": "8e-5"}


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    """No calibration but the package's."""
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path))


def test_the_kinds_that_columns_describe_are_most():
    steps = {"train", "prefill", "decode", "resnet50_train", "resnet50_infer", "vit_train", "vit_infer"}
    assert {"gemm", "copy", "add", "rmsnorm", "softmax", "gather", "sdpa_fwd", "sdpa_fwdbwd", *steps} <= set(IN_COLUMNS)


@pytest.mark.parametrize("kind", IN_COLUMNS)
def test_a_row_of_every_kind_is_its_point(kind):
    sizes = {name: 8 * (i + 1) for i, name in enumerate(KINDS[kind])}
    row = {
        **dict.fromkeys(COLUMNS, ""),
        "kind": kind,
        "dtype": "fp16",
        "seconds": "1",
        "compile": "1",
        "remat": "0",
        "model": "some",
        **{name: str(value) for name, value in sizes.items()},
    }
    point = point_of(row)
    assert (point.kind, point.dtype, dict(point.sizes)) == (kind, "fp16", sizes)
    assert (point.compile, point.remat, point.causal, point.model) == (True, False, True, "some")


def test_sizes_of_other_kinds_are_not_looked_at():
    assert dict(point_of({**GEMM, "layers": "many", "params": "1e9"}).sizes) == {"m": 4000, "n": 3000, "k": 2000}


def test_sizes_may_be_written_as_floats():
    assert dict(point_of({**GEMM, "m": "4000.0", "n": " 3e3 "}).sizes) == {"m": 4000, "n": 3000, "k": 2000}


@pytest.mark.parametrize(
    "said, dtype",
    [
        ("bfloat16", "bf16"),
        ("torch.float16", "fp16"),
        ("float32", "fp32"),
        ("FP8", "fp8"),
        ("float8_e4m3fn", "fp8"),
        ("", "bf16"),
        ("tf32", "tf32"),
    ],
)
def test_precisions_have_their_usual_names(said, dtype):
    assert point_of({**GEMM, "dtype": said}).dtype == dtype


def test_there_are_as_many_heads_of_keys_as_of_queries_unless_said():
    attention = {"kind": "sdpa_fwd", "dtype": "bf16", "b": "1", "h": "16", "s": "512", "d": "64"}
    assert point_of(attention).sizes["hk"] == 16 and point_of({**attention, "hk": "4"}).sizes["hk"] == 4
    assert point_of({name: text for name, text in TRAIN.items() if name != "hk"}).sizes["hk"] == 12


@pytest.mark.parametrize(
    "change, words",
    [
        ({"kind": "dance"}, "kind: 'dance' is not accepted; expected one of gemm, copy"),
        ({"kind": ""}, "kind: ''"),
        ({"dtype": "fp12"}, "dtype: 'fp12' is not accepted; expected one of fp32, tf32"),
        ({"m": "many"}, "m: 'many' is not accepted; expected a number"),
        ({"m": "-4"}, "m: '-4' is not accepted; expected a number above 0"),
        ({"n": "0"}, "n: '0'"),
        ({"n": "inf"}, "n: 'inf'"),
        ({"compile": "perhaps"}, "compile: 'perhaps' is not accepted; expected true or false"),
        ({"remat": "2"}, "remat: '2'"),
        ({"k": ""}, "k: '' is not accepted; expected a number: gemm rows need m, n, k"),
        ({"k": "nan"}, "k: ''"),
    ],
)
def test_a_bad_cell_is_named(change, words):
    with pytest.raises(InputError) as raised:
        point_of({**GEMM, **change})
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_missing_column_is_a_missing_size():
    with pytest.raises(InputError, match="k: '' is not accepted; expected a number: gemm rows need m, n, k"):
        point_of({name: text for name, text in GEMM.items() if name != "k"})


def test_flags_and_numbers_may_be_left_empty():
    assert [flag({"remat": word}, "remat") for word in ("1", "True", "yes", "", "0", "FALSE", "no", "nan")] == [
        True
    ] * 3 + [False] * 5
    assert [number({"s": word}, "s") for word in ("", "nan", "None", "1e3")] == [None, None, None, 1000.0]


def test_a_file_of_flat_rows_is_told_by_its_columns(tmp_path):
    with (tmp_path / "rows.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows([GEMM, TRAIN])
    kind, rows = read_rows(tmp_path / "rows.csv")
    assert kind == FLAT and [row["kind"] for row in rows] == ["gemm", "train"]


def test_rows_are_scored_by_kind_and_peaks_beside_them():
    found = score_rows([GEMM, {**GEMM, "m": "5000"}, TRAIN], H200)
    assert list(found["by_kind"]) == ["gemm", "train", PEAK] and PEAK == "peak_memory"
    assert [found["by_kind"][kind]["eligible"] for kind in found["by_kind"]] == [2, 1, 1]
    assert (found["chip"], found["framework"], found["rows_read"], found["refusals"]) == ("h200", "torch", 3, {})
    assert found["summary"]["predicted"] == 3 and found["calibration"] == measured_of(H200, "torch").date
    train = found["rows"][2]
    assert train["peak_observed"] == 9.5 * GiB and train["peak_low"] < train["peak_predicted"] < train["peak_high"]
    for row in found["rows"]:
        assert row["low"] < row["predicted"] < row["high"] and row["evidence"] == "modelled"


def test_errors_are_of_the_seconds_that_rows_say():
    row = score_rows([GEMM], H200)["rows"][0]
    exact = score_rows(
        [{**GEMM, "seconds": str(row["predicted"])}, {**GEMM, "seconds": str(row["predicted"] / 1.25)}], H200
    )
    assert exact["by_kind"]["gemm"]["mape"] == pytest.approx(0.125)


def test_only_training_rows_have_a_peak():
    found = score_rows([{**GEMM, "peak_gib": "3"}, {**TRAIN, "kind": "prefill"}, {**TRAIN, "peak_gib": ""}], H200)
    assert PEAK not in found["by_kind"] and found["summary"]["predicted"] == 3


def test_a_point_that_was_measured_says_so():
    bench = measured_of(H200, "torch")
    row = {**GEMM, "m": "4096", "n": "4096", "k": "4096"}
    assert point_id(point_of(row)) in bench.measured
    assert score_rows([row], H200)["rows"][0]["evidence"] == "measured"


def test_a_row_that_cannot_be_used_is_counted_and_the_others_are_scored():
    rows = [
        {**GEMM, "m": "many"},
        GEMM,
        {**GEMM, "m": "many"},
        {**GEMM, "seconds": ""},
        {**GEMM, "seconds": "-1"},
        {**GEMM, "dtype": "fp12"},
        {**TRAIN, "h": "7"},
    ]
    found = score_rows(rows, H200)
    assert found["rows_read"] == 7 and found["by_kind"]["gemm"]["eligible"] == 6 and found["summary"]["predicted"] == 1
    assert found["refusals"]["m: 'many' is not accepted; expected a number"] == 2
    assert sum(found["refusals"].values()) == 6 and "no seconds; state what was measured" in found["refusals"]
    assert [row["refusal"] is None for row in found["rows"]] == [False, True] + 5 * [False]


def test_rows_keep_their_id_or_get_their_number():
    found = score_rows([{**GEMM, "id": "G7"}, GEMM], H200)
    assert [row["id"] for row in found["rows"]] == ["G7", "2"]


def test_no_rows_are_no_error():
    found = score_rows([], H200)
    assert found["summary"]["mape"] is None and found["by_kind"] == {} and found["rows"] == []


def test_a_chip_that_was_never_measured_says_what_to_run():
    with pytest.raises(Refusal) as raised:
        score_rows([GEMM], A100)
    assert str(raised.value) == (
        "a100-80gb was never measured with torch; run `chipwise bench all --quick --out FILE` on one "
        "and `chipwise calibrate bench FILE`"
    )


def test_rows_written_out_are_read_back_as_the_points_they_were():
    from chipwise.bench.file import read
    from chipwise.bench.file import rows as flat

    file = read(ROOT / "examples" / "bench" / "h200-1.json.gz")
    usable = [each for each in file.points if each.usable]
    again = [point_of({name: str(value) for name, value in row.items()}) for row in flat(file)]
    assert [point_id(point) for point in again] == [point_id(each.point) for each in usable]
    assert {framework_of(row) for row in flat(file)} == {"torch", "jax"}


def test_rows_through_jax_are_held_against_what_jax_taught():
    row = {**GEMM, "m": "4096", "n": "4096", "k": "4096"}
    torch, jax = (score_rows([{**row, "framework": name}], H200)["rows"][0]["predicted"] for name in ("torch", "jax"))
    assert torch != jax
    with pytest.raises(InputError, match="framework: 'mxnet'"):
        score_rows([{**row, "framework": "mxnet"}], H200)


def test_kinds_in_capitals_are_the_same_kinds_and_unknown_ones_have_no_line():
    found = score_rows([GEMM, {**GEMM, "kind": "GEMM"}, {**GEMM, "kind": "dance"}], H200)
    assert list(found["by_kind"]) == ["gemm"] and found["by_kind"]["gemm"]["predicted"] == 2


def test_another_precision_that_stands_in_is_named_with_a_wider_interval():
    prefill = {**TRAIN, "kind": "prefill"}
    found = score_rows([{**prefill, "dtype": "tf32"}, prefill], H200)["rows"]
    assert found[0]["high"] / found[0]["predicted"] > found[1]["high"] / found[1]["predicted"]
    said = predict_point(point_of({**prefill, "dtype": "tf32"}), H200, measured_of(H200, "torch")).because
    assert "of bf16, since none of tf32" in said
    assert "was not measured" in score_rows([{**TRAIN, "dtype": "fp8"}], H200)["rows"][0]["refusal"]


def test_an_eager_step_stands_in_for_a_compiled_one_that_was_not_calibrated_and_says_so():
    prefill = {**TRAIN, "kind": "prefill"}
    eager, compiled = score_rows([prefill, {**prefill, "compile": "true"}], H200)["rows"]
    assert compiled["predicted"] == eager["predicted"]
    assert compiled["high"] / compiled["predicted"] > eager["high"] / eager["predicted"]
    said = predict_point(point_of({**prefill, "compile": "true"}), H200, measured_of(H200, "torch")).because
    assert "of eager steps, since no compiled one was calibrated" in said

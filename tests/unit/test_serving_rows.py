"""Published inference rows: which are eligible, and what they mean in our terms."""

import pytest

from chipwise.catalog.calibration import ServingCalibration, load_calibration
from chipwise.errors import ChipwiseError, InputError
from chipwise.serving.residuals import MODEL
from chipwise.serving.split import Split
from chipwise.validate import serving_rows
from chipwise.validate.score import published, read_rows
from chipwise.validate.serving import model_key, predict_serving_row, replica_of

INFERENCE = {r["id"]: r for r in read_rows(published()[2])[1]}
SERVING = read_rows(published()[3])[1]


def first(rows, **cells):
    return next(r for r in rows if all(r[k] == v for k, v in cells.items()))


def test_both_tables_are_told_by_their_columns():
    assert read_rows(published()[2])[0] == read_rows(published()[3])[0] == "inference"


def test_most_rows_with_dimensions_and_lengths_are_eligible():
    for rows, least in ((list(INFERENCE.values()), 720), (SERVING, 1860)):
        found = [r for r in rows if serving_rows.eligible(r)]
        assert len(found) >= least
        for row in found[::25]:
            assert serving_rows.read(row).observed


def test_a_static_batch_is_read():
    row = serving_rows.read(INFERENCE["I0051"])
    assert (row.mode, row.load, row.batch, row.input, row.output) == ("fixed_batch", "batch", 896, 128, 128)
    assert (row.chip.id, row.stack.id, row.precision, row.kv_precision) == ("h200", "tensorrt-llm", "fp8", "fp8")
    assert row.model.kv_heads == 8 and row.split == Split() and 2024 < row.release < 2024.5
    assert row.observed == {"throughput": 20460.0}


def test_a_first_token_alone_is_one_pass():
    row = serving_rows.read(INFERENCE["I0133"])
    assert row.mode == "fixed_batch" and row.output == 1 and row.observed == {"ttft": pytest.approx(0.0059)}


def test_lengths_that_are_limits_become_the_means_of_their_dataset():
    row = serving_rows.read(INFERENCE["I0018"])
    assert row.chip.family == "tpu" and row.slots == 128 and row.longest == 2048
    assert (row.input, row.output) == serving_rows.SHAREGPT


def test_a_closed_loop_is_read():
    row = serving_rows.read(
        first(
            SERVING,
            model="meta-llama/Llama-3.1-70B",
            framework="vllm",
            isl="1024",
            osl="1024",
            concurrency="64",
            tp="4",
            system="b200_sxm",
            precision="fp8",
        )
    )
    assert (row.load, row.batch, row.chip.id, row.split.tp, row.drawn, row.warm) == (
        "closed",
        64,
        "b200",
        4,
        0.2,
        False,
    )
    assert set(row.observed) == {"ttft", "tpot"}


def test_a_first_token_later_than_the_whole_answer_is_a_queue():
    row = dict(first(SERVING, model="meta-llama/Llama-3.1-70B"), ttft_ms="1e6", tpot_ms="5")
    assert serving_rows.why_not(row) == "queueing above capacity"


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"mode": "disagg"}, "disaggregated"),
        ({"concurrency": ""}, "no concurrency"),
        ({"notes": "tp>8 ... do not use"}, "marked as not to be used"),
        ({"d_ff": "", "moe_d_ff": ""}, "no d_ff"),
    ],
)
def test_rows_that_say_too_little_are_left_out_with_the_reason(cells, why):
    assert serving_rows.why_not({**SERVING[0], **cells}) == why


@pytest.mark.parametrize(("cell", "value"), [("isl", "-5"), ("concurrency", "many"), ("precision", "fp99")])
def test_nonsense_is_one_clear_error(cell, value):
    with pytest.raises((InputError, ChipwiseError), match=cell):
        serving_rows.read({**SERVING[0], cell: value})


def test_versions_have_dates():
    assert serving_rows.version_date("trtllm", "1.2.0rc6") > serving_rows.version_date("TensorRT-LLM", "0.9.0")
    assert serving_rows.version_date("unheard of", "", "2025-07-01") == 2025.5


def test_a_model_left_out_has_no_weight():
    known = load_calibration(bench=False, refits=True).serving
    row = serving_rows.read(first(SERVING, model="meta-llama/Llama-3.1-70B"))
    without = known.leaving_out(model_key(row.model))
    shape = model_key(row.model).removeprefix("model ")
    for table in without.residuals.values():
        assert not table.weights[table.names[:, MODEL] == shape].any()
    assert without.effects != known.effects and known.leaving_out("never seen") is known


def test_predictions_have_intervals_and_evidence():
    row = serving_rows.read(INFERENCE["I0051"])
    found = predict_serving_row(row, load_calibration(bench=False))["throughput"]
    assert found.low < found.value < found.high and found.evidence == "modelled"
    bare = predict_serving_row(row, load_calibration(bench=False).with_serving(ServingCalibration()))["throughput"]
    assert bare.evidence == "bounded"
    assert replica_of(row, load_calibration(bench=False)).config.most_sequences

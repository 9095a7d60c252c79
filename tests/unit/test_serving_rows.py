"""Published inference rows: which are eligible, and what they mean in our terms."""

from dataclasses import replace

import pytest

from chipwise.catalog import find_stack
from chipwise.catalog.calibration import ServingCalibration, load_calibration
from chipwise.errors import ChipwiseError, InputError, NoLayout
from chipwise.serving.residuals import MODEL
from chipwise.serving.split import Split
from chipwise.validate import serving_rows
from chipwise.validate.score import published, read_rows
from chipwise.validate.serving import load_of, model_key, place_of_row, predict_serving_row, replica_of

INFERENCE = {r["id"]: r for r in read_rows(published()[2])[1]}
SERVING = read_rows(published()[3])[1]
LATER = {r["id"]: r for r in read_rows(published()[4])[1]}


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


def test_a_run_is_replayed_as_its_benchmark_says():
    waves = serving_rows.read(first(LATER.values(), arrival="waves: equal lengths, no warm-up, so users stay in step"))
    assert (waves.load, waves.drawn, waves.warm, waves.rounds) == ("closed", 0.0, False, 3)
    ranged = LATER["S0521"]
    assert (ranged["range_ratio"], ranged["num_prompts"], ranged["concurrency"]) == ("0.8", "40", "4")
    drawn = serving_rows.read(ranged)
    assert (drawn.drawn, drawn.rounds, drawn.input) == (pytest.approx(0.2), 10, 8192)
    means = LATER["X0753"]  # lengths from 1 to 1,000; the row has the means of those that were sent
    assert (float(means["range_ratio"]), means["input_len"]) == (0, "499.7")
    assert serving_rows.read(means).input == pytest.approx(999.4)
    assert load_of(drawn).rounds == 10


def test_requests_that_come_by_themselves_are_an_open_load():
    row = serving_rows.read(LATER["X0003"])
    assert row.load == "open" and load_of(row).kind == "closed"  # as many in flight, who drift apart
    assert place_of_row(row).load == "open" and replica_of(row, load_calibration(bench=False)).coefficients.stream < 3
    offline = serving_rows.read(LATER["X0001"])
    assert offline.requests == 61_380 and load_of(offline).count == 61_380 / 8


def test_a_row_of_a_preset_is_that_model():
    row = serving_rows.read(LATER["S0521"])
    assert row.model.name == "Qwen3.5-397B-A17B-FP8" and row.model.mixer == "linear"  # its dimensions don't show that
    changed = serving_rows.read({**LATER["S0521"], "layers": "10"})
    assert changed.model.layers == 10 and changed.model.mixer != "linear"


def test_a_row_is_predicted_with_the_software_of_its_day():
    row = serving_rows.read(first(LATER.values(), framework="vLLM 0.6.1 (2024-09, ROCm build)"))
    assert row.release == 2024.68 and place_of_row(row).stack == "vllm@v0"
    config = replica_of(row, load_calibration(bench=False)).config
    assert (config.most_sequences, config.mixed) == (256, False)


def test_heads_that_the_chips_do_not_divide_are_filled_up_where_the_stack_does_so():
    row = serving_rows.read(first(LATER.values(), accelerator="AWS Inferentia2", heads="40", chips="12"))
    assert row.model.heads == 40 and replica_of(row, load_calibration(bench=False)).model.heads == 48
    with pytest.raises(NoLayout, match="does not divide"):
        replica_of(replace(row, stack=find_stack("vllm")), load_calibration(bench=False))


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

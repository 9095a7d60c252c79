"""Published edge rows: what is read of them, why some are not eligible, and how they are scored."""

import csv
from math import log
from statistics import median

import pytest

from chipwise.calibrate import edge as calibrate
from chipwise.catalog.edge_calibration import load_edge_calibration
from chipwise.errors import InputError
from chipwise.serving.edge import distance, seconds_a_sample
from chipwise.validate import score
from chipwise.validate.edge import score_edge_row
from chipwise.validate.edge_rows import eligible, precision_of, read, runtime_of, why_not
from chipwise.validate.run import Validation
from chipwise.validate.score import published, read_rows

ROW = {
    "id": "X1",
    "source_repo": "mlcommons/inference_results_v3.0",
    "accelerator": "NVIDIA Jetson AGX Orin (64 GB)",
    "chips": "1",
    "framework": "TensorRT 8.5.2",
    "model": "resnet50",
    "precision": "int8",
    "edge_scenario": "SingleStream",
    "metric_value": "0.7",
    "unit": "ms",
    "notes": "NVIDIA; system Orin_TRT; Result VALID",
}


def test_a_single_stream_row_is_a_latency():
    row = read(ROW)
    assert row.point.device.id == "jetson-agx-orin-64gb"
    assert (row.point.model.id, row.point.precision, row.point.round) == ("resnet50", "int8", "3.0")
    assert row.observed == {"latency": pytest.approx(0.7e-3)}
    assert row.seconds == pytest.approx(0.7e-3)


def test_an_offline_row_is_a_rate_of_all_chips():
    row = read({**ROW, "edge_scenario": "Offline", "metric_value": "12000", "unit": "samples/s", "chips": "4"})
    assert row.observed == {"throughput": 12000.0}
    assert row.seconds == pytest.approx(4 / 12000)


def test_one_instance_of_a_card_is_one_chip():
    row = read({**ROW, "accelerator": "NVIDIA A100-SXM-80GB (1x1g.10gb MIG)", "chips": "8"})
    assert (row.point.device.id, row.point.chips) == ("a100-sxm-1g10gb", 1)


def test_a_multi_stream_query_is_eight_samples():
    row = read({**ROW, "edge_scenario": "MultiStream", "metric_value": "2.4", "power_w": "30"})
    assert row.seconds == pytest.approx(0.3e-3)
    assert row.observed["energy"] == pytest.approx(30 * 2.4e-3 / 8)


def test_3d_unet_is_another_model_before_round_2():
    new = read({**ROW, "model": "3d-unet-99"})
    old = read({**ROW, "model": "3d-unet-99", "source_repo": "mlcommons/inference_results_v1.1"})
    assert (new.point.model.id, old.point.model.id) == ("3d-unet", "3d-unet-brats")


def test_a_model_nobody_listed_is_read_from_the_row_itself():
    own = {"model": "mynet_v9", "params": "12.5M", "notes": "input 320x320x3; OPS 7.5 G; task object_detection"}
    row = read({**ROW, **own, "accelerator": "Hailo-8", "edge_scenario": "Offline", "unit": "frames/s"})
    assert (row.point.model.ops, row.point.model.params, row.point.model.family) == (7.5e9, 12.5e6, "detect")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"accelerator": "Unheard-of NPU"}, "a device that is not in the catalog"),
        ({"unit": "samples per query per 50 ms"}, "multi stream as MLPerf defined it before v2.0"),
        ({"metric_value": "0.001"}, "faster than the data sheet of the device allows"),
        ({"edge_scenario": "Server"}, "no edge scenario"),
        ({"model": "unheard-of"}, "a model without its operations"),
    ],
)
def test_rows_that_can_not_be_scored_say_why(change, why):
    assert why_not({**ROW, **change}) == why
    assert not eligible({**ROW, **change})


def test_precision_of_submissions():
    assert precision_of({**ROW, "precision": "fp32"}, "vendor") == "int8"  # the weights they were given
    assert precision_of({**ROW, "precision": ""}, "reference") == "fp32"
    assert precision_of({**ROW, "model": "rnnt", "precision": ""}, "vendor") == "fp16"
    assert runtime_of({"framework": "Onnxruntime v1.14.0"}) == "reference"


def test_a_bad_number_is_named():
    with pytest.raises(InputError, match="metric_value"):
        read({**ROW, "metric_value": "fast"})


def test_the_header_tells_edge_rows(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        writer.writerow(ROW)
    assert read_rows(path)[0] == "edge"
    scores = score([path])
    assert scores["summary"]["predicted"] == 1
    assert scores["rows"][0]["unit"] == "s"


def test_a_published_row_is_scored_by_the_refit_without_its_pair():
    calibration = load_edge_calibration(refits=True)
    rows = read_rows(published()[0].parent / "edge.csv")[1]
    row = next(r for r in rows if r["model"] == "bert-99" and r["accelerator"] == "NVIDIA L4" and eligible(r))
    mine = score_edge_row(row, calibration)[0].estimate
    full = seconds_a_sample(read(row).point, calibration)
    assert mine is not None
    assert mine.value not in (full.value, 1 / full.value)


@pytest.fixture(scope="module")
def scores():
    return score([published()[0].parent / "edge.csv"])


def test_cross_validated_error_and_coverage_are_within_the_target(scores):
    assert scores["summary"]["mape"] <= 0.18
    assert 0.85 <= scores["summary"]["coverage90"] <= 0.95
    assert scores["energy"]["summary"]["predicted"] > 300


@pytest.mark.parametrize(
    ("held", "largest"), [("leave_device_out", 0.30), ("leave_model_out", 0.42), ("leave_one_source_out", 0.60)]
)
def test_whole_devices_models_and_sources_left_out_are_scored_too(scores, held, largest):
    assert scores[held]["summary"]["mape"] <= largest
    assert 0.85 <= scores[held]["summary"]["coverage90"] <= 0.95
    assert 0.84 <= scores["energy"][held]["summary"]["coverage90"] <= 0.96


def test_the_farther_the_evidence_the_wider_the_interval(scores):
    def width(row):
        return log(row["high"] / row["low"])

    rows = [row for row in scores["rows"] if row["metric"] != "energy"]
    pair = median(width(row) for row in rows)
    assert pair < median(width(row["leave_device_out"]) for row in rows)
    assert pair < median(width(row["leave_model_out"]) for row in rows)


def test_every_hold_out_is_named_on_the_terminal(scores):
    text = str(Validation(scores))
    for held in ("pair", "device", "model", "source"):
        assert f"All, {held} left out" in text


@pytest.mark.parametrize("held", ["pair", "device", "model", "source"])
def test_a_refit_knows_nothing_of_what_it_left_out(held):
    calibration = load_edge_calibration(refits=True)
    rows = read_rows(published()[0].parent / "edge.csv")[1]
    row = read(next(r for r in rows if r["model"] == "bert-99" and r["accelerator"] == "NVIDIA L4" and eligible(r)))
    name = {"pair": row.pair, "device": "l4", "model": "bert-99", "source": row.source}[held]
    without = calibration.without(held, name)
    assert distance(row.point, calibration) == "measured"
    # other sources have published that pair too
    assert distance(row.point, without) == {"source": "measured"}.get(held, held)
    assert without.effects != calibration.effects
    assert calibration.without(held, "nobody has it") is calibration


def test_calibration_of_some_rows_is_deterministic_and_shrinks():
    rows = [read(r) for r in read_rows(published()[0].parent / "edge.csv")[1] if eligible(r)]
    some = [row for row in rows if row.point.device.id in ("l4", "a2", "t4")]
    problem = calibrate.prepare(some)
    first, second = (problem.fit(calibrate.np.arange(len(some)))["effects"] for _ in range(2))
    assert first == second
    from chipwise.serving.edge import KINDS

    for label, (_, variance) in first.items():
        assert 0 <= variance <= KINDS[label.split(":")[0]] ** 2 * (1 + 1e-9), label

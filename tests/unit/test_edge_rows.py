"""Published edge rows: what is read of them, why some are not eligible, and how they are scored."""

import csv

import pytest

from chipwise.calibrate import edge as calibrate
from chipwise.catalog.edge_calibration import load_edge_calibration
from chipwise.errors import InputError
from chipwise.serving.edge import seconds_a_sample
from chipwise.validate import score
from chipwise.validate.edge import score_edge_row
from chipwise.validate.edge_rows import eligible, precision_of, read, runtime_of, why_not
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


def test_cross_validated_error_and_coverage_are_within_the_target():
    scores = score([published()[0].parent / "edge.csv"])
    assert scores["summary"]["mape"] <= 0.20
    assert 0.85 <= scores["summary"]["coverage90"] <= 0.95
    assert scores["energy"]["summary"]["predicted"] > 300


def test_calibration_of_some_rows_is_deterministic_and_shrinks():
    rows = [read(r) for r in read_rows(published()[0].parent / "edge.csv")[1] if eligible(r)]
    some = [row for row in rows if row.point.device.id in ("l4", "a2", "t4")]
    problem = calibrate.prepare(some)
    first, second = (problem.fit(calibrate.np.arange(len(some)))["effects"] for _ in range(2))
    assert first == second
    from chipwise.serving.edge import KINDS

    for label, (_, variance) in first.items():
        assert 0 <= variance <= KINDS[label.split(":")[0]] ** 2 * (1 + 1e-9), label

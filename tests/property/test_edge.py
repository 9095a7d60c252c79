"""Edge predictions over every device, mode, model and scenario: bounds hold, less work is never slower."""

import json
from dataclasses import replace
from itertools import product

import pytest

from chipwise.catalog.edge import edge_devices
from chipwise.catalog.edge_calibration import EdgeCalibration, load_edge_calibration
from chipwise.catalog.edge_models import edge_models
from chipwise.compare.edge import EdgeTerms, compare_devices
from chipwise.errors import Refusal
from chipwise.serving.edge import seconds_a_sample
from chipwise.serving.edge_power import device_joules, device_watts, wall_joules
from chipwise.serving.edge_roofline import (
    DATAFLOW,
    EDGE_PRECISIONS,
    SCENARIOS,
    EdgePoint,
    lower_bound,
    roofline,
)
from lane import share

CALIBRATION = load_edge_calibration()
DEVICES = list(edge_devices().values())


def points(device):
    models = share(edge_models().values(), first=DEVICES.index(device))
    for model, precision, scenario in product(models, EDGE_PRECISIONS, SCENARIOS):
        point = EdgePoint(device, model, precision, scenario)
        try:
            lower_bound(point)
        except Refusal:
            continue
        yield point


@pytest.mark.sampled
@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.id)
def test_no_prediction_is_under_its_bound_and_intervals_hold_their_value(device):
    for point in points(device):
        seconds = seconds_a_sample(point, CALIBRATION)
        assert seconds.value >= lower_bound(point) * (1 - 1e-12), point.model.id
        assert 0 < seconds.low <= seconds.value <= seconds.high, point.model.id
        for joules in (device_joules(point, seconds, CALIBRATION), wall_joules(point, seconds, CALIBRATION)):
            assert 0 < joules.low <= joules.value <= joules.high, point.model.id


@pytest.mark.sampled
@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.id)
def test_more_operations_never_take_less_time_or_energy(device):
    for point in points(device):
        if point.precision not in ("int8", "fp16"):
            continue
        more = replace(point, model=replace(point.model, ops=point.model.ops * 2))
        once, twice = (seconds_a_sample(p, CALIBRATION) for p in (point, more))
        if device.design != DATAFLOW:  # there the size also says whether a model stays on chip
            assert twice.value >= once.value * (1 - 1e-12), point.model.id
            energy = [device_joules(p, s, CALIBRATION).value for p, s in ((point, once), (more, twice))]
            assert energy[1] >= energy[0] * (1 - 1e-12), point.model.id


@pytest.mark.parametrize("device", [d for d in DEVICES if len(d.modes) > 1], ids=lambda device: device.id)
def test_a_faster_clock_is_never_slower(device):
    for model, scenario in product(edge_models().values(), SCENARIOS):
        times = [
            seconds_a_sample(EdgePoint(device, model, "int8", scenario, clock=mode.clock), CALIBRATION).value
            for mode in device.modes
        ]
        assert times == sorted(times, reverse=True), model.id


@pytest.mark.parametrize("watts", [2, 5, 7, 10, 15, 25, 40, 75, 150])
@pytest.mark.parametrize("by", ["latency", "energy", "price"])
def test_the_power_limit_is_kept_and_rows_are_in_order(watts, by):
    comparison = compare_devices("resnet50", None, EdgeTerms(by, "single", watts), CALIBRATION)
    assert all(0 < row.mode.watts <= watts for row in comparison.rows)
    values = [row.by(by) for row in comparison.rows]
    assert values == sorted(values)
    listed = {row.device.id for row in comparison.rows} | {refused.device.id for refused in comparison.refused}
    assert listed == {device.id for device in DEVICES if device.ranked}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_comparison_shows_itself_everywhere(scenario):
    for power in (None, 15.0, 0.5):
        comparison = compare_devices("bert-99", None, EdgeTerms(scenario=scenario, power_w=power), CALIBRATION)
        assert str(comparison)
        assert len(comparison.flat_rows()) == len(comparison.rows) + len(comparison.refused)
        document = json.loads(json.dumps(comparison.to_dict()))
        assert document["pick"] == (comparison.pick.device.id if comparison.pick else None)


def test_a_looser_limit_is_never_slower():
    best = [
        compare_devices("bert-99", None, EdgeTerms(power_w=watts), CALIBRATION).rows[0].seconds.value
        for watts in (7, 10, 15, 30, 60, 130, 500)
    ]
    assert best == sorted(best, reverse=True)


def test_without_calibration_the_roofline_is_all_there_is():
    point = EdgePoint(edge_devices()["l4"], edge_models()["resnet50"], "int8")
    seconds = seconds_a_sample(point, EdgeCalibration())
    assert seconds.value == max(roofline(point), lower_bound(point))
    assert seconds.evidence == "bounded"


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.id)
def test_a_device_never_draws_more_than_its_mode(device):
    for mode in device.modes:
        if not mode.watts:
            continue
        for model, scenario in product(("resnet50", "bert-99", "yolov8n"), SCENARIOS):
            point = EdgePoint(device, edge_models()[model], "int8", scenario, clock=mode.clock)
            if "int8" not in device.peak:
                continue
            watts = device_watts(point, CALIBRATION)
            assert watts.low <= watts.value <= watts.high <= mode.watts * (1 + 1e-12), (mode.name, model)
            seconds = seconds_a_sample(point, CALIBRATION)
            joules = device_joules(point, seconds, CALIBRATION)
            assert joules.value <= mode.watts * seconds.value * (1 + 1e-12)

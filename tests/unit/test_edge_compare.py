"""Edge devices compared as people ask: names, watts, presets, memory, and answers that make sense together."""

import pytest

from chipwise.catalog.edge import edge_devices, find_device, find_devices
from chipwise.catalog.edge_calibration import load_edge_calibration
from chipwise.compare.edge import EdgeTerms, compare_devices, parse_watts
from chipwise.errors import InputError, UnknownName
from chipwise.serving.edge import distance, seconds_a_sample
from chipwise.serving.edge_presets import edge_model
from chipwise.serving.edge_roofline import EdgePoint, roofline

CALIBRATION = load_edge_calibration()


def ask(model, on=None, **terms):
    return compare_devices(model, on, EdgeTerms(**terms), CALIBRATION)


def test_watts_without_a_unit_are_watts():
    assert parse_watts("15") == parse_watts(15) == parse_watts("15W") == parse_watts("15 w") == 15.0


@pytest.mark.parametrize("text", ["15X", "-5", "0", "", "15 kg", "1e9"])
def test_other_watts_are_refused_in_one_line(text):
    with pytest.raises(InputError, match="watts above 0, such as 15W") as error:
        parse_watts(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("orin nx 8gb", "jetson-orin-nx-8gb"),
        ("Orin NX 16GB", "jetson-orin-nx-16gb"),
        ("agx orin 32gb", "jetson-agx-orin-32gb"),
        ("agx orin", "jetson-agx-orin-64gb"),
        ("NVIDIA Jetson AGX Orin (32 GB)", "jetson-agx-orin-64gb"),  # MLPerf's developer kit: that module, 32 GB of it
        ("thor", "jetson-agx-thor-t5000"),
    ],
)
def test_a_device_is_found_by_what_people_call_it(text, device):
    assert find_device(text).id == device


def test_a_line_names_all_its_devices():
    assert {device.id for device in find_devices("jetson")} == {
        name for name, device in edge_devices().items() if name.startswith("jetson") and device.ranked
    }
    assert len({row.device.id for row in ask("mobilenet", "coral").rows}) == 3


@pytest.mark.parametrize(
    ("name", "near"),
    [("orin nnano", "jetson-orin-nano-8gb"), ("snapdragon", "lines: jetson, coral"), ("hailo-9", "hailo-8")],
)
def test_an_unknown_device_names_what_is_near(name, near):
    with pytest.raises(UnknownName) as error:
        ask("resnet50", name)
    assert near in str(error.value)


@pytest.mark.parametrize(
    ("name", "near"), [("yolov8", "yolov8n"), ("lama-3.2-1b", "llama-3.2-1b"), ("qqqqqq", "such as resnet50")]
)
def test_an_unknown_model_names_what_is_near(name, near):
    with pytest.raises(UnknownName) as error:
        ask(name)
    assert near in str(error.value)


def test_the_same_network_is_one_model_whatever_a_table_calls_it():
    assert edge_model("mobilenet").id == edge_model("MobileNet V1 224x224").id == edge_model("mobilenet_v1").id
    assert edge_model("resnet50").id == edge_model("resnet_v1_50").id == edge_model("ResNet-50 V1 224x224").id


def test_a_preset_is_one_request_alone():
    llama, bert, whisper = (edge_model(name) for name in ("llama-3.2-1b", "bert-base", "whisper-tiny"))
    assert (llama.family, llama.passes, llama.precision) == ("decoder", 128, "fp16")
    assert llama.ops == pytest.approx(2 * llama.params * 256, rel=0.05)
    assert (bert.family, bert.passes, bert.precision) == ("transformer", 1, "int8")
    assert 1.5e10 < bert.ops < 2.5e10  # 85 M weights of its layers over 128 tokens; the table of words is looked up
    assert whisper.input == 1500


def test_a_language_model_waits_for_its_weights():
    point = EdgePoint(find_device("orin nx 16gb"), edge_model("llama-3.2-1b"), "fp16")
    reading = point.model.params * 2 * 128 / point.device.bandwidth
    assert reading <= seconds_a_sample(point, CALIBRATION).value < 3 * reading


def test_modules_keep_memory_for_their_system():
    nano = find_device("orin nano")
    assert nano.memory_bytes < 8e9
    refused = ask("llama3.1-8b", "orin nano").refused
    assert "weights of 8.0 GB exceed its 7.6 GB" in refused[0].reason


def test_energy_is_power_times_latency_within_the_mode():
    for row in ask("resnet50", power_w=15.0, objective="energy").rows:
        watts = row.joules.value / row.seconds.value
        assert watts <= row.mode.watts * (1 + 1e-12), row.device.id
        assert watts >= 0.2 * row.mode.watts, row.device.id
        assert row.wall_joules is None or row.wall_joules.value >= row.joules.value * (1 - 1e-12)


def test_dm2e_stays_within_15_watts_though_its_system_draws_more():
    row = ask("resnet50", "qualcomm-ai100-dm2e", power_w=15.0).rows[0]
    assert row.joules.value <= 15 * row.seconds.value * (1 + 1e-12)
    assert row.wall_joules is not None and row.wall_joules.value > row.joules.value


@pytest.mark.parametrize("model", ["resnet50", "bert-99", "stable-diffusion-xl", "yolov8n", "retinanet"])
def test_many_samples_are_never_slower_than_one_by_one(model):
    single, offline, multi = (ask(model, scenario=scenario).rows for scenario in ("single", "offline", "multi"))
    alone = {row.device.id: row.seconds.value for row in single}
    for row in single:
        assert row.throughput.value >= (1 - 1e-9) / alone[row.device.id], row.device.id
    for row in offline:
        assert row.seconds.value <= alone[row.device.id] * (1 + 1e-9), row.device.id
    for row in multi:
        assert row.seconds.value <= 8 * alone[row.device.id] * (1 + 1e-9), row.device.id


def test_a_stick_loads_its_weights_for_every_sample():
    stick, model = find_device("coral usb"), edge_model("vgg16")
    single, offline = (roofline(EdgePoint(stick, model, "int8", scenario)) for scenario in ("single", "offline"))
    assert offline == pytest.approx(single)


def test_the_interval_says_how_far_the_evidence_is():
    point = EdgePoint(find_device("l4"), edge_model("resnet50"), "int8")
    assert distance(point, CALIBRATION) == "measured"
    new = EdgePoint(find_device("thor"), edge_model("resnet50"), "int8")
    assert distance(new, CALIBRATION) == "design"
    estimate = seconds_a_sample(new, CALIBRATION)
    assert estimate.evidence == "bounded"
    assert "nothing published on" in estimate.because

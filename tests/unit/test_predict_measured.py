"""Predictions of a chip that was measured: the measurement at the very point, its factor near it, nothing elsewhere."""

from dataclasses import replace

import pytest

from chipwise.catalog import load, parse
from chipwise.catalog.calibration import Bench, load_calibration
from chipwise.predict.learn.bench_match import bench_at, counterpart
from chipwise.predict.model.layouts import Layout
from chipwise.predict.prediction import predict
from chipwise.workload import load_workload
from chipwise.workload.model import Train, Workload
from chipwise.workload.presets import preset

LLAMA = replace(
    preset("llama-3.1-8b"), layers=8, d_model=768, heads=12, kv_heads=12, head_dim=64, d_ff=3072, vocab=50304
)
TRAIN = Train(16, 1024, state_precision="bf16", stack="pytorch")
EXACT, ONE = Workload("small", LLAMA, TRAIN), Layout(micro_batch=16)


@pytest.fixture(autouse=True)
def nothing_of_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("CHIPWISE_DATA", str(tmp_path))
    bench_at.cache_clear()
    yield
    bench_at.cache_clear()


def on(place, work=EXACT, layout=ONE, calibration=None):
    return predict(work, parse(place), layout, calibration or load_calibration())


def test_the_very_point_is_answered_with_the_measurement():
    found = on("h200:1")
    kept = bench_at(Bench(used=True), "h200", "torch").measured[
        "train bf16 b=16 d=768 f=3072 h=12 hk=12 layers=8 s=1024 vocab=50304"
    ]
    assert found.step.evidence == "measured" and found.measured
    assert found.step.value == pytest.approx(kept["seconds"])
    assert "h200-1.json.gz" in found.step.because


@pytest.mark.parametrize(
    "change", [{"sequence": 1100}, {"global_batch": 32}, {"state_precision": "fp32"}, {"optimizer": "lion"}]
)
def test_another_point_is_modelled_from_measurements(change):
    found = on("h200:1", replace(EXACT, train=replace(TRAIN, **change)))
    assert found.step.evidence == "modelled" and found.measured
    assert "measured points of train" in found.step.because or "h200-1.json.gz" in found.step.because


def test_a_model_that_the_bench_program_is_not_is_not_called_measured():
    found = on("h200:1", replace(EXACT, model=replace(LLAMA, tied=True)))
    assert found.step.evidence == "modelled" and found.measured


def test_many_chips_keep_the_interval_of_published_steps_and_their_wires():
    two = on("h200:2", replace(EXACT, train=replace(TRAIN, global_batch=32)), Layout(dp=2, micro_batch=16))
    plain = on(
        "h200:2",
        replace(EXACT, train=replace(TRAIN, global_batch=32)),
        Layout(dp=2, micro_batch=16),
        load_calibration(bench=False),
    )
    assert two.step.evidence == "modelled" and "a chip's own part" in two.step.because
    assert two.step.high / two.step.value == pytest.approx(plain.step.high / plain.step.value)
    assert two.step.value > on("h200:1").step.value


@pytest.mark.parametrize(("place", "stack"), [("h200:1", "megatron"), ("h100:1", "pytorch")])
def test_other_stacks_and_other_chips_are_as_before(place, stack):
    work = replace(EXACT, train=replace(TRAIN, stack=stack))
    assert on(place, work).step == on(place, work, calibration=load_calibration(bench=False)).step


def test_measurements_never_reach_what_is_held_against_published_rows():
    published = load_calibration(bench=False)
    assert not published.bench.used and not on("h200:1", calibration=published).measured


def test_the_usual_stack_says_that_measurements_exist():
    work = replace(EXACT, train=replace(TRAIN, stack=""))
    assert any("was measured with PyTorch" in said for said in on("h200:1", work).assumptions)
    assert not any("was measured" in said for said in on("h100:1", work).assumptions)


def test_a_batch_under_the_smallest_measured_one_still_waits_for_the_host():
    work = load_workload("examples/vit-b-16-imagenet.yaml")
    kept = bench_at(Bench(used=True), "h200", "torch").measured["vit_train bf16 b=32 d=768 f=3072 h=12 layers=12 s=197"]
    small = on("h200:1", replace(work, train=replace(work.train, global_batch=4)), Layout(micro_batch=4))
    assert 0.8 * kept["seconds"] < small.step.value < 1.1 * kept["seconds"]


@pytest.mark.parametrize("chip", ["h100", "mi300x"])
def test_launches_of_unmeasured_chips_take_what_they_take_beside_a_measured_one(chip):
    work, layout = load_workload("examples/vit-b-16-imagenet.yaml"), Layout(dp=64, micro_batch=16)
    there, here = on("h200:64", work, layout), on(f"{chip}:64", work, layout)
    plain = on(f"{chip}:64", work, layout, load_calibration(bench=False))
    assert here.step.value < 1.5 * there.step.value < plain.step.value
    assert any("as measured with h200" in line for line in here.assumptions)
    assert not any("as measured with" in line for line in (*there.assumptions, *plain.assumptions))


def test_launches_are_as_published_steps_have_them_where_there_are_some():
    calibrated = on("h100:64", replace(EXACT, train=replace(TRAIN, global_batch=64)), Layout(dp=64, micro_batch=1))
    plain = on(
        "h100:64",
        replace(EXACT, train=replace(TRAIN, global_batch=64)),
        Layout(dp=64, micro_batch=1),
        load_calibration(bench=False),
    )
    assert calibrated.step == plain.step


def test_resnet_50_has_a_counterpart_and_other_families_have_none():
    resnet = load_workload("examples/resnet-50-imagenet.yaml")
    near = counterpart(resnet, Layout(micro_batch=64), False)
    assert near.point.kind == "resnet50_train" and near.point.sizes == {"b": 64}
    for name in ("mixtral-8x7b", "bert-large"):
        assert counterpart(replace(EXACT, model=preset(name)), ONE, False) is None
    assert counterpart(replace(EXACT, train=replace(TRAIN, lora_rank=8)), ONE, False) is None
    assert counterpart(replace(EXACT, train=replace(TRAIN, precision="fp8")), ONE, False) is None


def test_memory_of_eager_pytorch_is_what_its_allocator_held():
    found = on("h200:1")
    assert found.memory["total"] == pytest.approx(15.78e9, rel=0.02)  # examples/bench/h200-1.json.gz, the same point


def test_stacks_that_run_a_step_as_bench_does_say_through_which_framework():
    assert {stack.id for stack in load().stacks.values() if stack.bench} == {"pytorch", "fsdp", "torchtitan", "jax"}
    assert {stack.bench for stack in load().stacks.values()} == {"", "torch", "jax"}

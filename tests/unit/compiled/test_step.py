"""Compiled steps as estimates: intervals, slices, parts; and rows of published steps as jobs."""

from __future__ import annotations

import csv
from dataclasses import replace
from math import exp
from typing import Any

import pytest

from chipwise.catalog import parse
from chipwise.catalog.calibration import Calibration, load_calibration
from chipwise.compiled.check.check import estimate
from chipwise.compiled.job import Compiled, Job
from chipwise.compiled.prediction import compiled_prediction, parts_of
from chipwise.compiled.reference import mesh_of, training_job
from chipwise.compiled.timing.kernels import Kernels
from chipwise.compiled.timing.schedule import Collective, Loop, Op, Schedule
from chipwise.compiled.timing.step import UNSCORED, compiled_step
from chipwise.compiled.timing.timing import clock_rates, time_schedule
from chipwise.errors import DoesNotFit, Refusal
from chipwise.predict.model.layouts import Layout
from chipwise.predict.prediction import predict
from chipwise.validate import compiled as kept
from chipwise.validate import training_rows
from chipwise.validate.compiled_rows import job_of
from chipwise.validate.score import published
from chipwise.workload.model import Train, Workload
from chipwise.workload.presets import preset

WORK = Workload("w", preset("llama-3.1-8b"), Train(256, 4096))
ACC = parse("v5p:64")
LAYOUT = Layout(dp=64, micro_batch=4, zero=3, shard=64, recompute="full")
OPS = [
    Op("matmul", "m", cycles=1e6),
    Op("collective", "g", collective=Collective("gather", 1e8, 64, 1, 1)),
    Op("stream", "s", hbm=1e8),
]
PLAIN = Schedule("main", {"main": OPS}, 64)


def made(**memory: float) -> Compiled:
    sizes = {"arguments": 1e9, "outputs": 1e9, "aliased": 1e9, "temporaries": 2e9, "code": 1e6, **memory}
    return Compiled("k", {"jax": "1", "libtpu": "2"}, 1.0, 0, sizes, PLAIN.as_json())


def compiled_with(part: dict[str, Any]) -> Calibration:
    known = load_calibration(bench=False)
    return replace(known, training=replace(known.training, compiled=part))


def test_an_unscored_step_says_so_and_a_scored_one_has_the_spread_of_its_errors() -> None:
    bare = compiled_with({})
    step = compiled_step(PLAIN, ACC, bare).estimate
    assert step.evidence == "compiled" and "no published step" in step.because
    assert step.low == pytest.approx(step.value * exp(UNSCORED["tpu"][0]))
    scored = compiled_with({"intervals": {"tpu": [-0.1, 0.1], "rows": 30}})
    assert "30 published steps" in compiled_step(PLAIN, ACC, scored).estimate.because


def test_an_unknown_kernel_widens_the_interval_upwards() -> None:
    with_kernel = replace(PLAIN, blocks={"main": [*OPS, Op("kernel", "mine", hbm=1e9)]})
    known, unknown = (compiled_step(s, ACC, load_calibration(bench=False)).estimate for s in (PLAIN, with_kernel))
    assert unknown.high / unknown.value > known.high / known.value
    assert unknown.low / unknown.value == pytest.approx(known.low / known.value)
    assert "unknown" in unknown.because


def test_a_loop_of_unknown_length_is_said() -> None:
    looped = Schedule("main", {"main": [Loop("body", 1, known=False)], "body": OPS}, 64)
    assert "depends on data" in compiled_step(looped, ACC, load_calibration(bench=False)).estimate.because


def test_slices_exchange_gradients_over_the_network() -> None:
    both = parse("v5p:2*4x4x4")
    one, two = (compiled_step(PLAIN, acc, load_calibration(bench=False), WORK) for acc in (ACC, both))
    assert one.between_slices == 0.0 < two.between_slices
    assert two.estimate.value == pytest.approx(one.timing.seconds + two.between_slices)


def test_parts_of_a_compiled_prediction_add_up_and_its_memory_is_the_compilers() -> None:
    modelled = predict(WORK, ACC, LAYOUT, load_calibration(bench=False))
    found = compiled_prediction(modelled, made(), load_calibration(bench=False))
    assert found.step.evidence == "compiled"
    assert sum(found.parts.values()) == pytest.approx(found.step.value)
    assert found.memory["total"] == pytest.approx(3e9 + 1e6)
    assert found.mfu > 0 and "libtpu 2" in found.assumptions[0]
    raw = compiled_step(PLAIN, ACC, load_calibration(bench=False))
    assert sum(parts_of(raw).values()) == pytest.approx(raw.estimate.value)
    assert "shorter than the lower bound" in found.step.because and found.step.value == found.bound_s


def test_what_the_compiler_refuses_is_a_refusal_of_its_kind() -> None:
    from chipwise.compiled.job import Refused

    modelled = predict(WORK, ACC, LAYOUT, load_calibration(bench=False))
    with pytest.raises(DoesNotFit, match="too much"):
        compiled_prediction(modelled, Refused("memory", "too much"), load_calibration(bench=False))
    with pytest.raises(Refusal, match="no such op"):
        compiled_prediction(modelled, Refused("compile", "no such op"), load_calibration(bench=False))


@pytest.mark.parametrize(
    ("layout", "axes"),
    [
        (Layout(dp=64, zero=3, shard=64), {"data": 1, "fsdp": 64, "expert": 1, "tensor": 1}),
        (Layout(dp=16, tp=4, zero=3, shard=16), {"data": 1, "fsdp": 16, "expert": 1, "tensor": 4}),
        (Layout(dp=64, zero=3, shard=32), {"data": 2, "fsdp": 32, "expert": 1, "tensor": 1}),
        (Layout(dp=64, ep=8, zero=3, shard=64), {"data": 1, "fsdp": 8, "expert": 8, "tensor": 1}),
        (Layout(dp=64), {"data": 64, "fsdp": 1, "expert": 1, "tensor": 1}),
    ],
)
def test_a_layout_becomes_mesh_axes(layout: Layout, axes: dict[str, int]) -> None:
    assert mesh_of(layout, ACC, 64) == axes


def test_two_devices_a_chip_share_its_batch() -> None:
    job = training_job(WORK, parse("v7x:4x4x4"), Layout(dp=64, micro_batch=4, zero=3, shard=64))
    assert job.mesh["fsdp"] == 128 and job.spec.data["micro_batch"] == 2 and job.spec.data["accumulate"] == 1


@pytest.mark.parametrize(
    ("layout", "train", "said"),
    [
        (Layout(dp=16, pp=4, micro_batch=1), {}, "pipeline"),
        (Layout(dp=64, micro_batch=4, zero=3, shard=64), {"precision": "fp16"}, "fp16"),
        (Layout(dp=64, micro_batch=4, zero=3, shard=64), {"lora_rank": 8, "lora_base": "nf4"}, "adapters"),
        (Layout(dp=64, micro_batch=1, zero=3, shard=64), {"global_batch": 96}, "whole samples"),
    ],
)
def test_what_no_reference_program_does_is_refused_with_the_reason(layout, train, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Refusal, match=said):
        training_job(replace(WORK, train=replace(WORK.train, **train)), ACC, layout)


def rows() -> dict[str, dict[str, str]]:
    with published()[0].open() as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def test_a_published_row_keeps_its_mesh_batch_and_recomputation() -> None:
    row = rows()["T0039"]
    job = job_of(training_rows.read(row), row)
    assert job.target.topology == "v5p:4x4x4" and job.mesh == {"data": 1, "fsdp": 16, "expert": 1, "tensor": 4}
    assert job.spec.data["micro_batch"] == 32 and job.spec.data["recompute"]["policy"] == "dots"


def test_slices_of_one_program_share_its_compile() -> None:
    jobs = [job_of(training_rows.read(rows()[i]), rows()[i]) for i in ("T0010", "T0011", "T0015")]
    assert len({kept.file_of(job) for job in jobs}) == 1


def test_every_kept_schedule_belongs_to_a_published_row_as_it_is_read_today() -> None:
    known = rows()
    for path in sorted(kept.folder().glob("*.json.gz")):
        import gzip
        import json

        with gzip.open(path, "rt") as file:
            content = json.load(file)
        assert kept.file_of(Job.from_json(content["job"])) == path
        for name in content["rows"]:
            assert kept.file_of(job_of(training_rows.read(known[name]), known[name])) == path


def test_kernels_are_never_taken_for_surer_than_the_schedule_around_them():
    acc, calibration = parse("h100:1"), load_calibration(bench=False)
    point = Kernels(1e-3, 1e-3, 1e-3)  # memory binds it: its own range is a point
    timing = replace(time_schedule(PLAIN, clock_rates(acc, calibration)), seconds=1e-3)
    step = estimate(timing, point, calibration, acc, 0)
    assert step.low < 0.9 * step.value and step.high > 1.1 * step.value
    wide = estimate(timing, Kernels(1e-5, 1e-3, 1e-1), calibration, acc, 0)
    assert (wide.low, wide.high) == (pytest.approx(1e-5), pytest.approx(1e-1))

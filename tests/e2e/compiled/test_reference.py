"""The reference programs compute what they should, hold what the model has, and compile for a TPU.

Numbers come from one process on eight CPU devices (`cases/reference_numbers.py`), where attention is the plain one: the
splash kernel runs on TPUs only. Compiles are for a real v5e topology.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_jobs import compile_together
from reference_models import CHIPS, QUICK, SERVED, TRAINED, jobs

from chipwise.catalog.names import parse
from chipwise.compiled.job import Compiled
from chipwise.compiled.reference import serving_job
from chipwise.compiled.worker.process import worker_environment
from chipwise.errors import InputError, Refusal
from chipwise.workload.presets import preset
from patience import PATIENCE_S

pytestmark = pytest.mark.compiler("tpu")
ROUNDING = 1e-4


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    results = tmp_path_factory.mktemp("numbers") / "results.json"
    line = [sys.executable, str(Path(__file__).parent / "cases" / "reference_numbers.py"), str(results)]
    done = subprocess.run(
        line, env=worker_environment(os.environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(results.read_text())


@pytest.mark.parametrize(
    "name",
    [
        "decoder on data, fsdp and tensor axes",
        "decoder with more tensor devices than key heads",
        "learned positions and parallel blocks",
        "latent attention and experts on expert and tensor axes",
        "latent attention and experts on fsdp and expert axes",
        "encoder on fsdp and tensor axes",
        "ViT on data and tensor axes",
        "ResNet with joined statistics",
        "accumulated",
        "recompute selective",
        "recompute full",
    ],
)
def test_every_way_of_splitting_a_step_gives_the_loss_and_gradients_of_one_device(numbers, name):
    found = numbers[name]
    assert "error" not in found, found["error"]
    assert found["loss"] < ROUNDING
    assert found["gradient"] < ROUNDING, found["where"]


@pytest.mark.parametrize("name", ["decoder learns", "ResNet learns"])
def test_the_loss_falls_when_a_batch_is_seen_again(numbers, name):
    losses = numbers[name]["losses"]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("windowed decoder served", [4, 24]),  # the ring of a window, the whole context
        ("learned positions served", [24]),
        ("latent attention and experts served", [24]),
    ],
)
def test_decoding_after_a_prompt_gives_the_logits_and_cache_of_the_longer_prompt(numbers, name, slots):
    found = numbers[name]
    assert "error" not in found, found["error"]
    assert found["decode"] < ROUNDING
    assert found["cache"] < ROUNDING
    assert found["mesh"] < ROUNDING
    assert found["slots"] == slots


def test_weights_kept_as_int8_give_the_logits_of_the_same_weights_in_bf16(numbers):
    assert numbers["int8"]["logits"] < 0.02  # bf16 rounds the scaled weight once more or less
    assert numbers["int8"]["share"] < 0.65


def test_evenly_loaded_experts_match_naive_ones_and_drop_nothing(numbers):
    found = numbers["experts evenly loaded"]
    assert found["dropped on 1"] == found["dropped on 2"] == 0
    assert max(found["on 1"], found["on 2"], found["few"]) < ROUNDING


def test_overloaded_experts_drop_just_the_rows_beyond_their_even_share(numbers):
    found = numbers["experts overloaded"]
    assert found["dropped on 1"] > 0
    assert max(found["on 1"], found["on 2"], found["few"]) < ROUNDING


def test_a_resnet_step_does_the_work_of_its_op_table_and_keeps_its_shapes(numbers):
    found = numbers["ResNet FLOPs"]
    assert found["ratio"] == pytest.approx(1, abs=0.05)  # the table counts products with padding too
    assert found["same state"]
    assert found["loss"] == []


def test_weights_and_moments_of_every_known_model_are_what_its_parameter_count_says(numbers):
    assert {"llama-3.1-8b", "mixtral-8x7b", "vit-b-16", "bert-base", "resnet-50"} <= numbers["state"].keys()
    wrong = {name: ratio for name, ratio in numbers["state"].items() if abs(ratio - 1) > 0.001}
    assert not wrong


def test_a_device_holds_its_share_of_the_state(numbers):
    for ratio in numbers["split state"].values():
        assert ratio == pytest.approx(1, abs=0.01)  # norms and routers are whole on each


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_together(_cases(QUICK), tmp_path_factory.mktemp("quick"))


def _cases(names):
    every = jobs()
    return {
        name: (
            every[name].spec.name,
            {"kind": "workload", "data": dict(every[name].spec.data), "on": CHIPS, "mesh": dict(every[name].mesh)},
        )
        for name in names
    }


@pytest.mark.parametrize("name", QUICK)
def test_reference_programs_compile_for_a_tpu(compiled, name):
    assert isinstance(compiled[name], Compiled), compiled[name]


@pytest.mark.parametrize(
    "name", ["dense", "prefill", "decode", "decode in int8", "windowed decode", "latent decode", "experts decode"]
)
def test_the_compiler_takes_the_arguments_we_count(compiled, numbers, name):
    assert compiled[name].memory["arguments"] == pytest.approx(numbers["arguments"][name], rel=0.01)


@pytest.mark.parametrize("name", [name for name in QUICK if "decode" in name])
def test_decoding_writes_its_cache_in_place(compiled, name):
    memory = compiled[name].memory
    assert memory["aliased"] > 0.98 * memory["outputs"]


@pytest.mark.slow
def test_the_other_reference_programs_compile_too(tmp_path):
    rest = [name for name in (*TRAINED, *SERVED) if name not in QUICK]
    found = compile_together(_cases(rest), tmp_path)
    assert [name for name, each in found.items() if not isinstance(each, Compiled)] == []
    assert found["offloaded"].memory["host_temporaries"] > 0


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"tensor": 3}, "tensor: 3"),
        ({"batch": 3}, "batch: 3"),
        ({"context": 0}, "context: 0"),
        ({"mode": "train"}, "prefill or decode"),
        ({"precision": "fp8"}, "bf16, int8"),
    ],
)
def test_serving_that_can_not_be_is_refused_by_name(more, told):
    asked = {"tensor": 2, "batch": 4, "context": 128, "mode": "decode"} | more
    with pytest.raises(InputError, match=told):
        serving_job(preset("llama-3.1-8b"), parse(CHIPS), **asked)


def test_only_decoders_are_served():
    with pytest.raises(Refusal, match="bert-base is of the encoder family"):
        serving_job(preset("bert-base"), parse(CHIPS), 1, 4, 128, "decode")

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
from reference_models import CHIPS, EXPERTS, GPT, LLAMA, PLACES, QUICK, RESNET, SERVED, TRAINED, jobs

from chipwise.catalog.names import parse
from chipwise.compiled.job import Compiled
from chipwise.compiled.reference import serving_job, training_job
from chipwise.compiled.worker.process import worker_environment
from chipwise.errors import InputError, Refusal
from chipwise.predict.model.layouts import Layout
from chipwise.workload.build import build_model
from chipwise.workload.model import Train, Workload
from chipwise.workload.presets import preset
from patience import PATIENCE_S

jax = pytest.mark.compiler("export")  # JAX on CPU devices is enough
tpu = pytest.mark.compiler("tpu")
slow = pytest.mark.slow
ROUNDING = 1e-4
COUNTED = ("prefill", "windowed decode", "latent decode", "experts decode")  # beside those of every run
# Checks of every run of the tests: a split step, experts, and what devices hold. The others are slow.
FEW = (
    "decoder on data, fsdp and tensor axes",
    "decoder on fsdp, context and tensor axes",
    "experts evenly loaded",
    "products in 8 bits",
    "adapters of a decoder",
    "state",
    "split state",
    "arguments",
)
SPLIT_STEPS = (
    "windows and more tensor devices than key heads on a context axis",
    "latent attention and experts on a context axis",
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
)


class Numbers(dict):
    """Results by check, a few or all in one process, which starts when the first of them is asked for."""

    def __init__(self, folder):
        super().__init__()
        self.results = folder / "results.json"

    def __missing__(self, check):
        script, wanted = Path(__file__).parent / "cases" / "reference_numbers.py", FEW if check in FEW else ()
        line = [sys.executable, str(script), str(self.results), *wanted]
        done = subprocess.run(
            line, env=worker_environment(os.environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        self.update(json.loads(self.results.read_text()))
        return self[check]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Numbers(tmp_path_factory.mktemp("numbers"))


@jax
@pytest.mark.parametrize(
    "name",
    [
        FEW[0],
        FEW[1],
        *(pytest.param(name, marks=slow) for name in SPLIT_STEPS),
    ],
)
def test_every_way_of_splitting_a_step_gives_the_loss_and_gradients_of_one_device(numbers, name):
    found = numbers[name]
    assert "error" not in found, found["error"]
    assert found["loss"] < ROUNDING
    assert found["gradient"] < ROUNDING, found["where"]


@slow
@jax
@pytest.mark.parametrize("name", ["causal", "windowed"])
def test_splash_attention_of_a_part_of_the_queries_is_that_of_all(numbers, name):
    """The kernel interpreted on CPU devices, with the blocks of its mask that a device of a context axis has."""
    found = numbers["splash on a context axis"]
    assert "error" not in found, found
    assert found[name] < ROUNDING


@slow
@jax
@pytest.mark.parametrize("name", ["decoder learns", "ResNet learns"])
def test_the_loss_falls_when_a_batch_is_seen_again(numbers, name):
    losses = numbers[name]["losses"]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


@slow
@jax
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


@slow
@jax
def test_weights_kept_as_int8_give_the_logits_of_the_same_weights_in_bf16(numbers):
    assert numbers["int8"]["logits"] < 0.02  # bf16 rounds the scaled weight once more or less
    assert numbers["int8"]["share"] < 0.65


@jax
@pytest.mark.parametrize(
    "name",
    [
        "adapters of a decoder",
        *(
            pytest.param(name, marks=slow)
            for name in (
                "adapters with more tensor devices than key heads",
                "adapters of latent attention and experts",
                "adapters of an encoder",
            )
        ),
    ],
)
def test_adapters_train_as_their_products_beside_the_weights_would(numbers, name):
    found = numbers[name]
    assert "error" not in found, found["error"]
    assert found["loss"] < ROUNDING and found["gradient"] < ROUNDING
    assert found["frozen"]  # the base comes back bit for bit
    assert found["trained"] == 1  # as many parameters as the workload's count says


@jax
def test_products_in_8_bits_are_those_in_full_precision_but_for_rounding(numbers):
    """Relative norms: int8 has 7 bits of a channel's largest value, e4m3 a mantissa of 3 bits and e5m2 of 2."""
    found = numbers["products in 8 bits"]
    assert "error" not in found, found["error"]
    assert all(error < 0.015 for name, error in found.items() if name.startswith("int8"))
    assert all(error < 0.08 for name, error in found.items() if name.startswith("fp8"))
    assert found["int8 zeros"] == found["fp8 zeros"] == 0


@slow
@jax
@pytest.mark.parametrize(("precision", "far"), [("int8", 0.01), ("fp8", 0.04)])
def test_a_step_in_8_bits_gives_the_loss_and_gradients_of_one_in_bf16_but_for_rounding(numbers, precision, far):
    found = dict(numbers[f"{precision} products"])
    assert "error" not in found, found["error"]
    losses = found.pop("losses")
    assert losses == sorted(losses, reverse=True)  # and it learns
    for name, off in found.items():
        assert off["loss"] < 1e-4, name
        assert 0 < off["gradient"] < far, name


@jax
def test_evenly_loaded_experts_match_naive_ones_and_drop_nothing(numbers):
    found = numbers["experts evenly loaded"]
    assert found["dropped on 1"] == found["dropped on 2"] == 0
    assert max(found["on 1"], found["on 2"], found["few"]) < ROUNDING


@slow
@jax
def test_overloaded_experts_drop_just_the_rows_beyond_their_even_share(numbers):
    found = numbers["experts overloaded"]
    assert found["dropped on 1"] > 0
    assert max(found["on 1"], found["on 2"], found["few"]) < ROUNDING


@slow
@jax
def test_a_resnet_step_does_the_work_of_its_op_table_and_keeps_its_shapes(numbers):
    found = numbers["ResNet FLOPs"]
    assert found["ratio"] == pytest.approx(1, abs=0.05)  # the table counts products with padding too
    assert found["same state"]
    assert found["loss"] == []


@jax
def test_weights_and_moments_of_every_model_with_a_program_are_what_its_parameter_count_says(numbers):
    ratios = numbers["state"]
    assert "error" not in ratios, ratios["error"]
    built = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    assert {"llama-3.1-8b", "mixtral-8x7b", "vit-b-16", "bert-base", "resnet-50"} <= built.keys()
    assert {name: ratio for name, ratio in built.items() if abs(ratio - 1) > 0.001} == {}
    assert len(built) > len(ratios) / 2  # the others, counted here, are refused


@jax
def test_a_device_holds_its_share_of_the_state(numbers):
    for ratio in numbers["split state"].values():
        assert ratio == pytest.approx(1, abs=0.01)  # norms and routers are whole on each


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_together(_cases(QUICK), tmp_path_factory.mktemp("quick"))


def _cases(names):
    every = jobs()
    return {name: (every[name].spec.name, _case(every[name], PLACES.get(name, CHIPS))) for name in names}


def _case(job, on):
    return {"kind": "workload", "data": dict(job.spec.data), "on": on, "mesh": dict(job.mesh)}


@tpu
@pytest.mark.parametrize("name", QUICK)
def test_reference_programs_compile_for_a_tpu(compiled, name):
    assert isinstance(compiled[name], Compiled), compiled[name]


@tpu
@pytest.mark.parametrize("name", QUICK)
def test_the_compiler_takes_the_arguments_we_count(compiled, numbers, name):
    assert compiled[name].memory["arguments"] == pytest.approx(numbers["arguments"][name], rel=0.01)


@tpu
@pytest.mark.parametrize("name", [name for name in QUICK if "decode" in name])
def test_decoding_writes_its_cache_in_place(compiled, name):
    memory = compiled[name].memory
    assert memory["aliased"] > 0.98 * memory["outputs"]


@tpu
@slow
@pytest.mark.parametrize("name", [name for name in (*TRAINED, *SERVED) if name not in QUICK])
def test_the_other_reference_programs_compile_too(tmp_path, numbers, name):
    outcome = compile_together(_cases([name]), tmp_path)[name]
    assert isinstance(outcome, Compiled), outcome
    if name in COUNTED:
        assert outcome.memory["arguments"] == pytest.approx(numbers["arguments"][name], rel=0.01)
    if "decode" in name:
        assert outcome.memory["aliased"] > 0.98 * outcome.memory["outputs"]
    if name == "offloaded":
        assert outcome.memory["host_temporaries"] > 0


@pytest.mark.parametrize(
    ("on", "fields", "precision", "told"),
    [
        ("v5e:2x2", LLAMA, "fp8", "v5e has no fp8 matrix rate"),
        ("v7x:2x2x1", LLAMA, "int8", "v7x has no int8 matrix rate"),
        ("v5e:2x2", LLAMA, "fp16", "in int8 or fp8 too; fp16 is modelled, not compiled"),
        ("h100:4", LLAMA, "fp8", "fp8 on chips of the gpu family is modelled, not compiled"),
        ("v5e:2x2", RESNET, "int8", "program of a cnn computes in bf16 or fp32; int8 is modelled"),
    ],
)
def test_a_precision_without_a_program_or_a_rate_is_refused_by_name(on, fields, precision, told):
    model = build_model(fields)
    train = Train(8, model.image_tokens or 256, precision=precision)
    with pytest.raises(Refusal, match=told):
        training_job(Workload("job", model, train), parse(on), Layout(4, zero=3, shard=4))


@pytest.mark.parametrize(
    ("fields", "layout", "told"),
    [
        (GPT, Layout(2, cp=2, zero=3, shard=2), "decoders without learned positions"),
        (LLAMA, Layout(1, cp=256, zero=3), "can't be split over 2 x cp"),
        (LLAMA | {"experts": EXPERTS}, Layout(1, cp=4, ep=4, zero=3), "ep over cp is modelled only"),
    ],
)
def test_sequences_that_no_program_splits_are_refused_with_the_reason(fields, layout, told):
    with pytest.raises(Refusal, match=told):
        training_job(Workload("job", build_model(fields), Train(8, 256)), parse(f"v5e:{layout.chips}"), layout)


@pytest.mark.parametrize(
    ("fields", "base", "told"), [(LLAMA, "nf4", "beside a base in nf4"), (RESNET, "", "beside a cnn")]
)
def test_adapters_without_a_program_are_refused_by_what_is_beside_them(fields, base, told):
    model = build_model(fields)
    train = Train(8, model.image_tokens or 256, lora_rank=8, lora_base=base)
    with pytest.raises(Refusal, match=told):
        training_job(Workload("job", model, train), parse(CHIPS), Layout(4, zero=3, shard=4))


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

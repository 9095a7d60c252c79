"""Adapters beside a frozen base of 4 bits: which names mean it, what it takes, where it runs."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from chipwise.catalog import load, parse
from chipwise.errors import InputError, Refusal
from chipwise.knowledge import Knowledge
from chipwise.launch.described import TrainingRun
from chipwise.launch.job import workload_contents
from chipwise.launch.launch import launch
from chipwise.layout.remedies import remedies
from chipwise.ops.table import build
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.layouts import Layout, Layouts
from chipwise.predict.model.training import BASE_BYTES, BASE_TRAFFIC
from chipwise.predict.setup import set_up, stack_of
from chipwise.workload import load_workload
from chipwise.workload.hf import model_from_config
from chipwise.workload.model import Workload
from chipwise.workload.params import count

DAY = Estimate(86_400.0, 80_000.0, 90_000.0, "modelled")


def work(model: str = "mistral-7b", **train: object) -> Workload:
    base = {"steps": 10, "global_batch": 16, "sequence": 2048, "lora": {"rank": 16}}
    return load_workload(
        overrides={"model": model, **{f"train.{key}": value for key, value in {**base, **train}.items()}}
    )


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("unsloth/mistral-7b-bnb-4bit", "nf4"),
        ("mistral-7b-nf4", "nf4"),
        ("TheBloke/Mistral-7B-v0.1-GPTQ", "int4"),
        ("TheBloke/Mistral-7B-v0.1-AWQ", "int4"),
        ("mistral-7b-int4", "int4"),
        ("mistral-7b", ""),
        ("moonshotai/Kimi-K2-Thinking", ""),  # published in int4 alone: nobody named a format
    ],
)
def test_a_name_of_four_bits_says_what_the_base_is_held_in(name, base):
    assert work(name).train.lora_base == base


def test_a_named_base_comes_before_that_of_the_name():
    assert work("mistral-7b-bnb-4bit", lora={"rank": 16, "base": "bf16"}).train.lora_base == ""
    assert work("mistral-7b-GPTQ", lora={"rank": 16, "base": "nf4"}).train.lora_base == "nf4"


@pytest.mark.parametrize(
    ("config", "stored"),
    [({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"), ({"quant_method": "gptq", "bits": 4}, "int4"),
     ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8w")],
)  # fmt: skip
def test_a_config_says_which_four_bits(config, stored):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    model = model_from_config({"model_type": "llama", "intermediate_size": 128, **sizes, "quantization_config": config})
    assert model.native_precision == stored


@pytest.mark.parametrize(
    ("model", "train", "field", "accepted"),
    [
        ("mistral-7b-bnb-4bit", {"lora": None}, "model", "--lora 16"),
        ("mistral-7b-GPTQ", {"lora": None}, "model", "mistral-7b, in 16 bits"),
        ("mistral-7b-NVFP4", {}, "train.lora.base", "nf4, int4 or bf16"),
        ("mistral-7b", {"precision": "int4"}, "train.precision", "--lora-base nf4"),
        ("mistral-7b", {"precision": "nf4"}, "train.precision", "--lora-base nf4"),
        ("mistral-7b", {"lora": {"rank": 16, "base": "fp16"}}, "train.lora.base", "the run(bf16)"),
        ("mistral-7b", {"lora": {"rank": 16, "base": "nf4"}, "precision": "fp8"}, "train.precision", "bf16 or fp16"),
        ("mistral-7b", {"lora": {"base": "nf4"}}, "train.lora.rank", "rank"),
    ],
)
def test_what_cannot_be_meant_is_asked_back(model, train, field, accepted):
    with pytest.raises(InputError) as error:
        work(model, **train)
    assert error.value.field == field and accepted in str(error.value)


@pytest.mark.parametrize(
    ("base", "chip", "stack"), [("nf4", "h100", "fsdp"), ("int4", "h100", "pytorch"), ("nf4", "mi300x", "fsdp")]
)
def test_the_usual_stack_is_one_that_can_hold_the_base(base, chip, stack):
    acc = parse(f"{chip}:1")
    assert stack_of(work(lora={"rank": 16, "base": base}), acc.chip).id == stack


@pytest.mark.parametrize(
    ("chip", "stack", "unlock"), [("v5e", None, "a GPU"), ("h100", "megatron", "--stack fsdp or pytorch")]
)
def test_a_stack_without_such_a_base_is_refused_with_those_that_have_it(chip, stack, unlock):
    named = load().stacks[stack] if stack else None
    with pytest.raises(Refusal, match="held in nf4") as refusal:
        set_up(work("mistral-7b-nf4"), parse(f"{chip}:1"), Knowledge.default().calibration, named)
    assert unlock in refusal.value.unlock


@pytest.mark.parametrize("base", ["nf4", "int4"])
def test_memory_and_time_are_those_of_the_linear_layers_in_four_bits(base):
    """Counted by hand: q, k, v, o and three matrices of the MLP, in every layer; each pass makes them once."""
    acc, calibration, stack = parse("h100:1"), Knowledge.default().calibration, load().stacks["pytorch"]
    plain, small = work(), work(lora={"rank": 16, "base": base})
    m = plain.model
    weights = m.layers * (2 * m.d_model**2 + 2 * m.d_model * m.kv_heads * m.head_dim + 3 * m.d_model * m.d_ff)
    assert count(m).linear == weights
    for recompute, passes in (("none", 2), ("selective", 2), ("full", 3)):
        layout = Layouts.of([Layout(micro_batch=1, recompute=recompute)])
        a, b = (set_up(w, acc, calibration, stack) for w in (plain, small))
        saved = a.memory(layout).at(0)["weights"] - b.memory(layout).at(0)["weights"]
        assert saved == pytest.approx(weights * (2 - BASE_BYTES[base]), rel=1e-9)
        bandwidth = acc.chip.bandwidth * b.target.high.coefficients.memory
        longer = b.schedule(b.components(layout)), a.schedule(a.components(layout))
        parts = [float(getattr(longer[0], n)[0] - getattr(longer[1], n)[0]) for n in ("stream", "recompute")]
        once = weights * BASE_TRAFFIC[base] / bandwidth
        assert parts == pytest.approx([16 * 2 * once, 16 * (passes - 2) * once], abs=1e-9)
        assert float(longer[0].total[0]) > float(longer[1].total[0])


def test_a_chip_moves_its_part_of_the_base_and_shards_gather_four_bits():
    acc, calibration = parse("h100:8"), Knowledge.default().calibration
    a, b = (set_up(work(lora={"rank": 16, "base": base}), acc, calibration) for base in ("bf16", "nf4"))
    layout = Layouts.of([Layout(dp=8, micro_batch=1, zero=3, shard=8)])
    plain, small = a.components(layout), b.components(layout)
    assert 0 < float(small.shard_f[0]) < 0.6 * float(plain.shard_f[0])
    assert float(plain.dequantize[0]) == 0 < float(small.dequantize[0])
    same = {f.name for f in fields(plain)} - {"shard_f", "shard_b", "reduce", "dequantize"}
    assert all(np.array_equal(getattr(plain, name), getattr(small, name)) for name in same)


def test_a_refusal_for_memory_names_a_base_of_four_bits():
    acc, big = parse("h100:1"), work("llama-3.1-70b")
    stack = stack_of(big, acc.chip)
    found = remedies(big, acc, Knowledge.default().calibration, stack, acc.chip.usable_bytes)
    assert [remedy.flags for remedy in found][:1] == ["--lora-base nf4"]


@pytest.mark.parametrize(("on", "layout"), [("h100:1", {}), ("h100:2", {"dp": 2, "zero": 3, "shard": 2})])
def test_the_launch_loads_nf4_and_shards_it_in_a_type_of_its_own(on, layout):
    run = TrainingRun(work("mistral-7b-bnb-4bit"), parse(on), load().stacks["fsdp"], Layout(**layout), DAY)
    command = " ".join(launch(run).text.replace("\\\n", "").split())
    assert "--load_in_4bit --bnb_4bit_quant_type nf4 --use_bnb_nested_quant" in command
    assert ("--bnb_4bit_quant_storage bfloat16" in command) is bool(layout)


def test_a_job_file_keeps_the_base():
    workload = work(lora={"rank": 16, "base": "nf4"})
    contents = workload_contents(workload)
    assert contents is not None and contents["train"]["lora"] == {"rank": 16, "targets": "attention", "base": "nf4"}


def test_every_operation_table_counts_the_same_parameters():
    model = work().model
    assert build(model, 128).params == count(model)

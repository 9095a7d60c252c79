"""The precision a model is served in: its own by default, and what stands in for it where a chip lacks it."""

import json
from datetime import date

import pytest

from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.compare import Candidate, Terms, compare
from chipwise.compare.view import far_off, serving_head
from chipwise.errors import InputError
from chipwise.knowledge import Knowledge
from chipwise.present.text import document
from chipwise.serving.coefficients import labels
from chipwise.serving.formats import in_short, in_words, timed_as
from chipwise.workload import from_hf_config, load_serving, preset
from chipwise.workload.quantization import native_precision

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def served(model, **more):
    return load_serving(
        overrides={"model": model, "serve": {"input": 500, "output": 100, "arrival": {"rate": 2}, **more}}
    )


def on(text, work, **terms):
    knowledge = Knowledge(load_calibration(bench=False), today=date(2026, 9, 1))
    return compare(work, [Candidate.read(name) for name in text.split(",")], knowledge, Terms(**terms))


@pytest.mark.parametrize(
    "model, precision",
    [
        ("gpt-oss-120b", "fp4"),
        ("gpt-oss-20b", "fp4"),
        ("deepseek-v3", "fp8"),
        ("deepseek-r1", "fp8"),
        ("llama-3.1-8b", "bf16"),
    ],
)
def test_a_model_is_served_in_what_it_is_published_in(model, precision):
    assert served(model).serve.precision == precision
    assert served(model, precision="bf16").serve.precision == "bf16"
    assert preset("deepseek-v2").serve_precision == "bf16"


@pytest.mark.parametrize(
    "quantized, precision",
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8w"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8}}},
            },
            "int8",
        ),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4"),
        (None, "bf16"),
    ],
)  # fmt: skip
def test_a_quantized_config_names_its_precision(quantized, precision, tmp_path):
    config = {**LLAMA, "quantization_config": quantized}
    assert native_precision(config) == precision
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    assert from_hf_config(file).native_precision == precision


def test_a_method_that_is_not_known_is_not_taken_for_16_bits():
    with pytest.raises(InputError, match=r"quant_method: 'something new'"):
        native_precision({**LLAMA, "quantization_config": {"quant_method": "something new"}}, "config.json")


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4"])
def test_4_bit_floats_are_accepted_by_their_own_names(name):
    assert served("llama-3.1-8b", precision=name).serve.precision == "fp4"
    with pytest.raises(InputError, match=r"serve\.precision"):
        served("llama-3.1-8b", precision="mxfp5")


@pytest.mark.parametrize("chip", ["t4", "v100", "p100"])
def test_chips_without_bf16_say_fp16(chip):
    assert "bf16" not in load().chips[chip].peak
    comparison = on(f"{chip},l4", served("llama-3.2-1b"))
    rows = {row["accelerators"]["chip"]: row["precision"] for row in comparison.to_dict()["rows"]}
    assert rows == {chip: "fp16", "l4": "bf16"}
    assert f"bf16 (fp16 on {chip})" in serving_head(comparison)
    assert "precision" in str(comparison).splitlines()[1]


def test_a_precision_that_every_chip_has_needs_no_column():
    comparison = on("h100,l4", served("llama-3.2-1b"))
    assert ", bf16, " in serving_head(comparison)
    assert "precision" not in str(comparison).splitlines()[1]


def test_weights_alone_are_said():
    llama = preset("llama-3.1-8b")
    assert in_short(load().chips["a100-80gb"], llama, "fp8") == "fp8 weights, bf16 products"
    assert in_short(load().chips["h100"], llama, "fp8") == "fp8"


def test_rows_above_20_times_the_best_share_a_line():
    comparison = on("h200,l4", served("qwen3-32b", arrival={"rate": 20}, slo={"ttft": "1s", "tpot": "50ms"}))
    best, far = comparison.rows
    assert far.accelerators.chip.id == "l4" and far.ondemand.usd.value > 20 * best.ondemand.usd.value
    assert far_off(comparison) == [far]
    text = str(comparison)
    assert (
        f"1 more: --all (1 above 20x the best: {far.accelerators} at {far.ondemand})" in text and "\n2  l4" not in text
    )
    assert len(comparison.to_dict()["rows"]) == 2
    assert "\n2  l4" in document(comparison.all_blocks())


def test_no_replica_spans_pcie_hosts_unless_none_else_serves():
    within = on("l40s", served("qwen3-32b", slo={"tpot": "50ms"})).rows[0]
    assert within.split.chips <= load().chips["l40s"].fabric.host_chips
    across = on("t4", served("llama-3.1-70b")).rows[0]  # 141 GB do not fit a host of 8 x 16 GB
    assert across.split.pp > 1 and across.split.tp <= load().chips["t4"].fabric.host_chips


@pytest.mark.parametrize(("chip", "other"), [("h100", "fp8"), ("h200", "fp8"), ("a100-80gb", "int8"), ("v6e", "int8")])
def test_int8_is_timed_as_fp8_where_a_chip_has_both(chip, other):
    """Otherwise what serving in fp8 was found to cost would be taken from fp8 alone, and int8 win for want of rows."""
    where, model = load().chips[chip], preset("llama-3.1-8b")
    assert timed_as(where, model, "int8") == other
    assert timed_as(where, preset("bert-base"), "int8") == "int8"  # encoders are published in it
    as_int8, as_fp8 = (labels(where, None, model, precision) for precision in ("int8", "fp8"))
    assert (as_int8 == as_fp8) is (other == "fp8")
    assert ("int8 on" in in_words(where, model, "int8")) is (other == "fp8")

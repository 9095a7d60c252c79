"""Hugging Face configs against the parameters their models have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chipwise.errors import BrokenFile, InputError
from chipwise.workload.hf import _READERS, from_hf_config, model_from_config
from chipwise.workload.params import count
from chipwise.workload.presets import preset

REFERENCE = json.loads((Path(__file__).parent.parent / "integrity" / "reference_configs.json").read_text())["rows"]


def llama(kind: str, layers: int, d: int, heads: int, kv: int, ff: int, vocab: int, **more):
    return {
        "model_type": kind, "num_hidden_layers": layers, "hidden_size": d, "num_attention_heads": heads,
        "num_key_value_heads": kv, "intermediate_size": ff, "vocab_size": vocab, **more,
    }  # fmt: skip


DEEPSEEK_V3 = llama(
    "deepseek_v3", 61, 7168, 128, 128, 18432, 129280, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128,
    qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048,
    n_shared_experts=1, first_k_dense_replace=3, moe_layer_freq=1, num_nextn_predict_layers=1,
    topk_method="noaux_tc",
)  # fmt: skip
DEEPSEEK_LITE = llama(
    "deepseek_v2", 27, 2048, 16, 16, 10944, 102400, q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128,
    qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=64, num_experts_per_tok=6, moe_intermediate_size=1408,
    n_shared_experts=2, first_k_dense_replace=1, moe_layer_freq=1,
)  # fmt: skip
GPT_OSS = llama(
    "gpt_oss", 24, 2880, 64, 8, 2880, 201088, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
    attention_bias=True, sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 12,
)  # fmt: skip
QWEN_MOE = llama(
    "qwen3_moe", 48, 2048, 32, 4, 6144, 151936, head_dim=128, num_experts=128, num_experts_per_tok=8,
    moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[], sliding_window=None,
)  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 48,
        "num_attention_heads": 16, "num_key_value_heads": 8, "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152},
}  # fmt: skip
MPT = {
    "model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "max_seq_len": 2048,
    "vocab_size": 50432, "no_bias": True, "learned_pos_emb": True, "attn_config": {"alibi": True},
}  # fmt: skip
BERT = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
}  # fmt: skip
# (config, parameters): the counts stored with the published weights.
KNOWN = {
    "llama-3.1-8b": (llama("llama", 32, 4096, 32, 8, 14336, 128256), 8_030_261_248),
    "llama-3.2-1b": (llama("llama", 16, 2048, 32, 8, 8192, 128256, tie_word_embeddings=True), 1_235_814_400),
    "mistral-7b": (llama("mistral", 32, 4096, 32, 8, 14336, 32000, sliding_window=4096), 7_241_732_096),
    "mixtral-8x7b": (
        llama("mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2),
        46_702_792_704,
    ),
    "qwen2.5-7b": (llama("qwen2", 28, 3584, 28, 4, 18944, 152064, sliding_window=131072), 7_615_616_512),
    "qwen3-8b": (llama("qwen3", 36, 4096, 32, 8, 12288, 151936, head_dim=128), 8_190_735_360),
    "qwen3-30b-a3b": (QWEN_MOE, 30_532_122_624),
    "gemma-2b": (llama("gemma", 18, 2048, 8, 1, 16384, 256000, head_dim=256), 2_506_172_416),
    "gemma-2-9b": (
        llama("gemma2", 42, 3584, 16, 8, 14336, 256000, head_dim=256, sliding_window=4096),
        9_241_705_984,
    ),
    "gemma-3-12b": (GEMMA3, 11_766_034_176),
    "gpt2": (
        {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024},
        124_439_808,
    ),
    "gpt-neox-20b": (llama("gpt_neox", 44, 6144, 64, 64, 24576, 50432), 20_554_567_680),
    "opt-1.3b": (
        llama("opt", 24, 2048, 32, 32, 0, 50272, ffn_dim=8192, max_position_embeddings=2048),
        1_315_758_080,
    ),
    "mpt-7b-card": (MPT, 6_649_286_656),
    "phi-3-mini": (llama("phi3", 32, 3072, 32, 32, 8192, 32064, sliding_window=2047), 3_821_079_552),
    "deepseek-v2-lite": (DEEPSEEK_LITE, 15_706_484_224),
    "deepseek-v3": (DEEPSEEK_V3, 671_026_419_200),
    "gpt-oss-20b": (GPT_OSS, 20_914_757_184),
    "bert-base": (
        {**BERT, "model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2},
        110_106_428,
    ),
    "roberta-base": (
        {**BERT, "model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1},
        124_697_433,
    ),
    "vit-b-16": (
        {**BERT, "model_type": "vit", "image_size": 224, "patch_size": 16,
         "id2label": {str(i): str(i) for i in range(1000)}},
        86_567_656,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_config_gives_the_parameters_of_the_published_weights(name):
    config, parameters = KNOWN[name]
    assert count(model_from_config(config)).main == parameters


VL = {"vision_config": {"hidden_size": 1280}}
GLM = llama(
    "glm4_moe", 46, 4096, 96, 8, 10944, 151552, head_dim=128, attention_bias=True, n_routed_experts=128,
    num_experts_per_tok=8, moe_intermediate_size=1408, n_shared_experts=1, first_k_dense_replace=1,
    num_nextn_predict_layers=1, use_qk_norm=False,
)  # fmt: skip
FALCON_MAMBA = {
    "model_type": "falcon_mamba", "num_hidden_layers": 64, "hidden_size": 4096, "vocab_size": 65024, "state_size": 16,
    "intermediate_size": 8192, "time_step_rank": 256, "expand": 16, "tie_word_embeddings": False, "conv_kernel": 4,
}  # fmt: skip
TWINS = {  # configs whose model is a preset
    "qwen2.5-vl-7b": llama("qwen2_5_vl", 28, 3584, 28, 4, 18944, 152064, use_sliding_window=False, **VL),
    "qwen2.5-7b": {
        **VL,
        "model_type": "qwen2_vl",
        "text_config": llama("qwen2_vl_text", 28, 3584, 28, 4, 18944, 152064),
    },
    "qwen3-8b": llama("qwen3_vl_text", 36, 4096, 32, 8, 12288, 151936, head_dim=128),
    "glm-4.5-air": GLM,
}


@pytest.mark.parametrize("name", TWINS)
def test_a_config_is_the_model_that_is_known(name):
    model, known = model_from_config(TWINS[name]), preset(name)
    assert count(model).total == count(known).total and model.experts == known.experts


def test_falcon_mamba_has_the_parameters_of_its_weights():
    model = model_from_config(FALCON_MAMBA)
    assert count(model).total == pytest.approx(7_272_665_088, rel=1e-4)  # hf.co/tiiuae/falcon-mamba-7b, 2026-11-18
    assert model.attention_layers == 0 and model.ssm.inner == 8192


def test_a_field_of_another_architecture_is_refused_by_its_name():
    plain = llama("brand_new", 2, 512, 8, 8, 1024, 1000, hidden_act="silu")
    assert count(model_from_config(plain)).total == count(model_from_config({**plain, "model_type": "llama"})).total
    for key, value in (
        ("mamba_d_state", 16),
        ("hidden_act", "gelu"),
        ("layer_types_hybrid", ["a"]),
        ("v_head_dim", 32),
    ):
        with pytest.raises(InputError, match=key):
            model_from_config({**plain, key: value})
    with pytest.raises(InputError, match="or a decoder with num_hidden_layers"):
        model_from_config({key: value for key, value in plain.items() if key != "hidden_size"})


def test_every_supported_type_is_tested():
    tested = {config["model_type"] for config, _ in KNOWN.values()} | {"gemma3_text", "qwen2_vl_text", "falcon_mamba"}
    tested |= {config["model_type"] for config in TWINS.values()}
    assert tested | {row["config"]["model_type"] for row in REFERENCE} >= set(_READERS) - {"qwen2_5_vl_text"}


@pytest.mark.parametrize("name", ["mistral-7b", "gemma-2-9b", "gpt-oss-20b", "phi-3-mini", "qwen2.5-7b", "deepseek-v3"])
def test_attention_pattern_agrees_with_the_preset(name):
    model, known = model_from_config(KNOWN[name][0]), preset(name)
    assert (model.window, model.windowed_layers) == (known.window, known.windowed_layers)
    assert (model.head_dim, model.kv_heads) == (known.head_dim, known.kv_heads)


def test_gemma3_pattern_is_read_through_the_wrapper():
    model = model_from_config(GEMMA3)
    assert (model.window, model.global_every, model.windowed_layers) == (1024, 6, 40)


def test_file_and_folder_are_both_read(tmp_path):
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(KNOWN["llama-3.1-8b"][0]))
    assert from_hf_config(folder).name == from_hf_config(folder / "config.json").name == "my-llama"


def test_unknown_type_lists_the_supported_ones():
    with pytest.raises(InputError, match=r"model_type: 'zamba9' .*llama.*vit"):
        model_from_config({"model_type": "zamba9"})
    with pytest.raises(InputError, match="model_type: missing"):
        model_from_config({})


def test_all_missing_keys_are_named():
    with pytest.raises(InputError, match=r"hidden_size, num_attention_heads, intermediate_size, vocab_size: missing"):
        model_from_config({"model_type": "llama", "num_hidden_layers": 2})


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "32", 10**12, [3]])
def test_bad_dimensions_are_refused(bad):
    config = {**KNOWN["llama-3.1-8b"][0], "num_hidden_layers": bad}
    with pytest.raises(InputError, match="num_hidden_layers"):
        model_from_config(config)


def test_what_cannot_be_described_is_refused():
    with pytest.raises(InputError, match="word_embed_proj_dim"):
        model_from_config({**KNOWN["opt-1.3b"][0], "word_embed_proj_dim": 512})
    with pytest.raises(InputError, match="mlp_only_layers"):
        model_from_config({**QWEN_MOE, "mlp_only_layers": [3, 7]})
    with pytest.raises(InputError, match="mlp_only_layers: 2147483648 is not accepted"):
        model_from_config({**QWEN_MOE, "mlp_only_layers": 2147483648})
    with pytest.raises(InputError, match=r"model_type: \[\] is not accepted"):
        model_from_config({"model_type": [], "text_config": {"hidden_size": 8}})
    with pytest.raises(InputError, match=r"a divisor of heads\(32\)"):
        model_from_config({**KNOWN["llama-3.1-8b"][0], "num_key_value_heads": 7})


@pytest.mark.parametrize("text", ["{", "[1, 2]", "", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_broken_json_is_one_line(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(BrokenFile) as e:
        from_hf_config(path)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("name", "more", "context"),
    [
        ("llama-3.1-8b", {"max_position_embeddings": 131072}, 131072),
        ("llama-3.1-8b", {}, 0),
        ("gpt2", {}, 1024),
        ("opt-1.3b", {}, 2048),  # two more in its table
        ("roberta-base", {}, 512),  # two less than its table
        ("bert-base", {}, 512),
        ("mpt-7b-card", {}, 2048),
        ("gemma-3-12b", {}, 131072),
        ("vit-b-16", {}, 0),
    ],
)
def test_the_longest_sequence_is_read(name, more, context):
    assert model_from_config({**KNOWN[name][0], **more}).context == context


def test_a_longest_sequence_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="max_position_embeddings: 'long'"):
        model_from_config({**KNOWN["llama-3.1-8b"][0], "max_position_embeddings": "long"})


GROUP = {"weights": {"num_bits": 8, "type": "int"}, "input_activations": None}


# quantization_config of published checkpoints -> the precision they are stored in
@pytest.mark.parametrize(("quantized", "precision"), [
    ({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}, "fp8"),  # DeepSeek-V3
    ({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, "mxfp4"),  # gpt-oss
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
    ({"quant_method": "gptq", "bits": 8}, "int8w"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8w"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, "fp8"),
    ({"quant_method": "compressed-tensors", "config_groups": {"group_0": GROUP}}, "int8w"),
    ({"quant_method": "compressed-tensors", "config_groups": {"g": {**GROUP, "input_activations": {"num_bits": 8}}}},
     "int8"),
    ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}},
     "fp8"),
    ({"quant_method": "compressed-tensors",
      "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}, "int4"),  # Kimi-K2.5
])  # fmt: skip
def test_the_precision_of_a_checkpoint_is_read(quantized, precision):
    config = {**KNOWN["llama-3.1-8b"][0], "torch_dtype": "bfloat16", "quantization_config": quantized}
    assert model_from_config(config).native_precision == precision


def test_the_precision_of_plain_weights_is_their_dtype():
    assert model_from_config({**KNOWN["llama-3.1-8b"][0], "torch_dtype": "float16"}).native_precision == "fp16"
    assert model_from_config(KNOWN["llama-3.1-8b"][0]).native_precision == "bf16"
    assert model_from_config({**GEMMA3, "torch_dtype": "bfloat16"}).native_precision == "bf16"


@pytest.mark.parametrize("quantized", [
    {"quant_method": "magic"}, {}, "fp8", {"quant_method": "compressed-tensors"}, {"quant_method": "modelopt"},
])  # fmt: skip
def test_an_unknown_way_to_store_weights_is_refused(quantized):
    with pytest.raises(InputError, match="quantization_config"):
        model_from_config({**KNOWN["llama-3.1-8b"][0], "quantization_config": quantized or {"quant_method": ""}})


def test_multi_token_prediction_of_a_config_is_not_counted():
    assert count(model_from_config(DEEPSEEK_V3)).total == 671_026_419_200

"""The preset data against what the models' authors print."""

from __future__ import annotations

import re

import pytest

from chipwise.errors import Refusal, UnknownName
from chipwise.ops.table import build
from chipwise.units import parse_count
from chipwise.workload.build import FAMILIES
from chipwise.workload.flops import pass_flops
from chipwise.workload.model import SERVE_PRECISIONS
from chipwise.workload.names import folded
from chipwise.workload.params import count, kv_bytes, lora_params
from chipwise.workload.presets import _tables, _unmodelled, preset, preset_entry, preset_names, resolve

NAMES = preset_names()
PUBLISHED = [n for n in NAMES if preset_entry(n).published]
ROUNDED = [n for n in NAMES if preset_entry(n).rounded]
# Exact integers come from stored weights; rounded figures from papers.
EXACT = [n for n in PUBLISHED if preset(n).published_params % 1_000_000]
# Names that say no size, of models whose authors print no count beside the dimensions.
UNSIZED = {"glm-4.5-air", "glm-4.5v", "glm-5", "glm-5.2", "kimi-k2", "kimi-k2-0905", "kimi-k2-thinking", "kimi-k2.5",
           "minimax-m3", "mistral-large", "phi-1_5", "phi-3.5-mini", "phi-3.5-moe", "phi-4-mini", "mistral-7b-v0.2"}  # fmt: skip
# Active parameters per token as published: (billions, printed digits' half unit).
ACTIVE = {
    "mixtral-8x7b": (12.9, 0.05),  # arXiv:2401.04088, abstract says 13B; model card 12.9B
    "mixtral-8x22b": (39.0, 0.5),  # mistral.ai/news/mixtral-8x22b
    "dbrx": (36.0, 0.5),  # databricks.com/blog/introducing-dbrx
    "deepseek-v2": (21.0, 0.5),  # arXiv:2405.04434
    "qwen3-30b-a3b": (3.3, 0.06),  # model card
    "qwen3-235b-a22b": (22.0, 0.5),  # model card
    "llama-4-scout": (17.0, 0.5),  # model card
    "llama-4-maverick": (17.0, 0.5),  # model card
    "deepseek-v3": (37.0, 0.6),  # arXiv:2412.19437
    "kimi-k2": (32.0, 0.9),  # model card
    "jamba-v0.1": (12.0, 0.5),  # arXiv:2403.19887
    "nemotron-3-nano-30b-a3b": (3.5, 0.1),  # NVIDIA-NeMo/Megatron-Bridge, docs/models/nemotron
    "qwen3.5-397b-a17b": (17.0, 0.5),  # its name
}


def test_there_are_enough_presets_of_every_family():
    assert len(NAMES) >= 200
    assert {preset(n).family for n in NAMES} == set(FAMILIES)
    assert {preset(n).kind for n in NAMES} == {*FAMILIES, "ssm", "ssm-hybrid"}
    assert len(PUBLISHED) >= 110


@pytest.mark.parametrize("name", PUBLISHED)
def test_count_is_within_half_a_percent_of_the_published_one(name):
    entry = preset_entry(name)
    ours = count(entry.model).main + entry.outside
    published = entry.model.published_params
    print(f"{name}: ours {ours:,}, published {published:,.0f}")
    assert abs(ours / published - 1) <= 0.005


@pytest.mark.parametrize("name", ROUNDED)
def test_count_rounds_to_what_the_authors_print(name):
    entry = preset_entry(name)
    printed = parse_count(entry.rounded)
    digits = re.sub(r"[^0-9.]", "", entry.rounded)  # zeros before the point are no digits that were counted
    unit = 10 ** (len(digits) - len(digits.rstrip("0"))) if "." not in digits else 10.0 ** -len(digits.split(".")[1])
    half = unit * {"B": 1e9, "M": 1e6}[entry.rounded[-1]] / 2
    assert abs(count(entry.model).main + entry.outside - printed) <= max(half, 0.005 * printed)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in (*PUBLISHED, *ROUNDED)])
def test_count_agrees_with_the_size_in_the_name(name):
    sizes = re.findall(r"(?:^|-)a?(\d+(?:\.\d+)?)([bm])(?=-|$)", name)
    if not sizes:
        assert name in UNSIZED
        return
    size, unit = sizes[0]
    named = float(size) * {"b": 1e9, "m": 1e6}[unit] * (2 if name.startswith("wan2.2") else 1)
    p = count(preset(name))
    assert any(0.75 <= size / named <= 1.3 for size in (p.total, p.total - p.embedding - p.head))


@pytest.mark.parametrize("name", EXACT)
def test_count_is_exact_where_the_stored_weights_were_counted(name):
    entry = preset_entry(name)
    assert count(entry.model).main + entry.outside == int(entry.model.published_params)


@pytest.mark.parametrize("name", sorted(ACTIVE))
def test_active_parameters_agree_with_the_published_ones(name):
    billions, half = ACTIVE[name]
    assert abs(count(preset(name)).active / 1e9 - billions) <= half


def test_gpt_oss_active_parameters_agree_once_the_embedding_is_left_out():
    # arXiv:2508.10925 counts the output layer but not the embedding.
    for name, billions in (("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)):
        p = count(preset(name))
        assert abs((p.active - p.embedding) / 1e9 - billions) < 0.006


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_has_a_source_and_a_date(name):
    model = preset(name)
    assert model.source.startswith("https://")
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", model.source_date)


def test_aliases_are_unambiguous():
    owner: dict[str, str] = {}
    for name, table in _tables().items():
        for spelling in (name, *table.get("aliases", ())):
            assert owner.setdefault(folded(spelling), name) == name, spelling
            assert resolve(spelling).name == name
            assert resolve(spelling).exact
    assert not owner.keys() & _unmodelled().keys()


def test_what_is_left_out_is_named():
    for name in NAMES:
        entry = preset_entry(name)
        assert bool(entry.outside) == bool(entry.outside_what)


@pytest.mark.parametrize("spelling", ["Llama-3.1-8B", "llama3.1-8b", "meta-llama/Llama-3.1-8B", " LLAMA_3.1_8b "])
def test_spellings_meet(spelling):
    assert preset(spelling).name == "llama-3.1-8b"


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match=r"llama-3\.1-8b"):
        preset("llama-3.1-8")


def test_per_layer_figures_add_up():
    for name in NAMES:
        model = preset(name)
        p = count(model)
        if model.family not in ("cnn", "unet"):
            outside = p.embedding + p.positions + p.head + p.mtp + p.norms_outside
            outside += p.conditioning_outside + p.other_outside
            assert round(p.per_layer * p.layers) + outside == p.total
            assert round((p.per_layer_dense + p.per_layer_experts) * p.layers) == p.inside_layers
        assert sum(p.by_class().values()) == p.total
        assert 0 < p.active <= p.total


# max_position_embeddings of the config at the source; 0 where none is published.
@pytest.mark.parametrize(("name", "context"), [
    ("llama-2-70b", 4096), ("llama-3.1-70b", 131072), ("llama-4-scout", 0), ("mistral-7b", 32768),
    ("mixtral-8x22b", 65536), ("gemma-2-27b", 8192), ("gemma-3-27b", 131072), ("qwen2.5-72b", 131072),
    ("qwen3-235b-a22b", 40960), ("deepseek-v3", 163840), ("gpt-oss-120b", 131072), ("phi-3-mini", 4096),
    ("gpt2-xl", 1024), ("opt-30b", 2048), ("bert-large", 512), ("vit-b-16", 0), ("resnet-50", 0),
])  # fmt: skip
def test_the_longest_sequence_is_the_published_one(name, context):
    assert preset(name).context == context


def test_no_sequence_is_longer_than_the_positions_learned():
    assert all(preset(n).context <= preset(n).learned_positions for n in NAMES if preset(n).learned_positions)


# (what people type, the model, its precision): Hugging Face ids and usual names, 2024 to 2026
TYPED = [
    ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b", "bf16"),
    ("Llama-3.3-70B-Instruct", "llama-3.3-70b", "bf16"),
    ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3", "bf16"),
    ("google/gemma-3-27b-it", "gemma-3-27b", "bf16"),
    ("google/gemma-3-4b-it-qat-q4_0-gguf", "gemma-3-4b", "int4"),
    ("Qwen/Qwen3-32B-FP8", "qwen3-32b", "fp8"),
    ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b", "fp8"),
    ("Qwen3-Coder-480B", "qwen3-coder-480b-a35b", "bf16"),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b", "int4"),
    ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "qwen2.5-7b", "int8w"),
    ("Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "qwen2.5-vl-72b", "int4"),
    ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3", "fp8"),
    ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3", "fp8"),
    ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-v3", "nvfp4"),
    ("moonshotai/Kimi-K2-Instruct", "kimi-k2", "fp8"),
    ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2-0905", "fp8"),
    ("moonshotai/Kimi-K2-Thinking", "kimi-k2-thinking", "int4"),
    ("unsloth/Kimi-K2-Thinking-GGUF", "kimi-k2-thinking", "int4"),
    ("nvidia/Kimi-K2-Thinking-NVFP4", "kimi-k2-thinking", "nvfp4"),
    ("moonshotai/Kimi-K2.5", "kimi-k2.5", "int4"),
    ("zai-org/GLM-4.5-Air-FP8", "glm-4.5-air", "fp8"),
    ("openai/gpt-oss-120b", "gpt-oss-120b", "mxfp4"),
    ("TheBloke/Llama-2-7B-Chat-GGUF", "llama-2-7b", "int4"),
    ("llama-3.1-8b-instruct-Q8_0-GGUF", "llama-3.1-8b", "int8w"),
    ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "llama-3.1-8b", "int8"),
    ("unsloth/Llama-3.2-1B-Instruct-bnb-4bit", "llama-3.2-1b", "nf4"),
    ("microsoft/Phi-3-mini-128k-instruct", "phi-3-mini", "bf16"),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "nemotron-3-nano-30b-a3b", "nvfp4"),
    ("SDXL", "sdxl", "fp16"),
    ("black-forest-labs/FLUX.1-dev-FP8", "flux.1-dev", "fp8"),
    ("stabilityai/stable-diffusion-3.5-large", "sd3.5-large", "bf16"),
    ("Wan-AI/Wan2.2-T2V-A14B-Diffusers", "wan2.2-t2v-a14b", "bf16"),
    ("openai/whisper-large-v3", "whisper-large-v3", "fp16"),
    ("google/flan-t5-xxl", "t5-v1.1-xxl", "bf16"),
    ("BAAI/bge-m3", "bge-m3", "bf16"),
    ("meta-llama/Meta-Llama-3.1-70B-Instruct", "llama-3.1-70b", "bf16"),
    ("meta-llama/Llama-3.2-3B-Instruct", "llama-3.2-3b", "bf16"),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout", "bf16"),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick", "fp8"),
    ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b", "nf4"),
    ("unsloth/Llama-3.3-70B-Instruct-GGUF", "llama-3.3-70b", "int4"),
    ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b", "fp8"),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b", "fp8"),
    ("nvidia/Llama-3.1-405B-Instruct-FP8", "llama-3.1-405b", "fp8"),
    ("nvidia/Llama-3.3-70B-Instruct-NVFP4", "llama-3.3-70b", "nvfp4"),
    ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "llama-3.1-70b", "int4"),
    ("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "llama-3.1-8b", "int4"),
    ("lmstudio-community/Qwen2.5-7B-Instruct-GGUF", "qwen2.5-7b", "int4"),
    ("Llama-3.1-8B-Instruct-Q5_K_M", "llama-3.1-8b", "int4"),
    ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b", "bf16"),
    ("Qwen/Qwen2.5-32B-Instruct-AWQ", "qwen2.5-32b", "int4"),
    ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-coder-32b", "bf16"),
    ("Qwen/Qwen3-8B-AWQ", "qwen3-8b", "int4"),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b", "bf16"),
    ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "qwen3-30b-a3b", "int4"),
    ("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "qwen3-coder-480b-a35b", "fp8"),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", "qwen3-next-80b-a3b", "fp8"),
    ("Qwen/QwQ-32B", "qwq-32b", "bf16"),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl-7b", "bf16"),
    ("Qwen/Qwen-Image-2512", "qwen-image", "bf16"),
    ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3", "fp8"),
    ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2", "fp8"),
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill-llama-70b", "bf16"),
    ("zai-org/GLM-4.6-FP8", "glm-4.5", "fp8"),
    ("openai/gpt-oss-20b", "gpt-oss-20b", "mxfp4"),
    ("unsloth/gpt-oss-20b-GGUF", "gpt-oss-20b", "int4"),
    ("google/gemma-2-9b-it", "gemma-2-9b", "bf16"),
    ("google/gemma-3-12b-it-qat-q4_0-unquantized", "gemma-3-12b", "bf16"),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", "bf16"),
    ("TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ", "mixtral-8x7b", "int4"),
    ("mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-24b", "bf16"),
    ("mistralai/Mistral-Large-Instruct-2411", "mistral-large", "bf16"),
    ("microsoft/Phi-3.5-mini-instruct", "phi-3.5-mini", "bf16"),
    ("openai/whisper-large-v3-turbo", "whisper-large-v3-turbo", "fp16"),
    ("t5-xxl", "t5-v1.1-xxl", "bf16"),
    ("sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2", "bf16"),
    ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2-1.7b", "bf16"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1-distill-qwen-32b", "bf16"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "deepseek-r1-distill-qwen-14b", "bf16"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1-distill-qwen-7b", "bf16"),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-r1-distill-qwen-1.5b", "bf16"),
    ("RedHatAI/DeepSeek-R1-Distill-Qwen-32B-quantized.w8a8", "deepseek-r1-distill-qwen-32b", "int8"),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek-r1-0528-qwen3-8b", "bf16"),
    ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3", "fp8"),
    ("neuralmagic/DeepSeek-Coder-V2-Lite-Instruct-FP8", "deepseek-coder-v2-lite", "fp8"),
    ("nvidia/DeepSeek-R1-FP4", "deepseek-v3", "fp4"),
    ("amd/DeepSeek-R1-MXFP4-Preview", "deepseek-v3", "mxfp4"),
    ("unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "qwen2.5-7b", "nf4"),
    ("unsloth/gpt-oss-20b-unsloth-bnb-4bit", "gpt-oss-20b", "nf4"),
    ("mlx-community/Llama-3.2-3B-Instruct-4bit-DWQ", "llama-3.2-3b", "int4"),
    ("unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", "qwen3-coder-30b-a3b", "int4"),
    ("Qwen/Qwen2-VL-7B-Instruct", "qwen2-vl-7b", "bf16"),
    ("Qwen/Qwen2.5-VL-3B-Instruct-AWQ", "qwen2.5-vl-3b", "int4"),
    ("Qwen/Qwen2-7B-Instruct", "qwen2-7b", "bf16"),
    ("Qwen/Qwen1.5-7B-Chat", "qwen1.5-7b", "bf16"),
    ("google/gemma-3-270m-it", "gemma-3-270m", "bf16"),
    ("google/embeddinggemma-300m", "embeddinggemma-300m", "bf16"),
    ("mistralai/Devstral-Small-2507", "mistral-small-24b", "bf16"),
    ("mistralai/Magistral-Small-2509", "mistral-small-24b", "bf16"),
    ("mistralai/Ministral-8B-Instruct-2410", "ministral-8b", "bf16"),
    ("mistralai/Codestral-22B-v0.1", "codestral-22b", "bf16"),
    ("microsoft/Phi-4-reasoning-plus", "phi-4", "bf16"),
    ("microsoft/Phi-3-medium-128k-instruct", "phi-3-medium", "bf16"),
    ("TheBloke/vicuna-13B-v1.5-GPTQ", "llama-2-13b", "int4"),
    ("TheBloke/zephyr-7B-beta-AWQ", "mistral-7b", "int4"),
    ("openai/whisper-small.en", "whisper-small", "fp16"),
    ("Systran/faster-whisper-large-v3", "whisper-large-v3", "fp16"),
    ("distil-whisper/distil-large-v3", "distil-whisper-large-v3", "fp16"),
    ("facebook/opt-125m", "opt-125m", "bf16"),
    ("FacebookAI/roberta-large", "roberta-large", "bf16"),
    ("distilbert/distilbert-base-uncased", "distilbert-base", "bf16"),
    ("sentence-transformers/all-mpnet-base-v2", "all-mpnet-base-v2", "bf16"),
    ("BAAI/bge-small-en-v1.5", "bge-small", "bf16"),
    ("BAAI/bge-reranker-v2-m3", "bge-m3", "bf16"),
    ("intfloat/e5-mistral-7b-instruct", "e5-mistral-7b", "bf16"),
    ("nomic-ai/nomic-embed-text-v1.5", "nomic-embed-text-v1.5", "bf16"),
    ("stable-diffusion-v1-5/stable-diffusion-v1-5", "sd1.5", "fp16"),
    ("stabilityai/stable-diffusion-2-1", "sd2.1", "fp16"),
    ("black-forest-labs/FLUX.1-Fill-dev", "flux.1-dev", "bf16"),
    ("EleutherAI/gpt-j-6b", "gpt-j-6b", "bf16"),
    ("bigcode/starcoder2-15b", "starcoder2-15b", "bf16"),
    ("CohereLabs/c4ai-command-r-plus", "command-r-plus", "bf16"),
    ("01-ai/Yi-34B-Chat", "yi-34b", "bf16"),
    ("ibm-granite/granite-3.3-8b-instruct", "granite-3.3-8b", "bf16"),
    ("state-spaces/mamba-2.8b-hf", "mamba-2.8b", "bf16"),
    ("THUDM/glm-4-9b-chat", "glm-4-9b", "bf16"),
    ("unsloth/Qwen3.5-9B-GGUF", "qwen3.5-9b", "int4"),
    ("Qwen/Qwen3.5-0.8B", "qwen3.5-0.8b", "bf16"),
    ("zai-org/GLM-4.7-Flash", "glm-4.7-flash", "bf16"),
]


@pytest.mark.parametrize(("text", "name", "precision"), TYPED)
def test_names_that_people_type_are_found(text, name, precision):
    model = preset(text)
    assert (model.name, model.native_precision) == (name, precision)
    assert model.taken_from in ("", text)
    assert model.serve_precision in SERVE_PRECISIONS


def test_what_a_name_was_read_as_is_kept():
    assert preset("qwen3-32b").taken_from == ""
    assert preset("Qwen/Qwen3-32B").taken_from == ""
    assert preset(" Qwen/Qwen3-32B-FP8 ").taken_from == "Qwen/Qwen3-32B-FP8"


@pytest.mark.parametrize(("text", "near"), [
    ("sdxk", "sdxl"), ("qwen4-32b", "qwen3-32b"), ("whisper-large-v4", "whisper-large-v3"), ("lama-3.1-8b", "llama-3.1-8b"),
])  # fmt: skip
def test_a_wrong_name_suggests_sensible_ones(text, near):
    with pytest.raises(UnknownName) as caught:
        preset(text)
    assert near in str(caught.value)
    assert "dbrx" not in str(caught.value)


@pytest.mark.parametrize("text", ["OpenGVLab/InternVL3-8B", "facebook/bart-large-cnn", "tencent/HunyuanVideo", "a/b"])
def test_an_unknown_id_gets_one_line_that_leads_on(text):
    with pytest.raises(UnknownName) as caught:
        preset(text)
    said = str(caught.value)
    assert "\n" not in said
    assert "did you mean " in said or "such as " in said
    assert f"hf:{text}" in said


@pytest.mark.parametrize("text", ["16", "chat", "instruct-fp8", "it", "fp8", "v0.1", "foo/bar"])
def test_words_of_variants_alone_are_no_names(text):
    with pytest.raises(UnknownName):
        preset(text)


@pytest.mark.parametrize(
    "text",
    [
        "deepseek-ai/DeepSeek-V4-Pro",
        "google/gemma-4-31B-it",
        "dlrm",
        "google/gemma-3n-E4B-it",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    ],
)
def test_models_that_cannot_be_described_are_refused_with_a_reason(text):
    with pytest.raises(Refusal, match="is known, but can't be predicted: "):
        preset(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_has_operations_that_agree_with_its_parameters(name):
    model = preset(name)
    table = build(model, 512)
    assert table.flops_forward > 0
    if model.denoises:
        assert abs(pass_flops(model, model.image_tokens) / table.flops_forward - 1) < 0.002
    if model.kind in ("decoder", "ssm", "ssm-hybrid") and not model.mtp_layers:
        # two FLOPs for every weight that a token meets: all but the embedding (unless it is the output layer as well)
        p = table.params
        met = p.active - (0 if model.tied else p.embedding) - p.positions - p.norms
        assert 0.97 <= sum(m.rows * m.n * m.k * m.count for m in table.matmuls) / 512 / met <= 1.01


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_takes_adapters_or_is_a_cnn(name):
    model = preset(name)
    if model.family != "cnn":
        assert 0 < lora_params(model, 8) < count(model).total


def test_a_state_takes_the_bytes_of_its_elements():
    model = preset("nemotron-3-nano-30b-a3b")  # 23 layers with 64 x 64 x 128 states and 3 x 6,144 inputs, in fp32
    state = 23 * 4 * (64 * 64 * 128 + 3 * (4096 + 2 * 8 * 128))
    one_token = 6 * 2 * 2 * 128 * 2  # keys and values of the layers that attend
    assert abs(kv_bytes(model, 100_000, 2) - 100_000 * one_token - state) < 0.002 * state

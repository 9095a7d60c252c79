"""A Model from a Hugging Face config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chipwise.errors import NOTHING, InputError
from chipwise.io.files import read_json
from chipwise.workload.build import build_model
from chipwise.workload.hf_any import any_decoder, suffices
from chipwise.workload.hf_fields import LLAMA_KEYS, Config, Fields, context, llama, window_of
from chipwise.workload.hf_recurrent import (
    MAMBA2_KEYS,
    MAMBA_KEYS,
    QWEN_NEXT_KEYS,
    falcon_mamba,
    mamba,
    mamba2,
    qwen3_next,
)
from chipwise.workload.model import Model
from chipwise.workload.quantization import native_precision


def from_hf_config(path: str | Path) -> Model:
    """The Model a Hugging Face config.json describes; a folder that holds one will do."""
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    return model_from_config(read_json(file), name=_name(file), where=file.name)


def model_from_config(config: Mapping[str, Any], name: str = "", where: str = "config.json") -> Model:
    """The Model a parsed config describes.

    >>> model_from_config({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
    ...                    "vocab_size": 50257, "n_positions": 1024}).d_ff
    3072
    """
    kind, stored = config.get("model_type"), native_precision(config, where)
    nested = config.get("text_config")
    wrapped = not isinstance(kind, str) or kind not in _READERS or config.get("hidden_size") is None
    if isinstance(nested, Mapping) and (wrapped or kind == "gemma3"):
        # A vision-language wrapper: the text model is inside, the vision tower is not described.
        inner = dict(nested)
        inner.setdefault("model_type", kind)
        config, kind = inner, inner["model_type"]
    if not isinstance(kind, str) or (kind not in _READERS and not suffices(config)):
        shown = kind if kind is not None else NOTHING
        accepted = f"one of {', '.join(sorted(_READERS))}; or a decoder with {', '.join(LLAMA_KEYS)}"
        raise InputError(f"{where}: model_type", shown, accepted)
    required, reader = _READERS.get(kind, (LLAMA_KEYS, any_decoder))
    missing = [key for key in required if config.get(key) is None]
    if missing:
        raise InputError(f"{where}: {', '.join(missing)}", NOTHING, f"a value: a {kind} config needs it")
    read = Config(config, where)
    fields = reader(read)
    if fields["family"] in ("decoder", "encoder"):
        fields = {**context(read), **fields}
    fields["native_precision"] = stored
    declared = config.get("_name_or_path")
    short = declared.rstrip("/").rsplit("/", 1)[-1] if isinstance(declared, str) else ""
    return build_model(fields, name=name or short or kind, where=where)


def _name(file: Path) -> str:
    """The folder a config.json lies in names the model; any other file names it itself."""
    if file.stem != "config":
        return file.stem
    if file.parent.parent.name == "snapshots":  # of the Hugging Face cache: models--ORG--NAME/snapshots/REVISION
        return file.parent.parent.parent.name.rsplit("--", 1)[-1]
    return "" if file.parent.name in ("", ".", "..") else file.parent.name


def _mistral(c: Config) -> Fields:
    return {**llama(c), **window_of(c, 0)}


def _mixtral(c: Config) -> Fields:
    experts = {
        "count": c.number("num_local_experts"),
        "per_token": c.number("num_experts_per_tok"),
        "d_ff": c.number("intermediate_size"),
    }
    return {**_mistral(c), "experts": experts}


def _qwen2(c: Config) -> Fields:
    sliding = window_of(c, 0) if c.flag("use_sliding_window", False) else {}
    return {**llama(c), "qkv_bias": True, **sliding}


def _qwen3(c: Config) -> Fields:
    sliding = window_of(c, 0) if c.flag("use_sliding_window", False) else {}
    return {"head_dim": 128, **llama(c), "qk_norm": True, **sliding}


def _qwen3_moe(c: Config) -> Fields:
    dense = c.config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or dense != list(range(len(dense))):
        raise c.refuse("mlp_only_layers", "the leading layers only")
    experts = {
        "count": c.number("num_experts"),
        "per_token": c.number("num_experts_per_tok"),
        "d_ff": c.number("moe_intermediate_size"),
        "first_dense": len(dense),
        "every": c.number("decoder_sparse_step", 1),
    }
    return {**_qwen3(c), "experts": experts}


def _glm4_moe(c: Config) -> Fields:
    width = c.number("moe_intermediate_size")
    experts = {
        "count": c.number("n_routed_experts"),
        "per_token": c.number("num_experts_per_tok"),
        "d_ff": width,
        "shared_d_ff": width * c.number("n_shared_experts", 0, least=0),
        "first_dense": c.number("first_k_dense_replace", 0, least=0),
        "router_bias": True,
    }
    fields = llama(c)
    biased = fields.pop("qkv_bias", False)  # of queries, keys and values alone
    fields.pop("out_bias", None)
    return {**fields, "qkv_bias": biased, "qk_norm": c.flag("use_qk_norm", False), "experts": experts}


def _gemma(c: Config) -> Fields:
    return {"head_dim": 256, **llama(c), "tied": c.flag("tie_word_embeddings", True)}


def _gemma2(c: Config) -> Fields:
    return {**_gemma(c), "norms_per_layer": 4, **window_of(c, 2)}


def _gemma3(c: Config) -> Fields:
    # Published configs leave out what equals the class defaults of transformers' Gemma3TextConfig.
    usual = {"num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208}
    full = Config({**usual, **{k: v for k, v in c.config.items() if v is not None}}, c.where)
    length = {"context": full.number("max_position_embeddings", 131072)}
    return {**_gemma(full), "norms_per_layer": 4, "qk_norm": True, **length, **window_of(full, 6)}


def _gpt2(c: Config) -> Fields:
    d = c.number("n_embd")
    return {
        "family": "decoder", "layers": c.number("n_layer"), "d_model": d, "heads": c.number("n_head"),
        "d_ff": c.number("n_inner", 4 * d), "vocab": c.number("vocab_size"), "gated": False, "bias": True,
        "tied": c.flag("tie_word_embeddings", True), "norm_params": 2,
        "learned_positions": c.number("n_positions"),
    }  # fmt: skip


def _gpt_neox(c: Config) -> Fields:
    if not c.flag("attention_bias", True):
        raise c.refuse("attention_bias", "true")
    return {
        "family": "decoder", "layers": c.number("num_hidden_layers"), "d_model": c.number("hidden_size"),
        "heads": c.number("num_attention_heads"), "d_ff": c.number("intermediate_size"),
        "vocab": c.number("vocab_size"), "gated": False, "bias": True, "norm_params": 2,
        "tied": c.flag("tie_word_embeddings", False),
        "parallel_block": c.flag("use_parallel_residual", True),
    }  # fmt: skip


def _opt(c: Config) -> Fields:
    d = c.number("hidden_size")
    if c.number("word_embed_proj_dim", d) != d:
        raise c.refuse("word_embed_proj_dim", f"hidden_size({d}): no projection around the embedding")
    return {
        "family": "decoder", "layers": c.number("num_hidden_layers"), "d_model": d,
        "heads": c.number("num_attention_heads"), "d_ff": c.number("ffn_dim"), "gated": False,
        "vocab": c.number("vocab_size"), "bias": c.flag("enable_bias", True), "norm_params": 2,
        "tied": c.flag("tie_word_embeddings", True),
        "learned_positions": c.number("max_position_embeddings") + 2,  # OPT's table starts at 2
    }  # fmt: skip


def _mpt(c: Config) -> Fields:
    d, attention = c.number("d_model"), c.config.get("attn_config") or {}
    if not isinstance(attention, Mapping):
        raise c.refuse("attn_config", "a mapping")
    bias = not c.flag("no_bias", True)
    learned = c.flag("learned_pos_emb", True) and not (attention.get("alibi") or attention.get("rope"))
    heads = c.number("n_heads")
    return {
        "family": "decoder", "layers": c.number("n_layers"), "d_model": d, "heads": heads,
        "kv_heads": Config(attention, c.where).number("kv_n_heads", heads),
        "d_ff": c.number("expansion_ratio", 4) * d, "vocab": c.number("vocab_size"), "gated": False,
        "tied": c.flag("tie_word_embeddings", True), "bias": bias, "norm_params": 2 if bias else 1,
        "learned_positions": c.number("max_seq_len") if learned else 0,
    }  # fmt: skip


def _phi3(c: Config) -> Fields:
    return {**llama(c), **window_of(c, 0)}


def _deepseek(c: Config) -> Fields:
    fields = llama(c)
    fields.pop("head_dim", None)
    fields["kv_heads"] = fields["heads"]
    fields["latent"] = {
        "q_rank": c.number("q_lora_rank", 0, least=0),
        "kv_rank": c.number("kv_lora_rank"),
        "nope_dim": c.number("qk_nope_head_dim"),
        "rope_dim": c.number("qk_rope_head_dim"),
        "v_dim": c.number("v_head_dim"),
    }
    if c.config.get("n_routed_experts") is not None:
        width = c.number("moe_intermediate_size")
        fields["experts"] = {
            "count": c.number("n_routed_experts"),
            "per_token": c.number("num_experts_per_tok"),
            "d_ff": width,
            "shared_d_ff": width * c.number("n_shared_experts", 0, least=0),
            "first_dense": c.number("first_k_dense_replace", 0, least=0),
            "every": c.number("moe_layer_freq", 1),
            "router_bias": c.config.get("topk_method") == "noaux_tc",
        }
    c.number("num_nextn_predict_layers", 0, least=0)  # published counts leave these layers out; `mtp_layers` adds them
    return fields


def _gpt_oss(c: Config) -> Fields:
    fields = _mixtral(c)
    fields.pop("qkv_bias", None)
    fields.pop("out_bias", None)
    return {**fields, "bias": c.flag("attention_bias", True), "sinks": True, **window_of(c, 2)}


def _bert(c: Config, pooler: bool = True) -> Fields:
    return {
        "family": "encoder", "layers": c.number("num_hidden_layers"), "d_model": c.number("hidden_size"),
        "heads": c.number("num_attention_heads"), "d_ff": c.number("intermediate_size"),
        "vocab": c.number("vocab_size"), "learned_positions": c.number("max_position_embeddings"),
        "token_types": c.number("type_vocab_size", 2, least=0), "pooler": pooler,
    }  # fmt: skip


def _roberta(c: Config) -> Fields:
    length = c.number("max_position_embeddings") - 2  # its table starts at 2
    return {**_bert(c, pooler=False), "context": max(length, 1)}


def _vit(c: Config) -> Fields:
    labels = c.config.get("id2label")
    classes = len(labels) if isinstance(labels, Mapping) else c.number("num_labels", 0, least=0)
    return {
        "family": "vit", "layers": c.number("num_hidden_layers"), "d_model": c.number("hidden_size"),
        "heads": c.number("num_attention_heads"), "d_ff": c.number("intermediate_size"),
        "image": c.number("image_size", 224), "patch": c.number("patch_size", 16),
        "channels": c.number("num_channels", 3), "classes": classes,
    }  # fmt: skip


_ENCODER_KEYS = (*LLAMA_KEYS, "max_position_embeddings")
_LATENT_KEYS = (*LLAMA_KEYS, "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_READERS: dict[str, tuple[tuple[str, ...], Callable[[Config], Fields]]] = {
    "bert": (_ENCODER_KEYS, _bert),
    "deepseek_v2": (_LATENT_KEYS, _deepseek),
    "deepseek_v3": (_LATENT_KEYS, _deepseek),
    "falcon_mamba": (MAMBA_KEYS, falcon_mamba),
    "gemma": (LLAMA_KEYS, _gemma),
    "gemma2": (LLAMA_KEYS, _gemma2),
    "gemma3": (("num_hidden_layers", "hidden_size", "intermediate_size"), _gemma3),
    "gemma3_text": (("num_hidden_layers", "hidden_size", "intermediate_size"), _gemma3),
    "glm4_moe": ((*LLAMA_KEYS, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"), _glm4_moe),
    "gpt2": (("n_layer", "n_embd", "n_head", "vocab_size", "n_positions"), _gpt2),
    "gpt_neox": (LLAMA_KEYS, _gpt_neox),
    "gpt_oss": ((*LLAMA_KEYS, "num_local_experts", "num_experts_per_tok"), _gpt_oss),
    "llama": (LLAMA_KEYS, llama),
    "mamba": (MAMBA_KEYS, mamba),
    "mamba2": (MAMBA2_KEYS, mamba2),
    "mistral": (LLAMA_KEYS, _mistral),
    "mixtral": ((*LLAMA_KEYS, "num_local_experts", "num_experts_per_tok"), _mixtral),
    "mpt": (("n_layers", "d_model", "n_heads", "vocab_size", "max_seq_len"), _mpt),
    "opt": (("num_hidden_layers", "hidden_size", "num_attention_heads", "ffn_dim", "vocab_size",
             "max_position_embeddings"), _opt),
    "phi3": (LLAMA_KEYS, _phi3),
    "qwen2": (LLAMA_KEYS, _qwen2),
    "qwen2_5_vl": (LLAMA_KEYS, _qwen2),  # the text model; the vision tower is not described
    "qwen2_5_vl_text": (LLAMA_KEYS, _qwen2),
    "qwen2_vl": (LLAMA_KEYS, _qwen2),
    "qwen2_vl_text": (LLAMA_KEYS, _qwen2),
    "qwen3": (LLAMA_KEYS, _qwen3),
    "qwen3_moe": ((*LLAMA_KEYS, "num_experts", "num_experts_per_tok", "moe_intermediate_size"), _qwen3_moe),
    "qwen3_5_moe_text": (QWEN_NEXT_KEYS, qwen3_next),
    "qwen3_5_text": (QWEN_NEXT_KEYS, qwen3_next),
    "qwen3_next": (QWEN_NEXT_KEYS, qwen3_next),
    "qwen3_vl_text": (LLAMA_KEYS, _qwen3),
    "roberta": (_ENCODER_KEYS, _roberta),
    "vit": (("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"), _vit),
}  # fmt: skip

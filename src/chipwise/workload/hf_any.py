"""A config of an architecture that is not known by name: read by its fields where they say all that is counted.

What most decoders of the last years are: RMS norms, rotary positions, a gated MLP or experts, grouped or latent
attention. A config that says something else is refused by the field that says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.errors import NOTHING, InputError
from chipwise.workload.hf_fields import LLAMA_KEYS, Config, Fields, llama, window_of

# what these words stand in is a layer, or a part of one, that a plain decoder does not have
_OTHER = (
    "mamba", "ssm", "state_size", "conv_", "_conv", "linear_", "lightning", "lru", "rwkv", "retention", "recurrent",
    "xlstm", "cycles", "encoder_layers", "decoder_layers", "cross_attention_layers", "altup", "laurel", "per_layer",
    "block_types", "hybrid", "attn_type_list", "index_topk", "zero_expert", "kv_sharing", "num_kv_shared", "lora_rank",
    "layer_configs", "alibi", "num_hidden_groups", "embedding_size", "nope_", "engram", "hyper_conn", "audio_",
    "codebook", "intermediate_size_mlp", "gating",
)  # fmt: skip
_FINE = {  # keys with such a word that describe attention, or what is not counted
    "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "no_rope_layers", "no_rope_layer_interval",
}  # fmt: skip
_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts")
_WIDTHS = ("moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
_SHARED_COUNTS = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
_SHARED_WIDTHS = ("shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size")
_DENSE_FIRST = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", "n_dense_layers")
_GATED = ("silu", "swish", "swiglu", "silu_and_mul")


def suffices(config: Mapping[str, Any]) -> bool:
    """Whether a config has the fields that a plain decoder needs."""
    return all(config.get(key) is not None for key in LLAMA_KEYS)


def any_decoder(c: Config) -> Fields:
    """A decoder by its fields."""
    for key, value in c.config.items():
        if value and key not in _FINE and any(word in key for word in _OTHER):
            raise c.refuse(key, f"no such part: this architecture ({c.config.get('model_type')}) is not known by name")
    if c.config.get("is_encoder_decoder"):
        raise c.refuse("is_encoder_decoder", "false: this architecture is not known by name")
    act = c.config.get("hidden_act", c.config.get("hidden_activation"))
    if act not in _GATED:
        raise InputError(
            f"{c.where}: hidden_act",
            NOTHING if act is None else act,
            "silu, whose MLP is gated, in an architecture that is not known by name",
        )
    fields = llama(c)
    if c.has("use_qk_norm") or c.has("qk_norm") or c.has("qk_layernorm"):
        fields["qk_norm"] = any(c.flag(key, False) for key in ("use_qk_norm", "qk_norm", "qk_layernorm"))
    if c.has("kv_lora_rank"):
        fields = _latent(c, fields)
    elif c.has("v_head_dim") and c.config.get("v_head_dim") != fields.get("head_dim"):
        raise c.refuse("v_head_dim", "head_dim: this architecture is not known by name")
    experts = _experts(c)
    if experts:
        fields["experts"] = experts
    return {**fields, **window_of(c, 0)}


def _first(c: Config, keys: tuple[str, ...], default: int | None = None, least: int = 1) -> int:
    key = next((key for key in keys if c.has(key)), keys[0])
    return c.number(key, default, least)


def _latent(c: Config, fields: Fields) -> Fields:
    out = {key: value for key, value in fields.items() if key != "head_dim"}
    return {
        **out,
        "kv_heads": fields["heads"],
        "latent": {
            "q_rank": c.number("q_lora_rank", 0, least=0), "kv_rank": c.number("kv_lora_rank"),
            "nope_dim": c.number("qk_nope_head_dim"), "rope_dim": c.number("qk_rope_head_dim"),
            "v_dim": c.number("v_head_dim"),
        },
    }  # fmt: skip


def _experts(c: Config) -> Fields:
    """Its experts; a mixture whose dense layers are not said is refused."""
    count = _first(c, _COUNTS, 0, least=0)
    if count <= 1 or not c.flag("is_moe", True):
        return {}
    width = _first(c, _WIDTHS)
    shared = _first(c, _SHARED_WIDTHS, 0, least=0) or width * _first(c, _SHARED_COUNTS, 0, least=0)
    dense = c.config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or dense != list(range(len(dense))):
        raise c.refuse("mlp_only_layers", "the leading layers only")
    kinds = c.config.get("mlp_layer_types")
    leading = next((n for n, kind in enumerate(kinds) if kind != "dense"), 0) if isinstance(kinds, list) else 0
    if isinstance(kinds, list) and "dense" in kinds[leading:]:
        raise c.refuse("mlp_layer_types", "dense layers before all others")
    return {
        "count": count,
        "per_token": _first(c, _PER_TOKEN),
        "d_ff": width,
        "shared_d_ff": shared,
        "first_dense": len(dense) or leading or _first(c, _DENSE_FIRST, 0, least=0),
        "every": c.number("decoder_sparse_step", c.number("moe_layer_freq", 1)),
    }

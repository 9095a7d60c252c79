"""Configs of models with recurrent layers: Mamba, Falcon Mamba, Mamba-2, Qwen's gated delta nets."""

from __future__ import annotations

from math import ceil

from chipwise.workload.hf_fields import Config, Fields, llama

MAMBA_KEYS = ("num_hidden_layers", "hidden_size", "vocab_size", "state_size")
MAMBA2_KEYS = (*MAMBA_KEYS, "num_heads", "head_dim")
QWEN_NEXT_KEYS = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "linear_num_value_heads",
    "linear_num_key_heads", "linear_key_head_dim", "linear_value_head_dim",
)  # fmt: skip
_HEAD = 64  # a model without attention has no heads of its own; its width is cut as Mamba-2's is


def _alone(c: Config, tied: bool) -> Fields:
    """A model of recurrent layers alone: no attention and no MLP."""
    d = c.number("hidden_size")
    return {
        "family": "decoder", "layers": c.number("num_hidden_layers"), "d_model": d, "vocab": c.number("vocab_size"),
        "heads": max(d // _HEAD, 1), "head_dim": _HEAD if d >= _HEAD else d, "d_ff": 0, "mlp_layers": 0,
        "tied": c.flag("tie_word_embeddings", tied),
    }  # fmt: skip


def mamba(c: Config) -> Fields:
    """Mamba: one channel a head, a step size of low rank."""
    d, fields = c.number("hidden_size"), _alone(c, tied=True)
    if c.flag("use_bias", False):
        raise c.refuse("use_bias", "false")
    inner = c.number("intermediate_size", c.number("expand", 2) * d)
    rank = ceil(d / 16) if c.config.get("time_step_rank") in (None, "auto") else c.number("time_step_rank")
    fields["ssm"] = {
        "layers": fields["layers"], "heads": inner, "head_dim": 1, "state": c.number("state_size"), "kind": "mamba1",
        "dt_rank": rank, "conv": c.number("conv_kernel", 4),
    }  # fmt: skip
    return fields


def falcon_mamba(c: Config) -> Fields:
    """Falcon Mamba: Mamba whose norms on the step size and the state hold no weights."""
    return mamba(c)


def mamba2(c: Config) -> Fields:
    """Mamba-2: heads of several channels that share a decay."""
    fields = _alone(c, tied=False)
    if c.flag("use_bias", False):
        raise c.refuse("use_bias", "false")
    fields["ssm"] = {
        "layers": fields["layers"], "heads": c.number("num_heads"), "head_dim": c.number("head_dim"),
        "state": c.number("state_size"), "groups": c.number("n_groups", 1), "conv": c.number("conv_kernel", 4),
    }  # fmt: skip
    return fields


def qwen3_next(c: Config) -> Fields:
    """Qwen3-Next and Qwen3.5: gated delta nets, attention with a gate every few layers, experts or not."""
    layers, kinds = c.number("num_hidden_layers"), c.config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        recurrent = sum(kind == "linear_attention" for kind in kinds)
    else:
        every = c.number("full_attention_interval", 4)
        recurrent = layers - layers // every
    fields = llama(c, width=c.number("intermediate_size", c.number("moe_intermediate_size", 1)))
    fields.update(qk_norm=True, gated_attention=True, head_dim=c.number("head_dim", 256))
    fields["ssm"] = {
        "layers": recurrent, "heads": c.number("linear_num_value_heads"),
        "head_dim": c.number("linear_value_head_dim"), "state": c.number("linear_key_head_dim"),
        "groups": c.number("linear_num_key_heads"), "conv": c.number("linear_conv_kernel_dim", 4), "kind": "delta",
    }  # fmt: skip
    if c.has("num_experts") and c.config.get("num_experts"):
        fields["experts"] = {
            "count": c.number("num_experts"), "per_token": c.number("num_experts_per_tok"),
            "d_ff": c.number("moe_intermediate_size"), "shared_gate": True,
            "shared_d_ff": c.number("shared_expert_intermediate_size", 0, least=0),
            "every": c.number("decoder_sparse_step", 1),
        }  # fmt: skip
    return fields

"""Decoders of transformers, built with the dimensions of presets; see reference_models.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers

from chipwise.workload.model import Model


def sizes(m: Model, **more: Any) -> dict[str, Any]:
    """The keys that configs of Llama's shape share."""
    return {
        "num_hidden_layers": m.layers, "hidden_size": m.d_model, "num_attention_heads": m.heads,
        "num_key_value_heads": m.kv_heads, "head_dim": m.head_dim, "intermediate_size": m.d_ff, "vocab_size": m.vocab,
        "tie_word_embeddings": m.tied, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None, **more,
    }  # fmt: skip


def decoder(config: Any) -> Any:
    """A causal language model of a config."""
    return transformers.AutoModelForCausalLM.from_config(config)


def experts(m: Model) -> dict[str, Any]:
    """Keys of mixtures as most configs have them."""
    e = m.experts
    assert e is not None
    return {
        "num_experts": e.count, "num_local_experts": e.count, "n_routed_experts": e.count,
        "num_experts_per_tok": e.per_token, "moe_intermediate_size": e.d_ff, "decoder_sparse_step": e.every,
        "n_shared_experts": e.shared_d_ff // e.d_ff, "first_k_dense_replace": e.first_dense,
        "shared_expert_intermediate_size": e.shared_d_ff, "mlp_only_layers": [],
    }  # fmt: skip


def latent(m: Model) -> dict[str, Any]:
    """Keys of multi-head latent attention."""
    z = m.latent
    assert z is not None
    keys = {"q_lora_rank": z.q_rank or None, "kv_lora_rank": z.kv_rank, "qk_nope_head_dim": z.nope_dim,
            "qk_rope_head_dim": z.rope_dim, "v_head_dim": z.v_dim}  # fmt: skip
    index = {"index_n_heads": m.indexer.heads, "index_head_dim": m.indexer.dim} if m.indexer else {}
    return {**sizes(m), "head_dim": z.rope_dim, "num_key_value_heads": m.heads, **keys, **index, **experts(m)}


def llama(m: Model) -> Any:
    """The class of llama models with a preset's dimensions."""
    return decoder(transformers.LlamaConfig(**sizes(m)))


def of(name: str, **more: Any) -> Callable[[Model], Any]:
    """A decoder whose config has Llama's keys."""
    return lambda m: decoder(getattr(transformers, name)(**sizes(m, **more)))


def mixture(name: str, **more: Any) -> Callable[[Model], Any]:
    """A mixture of experts whose config has the usual keys."""
    return lambda m: decoder(getattr(transformers, name)(**{**sizes(m), **experts(m), **more}))


def with_latent(name: str) -> Callable[[Model], Any]:
    """A mixture with latent attention."""
    return lambda m: decoder(getattr(transformers, name)(**latent(m)))


def gpt2(m: Model) -> Any:
    """The class of gpt2 models with a preset's dimensions."""
    return decoder(
        transformers.GPT2Config(
            n_layer=m.layers, n_embd=m.d_model, n_head=m.heads, n_inner=m.d_ff, vocab_size=m.vocab,
            n_positions=m.learned_positions, tie_word_embeddings=m.tied,
        )
    )  # fmt: skip


def opt(m: Model) -> Any:
    """The class of opt models with a preset's dimensions."""
    return decoder(
        transformers.OPTConfig(
            **sizes(m, ffn_dim=m.d_ff, max_position_embeddings=m.learned_positions - 2, word_embed_proj_dim=m.d_model)
        )
    )


def bloom(m: Model) -> Any:
    """The class of bloom models with a preset's dimensions."""
    return decoder(
        transformers.BloomConfig(n_layer=m.layers, hidden_size=m.d_model, n_head=m.heads, vocab_size=m.vocab)
    )


def falcon(m: Model) -> Any:
    """The class of falcon models with a preset's dimensions."""
    new, keys = m.kv_heads > 1, sizes(m)
    del keys["head_dim"]  # a property here
    return decoder(
        transformers.FalconConfig(
            **keys, num_kv_heads=m.kv_heads, new_decoder_architecture=new, multi_query=not new, parallel_attn=True,
            bias=False, alibi=False, ffn_hidden_size=m.d_ff,
        )
    )  # fmt: skip


def dbrx(m: Model) -> Any:
    """The class of dbrx models with a preset's dimensions."""
    e = m.experts
    assert e is not None
    return decoder(
        transformers.DbrxConfig(
            d_model=m.d_model, n_heads=m.heads, n_layers=m.layers, vocab_size=m.vocab, max_seq_len=m.context,
            attn_config={"kv_n_heads": m.kv_heads, "rope_theta": 5e5},
            ffn_config={"hidden_size": m.d_model, "ffn_hidden_size": e.d_ff, "moe_num_experts": e.count,
                        "moe_top_k": e.per_token},
        )
    )  # fmt: skip


def llama4(m: Model) -> Any:
    """The class of llama4 models with a preset's dimensions."""
    e = m.experts
    assert e is not None
    config = transformers.Llama4TextConfig(
        **sizes(m, intermediate_size_mlp=m.d_ff, num_local_experts=e.count, interleave_moe_layer_step=e.every)
    )
    config.intermediate_size = e.d_ff
    return transformers.Llama4ForCausalLM(config)


def minimax_m3(m: Model) -> Any:
    """The class of minimax-m3 models with a preset's dimensions."""
    e = m.experts
    assert e is not None
    config = transformers.MiniMaxM3VLTextConfig(
        **{**sizes(m), **experts(m), "intermediate_size": e.d_ff, "dense_intermediate_size": m.d_ff,
           "shared_intermediate_size": e.shared_d_ff,
           "mlp_layer_types": ["dense"] * e.first_dense + ["sparse"] * m.moe_layers}
    )  # fmt: skip
    return transformers.MiniMaxM3VLForCausalLM(config)


def jamba(m: Model) -> Any:
    """The class of jamba models with a preset's dimensions."""
    assert m.ssm is not None and m.experts is not None
    return decoder(
        transformers.JambaConfig(
            **sizes(m, num_experts=m.experts.count, mamba_d_state=m.ssm.state, mamba_dt_rank=m.ssm.dt_rank,
                     attn_layer_period=m.layers // m.attention_layers, expert_layer_period=m.experts.every)
        )
    )  # fmt: skip


def bamba(m: Model) -> Any:
    """The class of bamba models with a preset's dimensions."""
    s = m.ssm
    assert s is not None
    return decoder(
        transformers.BambaConfig(
            **sizes(m, attn_layer_indices=list(range(m.attention_layers)), mamba_n_heads=s.heads,
                     mamba_d_head=s.head_dim, mamba_d_state=s.state, mamba_n_groups=s.groups)
        )
    )  # fmt: skip


def mamba(m: Model) -> Any:
    """The class of mamba models with a preset's dimensions."""
    s = m.ssm
    assert s is not None
    return decoder(
        transformers.MambaConfig(
            hidden_size=m.d_model, num_hidden_layers=m.layers, vocab_size=m.vocab, state_size=s.state,
            intermediate_size=s.inner, time_step_rank=s.dt_rank, tie_word_embeddings=m.tied,
        )
    )  # fmt: skip


def gpt_j(m: Model) -> Any:
    """The class of gpt-j models with a preset's dimensions."""
    return decoder(
        transformers.GPTJConfig(n_layer=m.layers, n_embd=m.d_model, n_head=m.heads, vocab_size=m.vocab,
                                tie_word_embeddings=m.tied)
    )  # fmt: skip


def mamba2(m: Model) -> Any:
    """The class of mamba2 models with a preset's dimensions."""
    s = m.ssm
    assert s is not None
    return decoder(
        transformers.Mamba2Config(
            hidden_size=m.d_model, num_hidden_layers=m.layers, vocab_size=m.vocab, num_heads=s.heads,
            head_dim=s.head_dim, state_size=s.state, n_groups=s.groups, tie_word_embeddings=m.tied, use_cache=False,
        )
    )  # fmt: skip


def nemotron_h(m: Model) -> Any:
    """The class of nemotron-h models with a preset's dimensions."""
    s = m.ssm
    assert s is not None
    mlps = m.layers if m.mlp_layers is None else m.mlp_layers
    kind = "moe" if m.experts else "mlp"
    pattern = ["mamba"] * s.layers + ["attention"] * m.attention_layers + [kind] * mlps
    mixed: dict[str, Any] = {}
    if m.experts:
        mixed = {**experts(m), "moe_shared_expert_intermediate_size": m.experts.shared_d_ff, "n_shared_experts": 1}
        mixed["moe_latent_size"] = m.experts.latent_dim or None
    return decoder(
        transformers.NemotronHConfig(
            **sizes(m, layers_block_type=pattern, mamba_num_heads=s.heads, mamba_head_dim=s.head_dim,
                     ssm_state_size=s.state, n_groups=s.groups, **mixed)
        )
    )  # fmt: skip


def linear(name: str, cls: str) -> Callable[[Model], Any]:
    """Qwen with gated delta nets."""

    def made(m: Model) -> Any:
        s = m.ssm
        assert s is not None
        kinds = ["linear_attention"] * s.layers + ["full_attention"] * m.attention_layers
        keys = sizes(
            m, layer_types=kinds, linear_num_value_heads=s.heads, linear_num_key_heads=s.groups,
            linear_value_head_dim=s.head_dim, linear_key_head_dim=s.state,
        )  # fmt: skip
        config = getattr(transformers, name)(**{**keys, **(experts(m) if m.experts else {})})
        return getattr(transformers, cls)(config)

    return made

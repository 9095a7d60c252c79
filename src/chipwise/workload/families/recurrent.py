"""State-space layers: Mamba (Gu & Dao 2023), Mamba-2 (Dao & Gu 2024) and gated delta nets (Yang et al. 2024)."""

from __future__ import annotations

from math import ceil

from chipwise.workload.model import Model, StateSpace

# The state is kept in fp32 where keys and values have 16 bits: `mamba_ssm_dtype` of the configs of Qwen3-Next and
# Nemotron-3 on Hugging Face, 2025-12.
STATE_BYTES, KV_BYTES = 4, 2


def layer_params(d: int, s: StateSpace) -> int:
    """Parameters of one recurrent layer of a model of width `d`, the norm before it not included.

    >>> layer_params(2560, StateSpace(64, 80, 64, 128))  # mamba2-2.7b: 64 of them and 50,288 x 2,560 make 2.7B
    40214000
    """
    inner, shared = s.inner, s.groups * s.state
    if s.kind == "mamba1":  # projections in and out, convolution, then step size, B and C with their norms, A and D
        low = inner * (s.dt_rank + 2 * s.state) + (s.dt_rank + 1) * inner + s.dt_rank + 2 * s.state
        return 3 * d * inner + inner * (s.conv + 1) + low + inner * (s.state + 1)
    if s.kind == "delta":  # queries, keys, values, gate; the rates of forgetting and writing; a norm for each head
        return d * (2 * shared + 3 * inner + 2 * s.heads) + s.conv * (2 * shared + inner) + 2 * s.heads + s.head_dim
    mixed = inner + 2 * shared
    return d * (3 * inner + 2 * shared + s.heads) + mixed * (s.conv + 1) + 3 * s.heads + inner


def state_elements(s: StateSpace) -> int:
    """Elements that one layer keeps of a sequence: the state, and the last inputs of the convolution."""
    mixed = s.inner if s.kind == "mamba1" else s.inner + 2 * s.groups * s.state
    return s.inner * s.state + (s.conv - 1) * mixed


def state_bytes(s: StateSpace) -> int:
    """Bytes that one layer keeps of a sequence, however long.

    >>> state_bytes(StateSpace(64, 80, 64, 128))  # mamba2-2.7b: 2.7 MB a layer
    2685952
    """
    return state_elements(s) * STATE_BYTES


def state_tokens(s: StateSpace, kv_width: int) -> int:
    """Tokens whose keys and values, `kv_width` elements each, take as many bytes as the state of one layer."""
    return ceil(state_bytes(s) / (kv_width * KV_BYTES))


def lora_pairs(m: Model) -> list[tuple[int, int, int]]:
    """(inputs, outputs, how many) of the linear layers that get adapters beside those of attention."""
    s = m.ssm
    if s is None:
        return []
    wide = 2 * s.inner + (2 * s.groups * s.state if s.kind != "mamba1" else 0)
    return [(m.d_model, wide, s.layers), (s.inner, m.d_model, s.layers)]

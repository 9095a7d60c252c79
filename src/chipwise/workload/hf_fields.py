"""What the configs of Hugging Face models share: typed reads, and the keys that most decoders have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.errors import NOTHING, InputError

_ABSURD = 10**9  # no dimension of any model comes near


class Config:
    """Typed reads from a config; what is wrong is named."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.config, self.where = config, where

    def number(self, key: str, default: int | None = None, least: int = 1) -> int:
        """A whole number."""
        value = self.config.get(key)
        if value is None:
            if default is None:
                raise InputError(f"{self.where}: {key}", NOTHING, "a value")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _ABSURD:
            raise InputError(f"{self.where}: {key}", value, f"a whole number from {least} to {_ABSURD:,}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.config.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"{self.where}: {key}", value, "true or false")
        return value

    def has(self, key: str) -> bool:
        """Whether the config says something of a key."""
        return self.config.get(key) is not None

    def refuse(self, key: str, accepted: str) -> InputError:
        """The error of a key whose value can't be read."""
        return InputError(f"{self.where}: {key}", self.config.get(key), accepted)


Fields = dict[str, Any]
LLAMA_KEYS = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size",
)  # fmt: skip


def context(c: Config) -> Fields:
    """The longest sequence, where the config says it: each kind of model has one of these keys."""
    for key in ("max_position_embeddings", "n_positions", "max_seq_len"):
        if c.config.get(key) is not None:
            return {"context": c.number(key)}
    return {}


def llama(c: Config, width: int | None = None) -> Fields:
    """What decoders after Llama have; `width` is that of the MLP where the config calls it otherwise."""
    heads = c.number("num_attention_heads")
    fields: Fields = {
        "family": "decoder",
        "layers": c.number("num_hidden_layers"),
        "d_model": c.number("hidden_size"),
        "heads": heads,
        "kv_heads": c.number("num_key_value_heads", heads),
        "d_ff": c.number("intermediate_size", width),
        "vocab": c.number("vocab_size"),
        "tied": c.flag("tie_word_embeddings", False),
    }
    if c.config.get("head_dim") is not None:
        fields["head_dim"] = c.number("head_dim")
    attention_bias, mlp_bias = c.flag("attention_bias", False), c.flag("mlp_bias", False)
    if attention_bias and mlp_bias:
        fields["bias"] = True
    elif attention_bias:
        fields["qkv_bias"] = fields["out_bias"] = True
    elif mlp_bias:
        raise c.refuse("mlp_bias", "false, or attention_bias true as well")
    return fields


def window_of(c: Config, default_every: int) -> Fields:
    """The sliding window, and which layers attend in full, where the config says so."""
    if c.config.get("sliding_window") is None:
        return {}
    window, kinds = c.number("sliding_window"), c.config.get("layer_types")
    every = default_every
    if isinstance(kinds, list) and kinds:
        full = [i for i, kind in enumerate(kinds) if kind == "full_attention"]
        if len(full) == len(kinds):
            return {}
        every = len(kinds) // len(full) if full else 0
    else:
        for key in ("sliding_window_pattern", "_sliding_window_pattern"):
            every = c.number(key, every)
    return {"window": window, "global_every": every}

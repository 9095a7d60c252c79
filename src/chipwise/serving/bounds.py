"""What no replica can beat: weights and caches read once at the memory's bandwidth, FLOPs at the matrix peak.

Coefficients and corrections come from published rows and may overshoot where there are none; a step, an answer's first
token and so every rate are held to these bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip
from chipwise.ops.operations import Matmul
from chipwise.ops.table import token_table
from chipwise.predict.model.precision import peak_of
from chipwise.serving.formats import Format, Formats, formats
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.split import Split
from chipwise.workload.model import Model

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepBound:
    """The least seconds of an iteration on the chips of one replica."""

    weights_s: float  # to read the weights that every token needs
    token_s: float  # of the products, for each token
    context_s: float  # to read the cache, for each earlier token of a decoding sequence
    pair_s: float  # of attention's products, for each pair of a new token and an earlier one

    def tokens(self, tokens: Array) -> Array:
        """By tokens of an iteration."""
        return np.asarray(np.maximum(self.weights_s, self.token_s * tokens))

    def prompt(self, tokens: float, causal: bool = True) -> float:
        """One prompt of so many tokens."""
        pairs = tokens * tokens * (0.5 if causal else 1.0)
        return float(self.tokens(np.asarray(tokens))) + self.pair_s * pairs

    def decode(self, sequences: float, context: float) -> float:
        """One token for each of some sequences with so much behind them."""
        return float(self.tokens(np.asarray(sequences))) + self.context_s * sequences * context


def step_bound(spec: ReplicaSpec, prompt: bool = False) -> StepBound:
    """The bounds of a replica; of an encoder-decoder those of answers, or of prompts.

    Small models whose weights may stay on the chip are bound by FLOPs alone.

    A pipeline's stages pass batches on, so that an iteration reads all layers one after the other.
    """
    model, chip, split = spec.model, spec.chip, spec.split
    fmt = formats(chip, model, spec.precision, spec.kv_precision)
    read, work = 0.0, 0.0
    for op in token_table(model, prompt).matmuls:
        f = fmt.experts if op.groups > 1 else fmt.dense if op.quantized and op.place != "head" else fmt.base
        weights, flops = _product(op, split)
        read += weights * f.weight_bytes
        if op.place == "layer":  # the output layer scores fewer tokens than an iteration has
            work += flops / (_peak(chip, f) * split.pp * split.dp)
    writes = model.writes
    return StepBound(
        read / chip.bandwidth if writes and not (prompt and model.encoder) else 0.0,
        work,
        _cache(model, split, fmt) / chip.bandwidth if writes else 0.0,
        _pair_flops(model) / split.chips / _peak(chip, fmt.base) if writes else 0.0,
    )


def _peak(chip: Chip, f: Format) -> float:
    peak = peak_of(chip, f.arithmetic)
    assert peak is not None  # `formats` names what the chip has
    return peak


def _product(op: Matmul, split: Split) -> tuple[float, float]:
    """Weights that one chip must read, and FLOPs that it does for a token of its group."""
    size = op.n * op.k * op.count
    if op.groups > 1:  # all tokens may want the same experts, spread over the chips
        return size * op.rows / (split.tp * split.dp), 2 * size * op.rows / split.tp
    ways = split.tp if op.split in ("n", "k") else 1
    return size / ways, 2 * size * op.rows / ways


def _cache(model: Model, split: Split, fmt: Formats) -> float:
    """Bytes of cache that each chip reads for a token of context, in the layers that attend in full."""
    full = (model.written_layers - model.windowed_layers) / split.pp / split.dp
    if model.latent is not None:
        return full * (model.latent.kv_rank + model.latent.rope_dim) * fmt.kv_bytes
    return full * 2 * max(model.kv_heads / split.tp, 1.0) * model.head_dim * fmt.kv_bytes


def _pair_flops(model: Model) -> float:
    """FLOPs of a pair in all layers that attend in full."""
    z = model.latent
    dims = float(z.nope_dim + z.rope_dim + z.v_dim) if z is not None else 2.0 * model.head_dim
    return 2 * model.heads * dims * (model.read_layers - model.windowed_layers)

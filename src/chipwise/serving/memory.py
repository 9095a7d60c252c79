"""What a replica keeps in memory, exactly: weights by precision, keys and values by token, room for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from chipwise.catalog import Chip
from chipwise.errors import DoesNotFit
from chipwise.serving.formats import Formats, formats
from chipwise.serving.split import Split
from chipwise.units import format_bytes
from chipwise.workload.model import Model
from chipwise.workload.params import count

# vLLM takes 0.9 of a chip's memory for everything (--gpu-memory-utilization), TensorRT-LLM 0.9 of what is free beside
# weights and activations (free_gpu_memory_fraction); their documentation, 2026-11
SHARE = 0.90
WORKSPACE = 2.0e9  # CUDA context, graphs and buffers of a chip: vLLM's own profile says 1 to 3 GB. Assumed.


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes on the fullest chip of a replica, and the tokens of cache that the replica holds."""

    weights: float
    activations: float
    per_token: float  # bytes of cache for a token of context, on one chip
    per_sequence: float  # of layers with a window, that every sequence fills
    tokens: float  # of cache the whole replica holds

    def blocks(self, block: int) -> int:
        """Blocks of the paged cache."""
        return int(self.tokens // block)

    def sequences(self, tokens: float) -> float:
        """Sequences of so many tokens that fit at once."""
        return self.tokens * self.per_token / (tokens * self.per_token + self.per_sequence)


def weight_bytes(model: Model, fmt: Formats, split: Split) -> float:
    """Bytes of weights on one chip: layers split over stages and tensors, embeddings and heads over tensors."""
    p = count(model)
    mtp = p.mtp
    inside = p.inside_layers - p.experts
    low = p.attention + p.mlp + p.shared_experts + p.conv
    layers = (low * fmt.dense.weight_bytes + (inside - low) * fmt.base.weight_bytes) / (split.tp * split.pp)
    experts = p.experts * fmt.experts.weight_bytes / (split.ep * split.expert_tp * split.pp)
    outside = (p.total - p.inside_layers - mtp) * fmt.base.weight_bytes / split.tp
    return layers + experts + outside


def cache_bytes(model: Model, fmt: Formats, split: Split) -> tuple[float, float]:
    """Bytes of cache on one chip: for each token of context, and for each sequence (windows)."""
    if model.family != "decoder":
        return 0.0, 0.0
    if model.latent is not None:  # the latent is shared by all heads, so tensor parallelism keeps it everywhere
        each = (model.latent.kv_rank + model.latent.rope_dim) * fmt.kv_bytes
    else:
        each = 2 * ceil(model.kv_heads / split.tp) * model.head_dim * fmt.kv_bytes
    local = 0 if model.mixer == "sparse" else model.windowed_layers  # sparse attention picks among all it keeps
    return each * (model.layers - local) / split.pp, each * local * model.window / split.pp


def room(model: Model, chip: Chip, split: Split, precision: str, kv_precision: str, most_tokens: int = 8192,
         of_free: bool = False) -> Room:
    """What fits on each chip; a `DoesNotFit` where the weights alone don't. `of_free`: a share of what is left."""
    fmt = formats(chip, model, precision, kv_precision)
    weights = weight_bytes(model, fmt, split)
    widest = max(model.d_ff if model.dense_layers else 0, model.experts.d_ff * model.experts.per_token
                 if model.experts else 0, model.d_model)
    activations = most_tokens * fmt.act_bytes * (4 * model.d_model + 3 * widest / split.tp) + WORKSPACE
    usable = chip.usable_bytes * (1.0 if of_free else SHARE)
    free = (usable - weights - activations) * (SHARE if of_free else 1.0)
    per_token, per_sequence = cache_bytes(model, fmt, split)
    if free <= 0:
        need = format_bytes(weights + activations)
        raise DoesNotFit(
            f"{model.name} in {precision} needs {need} on each of {split.chips} {chip.id}, before any request; "
            f"{format_bytes(usable)} of it can be used",
            "more chips per replica, or a smaller precision, would hold it")
    tokens = free / per_token * split.dp if per_token else float("inf")
    return Room(weights, activations, per_token, per_sequence, tokens)

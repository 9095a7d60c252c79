"""What a replica keeps in memory, exactly: weights by precision, the KV cache by token, and what is left for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from chipwise.catalog import Chip
from chipwise.errors import DoesNotFit
from chipwise.serving.formats import Formats, formats
from chipwise.serving.split import Split
from chipwise.units import format_bytes
from chipwise.workload.families.recurrent import state_bytes
from chipwise.workload.model import Model
from chipwise.workload.params import count

MOST = 2.0**50  # tokens of a cache that nothing fills
WORKSPACE = 2.0e9  # CUDA context, graphs and buffers of a chip: vLLM's own profile says 1 to 3 GB. Assumed.


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """The part of a chip's memory that a stack takes.

    vLLM takes it of the whole for everything (--gpu-memory-utilization), TensorRT-LLM of what is free beside weights
    and activations for the cache (free_gpu_memory_fraction).
    """

    value: float
    of_free: bool = False


WHOLE_CHIP = MemoryShare(0.90)  # vLLM's default: its documentation, 2026-11


@dataclass(frozen=True, slots=True)
class KvCacheBudget:
    """Bytes on the fullest chip of a replica, and the tokens of cache that the replica holds."""

    weights: float
    activations: float
    per_token: float  # bytes of cache for a token of context, on one chip, in the layers that keep all of it
    per_window_token: float  # in the layers that keep a window or a state
    window: float  # tokens those keep at most
    state: bool  # they keep that much from the start
    free: float  # bytes for the cache, on one chip
    groups: float  # of chips, each of which keeps requests of its own

    def sequence(self, tokens: float) -> float:
        """Bytes of cache of a sequence on one chip."""
        kept = self.window if self.state else min(tokens, self.window)
        return tokens * self.per_token + kept * self.per_window_token

    def sequences(self, tokens: float) -> float:
        """Sequences of so many tokens that fit at once."""
        each = self.sequence(tokens)
        return self.groups * self.free / each if each else float("inf")

    @property
    def caches(self) -> bool:
        """Whether anything is kept between iterations."""
        return self.per_token > 0 or self.per_window_token > 0

    def tokens(self, length: float) -> float:
        """Tokens of cache the whole replica holds, of sequences of such a length."""
        return self.sequences(length) * length

    def blocks(self, block: int, length: float) -> int:
        """Blocks of the paged cache, as many as hold those tokens; a model without a cache has no end of them."""
        return int(min(self.tokens(max(length, 1.0)), MOST) // block)


def weight_bytes(model: Model, fmt: Formats, split: Split) -> float:
    """Bytes of weights on one chip: layers split over stages and tensors, embeddings and heads over tensors."""
    p = count(model)
    whole = everywhere(model, split.tp)  # parameters that tensor parallelism does not divide
    apart = whole if model.latent is not None else 0.0  # the others are copies beyond the even split
    low = p.attention + p.mlp + p.shared_experts + p.conv - apart
    rest = p.inside_layers - p.experts - low - apart
    per_chip = (low * fmt.dense.weight_bytes + rest * fmt.base.weight_bytes) / split.tp + whole * fmt.dense.weight_bytes
    experts = p.experts * fmt.experts.weight_bytes / (split.ep * split.expert_tp)
    share = ceil(model.layers / split.pp) / model.layers if model.layers else 1.0  # the fullest stage
    ends = p.total - p.inside_layers - p.mtp
    if split.pp > 1:  # the first stage embeds, the last one scores
        ends = max(p.embedding + p.positions, ends - p.embedding - p.positions)
    return (per_chip + experts) * share + ends * fmt.base.weight_bytes / split.tp


def everywhere(model: Model, tp: int) -> float:
    """Parameters of attention beyond an even split that every chip keeps: latents, and key heads shared by chips."""
    if model.family == "cnn" or tp == 1:
        return 0.0
    if model.latent is not None:
        z = model.latent
        return float(model.layers * model.d_model * (z.q_rank + z.kv_rank + z.rope_dim))
    copies = max(1.0, tp / model.kv_heads)
    keys = 2 * model.layers * model.d_model * model.kv_heads * model.head_dim
    return keys * (copies - 1) / tp  # a chip keeps copies / tp of them where an even split keeps 1 / tp


def cache_bytes(model: Model, fmt: Formats, split: Split) -> tuple[float, float]:
    """Bytes of cache on one chip for a token: in layers that keep all of them, and in those with a window.

    A decoder layer behind an encoder keeps as much of a token read as of one written.
    """
    if not model.writes:
        return 0.0, 0.0
    if model.latent is not None:  # the latent is shared by all heads, so tensor parallelism keeps it everywhere
        each = (model.latent.kv_rank + model.latent.rope_dim) * fmt.kv_bytes
    else:
        each = 2 * ceil(model.kv_heads / split.tp) * model.head_dim * fmt.kv_bytes
    if model.ssm is not None:  # split by heads; in its own precision, not the cache's
        state = model.ssm.layers * state_bytes(model.ssm) / split.tp / model.window
        return each * model.attention_layers / split.pp, state / split.pp
    local = 0 if model.mixer == "sparse" else model.windowed_layers  # sparse attention picks among all it keeps
    return each * (model.written_layers - local) / split.pp, each * local / split.pp


def kv_cache_budget(
    model: Model,
    chip: Chip,
    split: Split,
    precision: str,
    kv_precision: str,
    most_tokens: int = 8192,
    share: MemoryShare = WHOLE_CHIP,
) -> KvCacheBudget:
    """What fits on each chip; a `DoesNotFit` where the weights alone don't."""
    fmt = formats(chip, model, precision, kv_precision)
    weights = weight_bytes(model, fmt, split)
    widest = max(
        model.d_ff if model.dense_layers else 0,
        model.experts.d_ff * model.experts.per_token if model.experts else 0,
        model.d_model,
    )
    activations = most_tokens * fmt.act_bytes * (4 * model.d_model + 3 * widest / split.tp) + WORKSPACE
    usable = chip.usable_bytes * (1.0 if share.of_free else share.value)
    free = (usable - weights - activations) * (share.value if share.of_free else 1.0)
    per_token, per_window = cache_bytes(model, fmt, split)
    if free <= 0:
        need = format_bytes(weights + activations)
        raise DoesNotFit(
            f"{model.name} in {precision} needs {need} on each of {split.chips} {chip.id}, before any request; "
            f"{format_bytes(usable)} of it can be used",
            "more chips per replica, or a smaller precision, would hold it",
        )
    state = model.mixer == "linear"
    return KvCacheBudget(weights, activations, per_token, per_window, float(model.window), state, free, float(split.dp))

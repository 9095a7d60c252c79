"""Which (tp, pp, cp, ep) a model, a batch and a number of chips allow, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod

from chipwise.catalog import Accelerators
from chipwise.catalog.stacks import EVERY_AXIS, Parallelism
from chipwise.workload.model import Model, Train

# Bounds of the search: choices that keep the space to what people run, not limits of any chip or stack.
TP_MOST = 64
DOMAINS_TP = 2  # tensor parallelism reaches over at most this many fast domains
# Tokens of a sequence that cp leaves a chip at least. Published runs with cp (Megatron-LM, Megatron-Bridge, NeMo and
# torchtitan, 2024 and 2025) keep 4,096 and more; three of MLPerf Training v5.0 keep 1,024, since their batch has no
# sequence for every chip and something must split sequences.
CP_USUAL_TOKENS = 4096
CP_MIN_TOKENS = 1024
CP_REFUSED = "cp leaves a chip fewer than"
MICRO_BATCH_MOST = 64
MICRO_BATCH_TOKENS = 131_072  # short sequences and images may have larger micro-batches, up to
MICRO_BATCH_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Split:
    """dp x tp x pp x cp chips, experts over `ep` of them."""

    dp: int
    tp: int
    pp: int
    cp: int
    ep: int


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """All divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(low + [n // d for d in reversed(low) if d * d != n])


def domain(acc: Accelerators) -> int:
    """Chips joined by the fast links: a slice, or what the switch joins."""
    return prod(acc.shape) if acc.shape else acc.chip.fabric.domain


def pieces(model: Model) -> int:
    """What a pipeline is cut between: the layers, those that predict ahead, the embedding and the output layer."""
    return model.layers + model.mtp_layers + 2


def micro_batches(model: Model, train: Train, dp: int) -> tuple[int, ...]:
    """Micro-batch sizes worth a look for one replica's share of the batch."""
    tokens = max(1, train.sequence if model.family != "cnn" else 1)
    most = max(MICRO_BATCH_MOST, min(MICRO_BATCH_LIMIT, MICRO_BATCH_TOKENS // tokens))
    return tuple(d for d in divisors(train.global_batch // dp) if d <= most)


def interleavings(model: Model, pp: int, parallel: Parallelism = EVERY_AXIS) -> tuple[int, ...]:
    """Model pieces a stage may be cut into: for each size of a piece, in layers, as few as make up a stage.

    >>> from chipwise.workload.presets import preset
    >>> interleavings(preset("llama-3.1-405b"), 16), interleavings(preset("deepseek-v3"), 4)
    ((1, 2, 3, 4, 8), (1, 2, 3, 4, 6, 8))
    """
    if pp == 1 or "vpp" not in parallel.axes:
        return (1,)
    if not parallel.uneven:
        return divisors(model.layers // pp)
    most = -(-model.layers // pp)
    return tuple(sorted({n for size in range(1, most + 1) if pp * (n := -(-most // size)) <= pieces(model)}))


def stages_refusal(model: Model, pp: int, vpp: int, parallel: Parallelism) -> str:
    """Why layers can't lie on `pp` stages of `vpp` pieces each, in words; empty where they can."""
    if pp * vpp > pieces(model):
        return f"pp({pp}) * vpp({vpp}) is more than {model.layers} layers, the embedding and the output layer"
    if not parallel.uneven and model.layers % (pp * vpp):
        return f"the stack's stages are even: pp({pp}) * vpp({vpp}) does not divide {model.layers} layers"
    return ""


def shard_inside(split: Split, wide: int, inner: bool) -> int:
    """Replicas that share a copy of the state inside a fast domain of `wide` chips; 0 where that is moot."""
    room = wide // (split.tp * split.cp * (split.pp if inner else 1))
    shard = gcd(split.dp, room) if room else 0
    group = shard * split.cp
    whole_groups = group and (group % split.ep == 0 or split.ep % group == 0)
    return shard if 1 < shard < split.dp and whole_groups else 0


def candidates(model: Model, acc: Accelerators) -> Iterator[Split]:
    """Every split of the chips over the axes this kind of model has."""
    n = acc.count
    text, experts = model.family == "decoder", model.experts
    tps = (1,) if model.family == "cnn" else tuple(d for d in divisors(n) if d <= TP_MOST)
    for tp in tps:
        cps = [1 << i for i in range(7) if (n // tp) % (1 << i) == 0] if text else [1]
        for cp in cps:
            for ep in divisors(n) if experts else (1,):
                if experts and ep > experts.count:
                    break
                for pp in divisors(n // tp // cp) if text else (1,):
                    yield Split(n // (tp * cp * pp), tp, pp, cp, ep)


def cp_tokens(train: Train, chips: int) -> int:
    """The fewest tokens of a sequence that context parallelism leaves a chip."""
    return CP_USUAL_TOKENS if train.global_batch >= chips else CP_MIN_TOKENS


def refusal(split: Split, model: Model, train: Train, wide: int, parallel: Parallelism = EVERY_AXIS) -> str:
    """Why a split is not legal, in words; empty where it is."""
    tp, pp, cp, ep = split.tp, split.pp, split.cp, split.ep
    e = model.experts
    if model.family == "cnn" and tp > 1:
        return "a cnn has no tensor axis"
    if model.family != "decoder" and (pp > 1 or cp > 1):
        return f"pipeline and context axes are for decoders, not for a {model.family}"
    if e is None and ep > 1:
        return "ep needs a mixture of experts"
    if lacking := [name for name in ("tp", "pp", "cp", "ep") if getattr(split, name) > 1 and name not in parallel.axes]:
        return f"the stack has no {lacking[0]}"
    if tp > DOMAINS_TP * wide and tp > 1:
        return f"tp reaches over more than {DOMAINS_TP} fast domains of {wide} chips"
    if model.heads and model.heads % tp:
        return f"tp does not divide {model.heads} heads"
    if model.heads and not model.latent and model.kv_heads % tp and tp % model.kv_heads:
        return f"tp is no divisor or multiple of {model.kv_heads} key/value heads"
    widths = {model.d_ff} if e is None else {e.d_ff, e.shared_d_ff, model.d_ff if model.dense_layers else 0}
    if any(w % tp for w in widths):
        return f"tp does not divide an MLP of width {min(w for w in widths if w % tp)}"
    if pp > model.layers:
        return f"pp > {model.layers} layers"
    if model.layers % pp and not parallel.uneven:
        return f"the stack's stages are even: pp does not divide {model.layers} layers"
    if cp > 1 and train.sequence % cp:
        return f"cp does not divide a sequence of {train.sequence} tokens"
    if cp > 1 and train.sequence // cp < (least := cp_tokens(train, split.dp * tp * pp * cp)):
        return f"{CP_REFUSED} {least:,} of {train.sequence} tokens"
    if e is not None and e.count % ep:
        return f"ep does not divide {e.count} experts"
    if (split.dp * cp) % ep:
        return "dp * cp is not divisible by ep"
    if train.global_batch % split.dp:
        return f"global batch {train.global_batch} is not divisible by dp"
    return ""


def most_frequent(refused: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons with the number of splits refused for them, the most frequent first."""
    return sorted(refused.items(), key=lambda item: (-item[1], item[0]))


def in_words(refused: Mapping[str, int]) -> list[str]:
    """Refusals as lines, the most frequent first."""
    return [f"{why} ({n:,} split{'s' if n > 1 else ''})" for why, n in most_frequent(refused)]

"""What it takes to draft tokens ahead: seconds of an iteration, memory, and who can.

A sequence's iteration checks what was drafted, and the token before it, in one pass of the model, which costs as
much as so many tokens do, and gives it those that are kept and one more (Leviathan et al., arXiv 2211.17192). The
simulation gives every sequence the same whole number of tokens in an iteration; over the iterations it is their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip, Stack
from chipwise.errors import NoLayout, Refusal
from chipwise.serving.memory import KvCacheBudget
from chipwise.serving.split import Split
from chipwise.serving.steps import Parts
from chipwise.workload.model import Model
from chipwise.workload.serve import Speculation

if TYPE_CHECKING:
    from chipwise.serving.setup import Replica

Array = NDArray[np.float64]


class DraftKind(StrEnum):
    """What drafts."""

    NGRAM = "ngram"  # the prompt and the answer so far: nothing that a chip computes
    MTP = "mtp"  # a layer of the model's own kind on top of it: multi-token prediction, or EAGLE
    MODEL = "model"  # a smaller one


class NoSpeculation(Refusal):
    """The stack has no speculative decoding of this kind on the chip."""

    kind = "speculation"


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What drafting costs one replica, before any correction."""

    tokens: int  # for every pass of the model
    per_pass: float  # tokens that a pass gives a sequence
    seconds: Array  # by decoding sequences, from 0: all drafts of an iteration
    context_s: float = 0.0  # for each earlier token that a decoding sequence reads
    prompt_s: float = 0.0  # for each token of a prompt, which what drafts reads as well
    weights: float = 0.0  # bytes on the fullest chip
    per_token: float = 0.0  # bytes of cache for each token of context, there


def kind_of(speculation: Speculation) -> DraftKind:
    """What drafts."""
    return DraftKind.MODEL if speculation.model is not None else DraftKind(speculation.draft)


def check_speculation(speculation: Speculation | None, stack: Stack, chip: Chip) -> None:
    """Refuse a stack that can't draft so on a chip."""
    if speculation is None:
        return
    drafts = stack.serving.drafts if stack.serving is not None else ()
    if kind_of(speculation) not in drafts or chip.family != "gpu":
        where = "vllm, sglang and tensorrt-llm do on GPUs"
        raise NoSpeculation(f"{stack.name} has no speculative decoding by {speculation.draft} on {chip.id}", where)


def check_stages(speculation: Speculation | None, split: Split) -> None:
    """Refuse pipelines: vLLM drafts without them (docs.vllm.ai, v0.9.1, features/spec_decode), others say nothing."""
    if speculation is not None and split.pp > 1:
        raise NoLayout(f"pp({split.pp}): drafts are not made across pipeline stages", "choose tp")


def draft_split(model: Model, split: Split) -> Split:
    """How a smaller model lies on a replica's chips: over as many of them as its heads divide by."""
    return Split(tp=gcd(model.heads, split.tp))


def one_layer(p: Parts, model: Model) -> Parts:
    """The parts of a single layer of the model's own kind, and the output layer."""
    moe = 1.0 if model.moe_layers else 0.0
    full = max(model.written_layers - model.windowed_layers, 1)
    return replace(
        p,
        products=p.products / p.layers,
        experts=p.experts / max(p.moe_layers, 1.0),
        collectives=p.collectives / p.layers,
        layers=1.0,
        moe_layers=moe,
        latent_layers=min(p.latent_layers, 1.0),
        linear_layers=0.0,
        context_s=p.context_s / full,
        window_s=0.0,
        pair_s=p.pair_s / full,
        window_pair_s=0.0,
    )


def by_pass(speculation: Speculation, pass_s: Array, context_s: float, weights: float, per_token: float) -> Draft:
    """A draft of as many passes as there are tokens, each of one token a sequence; `pass_s` is by tokens of a pass."""
    k, last = speculation.tokens, len(pass_s) - 1
    half = last // 2
    prompt_s = float(pass_s[last] - pass_s[half]) / (last - half)
    return Draft(k, speculation.tokens_per_pass, k * pass_s, k * context_s, prompt_s, weights, per_token)


def free_draft(speculation: Speculation, largest: int) -> Draft:
    """A draft that no chip computes."""
    return Draft(speculation.tokens, speculation.tokens_per_pass, np.zeros(largest + 1))


def model_draft(speculation: Speculation, small: Replica) -> Draft:
    """A draft by a smaller model beside the large one."""
    times, budget = small.step_times(), small.kv_cache
    per_token = budget.per_token + budget.per_window_token
    return by_pass(speculation, times.tokens_s, times.context_s, budget.weights, per_token)


def beside(budget: KvCacheBudget, draft: Draft) -> KvCacheBudget:
    """What is left for the cache beside what drafts."""
    return replace(
        budget,
        weights=budget.weights + draft.weights,
        free=budget.free - draft.weights,
        per_token=budget.per_token + draft.per_token,
    )

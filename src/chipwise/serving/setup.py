"""One replica on its chips: the parts of its iterations, its stack's coefficients, its cache. Set up once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.taught import Taught
from chipwise.errors import NoLayout
from chipwise.predict.energy import watts
from chipwise.serving.coefficients import Coefficients, coefficients, labels
from chipwise.serving.limits import LARGEST
from chipwise.serving.memory import KvCacheBudget, kv_cache_budget
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.split import Split
from chipwise.serving.step_times import Knobs, StepTimeTable
from chipwise.serving.steps import Parts, parts
from chipwise.workload.model import Model

Array = NDArray[np.float64]

CAPTURED = 512.0  # tokens up to which replicas replay captured graphs (vLLM and SGLang: 512, their defaults, 2026-11)
SMALL, LARGE = 7.0, 10.0  # log2 of tokens between which a batch turns from decoding's size to a prompt's
MOVED = 512.0  # tokens beyond which moving them to experts is part of a prompt's work
XQA_EIGHT, XQA_ALL = 2024.1, 2024.4  # TensorRT-LLM v0.8 and v0.10, in years
GRID = np.unique(np.rint(np.concatenate([np.arange(1, 17), 2.0 ** np.arange(4, 14.01, 0.25)])))


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """A model on the chips of one replica under a stack."""

    spec: ReplicaSpec
    parts: Parts
    coefficients: Coefficients
    kv_cache: KvCacheBudget
    knobs: Knobs
    factor: float = 1.0  # on every time: what measurements near this one taught
    passes: int = 1  # over the model for each request (denoising steps)
    slot: float = 0.0  # tokens of cache that a decoding sequence reads, filled or not; 0: as many as it has

    @property
    def model(self) -> Model:
        """What is served."""
        return self.spec.model

    @property
    def chip(self) -> Chip:
        """The kind of its chips."""
        return self.spec.chip

    @property
    def split(self) -> Split:
        """How it is split over them."""
        return self.spec.split

    @property
    def precision(self) -> str:
        """Of its weights."""
        return self.spec.precision

    @property
    def kv_precision(self) -> str:
        """Of its KV cache."""
        return self.spec.kv_precision

    @property
    def stack(self) -> Stack:
        """The software."""
        return self.spec.stack

    def step_times(self) -> StepTimeTable:
        """Seconds of its iterations."""
        c, p = self.coefficients, self.parts
        scale = self.factor * self.passes
        total = sum((getattr(c, name) * term for name, term in terms(p).items()), np.zeros_like(p.tokens)) * scale
        whole = np.interp(np.arange(LARGEST + 1.0), p.tokens, total)
        each = self.split.chips
        read = 0.0 if self.slot else c.context * p.context_s
        sequence = c.sequence_s + c.context * (p.window_s + self.slot * p.context_s)
        pair = c.prompt * p.pair_s * (1.0 if self.model.causal else 2.0)  # the schedule counts masked pairs
        return StepTimeTable(
            whole,
            read * self.factor,
            pair * self.factor,
            sequence * self.factor,
            self.chip.idle_w * each,
            watts(self.chip, 1.0) * each,
        )

    def slower(self, factor: float) -> Replica:
        """The replica with every time multiplied."""
        return replace(self, factor=self.factor * factor)


def terms(p: Parts) -> dict[str, Array]:
    """Seconds (or counts) that each coefficient multiplies, by tokens of the iteration."""
    one = np.ones_like(p.tokens)
    large = np.clip((np.log2(p.tokens) - SMALL) / (LARGE - SMALL), 0.0, 1.0)
    return {
        "products": p.products * (1 - large) + p.head,
        "experts": p.experts * (1 - large),
        "collectives": p.collectives * (1 - large),
        "prompt": (p.products + p.experts + p.collectives + p.window_pair_s * p.tokens) * large,
        "layer_s": p.layers * one,
        "layer_moe_s": p.moe_layers * one,
        "layer_latent_s": p.latent_layers * one,
        "layer_linear_s": p.linear_layers * one,
        "host_s": one,
        "expert_token_s": p.moe_layers * np.minimum(p.tokens, MOVED),
        "eager_s": np.where(p.tokens > CAPTURED, p.layers, 0.0),
    }


OF_FREE = ("tensorrt-llm", "sglang")  # take a share of the memory that weights leave for the cache
# Replicas whose XLA programs have one shape: attention runs over a slot's whole cache (JetStream's replicas, 2024)
STATIC = ("jetstream", "sax")


def knobs_of(stack: Stack) -> Knobs:
    """What a stack does unless told otherwise (their documentation, 2026-11)."""
    if stack.id == "sglang":
        return Knobs(most_sequences=1024, most_tokens=8192, mixed=False)
    if stack.id in ("jetstream", "sax"):
        return Knobs(most_sequences=512, most_tokens=8192, mixed=False, reserve=True)
    if stack.id == "tensorrt-llm":
        return Knobs(most_sequences=2048, most_tokens=8192, reserve=True)
    return Knobs(most_sequences=1024, most_tokens=8192)


def old_kernels(model: Model, stack: Stack, release: float | None) -> bool:
    """Whether decode attention reads the cache once for every query head instead of once for all that share it.

    TensorRT-LLM did until its XQA kernels covered a model: groups of 8 heads from v0.8, all from v0.10 on (its
    docs/source/blogs/XQA-kernel.md and release notes, 2024).
    """
    if stack.id != "tensorrt-llm" or release is None or model.latent is not None or model.family != "decoder":
        return False
    return release < (XQA_EIGHT if model.heads == 8 * model.kv_heads else XQA_ALL)


def check_split(model: Model, split: Split) -> None:
    """Refuse a split that the model's dimensions don't allow."""
    if model.family == "cnn":
        if split.tp > 1 or split.pp > 1:
            raise NoLayout(f"a cnn isn't split over {split.chips} chips", "replicas share its requests instead")
        return
    if model.heads % split.tp:
        raise NoLayout(f"tp({split.tp}) does not divide heads({model.heads})", "choose a divisor")
    if split.pp > model.layers:
        raise NoLayout(f"pp({split.pp}) is more than layers({model.layers})", "choose fewer stages")
    if split.ep > 1:
        if model.experts is None:
            raise NoLayout(f"ep({split.ep}): {model.name} has no experts to split", "leave ep at 1")
        if model.experts.count % split.ep:
            raise NoLayout(f"ep({split.ep}) does not divide experts({model.experts.count})", "choose a divisor")
        if (split.tp * split.dp) % split.ep:
            raise NoLayout(f"ep({split.ep}) does not divide tp({split.tp}) x dp({split.dp})", "choose a divisor")


def set_up(spec: ReplicaSpec, calibration: Calibration, taught: Taught, knobs: Knobs | None = None) -> Replica:
    """A replica with its stack's own settings or these; a `Refusal` where the split is not legal or nothing fits."""
    check_split(spec.model, spec.split)
    knobs = knobs or knobs_of(spec.stack)
    return Replica(
        spec,
        parts(spec, calibration, GRID, old_kernels(spec.model, spec.stack, spec.release)),
        _coefficients(spec, taught),
        kv_cache_budget(
            spec.model,
            spec.chip,
            spec.split,
            spec.precision,
            spec.kv_precision,
            knobs.most_tokens,
            spec.stack.id in OF_FREE,
        ),
        knobs,
        slot=spec.longest if spec.stack.id in STATIC else 0.0,
    )


def recalibrated(replica: Replica, taught: Taught) -> Replica:
    """The same replica with the stack's coefficients of another calibration; the times of its kernels stay."""
    return replace(replica, coefficients=_coefficients(replica.spec, taught))


def _coefficients(spec: ReplicaSpec, taught: Taught) -> Coefficients:
    named = labels(spec.chip, spec.stack, spec.model, spec.precision, spec.release, spec.load)
    return coefficients(taught.effects, named)

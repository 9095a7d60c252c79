"""One replica on its chips: the parts of its iterations, its stack's coefficients, its cache. Set up once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip, Stack
from chipwise.catalog.calibration import Calibration, ServingCalibration
from chipwise.catalog.serving_defaults import ServingDefaults
from chipwise.errors import DoesNotFit, NoLayout, Refusal
from chipwise.io.brief import brief
from chipwise.predict.model.energy import Figures, waiting_watts, watts
from chipwise.serving.bounds import StepBound, step_bound
from chipwise.serving.coefficients import OPEN_LOAD, Coefficients, coefficients, labels, server_alone
from chipwise.serving.limits import LARGEST
from chipwise.serving.memory import KvCacheBudget, MemoryShare, kv_cache_budget
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.speculation import (
    Draft,
    DraftKind,
    beside,
    by_pass,
    check_stages,
    draft_split,
    free_draft,
    kind_of,
    model_draft,
    one_layer,
)
from chipwise.serving.split import Split
from chipwise.serving.step_times import EngineConfig, StepTimeTable
from chipwise.serving.steps import Parts, parts
from chipwise.workload.model import Model

Array = NDArray[np.float64]

SMALL, LARGE = 7.0, 10.0  # log2 of tokens between which a batch turns from decoding's size to a prompt's
MOVED = 512.0  # tokens beyond which moving them to experts is part of a prompt's work
GRID = np.unique(np.rint(np.concatenate([np.arange(1, 17), 2.0 ** np.arange(4, 14.01, 0.25)])))


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """A model on the chips of one replica under a stack."""

    spec: ReplicaSpec
    parts: Parts
    coefficients: Coefficients
    kv_cache: KvCacheBudget
    config: EngineConfig
    bound: StepBound
    factor: float = 1.0  # on every time: by measurements near this one
    passes: int = 1  # over the model for each request (denoising steps)
    slot: float = 0.0  # tokens of cache that a decoding sequence reads, filled or not; 0: as many as it has
    prompt_parts: Parts | None = None  # of prompts that pass an encoder of their own; None: those of all tokens
    prompt_bound: StepBound | None = None
    draft: Draft | None = None
    power: Figures = field(default_factory=dict)  # what was measured of chips

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
        """Seconds of its iterations, none below what the chips can do at best."""
        c, p, least = self.coefficients, self.parts, self.bound
        prompts, least_prompt = self.prompt_parts or p, self.prompt_bound or least
        whole = self._by_tokens(p, least)
        encoder = None if self.prompt_parts is None else self._by_tokens(prompts, least_prompt)
        each = self.split.chips
        read = 0.0 if self.slot else c.context * p.context_s
        sequence = c.sequence_s + c.context * (p.window_s + self.slot * p.context_s)
        pair = (
            c.prompt * prompts.pair_s * (1.0 if self.model.causal_prompt else 2.0)
        )  # the schedule counts masked pairs
        table = StepTimeTable(
            whole,
            0.0 if self.slot else max(read * self.factor, least.context_s),
            max(pair * self.factor, least_prompt.pair_s),
            max(sequence * self.factor, self.slot * least.context_s),
            waiting_watts(self.chip, self.power) * each,
            watts(self.chip, 1.0, self.power) * each,
            prompt_s=encoder,
        )
        d = self.draft
        if d is None:
            return table
        return replace(
            table,
            drafted=d.tokens,
            per_pass=d.per_pass,
            draft_s=d.seconds * self.factor,
            draft_context_s=d.context_s * self.factor,
            draft_prompt_s=d.prompt_s * self.factor,
        )

    def _by_tokens(self, p: Parts, least: StepBound) -> Array:
        """Seconds of iterations with 0, 1, 2... tokens."""
        work = {name: getattr(self.coefficients, name) * term for name, term in terms(p, self.spec).items()}
        if p is self.prompt_parts:
            del work["host_s"]  # the iteration that writes the prompts' first tokens has it
        total = sum(work.values(), np.zeros_like(p.tokens)) * (self.factor * self.passes)
        tokens = np.arange(LARGEST + 1.0)
        return np.asarray(np.maximum(np.interp(tokens, p.tokens, total), least.tokens(tokens) * self.passes))

    def least_prompt(self, tokens: float) -> float:
        """The least seconds of one prompt."""
        return (self.prompt_bound or self.bound).prompt(tokens, self.model.causal_prompt)

    def slower(self, factor: float) -> Replica:
        """The replica with every time multiplied."""
        return replace(self, factor=self.factor * factor)


def terms(p: Parts, spec: ReplicaSpec) -> dict[str, Array]:
    """Seconds (or counts) that each coefficient multiplies, by tokens of the iteration.

    On TPUs nothing is launched kernel by kernel: an iteration of any size is one program.
    """
    captured = np.inf if spec.chip.family == "tpu" else serving_defaults(spec.stack).graph_tokens
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
        "eager_s": np.where(p.tokens > captured, p.layers, 0.0),
    }


def serving_defaults(stack: Stack) -> ServingDefaults:
    """How a stack serves unless told otherwise; refused where it does not serve."""
    if stack.serving is None:
        raise Refusal(f"{stack.name} does not serve", "stacks that do have serving defaults in the catalog")
    return stack.serving


def engine_config(stack: Stack) -> EngineConfig:
    """What a replica of a stack is set to unless told otherwise."""
    own = serving_defaults(stack)
    return EngineConfig(own.most_sequences, own.most_tokens, own.block, own.mixed, own.reserve)


def old_kernels(model: Model, stack: Stack, release: float | None) -> bool:
    """Whether decode attention reads the cache once for every query head instead of once for all that share it.

    TensorRT-LLM did until its XQA kernels covered a model: groups of 8 heads before others.
    """
    if release is None or model.latent is not None or model.family != "decoder":
        return False
    own = serving_defaults(stack)
    return release < (own.grouped_of_8_since if model.heads == 8 * model.kv_heads else own.grouped_since)


def check_split(model: Model, split: Split) -> None:
    """Refuse a split that the model's dimensions don't allow."""
    if model.family == "cnn":
        if split.tp > 1 or split.pp > 1:
            raise NoLayout(f"a cnn isn't split over {split.chips} chips", "replicas share its requests instead")
        return
    if model.heads % split.tp:
        raise NoLayout(f"tp({split.tp}) does not divide heads({model.heads})", "choose a divisor")
    if model.encoder is not None and split.pp > 1:
        raise NoLayout(f"pp({split.pp}): encoder and decoder of {model.name} aren't cut into stages", "choose tp")
    if split.pp > model.layers:
        raise NoLayout(f"pp({split.pp}) is more than layers({model.layers})", "choose fewer stages")
    if split.ep > 1:
        if model.experts is None:
            raise NoLayout(f"ep({split.ep}): {model.name} has no experts to split", "leave ep at 1")
        if model.experts.count % split.ep:
            raise NoLayout(f"ep({split.ep}) does not divide experts({model.experts.count})", "choose a divisor")
        if (split.tp * split.dp) % split.ep:
            raise NoLayout(f"ep({split.ep}) does not divide tp({split.tp}) x dp({split.dp})", "choose a divisor")


def padded(model: Model, split: Split, stack: Stack) -> Model:
    """The model as a stack runs it: with empty heads where tensor parallelism does not divide those there are."""
    if model.heads % split.tp == 0 or not serving_defaults(stack).pads_heads:
        return model
    return replace(model, heads=-(-model.heads // split.tp) * split.tp)


def set_up(spec: ReplicaSpec, calibration: Calibration, config: EngineConfig | None = None) -> Replica:
    """A replica with its stack's own settings or these; a `Refusal` where the split is not legal or nothing fits."""
    spec = replace(spec, model=padded(spec.model, spec.split, spec.stack))
    check_split(spec.model, spec.split)
    check_stages(spec.speculation, spec.split)
    config = config or engine_config(spec.stack)
    own = serving_defaults(spec.stack)
    encodes = spec.model.encoder is not None
    if encodes:
        config = replace(config, chunked=False)  # an encoder's tokens see all others: they pass together
    budget = kv_cache_budget(
        spec.model,
        spec.chip,
        spec.split,
        spec.precision,
        spec.kv_precision,
        config.most_tokens,
        MemoryShare(own.memory_share, own.share_of_free),
    )
    times = parts(spec, calibration, GRID, old_kernels(spec.model, spec.stack, spec.release))
    draft = _draft(spec, calibration, times, budget)
    if draft is not None:
        budget = beside(budget, draft)
        if budget.free <= 0:
            raise DoesNotFit(
                f"no cache fits beside {spec.model.name} and what drafts for it", "more chips would hold it"
            )
    return Replica(
        spec,
        times,
        _coefficients(spec, calibration.serving),
        budget,
        config,
        step_bound(spec),
        slot=spec.longest if own.fixed_slots else 0.0,
        prompt_parts=parts(spec, calibration, GRID, prompt=True) if encodes else None,
        prompt_bound=step_bound(spec, prompt=True) if encodes else None,
        draft=draft,
        power=calibration.power,
    )


def _draft(spec: ReplicaSpec, calibration: Calibration, times: Parts, budget: KvCacheBudget) -> Draft | None:
    """What drafting costs a replica."""
    wanted = spec.speculation
    if wanted is None:
        return None
    if wanted.model is not None:
        small = replace(spec, model=wanted.model, split=draft_split(wanted.model, spec.split), speculation=None)
        return model_draft(wanted, set_up(small, calibration))
    if kind_of(wanted) is DraftKind.NGRAM:
        return free_draft(wanted, LARGEST)
    layer = one_layer(times, spec.model)
    values = _coefficients(spec, calibration.serving)
    work = {name: getattr(values, name) * term for name, term in terms(layer, spec).items() if name != "host_s"}
    by_tokens = np.interp(np.arange(LARGEST + 1.0), layer.tokens, sum(work.values(), np.zeros_like(layer.tokens)))
    share = 1 / max(spec.model.layers, 1)
    context_s = values.context * layer.context_s
    return by_pass(wanted, by_tokens, context_s, budget.weights * share, budget.per_token * share)


def recalibrated(replica: Replica, calibration: ServingCalibration) -> Replica:
    """The same replica with the stack's coefficients of another calibration; the times of its kernels stay."""
    return replace(replica, coefficients=_coefficients(replica.spec, calibration))


def _coefficients(spec: ReplicaSpec, calibration: ServingCalibration) -> Coefficients:
    named = labels(spec.chip, spec.stack, spec.model, spec.precision, spec.release, spec.load)
    values = coefficients(calibration.effects, named)
    if spec.load != OPEN_LOAD:
        return values
    return server_alone(values, calibration.first_tokens.get("effects", {}), spec.stack)

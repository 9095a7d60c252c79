"""What a training run costs per parameter: which share is trained, what the optimizer keeps and moves."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.predict.model.precision import numerics
from chipwise.workload.model import Model, Train
from chipwise.workload.params import count, lora_params

STATE_BYTES = {"fp32": 4.0, "bf16": 2.0}

ABSMAX_BLOCK, NESTED_BLOCK = (
    64,
    256,
)  # nf4: weights that share a scale, scales that share one (arXiv 2305.14314, section 3)
GPTQ_GROUP = 128  # int4: weights that share a scale of 16 bits and a zero point of 4 (arXiv 2210.17323, section 4)
DEQUANTIZED = 2.0  # bytes of a weight as a product reads it: bf16 or fp16
BASE_BYTES = {"nf4": 0.5 + 1 / ABSMAX_BLOCK + 4 / (ABSMAX_BLOCK * NESTED_BLOCK), "int4": 0.5 + 2.5 / GPTQ_GROUP}
# Bytes through memory that make a weight of 16 bits, once a pass: forward, for the inputs' gradient, in recomputation.
# nf4: one kernel of bitsandbytes reads the weight and writes it (bitsandbytes 0.50.0: MatMul4Bit, read 2026-11-19).
# int4: PyTorch's operations unpack GPTQ's weights. Steps of Qwen 7B and 14B on an A100 take 0.10 to 0.49 s longer a
# micro-batch beside them than beside 16 bits: in the middle 21.9 bytes a weight and pass at the data sheet's bandwidth,
# of which such kernels reach 0.76 (README of github.com/QwenLM/Qwen at 03cd81f, Profiling of Memory and Speed)
BASE_TRAFFIC = {"nf4": BASE_BYTES["nf4"] + DEQUANTIZED, "int4": 16.7}


@dataclass(frozen=True, slots=True)
class FrozenBase:
    """Frozen linear layers in 4 bits, made 16-bit weights for every pass over them (QLoRA)."""

    weight_bytes: float  # of a parameter on average, those outside the layers in 16 bits
    traffic: float  # through memory for one weight in one pass
    linear: float  # weights held so
    experts: float  # of them, those of routed experts


@dataclass(frozen=True, slots=True)
class TrainCosts:
    """Bytes and shares that the step and its memory depend on."""

    frozen: bool  # the base weights get no gradient
    trained: float  # share of the parameters that do
    optimizer_bytes: float  # moved through memory per trained parameter and step
    states: float  # optimizer moments per trained parameter
    state_bytes: float  # of one moment
    base: FrozenBase | None = None  # None: the frozen weights are held in the precision of the run


def costs(train: Train, model: Model) -> TrainCosts:
    """The costs of a training run of `model`.

    >>> from chipwise.workload.presets import preset
    >>> costs(Train(256, 4096), preset("llama-3.1-8b")).optimizer_bytes
    30.0
    """
    num = numerics(train.precision, train.state_precision)
    state_bytes, states = STATE_BYTES[train.state_precision], float(train.optimizer_states)
    # a master copy exists where the state is finer than the working weights; else the weights are updated
    master = state_bytes if state_bytes > num.weight_bytes else 0.0
    weights = num.weight_bytes if master else 2 * num.weight_bytes
    moved = 2 * (master + states * state_bytes) + num.grad_bytes + weights
    if not train.lora_rank:
        return TrainCosts(False, 1.0, moved, states, state_bytes)
    share = lora_params(model, train.lora_rank, train.lora_targets) / count(model).total
    return TrainCosts(True, share, moved, states, state_bytes, _frozen_base(train, model, num.weight_bytes))


def _frozen_base(train: Train, model: Model, plain: float) -> FrozenBase | None:
    """What a base of 4 bits takes; None where it is held in the `plain` bytes of the run."""
    if not train.lora_base:
        return None
    p, held = count(model), BASE_BYTES[train.lora_base]
    average = (p.linear * held + (p.total - p.linear) * plain) / p.total
    return FrozenBase(average, BASE_TRAFFIC[train.lora_base], float(p.linear), float(p.experts))

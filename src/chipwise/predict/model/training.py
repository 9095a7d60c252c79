"""What a training run costs per parameter: which share is trained, what the optimizer keeps and moves."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.predict.model.precision import numerics
from chipwise.workload.model import Model, Train
from chipwise.workload.params import count, lora_params

STATE_BYTES = {"fp32": 4.0, "bf16": 2.0}


@dataclass(frozen=True, slots=True)
class TrainCosts:
    """Bytes and shares that the step and its memory depend on."""

    frozen: bool  # the base weights get no gradient
    trained: float  # share of the parameters that do
    optimizer_bytes: float  # moved through memory per trained parameter and step
    states: float  # optimizer moments per trained parameter
    state_bytes: float  # of one moment


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
    return TrainCosts(True, share, moved, states, state_bytes)

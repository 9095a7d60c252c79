"""What must be written so that a run can go on: bytes of the model's state, and the seconds that takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from chipwise.errors import InputError
from chipwise.predict.model.precision import numerics
from chipwise.workload.model import Workload
from chipwise.workload.params import count, lora_params

STATE_BYTES = {"fp32": 4.0, "bf16": 2.0}


@dataclass(frozen=True, slots=True)
class State:
    """Bytes of a checkpoint by class."""

    weights: float
    master: float  # the copy of the weights that the optimizer steps, where there is one
    optimizer: float  # moments

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.master + self.optimizer


def state(workload: Workload) -> State:
    """The state of a training run, as the memory of a step counts it; of LoRA the adapters alone.

    >>> from chipwise.workload import preset
    >>> from chipwise.workload.model import Train
    >>> run = Workload("run", preset("llama-3.1-8b"), Train(global_batch=8, sequence=4096))
    >>> state(run).total / count(run.model).total  # bf16 weights, fp32 master and two fp32 moments
    14.0
    """
    t = workload.train
    num, each = numerics(t.precision, t.state_precision), STATE_BYTES[t.state_precision]
    trained = lora_params(workload.model, t.lora_rank, t.lora_targets) if t.lora_rank else count(workload.model).total
    if num.weight_bytes >= 4.0 or each <= num.weight_bytes:
        master = 0.0
    else:
        master = each
    return State(trained * num.weight_bytes, trained * master, trained * t.optimizer_states * each)


def write_seconds(size: float, nodes: float, node_rate: float, all_rate: float = inf) -> float:
    """Seconds to write so many bytes from so many nodes, each at `node_rate`, to storage that takes `all_rate` in all.

    >>> write_seconds(112e9, 8, 2e9), write_seconds(112e9, 8, 2e9, 8e9)
    (7.0, 14.0)
    """
    if not node_rate > 0 or not all_rate > 0 or not nodes > 0:
        raise InputError("storage bandwidth", min(node_rate, all_rate, nodes), "more than 0")
    return size / min(nodes * node_rate, all_rate)

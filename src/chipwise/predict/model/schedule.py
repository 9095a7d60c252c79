"""The step as a schedule: what overlaps with what, and how long the whole takes.

Works on `Components` (arrays over layouts) and `StepCoefficients` (numbers, or arrays when many different
stacks are combined in one go, as calibration does).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.model.components import Components

Array = NDArray[np.float64]
Number = Any  # float or Array
SHARP = 6.0  # how sharply the slower of device and host decides
TINY = 1e-300  # keeps a share of nothing at nothing
COLLECTIVES = ("tensor", "expert_exchange", "context", "pipe", "shard", "reduce")  # parts that travel between chips


@dataclass(frozen=True, slots=True)
class StepCoefficients:
    """How a stack on a chip turns raw times into a step. Factors are 1 when the kernels alone decide."""

    matmul: Number = 1.15  # sustained clocks and real shapes against a burst of one kernel
    expert: Number = 1.3
    attention: Number = 1.15
    stream: Number = 1.3
    launch_s: Number = 6e-6  # host seconds per kernel launch
    overlap_shard: Number = 0.85  # share of a collective that can hide behind compute
    overlap_reduce: Number = 0.7
    overlap_tensor: Number = 0.2
    overlap_expert: Number = 0.0
    overlap_pipe: Number = 0.5
    overlap_context: Number = 0.7
    fixed_s: Number = 5e-3  # per step
    optimizer: Number = 1.3


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Seconds of one step by cause, one entry per layout; they add up to `total`."""

    total: Array
    matmul: Array
    expert: Array
    attention: Array
    stream: Array
    recompute: Array
    launch: Array  # waiting for the host to launch kernels
    tensor: Array  # exposed collectives
    expert_exchange: Array
    context: Array
    pipe: Array
    shard: Array
    reduce: Array
    offload: Array
    bubble: Array
    optimizer: Array
    fixed: Array
    hidden: Array  # collectives hidden behind compute (not part of the total)

    @property
    def collectives(self) -> Array:
        """Of `total`, what travels between chips and is exposed."""
        return np.asarray(sum(getattr(self, name) for name in COLLECTIVES))


OFFLOAD_OVERLAP = 0.95  # copies to the host run on engines of their own


def schedule(c: Components, k: StepCoefficients) -> Breakdown:
    """Time one step of every layout.

    Collectives that may run beside compute share one window: what of them is longer than the compute of a
    micro-batch spills out, in proportion to their sizes.
    """
    n, slots = c.micro_batches, c.micro_batches + (c.pp - 1) / c.vpp
    mm_f, ex_f = k.matmul * c.matmul_f, k.expert * c.expert_f
    at_f, st_f = k.attention * c.attention_f, k.stream * c.stream_f
    mm = mm_f + k.matmul * c.matmul_b
    ex = ex_f + k.expert * c.expert_b
    at = at_f + k.attention * c.attention_b
    st = st_f + k.stream * (c.stream_b + np.where(n > 1, c.accumulate, 0.0))
    head_mm, head_st = k.matmul * c.head_matmul, k.stream * c.head_stream
    fwd = mm_f + ex_f + at_f + st_f + c.dequantize
    redo = k.matmul * c.redo_matmul + k.expert * c.redo_expert + c.redo_some * (at_f + st_f)
    redo = redo + c.redo * c.dequantize
    compute = mm + ex + at + st + head_mm + head_st + 2 * c.dequantize + redo
    again = 2 + c.redo
    tensor, exchange, context = again * c.tensor_f, again * c.expert_x, 3 * c.context_f
    shard = c.shard_f + c.shard_b
    hideable = (
        k.overlap_tensor * tensor
        + k.overlap_expert * exchange
        + k.overlap_context * context
        + k.overlap_shard * shard
        + OFFLOAD_OVERLAP * c.offload
    )
    # share of what could hide that does not find room
    spill = np.maximum(hideable - compute, 0.0) / np.maximum(hideable, TINY)
    tensor_x = tensor * (1 - k.overlap_tensor * (1 - spill))
    exchange_x = exchange * (1 - k.overlap_expert * (1 - spill))
    context_x = context * (1 - k.overlap_context * (1 - spill))
    shard_x = shard * (1 - k.overlap_shard * (1 - spill))
    offload_x = c.offload * (1 - OFFLOAD_OVERLAP * (1 - spill))
    pipe_x = (1 - k.overlap_pipe) * c.pipe
    device = compute + tensor_x + exchange_x + context_x + shard_x + offload_x + pipe_x
    host = k.launch_s * (c.launches_f * (1 + c.redo) + c.launches_b)
    stage = (device**SHARP + host**SHARP) ** (1 / SHARP)
    # gradients are reduced behind the last backward pass, in the room other collectives leave
    window = np.minimum(compute - fwd, np.maximum(compute - hideable, 0.0)) + stage - device
    reduce_all = c.reduce + c.replicate
    reduce = (1 - k.overlap_reduce) * reduce_all + np.maximum(k.overlap_reduce * reduce_all - window, 0.0)
    opt = k.optimizer * c.optimizer + k.launch_s * c.launches_step
    total = slots * stage + reduce + opt + k.fixed_s
    every = n * (tensor + exchange + context + c.pipe + shard) + reduce_all
    exposed = n * (tensor_x + exchange_x + context_x + pipe_x + shard_x) + reduce
    return Breakdown(
        total=total,
        matmul=n * (mm + head_mm),
        expert=n * ex,
        attention=n * at,
        stream=n * (st + head_st + 2 * c.dequantize),
        recompute=n * redo,
        launch=n * (stage - device),
        tensor=n * tensor_x,
        expert_exchange=n * exchange_x,
        context=n * context_x,
        pipe=n * pipe_x,
        shard=n * shard_x,
        reduce=reduce,
        offload=n * offload_x,
        bubble=(slots - n) * stage,
        optimizer=opt,
        fixed=k.fixed_s + 0 * total,
        hidden=every - exposed,
    )

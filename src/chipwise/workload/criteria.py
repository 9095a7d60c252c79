"""Which metrics and which hardware decide a workload, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.workload.model import Model, Workload
from chipwise.workload.params import count, lora_params

if TYPE_CHECKING:
    from chipwise.workload.serve import ServingWorkload

_SMALL = 500e6  # parameters: below, a step on a few chips is short enough for fixed costs to show
_LARGE = 10e9  # parameters: above, weights and optimizer state exceed one chip
_FLOPS_PER_PARAM = 6  # forward and backward, per parameter and token
_LONG_RUN = 1e22  # FLOPs: about a day on 512 chips of 400 TFLOP/s in use


def metrics_that_matter(workload: Workload | ServingWorkload) -> list[str]:
    """The metrics and hardware criteria that decide this workload, most important first.

    >>> from chipwise.workload.load import load_workload
    >>> text = "model: mixtral-8x7b\\ntrain: {tokens: 1T, global_batch: 1024, sequence: 4096}"
    >>> metrics_that_matter(load_workload(text))[1].split(":")[0]
    'all-to-all bandwidth'
    """
    if not isinstance(workload, Workload):
        from chipwise.workload.serve_criteria import what_decides_serving

        return what_decides_serving(workload)
    m, t = workload.model, workload.train
    params = count(m)
    said: list[str] = []
    if m.family == "cnn":
        said.append("memory bandwidth: convolutions with batch norm move much data per operation")
        said.append(f"images/s at {t.precision}: matrix units help only where the channels fill them")
        said.append("host and input pipeline: decoding images can starve a fast chip")
    else:
        said.append(f"achievable {t.precision} matmul throughput: it sets tokens/s and MFU")
    if m.experts is not None:
        said.append("all-to-all bandwidth: every MoE layer sends tokens to experts and back")
        said.append(
            f"memory size: all {params.total / 1e9:.0f}B parameters are held,"
            f" {params.active / 1e9:.0f}B work on each token"
        )
    if t.lora_rank:
        trained = lora_params(m, t.lora_rank, t.lora_targets)
        said.append(
            f"memory size for frozen weights and activations: only {trained / 1e6:.0f}M parameters"
            " have gradients and optimizer state"
        )
    elif params.total >= _LARGE and m.experts is None:
        said.append("memory size per chip: weights, gradients and optimizer state must be split")
    if params.total >= _LARGE:
        said.append("interconnect: inside a node or slice for tensor parallelism, between them for the rest")
    flops = _FLOPS_PER_PARAM * params.active * t.tokens
    if m.family != "cnn" and flops >= _LONG_RUN:
        said.append(
            f"cost per {workload.unit[:-1]} and days to finish: {flops:.0e}".replace("e+", "e")
            + " FLOPs are a long run, so failures and spare chips count"
        )
    if params.total < _SMALL:
        said.append("launch and host overhead: the work per step is small, so compiled or captured steps win")
        said.append("price per hour of a small allocation: few chips are enough")
    if m.family != "cnn" and _long(workload):
        said.append(
            f"memory for activations at {t.sequence:,} tokens, and attention FLOP/s:"
            " attention grows with the square of the sequence"
        )
    if t.precision in ("fp8", "fp4", "int8"):
        said.append(f"hardware support for {t.precision}, with the scaling your stack uses")
    if taken := what_was_taken(m):
        said.append(taken)
    if t.recompute == "offload":
        said.append("bandwidth between chip and host memory: activations are offloaded")
    return said


def what_was_taken(model: Model) -> str:
    """What a variant's name was read as, in words; "" where it is a name of the model itself.

    >>> from chipwise.workload.presets import preset
    >>> what_was_taken(preset("Qwen/Qwen3-32B-FP8"))
    'the model: Qwen/Qwen3-32B-FP8 is taken as qwen3-32b, published in fp8'
    """
    if not model.taken_from:
        return ""
    return f"the model: {model.taken_from} is taken as {model.name}, published in {model.native_precision}"


def _long(workload: Workload) -> bool:
    """Whether attention scores cost at least a third of the matrices of a layer."""
    m, s = workload.model, workload.train.sequence
    if m.windowed_layers > m.layers // 2:
        s = min(s, m.window)
    width = m.heads * (m.latent.v_dim if m.latent else m.head_dim)
    scores = 2 * s * width * (0.5 if m.causal else 1.0)  # multiply-adds per token and layer
    params = count(m)
    active = (params.inside_layers - params.experts + params.experts_active) / m.layers
    return scores * 3 >= active

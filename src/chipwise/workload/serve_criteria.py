"""Which metrics and which hardware decide a workload that is served, in words."""

from __future__ import annotations

from chipwise.units import format_bytes, format_count, format_seconds
from chipwise.workload.criteria import what_was_taken
from chipwise.workload.families.seq2seq import written_params
from chipwise.workload.flops import pass_flops
from chipwise.workload.model import STORED_BYTES
from chipwise.workload.params import count, kv_bytes
from chipwise.workload.serve import ServingWorkload

_SMALL = 3e9  # parameters: below, a decoding step takes a millisecond or two, and what surrounds it shows
_LARGE = 10e9  # parameters: above, answers in time often need several chips for one copy
_PREFILL_HEAVY = 20.0  # tokens read for each one written: above, prompts cost more than answers
_WEIGHTS_ALONE = ("int8w", "int4")
_FLOPS_PER_PARAM = 2  # forward, per parameter and token


def what_decides_serving(workload: ServingWorkload) -> list[str]:
    """The metrics and hardware criteria that decide this workload, most important first.

    >>> from chipwise.workload.load import load_serving
    >>> text = "model: llama-3.1-70b\\nserve: {input: 1000, output: 300, arrival: {rate: 20}}"
    >>> [line.split(":")[0] for line in what_decides_serving(load_serving(text))][:3]
    ['memory bandwidth', 'memory size', 'achievable bf16 matmul throughput']
    """
    decides = _tokens(workload) if workload.model.writes else _one_pass(workload)
    return decides + _anyway(workload)


def _tokens(workload: ServingWorkload) -> list[str]:
    """A model that answers token by token."""
    m, s = workload.model, workload.serve
    params = count(m)
    active = params.active - params.mtp_active  # extra layers that predict ahead are not served
    weights = params.main * STORED_BYTES[s.precision]
    step = written_params(m) * STORED_BYTES[s.precision] if m.encoder else weights
    element = STORED_BYTES[s.kv_precision]
    usual, longest = s.input.mean + s.output.mean, s.input.most + s.output.most
    fresh = s.input.mean * (1 - s.prefix_hit)
    bandwidth = (
        f"memory bandwidth: each decoding step reads up to {format_bytes(step)} of weights and the cache of every"
        " sequence in it, which sets the time per token"
    )
    reads = pass_flops(m, fresh) if m.encoder else _FLOPS_PER_PARAM * active * fresh
    prefill = f"{reads:.1e}".replace("e+", "e")
    pass_over = "the encoder takes" if m.encoder else "prefill takes"
    flops = (
        f"achievable {_computed_in(s.precision)} matmul throughput: {pass_over} {prefill}"
        f" FLOPs for the {fresh:,.0f} new tokens of a mean prompt, which sets the time to the first token"
    )
    at_longest = f" and {format_bytes(kv_bytes(m, longest, element))} at {longest:,.0f}" if longest > usual else ""
    size = (
        f"memory size: a request's keys and values take {format_bytes(kv_bytes(m, usual, element))}"
        f" at {usual:,.0f} tokens{at_longest}"
        f", beside {format_bytes(weights)} of weights: it sets how many are answered at once"
    )
    heavy = fresh > _PREFILL_HEAVY * s.output.mean
    said = [flops, bandwidth, size] if heavy else [bandwidth, size, flops]
    if m.experts is not None:
        said.append(
            f"all-to-all latency and bandwidth: {m.moe_layers} layers send tokens to experts and back; all"
            f" {params.main / 1e9:.0f}B parameters are held, {active / 1e9:.0f}B work on each token"
        )
    if params.main >= _LARGE:
        said.append(
            f"interconnect latency: tensor parallelism takes {2 * m.layers} all-reduces a step, and small batches"
            " can't hide them"
        )
    if active < _SMALL:
        said.append("host overhead: scheduling, launches and sampling are a large part of such short steps")
    return said


def _one_pass(workload: ServingWorkload) -> list[str]:
    """A model that answers in one pass, or in a fixed number of them."""
    m, s = workload.model, workload.serve
    params = count(m)
    if m.family == "cnn":
        said = ["memory bandwidth: convolutions move much data per operation, less where the compiler fuses them",
                f"images/s at {s.precision}: matrix units help only where the channels fill them"]  # fmt: skip
    else:
        passes = f" in {s.passes} passes" if s.passes > 1 else ""
        each = pass_flops(m, s.input.mean) * s.passes
        flops = f"{each:.2e}" if m.denoises else f"{each:.1e}"
        long = "" if m.unet else f" of {m.image_tokens or s.input.mean:,.0f} tokens"
        said = [
            f"achievable {_computed_in(s.precision)} matmul throughput: {s.unit}{long}"
            f" take about {flops.replace('e+', 'e')} FLOPs each{passes}"
        ]
    if params.main < _SMALL:
        said.append("host overhead and batching: a pass is short, so captured or compiled passes and full batches win")
        said.append("price per hour of one chip: a copy of the model fits the smallest")
    if s.unit == "images" and not m.denoises:
        said.append("host and input pipeline: decoding images can starve a fast chip")
    return said


def _anyway(workload: ServingWorkload) -> list[str]:
    """What the arrivals, the SLO and the precision add."""
    s = workload.serve
    said = [taken] if (taken := what_was_taken(workload.model)) else []
    if s.arrival.kind == "offline":
        by = f" within {format_seconds(s.deadline_s)}" if s.deadline_s else ""
        said.append(f"cost per {s.unit[:-1]} at full batches: {format_count(s.requests)} requests{by} bound no latency")
    elif s.slo:
        said.append(f"requests/s within the SLO ({', '.join(map(str, s.slo))}), not {s.unit}/s at any latency")
    if s.arrival.kind in ("bursty", "trace"):
        said.append("spare capacity: requests come in bursts, and the tail of the latencies is made in them")
    if s.precision in _WEIGHTS_ALONE:
        said.append(f"kernels that unpack {s.precision} weights as they are read: products run in 16 bits")
    elif s.precision in ("fp8", "fp4", "int8"):
        said.append(f"hardware support for {s.precision}, with the scaling your stack uses")
    return said


def _computed_in(precision: str) -> str:
    """The precision of the products."""
    return "16 bits" if precision in _WEIGHTS_ALONE else precision

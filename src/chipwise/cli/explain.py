"""How a prediction comes about: bounds first, then the estimate, then what it is made of."""

from __future__ import annotations

from chipwise.catalog.calibration import Calibration
from chipwise.cli.render import Block, Table, Text, bar
from chipwise.cost import Quote
from chipwise.predict.prediction import Prediction, collectives
from chipwise.units import format_bytes, format_count, format_money, format_seconds

PARTS = {
    "matmul": "matrix products",
    "expert": "expert products",
    "attention": "attention",
    "stream": "memory-bound operations",
    "recompute": "recomputation",
    "launch": "waiting for the host",
    "tensor": "tensor-parallel collectives, exposed",
    "expert_exchange": "expert all-to-all, exposed",
    "context": "context-parallel exchange, exposed",
    "pipe": "pipeline sends, exposed",
    "shard": "gathers of sharded weights, exposed",
    "reduce": "gradient reduction, exposed",
    "offload": "copies to the host, exposed",
    "bubble": "pipeline bubble",
    "optimizer": "optimiser",
    "fixed": "fixed costs of a step",
}
COMMS = {
    "tensor": "tensor parallel (all-gather, reduce-scatter)",
    "expert_exchange": "experts (all-to-all)",
    "context": "context parallel (ring)",
    "pipe": "pipeline (send)",
    "shard": "sharded weights (all-gather)",
    "reduce": "gradients (reduce-scatter or all-reduce)",
}
MEMORY = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimiser state",
    "activations": "activations",
    "head": "logits and their gradient",
    "gathered": "gathered weights",
}


def explanation(p: Prediction, calibration: Calibration) -> list[Block]:
    """The bounds, the estimate, the breakdown, collectives, memory and assumptions, in that order."""
    comms = collectives(p, calibration)
    wires = sum(c["exposed"] + c["hidden"] for c in comms.values())
    return [
        Text(f"{p.workload.name} on {p.accelerators} with {p.layout}"),
        Table(["one step", "seconds", "what it is"], [
            ["T_math", _s(p.math_s), "the model's FLOPs at the dense peak of the chips"],
            ["T_comms", _s(wires), "everything on the wires, if nothing overlapped"],
            ["lower bound", _s(p.bound_s), "the longer of the two: no schedule is faster"],
            ["estimate", _s(p.step.value), f"{_s(p.step.low)} to {_s(p.step.high)} in 9 of 10 cases"],
        ], frozenset({"one step", "what it is"}), frozenset({3})),
        Text(f"evidence: {p.step.evidence} ({p.step.because}); published steps nearby correct the formulas by "
             f"{(p.learnt - 1) * 100:+.1f}%"),
        _breakdown(p), _comms(comms), *_memory(p),
        Text("Assumptions", True), *(Text(f"  {a}") for a in p.assumptions),
    ]


def _s(seconds: float) -> str:
    return format_seconds(max(seconds, 0.0))


def _breakdown(p: Prediction) -> Table:
    rows = [[PARTS.get(name, name), _s(seconds), f"{seconds / p.step.value * 100:.1f}%"]
            for name, seconds in p.parts.items() if seconds > 0]
    rows.append(["step", _s(p.step.value), "100.0%"])
    return Table(["where the step goes", "seconds", "share"], rows, frozenset({"where the step goes"}),
                 title="Breakdown")


def _comms(comms: dict[str, dict[str, float]]) -> Block:
    rows = [[COMMS[kind], _s(c["exposed"]), _s(c["hidden"])]
            for kind, c in comms.items() if c["exposed"] + c["hidden"] > 0]
    if not rows:
        return Text("Collectives: none, the chips do not talk to each other", True)
    return Table(["collective", "exposed", "hidden"], rows, frozenset({"collective"}), title="Collectives")


def _memory(p: Prediction) -> list[Block]:
    rows = [[MEMORY.get(name, name), format_bytes(size), bar(size / p.capacity)]
            for name, size in p.memory.items() if name != "total" and size > 0]
    total = p.memory["total"]
    rows.append(["total", format_bytes(total), bar(total / p.capacity)])
    said = f"{total / p.capacity * 100:.0f}% of the {format_bytes(p.capacity)} that can be allocated on a chip"
    return [Table(["memory of a chip", "size", "of its capacity"], rows,
                  frozenset({"memory of a chip", "of its capacity"}), title="Memory"), Text(said)]


def summary(p: Prediction, ondemand: Quote | None, spot: Quote | None) -> list[Block]:
    """What people ask first."""
    unit = "images" if p.workload.train.samples_unit == "images" else "tokens"
    rate = p.tokens_per_s
    each = rate.value / p.accelerators.count
    lines = [
        ["layout", str(p.layout)],
        ["step", f"{_s(p.step.value)} ({_s(p.step.low)} to {_s(p.step.high)}), {p.step.evidence}"],
        ["rate", f"{format_count(rate.value)} {unit}/s, {each:,.3g} per chip" if each < 100
         else f"{format_count(rate.value)} {unit}/s, {each:,.0f} per chip"],
        ["MFU", f"{p.mfu * 100:.1f}%"],
        ["memory", f"{format_bytes(p.memory['total'])} of {format_bytes(p.capacity)} a chip"],
        ["run", f"{_s(p.duration.value)} ({_s(p.duration.low)} to {_s(p.duration.high)}), "
                f"{p.workload.train.steps:,} steps"],
        ["energy", f"{p.kwh.value:,.0f} kWh" if p.kwh.value >= 100 else f"{p.kwh.value:.3g} kWh"],
        ["on demand", _cost(ondemand)],
        ["spot", _cost(spot)],
    ]
    return [Text(f"{p.workload.name} on {p.accelerators}"),
            Table(["summary", "value"], lines, frozenset({"summary", "value"}), title="Summary")]


def _cost(q: Quote | None) -> str:
    if q is None:
        return "no public price"
    return f"{format_money(q.usd.value)} ({format_money(q.usd.low)} to {format_money(q.usd.high)}) at {q.price}"

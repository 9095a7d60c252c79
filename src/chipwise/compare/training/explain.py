"""How a prediction comes about: bounds first, then the estimate, then what it is made of."""

from __future__ import annotations

from chipwise.catalog.calibration import Calibration
from chipwise.predict.prediction import Prediction, collectives, step_in_words
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural, time_interval
from chipwise.present.text import bar
from chipwise.prices import Quote
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
    "offload": "copies to the host, exposed",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer",
    "fixed": "fixed costs of a step",
}
COMMS = {
    "tensor": "tensor parallel (all-gather, reduce-scatter)",
    "expert_exchange": "experts (all-to-all)",
    "context": "context parallel (ring)",
    "pipe": "pipeline (send)",
}
SHARD = {  # what travels between replicas in every micro-batch, by ZeRO stage
    2: "gradients of each micro-batch (reduce-scatter)",
    3: "weights (all-gather) and gradients (reduce-scatter)",
}
REDUCE = {  # and once a step
    0: "gradients (all-reduce)",
    1: "gradients (reduce-scatter) and updated weights (all-gather)",
    2: "updated weights (all-gather)",
    3: "gradients between sharded groups (all-reduce)",
}
LEAST_SHARE = 0.0005  # less shows as 0.0%
LEAST_SECONDS = 5e-9  # less shows as 0.00 µs
MEMORY = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer state",
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
        Table(
            ["one step", "seconds", "what it is"],
            [
                ["T_math", _s(p.math_s), "the model's FLOPs at the dense peak of the chips"],
                ["T_comms", _s(wires), "everything on the wires, if nothing overlapped"],
                ["lower bound", _s(p.bound_s), "the longer of the two: no schedule is faster"],
                ["estimate", _s(p.step.value), f"{time_interval(p.step)} in 9 of 10 cases"],
            ],
            frozenset({"one step", "what it is"}),
            frozenset({3}),
        ),
        Text(
            f"evidence: {p.step.evidence} ({p.step.because}); "
            f"{'measurements of the chip' if p.measured else 'published steps nearby'} correct the formulas by "
            f"{(p.calibration_factor - 1) * 100:+.1f}%"
        ),
        _breakdown(p),
        _comms(p, comms),
        *_memory(p),
        Text("Assumptions", True),
        *(Text(f"  {a}") for a in p.assumptions),
    ]


def _s(seconds: float) -> str:
    return format_seconds(max(seconds, 0.0))


def _label(kind: str, p: Prediction, names: dict[str, str]) -> str:
    """A part's name; what ZeRO sends depends on its stage."""
    by_stage = {"shard": SHARD, "reduce": REDUCE}.get(kind)
    if by_stage is None:
        return names.get(kind, kind)
    words = by_stage.get(p.layout.zero, kind)
    if kind == "reduce" and p.layout.zero in (1, 2) and p.layout.shard < p.layout.dp:
        words += ", gradients between sharded groups (all-reduce)"
    return f"{words}, exposed" if names is PARTS else words


def _breakdown(p: Prediction) -> Table:
    shares = {name: seconds / p.step.value for name, seconds in p.parts.items()}
    rows = [
        [_label(name, p, PARTS), _s(p.parts[name]), f"{share * 100:.1f}%"]
        for name, share in shares.items()
        if share >= LEAST_SHARE
    ]
    rows.append(["step", _s(p.step.value), "100.0%"])
    return Table(
        ["where the step goes", "seconds", "share"], rows, frozenset({"where the step goes"}), title="Breakdown"
    )


def _comms(p: Prediction, comms: dict[str, dict[str, float]]) -> Block:
    rows = [
        [_label(kind, p, COMMS), _s(c["exposed"]), _s(c["hidden"])]
        for kind, c in comms.items()
        if c["exposed"] + c["hidden"] >= LEAST_SECONDS
    ]
    if not rows:
        return Text("Collectives: none", True)
    return Table(["collective", "exposed", "hidden"], rows, frozenset({"collective"}), title="Collectives")


def _memory(p: Prediction) -> list[Block]:
    rows = [
        [MEMORY.get(name, name), format_bytes(size), bar(size / p.capacity)]
        for name, size in p.memory.items()
        if name != "total" and size > 0
    ]
    total = p.memory["total"]
    rows.append(["total", format_bytes(total), bar(total / p.capacity)])
    said = f"{total / p.capacity * 100:.0f}% of the {format_bytes(p.capacity)} that can be allocated on a chip"
    return [
        Table(
            ["memory of a chip", "size", "of its capacity"],
            rows,
            frozenset({"memory of a chip", "of its capacity"}),
            title="Memory",
        ),
        Text(said),
    ]


def summary(p: Prediction, ondemand: Quote | None, spot: Quote | None) -> list[Block]:
    """What people ask first."""
    unit = p.workload.unit
    rate = p.tokens_per_s
    each = rate.value / p.accelerators.count
    lines = [
        ["layout", str(p.layout)],
        ["batch", step_in_words(p.workload)],
        ["step", f"{_s(p.step.value)} ({time_interval(p.step)}), {p.step.evidence}"],
        [
            "rate",
            f"{format_count(rate.value)} {unit}/s, {each:,.3g} per chip"
            if each < 100
            else f"{format_count(rate.value)} {unit}/s, {each:,.0f} per chip",
        ],
        ["MFU", f"{p.mfu * 100:.1f}%"],
        ["memory", f"{format_bytes(p.memory['total'])} of {format_bytes(p.capacity)} a chip"],
        ["run", f"{_s(p.duration.value)} ({time_interval(p.duration)}), {plural(p.workload.train.steps, 'step')}"],
        ["energy", _energy(p.kwh.value)],
        ["on demand", _cost(ondemand)],
        ["spot", _cost(spot)],
    ]
    return [
        Text(f"{p.workload.name} on {p.accelerators.in_words()}"),
        Table(["summary", "value"], lines, frozenset({"summary", "value"}), title="Summary", bare=True),
    ]


def _energy(kwh: float) -> str:
    if kwh >= 100:
        return f"{kwh:,.0f} kWh"
    return f"{kwh:.3g} kWh" if kwh >= 0.1 else f"{kwh * 1e3:.3g} Wh"


def _cost(q: Quote | None) -> str:
    if q is None:
        return "no public price"
    return f"{format_money(q.usd.value)} ({format_money(q.usd.low)} to {format_money(q.usd.high)}) at {q.price}"

"""A service in the words of its stack: the flags that set it up as it was simulated."""

from __future__ import annotations

from chipwise.serving.formats import half
from chipwise.serving.service import Service


def flags(of: Service) -> str:
    """The command line of one replica; "" for stacks without one of their own."""
    serving = of.replica.stack.serving
    if serving is None:
        return ""
    fields, holds = _fields(of), _conditions(of)
    return " ".join(part.text.format(**fields) for part in serving.command if not part.when or holds[part.when])


def _fields(of: Service) -> dict[str, str | int]:
    r, s, k, serve = of.replica, of.replica.split, of.replica.config, of.target.workload.serve
    return {
        "tp": s.tp,
        "pp": s.pp,
        "dp": s.dp,
        "ep": s.ep,
        "tp_dp": s.tp * s.dp,
        "precision": r.precision,
        "most_sequences": k.most_sequences,
        "most_tokens": k.most_tokens,
        "block": k.block,
        "slots": max(1, k.most_sequences // s.chips),
        "longest_input": round(serve.input.most),
        "longest": round(serve.input.most + serve.output.most),
    }


def _conditions(of: Service) -> dict[str, bool]:
    r, s = of.replica, of.replica.split
    return {
        "pp": s.pp > 1,
        "dp": s.dp > 1,
        "ep": s.ep > 1,
        "fp8": r.precision == "fp8",
        "fp16": half(r.chip) == "fp16",
        "kv_fp8": r.kv_precision == "fp8",
    }

"""Published runs under an open load: one CSV row into a workload, a split, settings and what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.catalog import Chip, Stack, find_chip, find_stack
from chipwise.errors import InputError
from chipwise.serving.split import Split
from chipwise.validate.serving_rows import QUEUED, precision_of
from chipwise.workload.presets import preset
from chipwise.workload.serve import Arrival, Lengths, Serve, ServingWorkload

COLUMNS = frozenset({"id", "accelerator", "preset", "rate", "requests", "prefix_hit", "ttft_mean_ms"})
METRICS = {"ttft": "ttft_mean_ms", "tpot": "tpot_mean_ms", "e2e": "e2e_mean_ms"}
NUMBERS = ("tp", "ep", "max_num_seqs", "max_num_batched_tokens", "rate", "requests", "input_len", "output_len")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRow:
    """A published run in our terms."""

    id: str
    source: str
    chip: Chip
    split: Split
    stack: Stack
    workload: ServingWorkload
    requests: int
    most_sequences: int
    most_tokens: int
    observed: Mapping[str, float]  # metric -> mean seconds


def why_not(row: Mapping[str, str]) -> str:
    """Why a row is not eligible; "" where it is."""
    gaps = [name for name in ("preset", "precision", *NUMBERS, *METRICS.values()) if not row.get(name, "").strip()]
    if gaps:
        return "no " + ", ".join(gaps)
    if number({"kv_offload": "0", **row}, "kv_offload"):
        return "a cache that is moved to the host"
    answer = number(row, "output_len") * number(row, "tpot_mean_ms")
    return "queueing above capacity" if number(row, "ttft_mean_ms") > QUEUED * answer else ""


def eligible(row: Mapping[str, str]) -> bool:
    """Load, lengths, settings and latencies are present, and requests were not waiting for a server that was full."""
    return not why_not(row)


def number(row: Mapping[str, str], name: str, least: float = 0.0) -> float:
    """A number of the row."""
    text = row.get(name, "").strip()
    try:
        value = float(text)
    except ValueError:
        raise InputError(name, text, "a number") from None
    if not least <= value < 1e12:
        raise InputError(name, text, f"a finite number of at least {least:g}")
    return value


def read(row: Mapping[str, str]) -> OpenRow:
    """One eligible row."""
    model, precision = preset(row["preset"]), precision_of(row["precision"])
    sizes = {name: number(row, name, least=1e-3 if name == "rate" else 1.0) for name in NUMBERS}
    hit = number(row, "prefix_hit")
    if hit > 1:
        raise InputError("prefix_hit", row["prefix_hit"], "a share of at most 1")
    serve = Serve(
        Lengths.fixed(sizes["input_len"]),
        Lengths.fixed(sizes["output_len"]),
        Arrival("poisson", sizes["rate"]),
        precision=precision,
        prefix_hit=hit,
    )
    tp, ep = int(sizes["tp"]), int(sizes["ep"])
    stack = find_stack(row.get("framework", ""), "serve")
    if stack is None:
        raise InputError("framework", row.get("framework", ""), "a stack of the catalog")
    return OpenRow(
        id=row["id"],
        source=row.get("source_repo", ""),
        chip=find_chip(row["accelerator"]),
        split=Split(tp=tp, ep=ep if model.experts else 1),
        stack=stack,
        workload=ServingWorkload(model.name, model, serve),
        requests=int(sizes["requests"]),
        most_sequences=int(sizes["max_num_seqs"]),
        most_tokens=int(sizes["max_num_batched_tokens"]),
        observed={metric: number(row, column, 1e-6) / 1e3 for metric, column in METRICS.items()},
    )

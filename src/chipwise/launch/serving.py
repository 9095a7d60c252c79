"""Fields and conditions of a served model, as the pieces of its tool name them."""

from __future__ import annotations

from chipwise.launch.described import Replicas
from chipwise.launch.tools import Tool
from chipwise.launch.training import Conditions, Fields

PLAIN = ("bf16", "fp16", "fp32", "fp8")  # weights that need no checkpoint of their own
BLOCK = 16  # tokens of a page of vLLM where its backend asks for no other (latent attention does): not written out
ROOM = 8192  # tokens of a sequence that is let in though the workload has none so long
PORT = 29500  # of a replica's hosts among themselves: torch's own


def fields(run: Replicas, tool: Tool) -> Fields:
    """What stands in the braces of a tool's pieces."""
    serve, own = run.workload.serve, run.stack.serving
    return {
        **{axis: getattr(run, axis) for axis in ("tp", "pp", "dp", "ep", "most_sequences", "most_tokens", "block")},
        "tp_dp": run.tp * run.dp,
        "slots": max(1, run.most_sequences // run.chips),
        "longest": round(_longest(run)),
        "admitted": round(_admitted(run)),
        "longest_input": round(serve.input.most),
        "memory_share": f"{own.memory_share if own else 0.9:g}",
        "precision": serve.precision,
        "stored": run.workload.model.native_precision,
        "kv_precision": serve.kv_precision,
        "replica_nodes": run.hosts.count,
        "port": PORT,
        "drafts": serve.speculation.tokens if serve.speculation else 0,
        "drafted_by": serve.speculation.draft if serve.speculation else "",
        "tool_model": tool.models.get(run.workload.model.name, ""),
    }


def _longest(run: Replicas) -> float:
    """Tokens of the longest sequence that the decoder sees; an encoder that reads audio has positions of its own."""
    model, serve = run.workload.model, run.workload.serve
    return serve.output.most + (0.0 if model.encoder and model.fixed_input else serve.input.most)


def _admitted(run: Replicas) -> float:
    """Tokens of the longest sequence that an engine with paged caches lets in.

    Lengths are means more often than bounds, and a longer request is refused: room is left, up to the model's context.
    """
    model, longest = run.workload.model, _longest(run)
    return longest if model.encoder and model.fixed_input else max(longest, min(ROOM, model.context))


def conditions(run: Replicas, tool: Tool) -> Conditions:
    """What the pieces of a tool ask for."""
    serve, chip, own = run.workload.serve, run.accelerators.chip, run.stack.serving
    writes = serve.unit == "tokens"
    model = run.workload.model
    plain = model.serve_precision in PLAIN[:3]  # the checkpoint: weights that can be quantized while they are loaded
    published = model.serve_precision == serve.precision
    return {
        **{axis: getattr(run, axis) > 1 for axis in ("pp", "dp", "ep")},
        "axes": run.pp > 1 or run.dp > 1 or run.ep > 1,
        "ep_partial": 1 < run.ep < run.tp * run.dp,
        "fp8": serve.precision == "fp8" and plain,
        "fp8_served": serve.precision == "fp8",
        "int8": serve.precision == "int8",
        "fp32": serve.precision == "fp32",
        "fp16": serve.precision != "fp32" and run.half == "fp16",
        "quantized": serve.precision not in PLAIN and plain,
        "other_checkpoint": not plain and not published,
        "audio": model.encoder is not None,
        "block": run.block != BLOCK,
        "kv_fp8": writes and serve.kv_precision == "fp8",
        "kv_int8": writes and serve.kv_precision == "int8",
        "kv_other": writes and serve.kv_precision not in ("bf16", "fp16", "fp8"),
        "mixed": run.mixed,
        "speculates": serve.speculation is not None,
        "drafts_ngram": serve.speculation is not None and serve.speculation.draft == "ngram",
        "drafts_layer": serve.speculation is not None and serve.speculation.draft == "mtp",
        "drafts_model": serve.speculation is not None and serve.speculation.model is not None,
        "writes": writes,
        "longest": serve.input.most + serve.output.most > 0,
        "share_of_chip": own is not None and not own.share_of_free,
        "many_nodes": run.hosts.count > 1,
        "named": model.name in tool.models,
        "gpu": chip.family == "gpu",
        "tpu": chip.family == "tpu",
    }

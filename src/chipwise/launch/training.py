"""Fields and conditions of a training run, as the pieces of its tool name them."""

from __future__ import annotations

from math import gcd

from chipwise.launch.described import TrainingRun
from chipwise.launch.tools import Tool
from chipwise.ops.table import build
from chipwise.predict.model.stages import chunks
from chipwise.workload.model import BASES

Fields = dict[str, str | int | float]
Conditions = dict[str, bool]
# as Megatron-LM's --optimizer has them
OPTIMIZERS = {"adam": "adam", "adamw": "adam", "sgd": "sgd", "muon": "muon", "lion": "lion"}
FSDP_OPTIMIZERS = ("adam", "sgd")  # all that Megatron-FSDP takes: megatron/training/arguments.py of 0.19.2
MESH = ("data", "fsdp", "pipeline")
MAXTEXT_OPTIMIZERS = {"adam": "adamw", "adamw": "adamw", "sgd": "sgd", "muon": "muon"}
TRL_OPTIMIZERS = {"adam": "adamw_torch", "adamw": "adamw_torch", "sgd": "sgd"}  # transformers' --optim
LORA_MODULES = {"attention": "q_proj k_proj v_proj o_proj", "all": "all-linear"}  # as Hugging Face's decoders name them


STORAGE = {"bf16": "bfloat16", "fp16": "float16"}  # that 4-bit weights are sharded as: what FSDP shards is of one type


def fields(run: TrainingRun, tool: Tool) -> Fields:
    """What stands in the braces of a tool's pieces."""
    work, layout, acc = run.workload, run.layout, run.accelerators
    t, m = work.train, work.model
    shard = layout.shard if layout.zero else 1
    optimizers = _optimizers(tool)
    stages = layout.pp * layout.vpp
    return {
        **{axis: getattr(layout, axis) for axis in ("dp", "tp", "pp", "cp", "ep", "vpp")},
        "mbs": _plain(layout.micro_batch),
        "shard": shard,
        "replicate": layout.dp // shard,
        "replica_batch": t.global_batch // layout.dp,
        "microbatches": _plain(t.global_batch / (layout.dp * layout.micro_batch)),
        "stages": stages,
        "stage_layers": m.layers // stages,
        "stage_layout": _stage_layout(run),
        "global_batch": t.global_batch,
        "sequence": t.sequence,
        "positions": max(t.sequence, m.learned_positions),
        "steps": t.steps,
        "precision": t.precision,
        "optimizer": optimizers.get(t.optimizer, next(iter(optimizers.values()))),
        "optimizer_name": t.optimizer,
        "chip": acc.chip.id,
        "devices": acc.chip.devices,
        "tool_model": tool.models.get(m.name, ""),
        "lora_rank": t.lora_rank,
        "lora_modules": LORA_MODULES[t.lora_targets],
        "storage": STORAGE.get(t.precision, t.precision),
        **_sizes(run),
        **_mesh(run),
    }


def _stage_layout(run: TrainingRun) -> str:
    """The layers of virtual stages as Megatron reads them: E embedding, t layers, L output; "" where one is empty."""
    w, layout = run.workload, run.layout
    layers = chunks(build(w.model, w.train.sequence), layout.pp, layout.vpp)
    if not all(layers):
        return ""
    return f"E{'|'.join(f't*{count}' for count in layers)}L"


def _sizes(run: TrainingRun) -> Fields:
    m = run.workload.model
    sizes: Fields = {name: getattr(m, name) for name in ("layers", "d_model", "d_ff", "heads", "head_dim", "vocab")}
    sizes["kv_heads"] = m.kv_heads
    e, latent = m.experts, m.latent
    sizes |= {
        "experts": e.count if e else 0,
        "top_k": e.per_token if e else 0,
        "expert_ff": e.d_ff if e else 0,
        "shared_ff": e.shared_d_ff if e else 0,
        "first_dense": e.first_dense if e else 0,
        "moe_layers": m.moe_layers,
    }
    names = ("q_rank", "kv_rank", "nope_dim", "rope_dim", "v_dim")
    return sizes | {name: getattr(latent, name) if latent else 0 for name in names}


def _mesh(run: TrainingRun) -> Fields:
    """Axes of a JAX mesh over the devices of a slice (or host), and over several of them."""
    layout, acc, t = run.layout, run.accelerators, run.workload.train
    devices = acc.count * acc.chip.devices
    fsdp = layout.shard if layout.zero == 3 else 1
    data = layout.dp // fsdp
    if fsdp > 1:
        fsdp *= acc.chip.devices
    else:
        data *= acc.chip.devices
    inside = gcd(fsdp, layout.ep)  # experts lie inside the replicas
    fsdp, data = fsdp // inside, data // gcd(data, layout.ep // inside)
    groups = acc.slices if acc.chip.family == "tpu" else run.hosts.count
    over = {"data": data, "fsdp": fsdp, "pipeline": layout.pp}
    split = next((axis for axis, size in over.items() if size % groups == 0), "")
    if split:
        over[split] //= groups
    dcn = {axis: groups if axis == split else 1 for axis in over}
    step = t.global_batch if layout.pp > 1 else layout.dp * layout.micro_batch
    return {
        **{f"ici_{axis}": size for axis, size in over.items()},
        **{f"dcn_{axis}": size for axis, size in dcn.items()},
        "slices": groups,
        "device_batch": _plain(step / devices),
        "accumulation": round(t.global_batch / (layout.dp * layout.micro_batch)),
        "data_flags": " --xla_tpu_enable_data_parallel_all_reduce_opt=true"
        " --xla_tpu_data_parallel_opt_different_sized_ops=true"
        if data * dcn["data"] > 1
        else "",
    }


def conditions(run: TrainingRun, tool: Tool) -> Conditions:
    """What the pieces of a tool ask for."""
    work, layout, acc = run.workload, run.layout, run.accelerators
    t, m, e = work.train, work.model, work.model.experts
    mesh = _mesh(run)
    inside = layout.ep // gcd(layout.ep, layout.dp)
    return {
        **{axis: getattr(layout, axis) > 1 for axis in ("tp", "pp", "cp", "ep", "vpp")},
        **{f"recompute_{way}": layout.recompute == way for way in ("none", "selective", "full", "offload")},
        **{precision: t.precision == precision for precision in ("bf16", "fp16", "fp8", "int8", "fp32")},
        "precision_other": t.precision not in ("bf16", "fp16", "fp8", "fp32"),
        "axes": max(layout.tp, layout.pp, layout.cp, layout.ep) > 1,
        "zero": layout.zero > 0,
        **{f"zero{stage}": layout.zero == stage for stage in (1, 2, 3)},
        "fsdp": layout.zero >= 2,
        "partial": layout.zero > 0 and layout.shard < layout.dp,
        "pipe_inner": layout.pipe_inner,
        "sequence_parallel": run.stack.sequence_parallel,
        "fraction": layout.micro_batch != int(layout.micro_batch),
        "uneven": m.layers % (layout.pp * layout.vpp) != 0,
        "idle_stage": _stage_layout(run) == "",
        "accumulates": int(mesh["accumulation"]) > 1,
        "dcn_fsdp": int(mesh["dcn_fsdp"]) > 1,
        "dcn_pipeline": int(mesh["dcn_pipeline"]) > 1,
        "dcn_none": int(mesh["slices"]) > 1 and not any(int(mesh[f"dcn_{axis}"]) > 1 for axis in MESH),
        "ep_over_cp": inside > 1,
        "lora": t.lora_rank > 0,
        **{base: t.lora_base == base for base in BASES},
        "optimizer_other": t.optimizer not in _optimizers(tool),
        "optimizer_not_fsdp": layout.zero >= 2 and OPTIMIZERS.get(t.optimizer, "adam") not in FSDP_OPTIMIZERS,
        "named": m.name in tool.models,
        "moe": e is not None,
        "shared_experts": e is not None and e.shared_d_ff > 0,
        "first_dense": e is not None and e.first_dense > 0,
        "every": e is not None and e.every > 1,
        "latent": m.latent is not None,
        "q_rank": m.latent is not None and m.latent.q_rank > 0,
        "grouped": m.kv_heads < m.heads,
        "learned_positions": m.learned_positions > 0,
        "rms_norm": m.norm_params == 1,
        "gated": m.gated,
        "bias": m.bias,
        "qkv_bias": m.qkv_bias,
        "tied": m.tied,
        "tpu": acc.chip.family == "tpu",
        "gpu": acc.chip.family == "gpu",
        "many_devices": acc.chip.devices > 1,
        "many": acc.count * acc.chip.devices > 1,
    }


def _optimizers(tool: Tool) -> dict[str, str]:
    return {"maxtext": MAXTEXT_OPTIMIZERS, "trl": TRL_OPTIMIZERS}.get(tool.id, OPTIMIZERS)


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else number

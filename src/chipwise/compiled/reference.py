"""A workload on chips as a job for the compiler: our reference program, its mesh, and the options it runs with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import prod
from typing import Any

from chipwise.catalog import Accelerators, Chip
from chipwise.catalog.compilers import SPLASH_BLOCK, tpu_compilers
from chipwise.compiled.job import Job, Option, Spec
from chipwise.compiled.targets import target_of
from chipwise.errors import InputError, Refusal
from chipwise.predict.model.layouts import Layout
from chipwise.predict.model.precision import numerics, peaks
from chipwise.programs.program import RECOMPUTE, Recompute
from chipwise.workload.model import UNWRITTEN, UNWRITTEN_EXPERTS, Model, Workload

LOW = ("int8", "fp8")  # what layers of transformers multiply in, beside the other arithmetic in bf16


def recipe(chip: Chip) -> dict[str, Option]:
    """Compiler options that people run a chip with; none where they run it with the compiler's defaults."""
    compiler = tpu_compilers().get(chip.id)
    return dict(compiler.recipe) if compiler else {}


def splash_block(chip: Chip) -> int:
    """The block of splash attention in the same recipes."""
    compiler = tpu_compilers().get(chip.id)
    return compiler.splash_block if compiler else SPLASH_BLOCK


def has_program(model: Model) -> bool:
    """Whether a reference program builds this very model, not one like it.

    >>> from chipwise.workload.presets import preset
    >>> has_program(preset("llama-3.1-8b")), has_program(preset("bamba-9b"))
    (True, False)
    """
    return model.family in ("decoder", "encoder", "vit", "cnn") and model.plain


def training_job(
    workload: Workload,
    acc: Accelerators,
    layout: Layout,
    recompute: Recompute | None = None,
    options: Mapping[str, Option] | None = None,
) -> Job:
    """The training step of a workload, split by `layout` inside one slice.

    Slices are joined by the data-center network: the step of one is compiled, and their gradients' sum is timed by
    the link model. Refuses what the reference programs can't do, with the reason.
    """
    model, train = workload.model, workload.train
    if layout.pp > 1:
        raise Refusal(
            f"the reference program splits by data, fsdp, expert, context and tensor axes, not {layout}: "
            "pipeline parallelism is modelled, not compiled"
        )
    if reason := context_refusal(workload, layout):
        raise Refusal(reason)
    if train.lora_rank and (train.lora_base or model.family == "cnn"):
        base = f"a base in {train.lora_base}" if train.lora_base else f"a {model.family}"
        raise Refusal(f"the reference program has no adapters beside {base}; they are modelled, not compiled")
    _can_compute(model, train.precision, acc.chip)
    if not has_program(model):
        raise Refusal(f"there is no reference program of a {model.kind} yet; it is modelled, not compiled")
    one = Accelerators(acc.chip, prod(acc.shape), acc.shape, 1) if acc.shape else acc
    target = target_of(one)
    mesh = mesh_of(layout, acc, target.devices)
    devices_a_chip = target.devices // one.count
    replica = mesh["data"] * mesh["fsdp"] * mesh["expert"] * acc.slices
    local = train.global_batch / replica
    micro = min(layout.micro_batch / (devices_a_chip if devices_a_chip > 1 else 1), local)
    if local != int(local) or local < 1:
        raise Refusal(
            f"the global batch {train.global_batch} gives {local:g} samples to each of {replica} devices: "
            "the reference program needs whole samples"
        )
    micro = max(int(micro), 1)
    while int(local) % micro:
        micro -= 1
    inside = replace(train, global_batch=train.global_batch // acc.slices, steps=1, stack="")
    trained = asdict(inside)
    del trained["lora_base"]  # no program depends on it
    spec = {
        "model": written(model),
        "train": trained,
        "micro_batch": micro,
        "accumulate": int(local) // micro,
        "recompute": asdict(recompute or RECOMPUTE[layout.recompute]),
        "block": splash_block(acc.chip),
        "mode": "train",
        "platform": target.platform,
    }
    return Job(Spec("workload", model.name, spec), target, {**recipe(acc.chip), **(options or {})}, mesh)


def context_refusal(workload: Workload, layout: Layout) -> str:
    """Why no reference program splits sequences so; "" where one does."""
    model, parts = workload.model, layout.cp
    if parts > 1 and (model.family != "decoder" or not model.causal or model.learned_positions or model.token_types):
        return f"the reference program splits sequences of decoders without learned positions, not of {model.name}"
    if workload.train.sequence % (2 * parts) and parts > 1:
        return (
            f"a sequence of {workload.train.sequence} tokens can't be split over 2 x cp({parts}): a device has a part "
            "and its mirror"
        )
    return ""


def _can_compute(model: Model, precision: str, chip: Chip) -> None:
    """Refuses a precision that no reference program has, or that the chip doesn't multiply in."""
    if precision in ("bf16", "fp32"):
        return
    if precision not in LOW or chip.family != "tpu":
        at = "" if precision not in LOW else f" on chips of the {chip.family} family"
        raise Refusal(
            f"the reference program computes in bf16 or fp32, on TPUs in int8 or fp8 too; {precision}{at} is modelled, "
            "not compiled"
        )
    if model.family == "cnn":
        raise Refusal(f"the reference program of a cnn computes in bf16 or fp32; {precision} is modelled, not compiled")
    peaks(chip, numerics(precision))


def mesh_of(layout: Layout, acc: Accelerators, devices: int) -> dict[str, int]:
    """Sizes of the reference program's axes inside one slice."""
    tensor = layout.tp
    expert = layout.ep
    replicas = devices // (tensor * layout.cp)
    scale = devices // (acc.count // acc.slices)  # devices of a chip
    context = {"context": layout.cp} if layout.cp > 1 else {}
    if layout.zero == 3 or layout.shard > 1:
        shard = min(layout.shard * scale, replicas)
    else:
        shard = 1
    fsdp = max(shard // expert, 1)
    if replicas % (fsdp * expert):
        raise Refusal(f"experts over {expert} devices need as many that share no sequence; ep over cp is modelled only")
    return {"data": replicas // (fsdp * expert), "fsdp": fsdp, "expert": expert, **context, "tensor": tensor}


def written(model: Model) -> dict[str, Any]:
    """A model as plain data, without what no program depends on: how long a sequence it takes."""
    out = asdict(model)
    for name in ("context", "mixer", *UNWRITTEN):
        del out[name]
    for name in UNWRITTEN_EXPERTS if model.experts else ():
        del out["experts"][name]
    return out


def model_from(data: Mapping[str, Any]) -> Any:
    """The model that `written` wrote down."""
    from chipwise.workload.model import Conv, Experts, Latent, Model

    out = dict(data)
    for name, kind in (("experts", Experts), ("latent", Latent)):
        if out[name]:
            out[name] = kind(**out[name])
    out["convs"] = tuple(Conv(**c) for c in out["convs"])
    return Model(**out)


SERVED = ("bf16", "int8")  # precisions weights are served in


def serving_job(
    served: Workload | Model,
    acc: Accelerators,
    tensor: int,
    batch: int,
    context: int,
    mode: str,
    precision: str = "bf16",
    options: Mapping[str, Option] | None = None,
) -> Job:
    """Prefill of prompts of `context` tokens, or one step of decoding with a cache of that length.

    `batch` sequences on all the chips; `tensor` devices share each of them, the others have their own.
    """
    model = served.model if isinstance(served, Workload) else served
    for name, value in (("tensor", tensor), ("batch", batch), ("context", context)):
        if value < 1:
            raise InputError(name, value, "a whole number of at least 1")
    if mode not in ("prefill", "decode"):
        raise InputError("mode", mode, "prefill or decode")
    if precision not in SERVED:
        raise InputError("precision", precision, "one of " + ", ".join(SERVED))
    if model.family != "decoder" or not has_program(model):
        raise Refusal(f"prefill and decode are of decoders; {model.name} is of the {model.kind} family")
    target = target_of(acc)
    if target.slices > 1:
        raise Refusal("the reference program serves within one slice")
    if target.devices % tensor or model.heads % tensor:
        raise InputError("tensor", tensor, f"a divisor of the {target.devices} devices and the {model.heads} heads")
    data = target.devices // tensor
    if batch % data:
        raise InputError("batch", batch, f"a multiple of the {data} groups of devices that share no sequence")
    if model.learned_positions and context > model.learned_positions:
        raise InputError("context", context, f"at most the {model.learned_positions} positions {model.name} learned")
    spec = {
        "model": written(model),
        "mode": mode,
        "batch": batch,
        "context": context,
        "precision": precision,
        "block": splash_block(acc.chip),
        "platform": target.platform,
    }
    mesh = {"data": data, "fsdp": 1, "expert": 1, "tensor": tensor}
    return Job(Spec("workload", f"{model.name} {mode}", spec), target, {**recipe(acc.chip), **(options or {})}, mesh)

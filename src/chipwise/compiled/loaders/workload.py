"""The reference program of a workload: which one, on which mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.compiled.loaders.placement import build_mesh
from chipwise.compiled.reference import model_from
from chipwise.programs.jax import resnet, transformer
from chipwise.programs.jax.serve import MODES, Serving, serving_step
from chipwise.programs.program import Execution, Program, Recompute
from chipwise.workload.model import Train


def load_workload(data: Mapping[str, Any], devices: Sequence[Any], axes: Mapping[str, int]) -> Program:
    """The program that `chipwise.compiled.reference` describes."""
    model, mesh = model_from(data["model"]), build_mesh(axes, devices)
    if data["mode"] in MODES:
        serving = Serving(
            model, mesh, data["batch"], data["context"], data["precision"], data["platform"], data["block"]
        )
        return serving_step(serving, data["mode"])
    train, kept = Train(**data["train"]), data["recompute"]
    recompute = Recompute(kept["policy"], tuple(kept["keep"]), tuple(kept["offload"]))
    execution = Execution(data["micro_batch"], recompute, data["accumulate"], data["platform"], data["block"])
    step = resnet.training_step if model.family == "cnn" else transformer.training_step
    return step(model, train, mesh, execution)

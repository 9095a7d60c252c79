"""The reference program of a workload: which one, on which mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.compiled.programs import resnet, transformer
from chipwise.compiled.programs.placement import build_mesh
from chipwise.compiled.programs.program import Program
from chipwise.compiled.programs.serve import MODES, Serving, serving_step
from chipwise.compiled.reference import Recompute, model_from
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
    if model.family == "cnn":
        return resnet.training_step(model, train, mesh, data["micro_batch"], recompute, data["accumulate"])
    return transformer.training_step(
        model, train, mesh, data["micro_batch"], recompute, data["accumulate"], data["platform"], data["block"]
    )

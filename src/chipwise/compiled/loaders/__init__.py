"""Programs to compile: the user's JAX function, an exported file, a PyTorch module, or one of our workloads.

Only the worker process imports what lies below: jax, torch and torchax are optional and slow to load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chipwise.errors import InputError
from chipwise.programs.program import Program

if TYPE_CHECKING:
    from chipwise.compiled.job import Spec

__all__ = ["load"]


def load(spec: Spec, devices: Sequence[Any], mesh_axes: Mapping[str, int]) -> Program:
    """The program a spec names, its shapes placed on `devices` (of a topology, so nothing is allocated)."""
    if spec.kind == "function":
        from chipwise.compiled.loaders.function import load_function

        return load_function(spec.name, spec.data, devices, mesh_axes)
    if spec.kind == "file":
        from chipwise.compiled.loaders.files import load_file

        return load_file(spec.name, spec.data, devices, mesh_axes)
    if spec.kind == "torch":
        from chipwise.compiled.loaders.torch import load_torch

        return load_torch(spec.name, spec.data, devices, mesh_axes)
    if spec.kind == "workload":
        from chipwise.compiled.loaders.workload import load_workload

        return load_workload(spec.data, devices, mesh_axes)
    raise InputError("program", spec.kind, "a workload, a function, a file or a torch factory")

"""What a target gives: files, apply steps and where the router reaches the pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.deployment import Deployment, Engine, Provider
from chipwise.deploy.tree import TreeFile


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """The part of the pools file that is the target's."""

    backend: Mapping[str, Any]  # shared by all pools
    addresses: Mapping[str, Mapping[str, Any]]  # of each pool, by its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of tree: `gke` is Terraform of a GKE cluster, `slurm` the configuration of a Slurm cluster."""

    name: str
    title: str  # what it is, for people
    engine: Engine
    provider: Provider | None  # None: that of the source
    files: Callable[[Deployment], Sequence[TreeFile]]  # all but the pools file, the README and the manifest
    steps: Callable[[Deployment], Sequence[str]]  # how to apply it: lines of Markdown
    router: Callable[[Deployment], RouterSettings]
    check: Callable[[Deployment], None] = lambda deployment: None  # raises `Undeployable` for what it can't hold

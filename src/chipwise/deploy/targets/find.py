"""A target found by its name."""

from __future__ import annotations

from importlib import import_module

from chipwise.deploy.targets.names import TARGETS
from chipwise.deploy.targets.target import Target
from chipwise.errors import UnknownName


def find_target(name: str) -> Target:
    """The target of that name."""
    if name not in TARGETS:
        raise UnknownName("target", name, TARGETS)
    target: Target = import_module(TARGETS[name]).TARGET
    return target

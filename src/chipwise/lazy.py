"""Names of a package from the modules they live in, loaded at their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: `homes` has the module in it of each name.

    >>> lazily("chipwise.io", {"data_folder": "paths"})("data_folder").__name__
    'data_folder'
    >>> lazily("chipwise.io", {})("lost")
    Traceback (most recent call last):
        ...
    AttributeError: module 'chipwise.io' has no attribute 'lost'
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute

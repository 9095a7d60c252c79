"""The data files of this package, and its one module that is shipped as a file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

ROOT = "chipwise.deploy"


def data_text(*path: str) -> str:
    """The text of a file under `data`."""
    return files(ROOT).joinpath("data", *path).read_text(encoding="utf-8")


def data_names(*path: str) -> Sequence[str]:
    """The names of what lies in a folder under `data`, in order."""
    return sorted(file.name for file in files(ROOT).joinpath("data", *path).iterdir())


def module_text(*path: str) -> str:
    """The source of a module of this package."""
    return files(ROOT).joinpath(*path).read_text(encoding="utf-8")

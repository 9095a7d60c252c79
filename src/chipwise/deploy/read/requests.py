"""What every reader gives: pools asked for, and how their names are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.deployment import PoolRequest
from chipwise.errors import BrokenFile

MAX_NAME = 30  # characters: GKE takes 40 for a node pool, a slice's number comes after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Pools asked for by a file, before machines are chosen for them."""

    words: str  # what it was, for people
    name: str
    requests: tuple[PoolRequest, ...]
    assumptions: tuple[str, ...] = ()


def pool_name(text: str) -> str:
    """A name that Kubernetes, Slurm and Terraform take: lower case letters, digits and dashes.

    >>> pool_name("v6e gcp/us-east1 x1 joined 3 years")
    'v6e-us-east1-x1-joined-3-years'
    """
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\b(gcp|aws)/?", "", text.lower())).strip("-")
    name = words[:MAX_NAME].strip("-")
    return name if name[:1].isalpha() else f"p-{name}".strip("-")


def unique(names: list[str]) -> list[str]:
    """The names, those that come again with a number.

    >>> unique(["v5e", "v5e", "h100"])
    ['v5e', 'v5e-2', 'h100']
    """
    out: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in out:
            number += 1
            candidate = f"{name[: MAX_NAME - 3]}-{number}"
        out.append(candidate)
    return out


def field(document: Mapping[str, Any], key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """A value of a document that must be there, of a kind."""
    value = document.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BrokenFile(f"{where}.{key}", "missing" if value is None else value, "what chipwise wrote with -o json")
    return value

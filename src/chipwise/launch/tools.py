"""The tools that launches are written for, out of data files: their options, since which version, from which source."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from chipwise.catalog.files import tables

PARTS = ("command", "env", "config", "notes", "refusals")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text with fields in braces; left out unless every word of `when` holds."""

    text: str
    when: str = ""
    brief: bool = False  # printed beside an answer

    def holds(self, conditions: Mapping[str, bool]) -> bool:
        """Whether it is wanted.

        >>> Part("--x", "a !b").holds({"a": True, "b": False}), Part("--x", "a !b").holds({"a": True, "b": True})
        (True, False)
        """
        return all(not conditions[word[1:]] if word.startswith("!") else conditions[word] for word in self.when.split())


@dataclass(frozen=True, slots=True)
class Tool:
    """A stack's own program: how it is told what to do."""

    id: str
    name: str
    work: str  # "train" or "serve"
    stacks: tuple[str, ...]
    endings: tuple[str, ...]
    version: str
    source: str
    date: str
    command: tuple[Part, ...]
    env: tuple[Part, ...] = ()
    config: tuple[Part, ...] = ()
    config_file: str = ""
    notes: tuple[Part, ...] = ()
    refusals: tuple[Part, ...] = ()  # what it would do other work for, or refuse itself
    install: str = ""  # what a machine without it runs first
    adapters: bool = False  # trains LoRA
    families: tuple[str, ...] = ()  # of models; (): any
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloudTool:
    """What starts machines of a cloud and a run on them."""

    id: str
    name: str
    version: str
    source: str
    date: str
    endings: list[str]
    start: str
    serve: str
    run: Mapping[str, str]  # how a command learns which host it is on
    clouds: Mapping[str, str]


@cache
def tools() -> Mapping[str, Tool]:
    """The stacks' own programs by name.

    >>> list(tools())
    ['vllm', 'sglang', 'tensorrt-llm', 'jetstream', 'megatron', 'torchtitan', 'trl', 'maxtext']
    """
    return {table["id"]: _tool(table) for table in tables("tools.toml", "tool")}


@cache
def cloud_tools() -> Mapping[str, CloudTool]:
    """What starts machines, by name.

    >>> list(cloud_tools())
    ['skypilot', 'dstack']
    """
    entries = tomllib.loads(_text("clouds.toml"))
    return {name: CloudTool(id=name, **entry) for name, entry in entries.items()}


@cache
def accelerator_names() -> Mapping[str, Mapping[str, str]]:
    """The names of a chip, by tool; "" where a tool has none.

    >>> accelerator_names()["a100-80gb"]["skypilot"]
    'A100-80GB'
    """
    return {row["chip"]: row for row in csv.DictReader(_text("accelerators.csv").splitlines())}


def own_tool(stack: str, adapters: bool = False) -> Tool | None:
    """The program of a stack, the one that trains adapters where it has such; None where launches of it are not known.

    >>> own_tool("fsdp", adapters=True).id, own_tool("fsdp"), own_tool("megatron", adapters=True).id
    ('trl', None, 'megatron')
    """
    own = [tool for tool in tools().values() if stack in tool.stacks and (adapters or not tool.adapters)]
    return next((tool for tool in own if tool.adapters == adapters), own[0] if own else None)


def _text(name: str) -> str:
    return resources.files("chipwise.launch").joinpath("data", name).read_text(encoding="utf-8")


def _tool(table: dict[str, Any]) -> Tool:
    parts = {key: tuple(Part(**part) for part in table.get(key, ())) for key in PARTS}
    lists = {key: tuple(table.get(key, ())) for key in ("stacks", "endings", "families")}
    return Tool(**{**table, **parts, **lists})

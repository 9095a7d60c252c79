"""Read text a user points at: bounded, and every failure is one line."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from chipwise.errors import BrokenFile
from chipwise.io.regular_file import read_bytes

MAX_BYTES = 10_000_000
MAX_YAML_BYTES = 1_000_000  # a workload file has a few hundred; parsing takes a second per megabyte
MAX_NODES = 10_000  # a workload file has dozens; this keeps parsing of junk short


def read_text(path: Path, limit: int = MAX_BYTES, field: str = "file") -> str:
    """The text of a regular file, read no further than the limit."""
    name, data = str(path), read_bytes(path, limit, field)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise BrokenFile(field, name, f"UTF-8 text (byte {e.start} is not)") from None
    if "\0" in text:
        raise BrokenFile(field, name, "text (it holds NUL bytes)")
    if not text.strip():
        raise BrokenFile(field, name, "a file that isn't empty")
    return text


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds one object."""
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as e:
        raise BrokenFile(f"{path} line {e.lineno}", e.msg, "valid JSON") from None
    except (RecursionError, ValueError):
        raise BrokenFile("file", str(path), "valid JSON without absurd nesting or numbers") from None
    if not isinstance(value, dict):
        raise BrokenFile("file", str(path), "a JSON object at the top")
    return value


def parse_yaml(
    text: str, name: str = "text", most: int = MAX_NODES, such: str = "`model: llama-3.1-8b`"
) -> dict[str, Any]:
    """A YAML mapping; duplicate keys, aliases, explicit tags and YAML 1.1 surprises (yes, 010, 1:30) are not read as
    data.

    `most` entries are read, and no more. `such` is a key that the file may have, for who gave something else.

    >>> parse_yaml("a: 1e3\\nb: [2, no]")
    {'a': 1000.0, 'b': [2, 'no']}
    """
    import yaml

    try:
        value = yaml.load(text, Loader=_loader(name, most))
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line = f" line {mark.line + 1}" if mark else ""
        raise BrokenFile(f"{name}{line}", e.problem or e.context or "this", "valid YAML") from None
    except (yaml.YAMLError, ValueError) as e:
        raise BrokenFile(name, str(e).splitlines()[0], "valid YAML") from None
    except RecursionError:
        raise BrokenFile(name, "nesting without end", "a few levels") from None
    if value is None:
        raise BrokenFile(name, "nothing", "a file that isn't empty")
    if not isinstance(value, dict):
        shown = "a list" if isinstance(value, list) else "text" if isinstance(value, str) else value
        raise BrokenFile(name, shown, f"keys and values such as {such}")
    return value


def _loader(name: str, most: int) -> Any:
    """The loader class, made on first use so that importing this module doesn't import yaml."""
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            reader: Any = self
            event = reader.peek_event()
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise BrokenFile(f"{name} line {line}", f"*{event.anchor}", "a file without YAML aliases")
            if event.tag is not None:  # a tag picks a constructor, and constructors trust what they are given
                raise BrokenFile(f"{name} line {line}", f"the tag {event.tag}", "values without YAML tags")
            self.nodes += 1
            if self.nodes > most:
                raise BrokenFile(f"{name} line {line}", "so many entries", f"at most {most:,}")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                line = key.start_mark.line + 1
                if not isinstance(key, yaml.ScalarNode):
                    raise BrokenFile(f"{name} line {line}", "this key", "a plain word as the key")
                if key.value in seen:
                    raise BrokenFile(f"{name} line {line}", key.value, "each key only once")
                seen.add(key.value)
                key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep=True)

        def construct_int(self, node: Any) -> int:
            return int(self.construct_scalar(node))

    # Only YAML 1.2's plain scalars: 1.1 would read 1:30 as 90 and 010 as 8.
    keep = ("tag:yaml.org,2002:null",)
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in pairs if tag in keep]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    tag = "tag:yaml.org,2002:"
    number = list("-+0123456789.")
    Loader.add_implicit_resolver(tag + "bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
    Loader.add_implicit_resolver(tag + "int", re.compile(r"^[-+]?[0-9]+$"), number)
    Loader.add_implicit_resolver(
        tag + "float",
        re.compile(r"^[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.inf|\.nan)$"),
        number,
    )
    Loader.add_constructor(tag + "int", Loader.construct_int)
    return Loader

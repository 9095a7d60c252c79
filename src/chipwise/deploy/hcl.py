"""Terraform's language, written the way `terraform fmt` leaves it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Raw:
    """An expression as it stands: var.region, module.cluster.name."""

    text: str


Value = str | int | float | bool | None | Raw | Sequence["Value"] | Mapping[str, "Value"]


def literal(value: Value, depth: int = 0) -> str:
    """A value as an expression.

    >>> literal(["a", 1, True, Raw("var.b")]), literal({"team": "ml"})
    ('["a", 1, true, var.b]', '{\\n  team = "ml"\\n}')
    """
    if isinstance(value, Raw):
        return value.text
    if value is None:
        return "null"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{\n" + attributes(value, depth + 1) + INDENT * depth + "}" if value else "{}"
    return "[" + ", ".join(literal(part, depth) for part in value) + "]"


def attributes(values: Mapping[str, Value], depth: int) -> str:
    """Lines of `key = value`; equals signs of lines that follow one another stand beneath each other.

    >>> print(attributes({"a": 1, "long": 2, "map": {"b": 3}}, 0), end="")
    a    = 1
    long = 2
    map = {
      b = 3
    }
    """
    lines: list[str] = []
    group: list[tuple[str, str]] = []

    def close() -> None:
        wide = max((len(key) for key, _ in group), default=0)
        lines.extend(f"{INDENT * depth}{key.ljust(wide)} = {text}\n" for key, text in group)
        group.clear()

    for key, value in values.items():
        text = literal(value, depth)
        if "\n" in text:
            close()
            lines.append(f"{INDENT * depth}{key} = {text}\n")
        else:
            group.append((key, text))
    close()
    return "".join(lines)


def block(kind: str, labels: Sequence[str], body: Mapping[str, Value]) -> str:
    """A block of attributes.

    >>> print(block("module", ["network"], {"source": "./modules/network"}), end="")
    module "network" {
      source = "./modules/network"
    }
    """
    head = " ".join([kind, *(json.dumps(label) for label in labels)])
    return f"{head} {{\n{attributes(body, 1)}}}\n"

"""Well-known models by name, each held to the parameter count its authors print."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from chipwise.errors import UnknownName
from chipwise.workload.build import build_model
from chipwise.workload.model import Model

# Keys of the data file that describe the entry rather than the model.
_ENTRY = ("aliases", "date", "like", "outside", "outside_what", "published", "source")


@dataclass(frozen=True, slots=True)
class Preset:
    """One entry of the data file: the model, its other names, and what its count leaves out."""

    model: Model
    aliases: tuple[str, ...] = ()
    outside: int = 0  # parameters inside the published count that the description leaves out
    outside_what: str = ""


def preset(name: str) -> Model:
    """The model of that name, in any usual spelling.

    >>> preset("meta-llama/Llama-3.1-8B").name
    'llama-3.1-8b'
    >>> preset("Llama3.1 8B").layers
    32
    """
    return preset_entry(name).model


def preset_entry(name: str) -> Preset:
    """The whole entry of a model, with its other names."""
    canonical = _index().get(folded(name))
    if canonical is None:
        raise UnknownName("model", name, preset_names(), " such as llama-3.1-8b, mixtral-8x7b or resnet-50")
    return _entry(canonical)


def preset_fields(name: str) -> dict[str, Any]:
    """The plain fields of a model, to change some and build another."""
    table = _tables()[preset(name).name]
    return {k: v for k, v in table.items() if k not in _ENTRY}


def preset_names() -> list[str]:
    """The canonical names, sorted."""
    return sorted(_tables())


def folded(name: str) -> str:
    """Fold case and drop separators, so `Llama3.1_8B` and `llama-3.1-8b` meet."""
    return re.sub(r"[\s_\-]+", "", name.strip().lower())


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, dict[str, Any]]:
    text = resources.files("chipwise.workload").joinpath("data/presets.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = {}
    for name, table in tomllib.loads(text).items():
        base = tables[table["like"]] if "like" in table else {}  # an entry is like an earlier one
        inherited = {k: v for k, v in base.items() if k not in _ENTRY}
        tables[name] = {**inherited, **table}
    return tables


@lru_cache(maxsize=1)
def _index() -> Mapping[str, str]:
    index: dict[str, str] = {}
    for name, table in _tables().items():
        for spelling in (name, *table.get("aliases", ())):
            index[folded(spelling)] = name
    return index


@lru_cache(maxsize=256)
def _entry(name: str) -> Preset:
    table = _tables()[name]
    fields = {k: v for k, v in table.items() if k not in _ENTRY}
    fields.update(published_params=float(table["published"]), source=table["source"], source_date=table["date"])
    return Preset(
        model=build_model(fields, name=name),
        aliases=tuple(table.get("aliases", ())),
        outside=int(table.get("outside", 0)),
        outside_what=str(table.get("outside_what", "")),
    )

"""Well-known models by name, each held to the parameter count its authors print."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from chipwise.errors import InputError, Refusal, UnknownName
from chipwise.workload.build import build_model
from chipwise.workload.hf_cache import PREFIX, is_id
from chipwise.workload.model import Model
from chipwise.workload.names import Match, folded, match, nearest

# an entry may be like one of an earlier file
FILES = ("presets", "decoders", "hybrids", "encoders", "popular", "diffusion")
# Keys of the data files that describe the entry rather than the model.
_ENTRY = ("aliases", "date", "like", "note", "outside", "outside_what", "published", "rounded", "source")


@dataclass(frozen=True, slots=True)
class Preset:
    """One entry of the data file: the model, its other names, and what its count leaves out."""

    model: Model
    aliases: tuple[str, ...] = ()
    outside: int = 0  # parameters inside the published count that the description leaves out
    outside_what: str = ""
    rounded: str = ""  # the count as its authors round it, where they print no other
    note: str = ""  # what the description leaves out or assumes

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the model, its own first."""
        return (self.model.name, *self.aliases)

    @property
    def published(self) -> float | None:
        """The parameter count its authors print."""
        return self.model.published_params or None


class UnknownModel(UnknownName):
    """A model that isn't known by name; suggests the nearest ones."""

    def __init__(self, name: str) -> None:
        spellings = {known: known for known in preset_names()}
        for known in preset_names():
            spellings |= {alias.rsplit("/", 1)[-1].lower(): known for alias in _tables()[known].get("aliases", ())}
        near = list(dict.fromkeys(spellings[spelling] for spelling in nearest(name, spellings)))
        guess = f"did you mean {', '.join(near)}?" if near else "such as llama-3.1-8b, mixtral-8x7b or resnet-50"
        config = "a Hugging Face config.json"
        if is_id(name):
            config += f" (--model path/config.json, or {PREFIX}{name.strip()} from the local Hugging Face cache)"
        InputError.__init__(self, "model", name, f"a known name ({guess}); {config} works too; see `chipwise models`")


def preset(name: str) -> Model:
    """The model of that name, in any usual spelling.

    >>> preset("meta-llama/Llama-3.1-8B").name
    'llama-3.1-8b'
    >>> preset("Llama3.1 8B").layers
    32
    >>> model = preset("Qwen/Qwen3-32B-FP8")  # a variant: the model, in the precision of its name
    >>> model.name, model.native_precision, model.taken_from
    ('qwen3-32b', 'fp8', 'Qwen/Qwen3-32B-FP8')
    """
    found = resolve(name)
    model = _entry(found.name).model
    if found.exact:
        return model
    return replace(model, native_precision=found.precision or model.native_precision, taken_from=name.strip())


def resolve(name: str) -> Match:
    """The known model that a name means, and the precision that its words imply."""
    found = match(name, _index())
    if found is None:
        refused = match(name, _unmodelled())
        if refused is not None:
            raise Refusal(f"{name.strip()} is known, but can't be predicted: {refused.name}")
        raise UnknownModel(name)
    return found


def preset_entry(name: str) -> Preset:
    """The whole entry of a model, with its other names."""
    return _entry(resolve(name).name)


def preset_fields(name: str) -> dict[str, Any]:
    """The plain fields of a model, to change some and build another."""
    table = _tables()[preset(name).name]
    return {k: v for k, v in table.items() if k not in _ENTRY}


def preset_names() -> list[str]:
    """The canonical names, sorted."""
    return sorted(_tables())


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {}
    for file in FILES:
        for name, table in _toml(file).items():
            base = tables[table["like"]] if "like" in table else {}  # an entry is like an earlier one
            inherited = {k: v for k, v in base.items() if k not in _ENTRY}
            tables[name] = {**inherited, **table}
    return tables


def _toml(file: str) -> dict[str, Any]:
    text = resources.files("chipwise.workload").joinpath(f"data/{file}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def _unmodelled() -> Mapping[str, str]:
    """Folded names of models that can't be described yet -> why."""
    return {folded(name): entry["why"] for entry in _toml("unmodelled").values() for name in entry["names"]}


@lru_cache(maxsize=1)
def _index() -> Mapping[str, str]:
    index: dict[str, str] = {}
    for name, table in _tables().items():
        for spelling in (name, *table.get("aliases", ())):
            index[folded(spelling)] = name
            last = spelling.rsplit("/", 1)[-1]
            if len(last) > 3:  # the 16 of vit-b/16 is no name
                index.setdefault(folded(last), name)
    return index


@lru_cache(maxsize=512)
def _entry(name: str) -> Preset:
    table = _tables()[name]
    fields = {k: v for k, v in table.items() if k not in _ENTRY}
    fields.update(published_params=float(table.get("published", 0)), source=table["source"], source_date=table["date"])
    return Preset(
        model=build_model(fields, name=name),
        aliases=tuple(table.get("aliases", ())),
        outside=int(table.get("outside", 0)),
        outside_what=str(table.get("outside_what", "")),
        rounded=str(table.get("rounded", "")),
        note=str(table.get("note", "")),
    )

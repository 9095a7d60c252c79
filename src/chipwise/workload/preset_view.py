"""Models known by name, as every face shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.errors import UnknownName
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.units import format_count
from chipwise.workload.params import Params, count
from chipwise.workload.presets import Preset, folded, preset_entry, preset_names


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model known by name, with its parameters counted."""

    preset: Preset
    parameters: Params


MODEL: list[Column[ModelRow]] = [
    Column("name", lambda r: r.preset.model.name, "model", words=True),
    Column("family", lambda r: r.preset.model.family, "family", words=True),
    Column("parameters", lambda r: r.parameters.total, "parameters", lambda r: format_count(r.parameters.total)),
    Column(
        "active_parameters",
        lambda r: r.parameters.active,
        "active",
        lambda r: format_count(r.parameters.active),
        help="the parameters one token uses",
    ),
    Column("published_parameters", lambda r: r.preset.model.published_params, help="what the authors print"),
    Column("context", lambda r: r.preset.model.context or None, help="tokens of the longest sequence"),
    Column("aliases", lambda r: list(r.preset.aliases), help="other names"),
    Column("source", lambda r: r.preset.model.source, "source", words=True, drop=1),
    Column("date", lambda r: r.preset.model.source_date, help="of the source"),
]


@dataclass(frozen=True, slots=True, repr=False)
class ModelList(Result):
    """Models known by name; any of the names is a workload."""

    VERB: ClassVar[str] = "models"
    rows: tuple[ModelRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical names."""
        return tuple(row.preset.model.name for row in self.rows)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"models": [record(MODEL, row) for row in self.rows]}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a model."""
        return [flat(MODEL, row) for row in self.rows]

    def blocks(self) -> list[Block]:
        """For people."""
        images = self.rows[0].preset.model.image_tokens
        flags = "--samples 100M --batch 1024" if images else "--tokens 1T --batch 1024 --sequence 1024"
        return [
            table(MODEL, self.rows, title=plural(len(self.rows), "model")),
            Text("active: the parameters one token uses. Any of these names is a WORKLOAD:"),
            Text(f"  chipwise compare {self.names[0]} {flags}"),
        ]


def list_models(name: str | None = None) -> ModelList:
    """The models with `name` in one of their names, in any usual spelling; all of them without one.

    >>> list_models("Llama 3.1").names
    ('llama-3.1-405b', 'llama-3.1-70b', 'llama-3.1-8b')
    """
    presets = [preset_entry(known) for known in preset_names()]
    if name is not None:
        part = folded(name)
        presets = [p for p in presets if part and any(part in folded(known) for known in (p.model.name, *p.aliases))]
        if not presets:
            raise UnknownName("model", name, preset_names(), "; `chipwise models` lists them")
    return ModelList(tuple(ModelRow(p, count(p.model)) for p in presets))

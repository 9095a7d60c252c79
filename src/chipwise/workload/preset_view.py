"""Models known by name, as every face shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.units import format_count
from chipwise.workload.build import FAMILIES
from chipwise.workload.model import Model
from chipwise.workload.names import folded, match
from chipwise.workload.params import Params, count
from chipwise.workload.presets import Preset, UnknownModel, preset_entry, preset_names

# A family's heading, in the order of the list
HEADINGS = {
    "decoder": "Decoders",
    "ssm-hybrid": "Hybrids of recurrent layers and attention",
    "ssm": "State-space models",
    "encoder": "Encoders and embedding models",
    "encoder-decoder": "Encoder-decoders",
    "mmdit": "Image diffusion: text and image tokens together",
    "dit": "Image diffusion: DiT",
    "unet": "Image diffusion: U-Nets",
    "video-dit": "Video diffusion",
    "vit": "Vision transformers",
    "cnn": "CNNs",
}
assert {*HEADINGS} == {*FAMILIES, "ssm", "ssm-hybrid"}


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model known by name, with its parameters counted."""

    preset: Preset
    parameters: Params


MODEL: list[Column[ModelRow]] = [
    Column("name", lambda r: r.preset.model.name, "model", words=True),
    Column("family", lambda r: r.preset.model.family),
    Column("kind", lambda r: r.preset.model.kind, help="the family, decoders with recurrent layers apart"),
    Column("parameters", lambda r: r.parameters.total, "parameters", lambda r: format_count(r.parameters.total)),
    Column(
        "active_parameters",
        lambda r: r.parameters.active,
        "active",
        lambda r: format_count(r.parameters.active),
        help="the parameters one token uses",
    ),
    Column(
        "published_parameters",
        lambda r: r.preset.published,
        help="what the authors print; none where they print a rounded count or none",
    ),
    Column(
        "native_precision",
        lambda r: r.preset.model.native_precision,
        "weights",
        help="what the weights are published in",
    ),
    Column(
        "context",
        lambda r: r.preset.model.context or None,
        "context",
        lambda r: f"{r.preset.model.context:,}" if r.preset.model.context else "–",
        help="tokens of the longest sequence",
    ),
    Column("aliases", lambda r: list(r.preset.aliases), help="other names"),
    Column("source", lambda r: r.preset.model.source, "source", words=True, drop=1),
    Column("date", lambda r: r.preset.model.source_date, help="of the source"),
    Column("note", lambda r: r.preset.note or None, help="what the description leaves out or assumes"),
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
        """For people: a table for each family, and a command that works for the first model."""
        tables: list[Block] = []
        for kind, heading in HEADINGS.items():
            rows = [row for row in self.rows if row.preset.model.kind == kind]
            if rows:
                tables.append(table(MODEL, rows, title=f"{heading}: {plural(len(rows), 'model')}"))
        return [
            *tables,
            Text(
                "active: the parameters one token uses. Any of these names is a WORKLOAD, and so are Hugging Face ids"
            ),
            Text("and variants such as -Instruct, -FP8 or -AWQ:"),
            Text(f"  {example(self.rows[0].preset.model)}"),
        ]


def example(model: Model) -> str:
    """A command that works for a model.

    >>> from chipwise.workload.presets import preset
    >>> example(preset("bert-base"))
    'chipwise compare bert-base --tokens 1B --batch 256 --sequence 512 --on h100,v5e'
    """
    if model.denoises and model.video and model.video.denoisers > 1:  # its denoisers are trained apart
        return f"chipwise compare {model.name} --rate 0.01 --denoise-steps 40 --on h100,h200"
    if model.image_tokens:
        return f"chipwise compare {model.name} --samples 10M --batch 256 --on h100,v5e"
    longest = min(size for size in (model.context, model.learned_positions, 2048) if size)
    return f"chipwise compare {model.name} --tokens 1B --batch 256 --sequence {longest} --on h100,v5e"


def list_models(name: str | None = None) -> ModelList:
    """The models with `name` in one of their names, in any usual spelling; all of them without one.

    >>> list_models("Llama 3.2").names
    ('llama-3.2-1b', 'llama-3.2-3b')
    """
    presets = [preset_entry(known) for known in preset_names()]
    if name is not None:
        part = folded(name)
        having = [p for p in presets if part and any(part in folded(known) for known in p.names)]
        presets = having or [p for p in presets if _means(name, p)]
        if not presets:
            raise UnknownModel(name)
    return ModelList(tuple(ModelRow(p, count(p.model)) for p in presets))


def _means(name: str, p: Preset) -> bool:
    """Whether a name is read as a variant of a model."""
    return match(name, {folded(known.rsplit("/", 1)[-1]): p.model.name for known in p.names}) is not None

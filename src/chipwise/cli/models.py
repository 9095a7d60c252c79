"""chipwise models: the models known by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import OutFile, TableJsonCsv, complete_models

if TYPE_CHECKING:
    from chipwise.present.blocks import Block
    from chipwise.workload.presets import Preset

EXAMPLES = """\b
Examples:
  chipwise models
  chipwise models llama
  chipwise models mixtral -o json
  chipwise models -o csv --out models.csv
"""


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Only models with this in their name or in another name they have.",
            autocompletion=complete_models,
            show_default=False,
        ),
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List the models known by name.

    Any of these names is a WORKLOAD for compare, predict and layouts, together with flags such as --batch.
    """
    from chipwise.cli import records
    from chipwise.present.output import emit, emit_csv, emit_json, formats

    formats(output, "table", "json", "csv")
    found = _found(name)
    if output == "json":
        emit_json({**records.head("models"), "models": [records.model(e) for e in found]}, out)
    elif output == "csv":
        emit_csv([_flat(records.model(e)) for e in found], out)
    else:
        emit(_list(found), out)


def _found(name: str | None) -> list[Preset]:
    from chipwise.errors import UnknownName
    from chipwise.workload import preset_names
    from chipwise.workload.presets import preset_entry

    known = [preset_entry(each) for each in preset_names()]
    if name is None:
        return known
    part = _folded(name)
    found = [e for e in known if any(part in _folded(each) for each in (e.model.name, *e.aliases))]
    if not found or not part:
        raise UnknownName("model", name, preset_names(), "; `chipwise models` lists them")
    return found


def _folded(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " _-")


def _flat(model: dict[str, Any]) -> dict[str, Any]:
    return {**model, "aliases": " ".join(model["aliases"])}


def _list(found: list[Preset]) -> list[Block]:
    from chipwise.present.blocks import Table, Text
    from chipwise.present.numbers import plural
    from chipwise.units import format_count
    from chipwise.workload.params import count

    rows = []
    for e in found:
        params = count(e.model)
        rows.append(
            [e.model.name, e.model.family, format_count(params.total), format_count(params.active), e.model.source]
        )
    words = frozenset({"model", "family", "source"})
    return [
        Table(
            ["model", "family", "parameters", "active", "source"],
            rows,
            words,
            title=plural(len(rows), "model"),
            drop=("source",),
        ),
        Text("active: the parameters one token uses. Any of these names is a WORKLOAD:"),
        Text(
            f"  chipwise compare {rows[0][0]} "
            + (
                "--samples 100M --batch 1024"
                if found[0].model.image_tokens
                else "--tokens 1T --batch 1024 --sequence 1024"
            )
        ),
    ]

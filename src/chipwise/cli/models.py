"""chipwise models: the models known by name."""

from __future__ import annotations

from typing import Annotated

from chipwise.cli.completion import complete_models
from chipwise.cli.declare import argument
from chipwise.cli.options import OutFile, TableJsonCsv

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
        argument("[NAME]", "Only models with this in their name or in another name they have.", complete_models),
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List the models known by name.

    Any of these names is a WORKLOAD for compare, predict and layouts, together with flags such as --batch.
    """
    from chipwise import api
    from chipwise.present.output import show

    show(api.models(name), output, out)

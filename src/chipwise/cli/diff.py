"""chipwise diff: two decisions side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chipwise.cli.declare import argument
from chipwise.cli.options import OutFile, TableJsonCsv

EXAMPLES = """\b
Examples:
  chipwise compare examples/llama-3.1-8b-pretrain.yaml --on h100,v5p -o json --out before.json
  chipwise diff examples/decisions/list.json examples/decisions/contract.json
  chipwise diff examples/decisions/list.json examples/decisions/contract.json -o csv
"""


def diff(
    before: Annotated[Path, argument("BEFORE", "A decision that `compare -o json` saved.")],
    after: Annotated[Path, argument("AFTER", "Another one.")],
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Hold two decisions against each other, and say what changed and why.

    The pick, every row, the question and what was assumed; of each row whether its price, count, layout, software,
    evidence or the model changed. Save a decision before a price update, another after it.
    """
    from chipwise import api
    from chipwise.present.output import show

    show(api.diff(before, after), output, out)

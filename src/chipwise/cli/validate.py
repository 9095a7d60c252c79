"""chipwise validate: predictions against published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.options import OutFile, TableJson

EXAMPLES = """\b
Examples:
  chipwise validate
  chipwise validate --rows validation/rows/training.csv -o json --out scoreboard.json
"""


def validate(
    rows: Annotated[list[Path] | None, typer.Option(
        "--rows", metavar="FILE", help="Rows to score, may be repeated; those shipped unless said.",
        show_default=False)] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Score predictions against published results.

    Error, bias and how often the 90 % intervals held, over all rows, by chip and by source.
    """
    from chipwise.cli.progress import progress
    from chipwise.cli.records import head
    from chipwise.cli.render import emit_json, formats, write
    from chipwise.errors import BrokenFile
    from chipwise.validate import report, score

    formats(output, "table", "json")
    for path in rows or ():
        if not path.is_file():
            raise BrokenFile("--rows", str(path), "a file that exists")
    with progress("scoring") as shown:
        found = score(rows or None, shown)
    if output == "json":
        emit_json({**head("validate"), **found}, out)
    else:
        write(report(found).rstrip("\n") + "\n", out)

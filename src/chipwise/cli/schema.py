"""chipwise schema: the JSON Schema of the workload file and of the bench file."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.options import OutFile, one_of

EXAMPLES = """\b
Examples:
  chipwise schema
  chipwise schema --out workload.schema.json
  chipwise schema bench
"""
FILES = ("workload", "bench")


def schema(
    file: Annotated[str, typer.Argument(
        metavar="[FILE]", help="workload, or bench: a file of measurements.",
        autocompletion=one_of(*FILES))] = "workload",
    out: OutFile = None,
) -> None:
    """Print the JSON Schema of the workload or bench file."""
    import json

    from chipwise.cli.render import write
    from chipwise.errors import InputError

    if file not in FILES:
        raise InputError("FILE", file, f"one of {', '.join(FILES)}")
    if file == "bench":
        from chipwise.bench.spec import schema as described

        write(json.dumps(described(), indent=2, ensure_ascii=False) + "\n", out)
        return
    from chipwise.workload.load import schema_text

    write(schema_text(), out)

"""chipwise schema: the JSON Schema of the workload file."""

from __future__ import annotations

from chipwise.cli.options import OutFile

EXAMPLES = """\b
Examples:
  chipwise schema
  chipwise schema --out workload.schema.json
"""


def schema(out: OutFile = None) -> None:
    """Print the JSON Schema of the workload file."""
    from chipwise.cli.render import write
    from chipwise.workload.load import schema_text

    write(schema_text(), out)

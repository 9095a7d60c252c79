"""chipwise schema: the JSON Schema of the workload, chip, bench, demand, job and pools files."""

from __future__ import annotations

from typing import Annotated

from chipwise.cli.completion import one_of
from chipwise.cli.declare import argument
from chipwise.cli.options import OutFile

EXAMPLES = """\b
Examples:
  chipwise schema
  chipwise schema --out workload.schema.json
  chipwise schema chip --out chip.schema.json
  chipwise schema bench
  chipwise schema demand --out demand.schema.json
  chipwise schema job
  chipwise schema pools --out pools.schema.json
"""
FILES = ("workload", "chip", "bench", "demand", "job", "pools")


def schema(
    file: Annotated[
        str,
        argument(
            "[FILE]",
            "workload, chip (of your own), bench (measurements), demand (of a fleet), job or pools (to route).",
            one_of(*FILES),
        ),
    ] = "workload",
    out: OutFile = None,
) -> None:
    """Print the JSON Schema of a kind of file."""
    import json

    from chipwise.errors import InputError
    from chipwise.present.output import write

    if file not in FILES:
        raise InputError("FILE", file, f"one of {', '.join(FILES)}")
    if file == "chip":
        from chipwise.catalog.chip_schema import schema_text as chip_text

        write(chip_text(), out)
        return
    if file == "bench":
        from chipwise.bench.spec import schema as described

        write(json.dumps(described(), indent=2, ensure_ascii=False) + "\n", out)
        return
    if file == "demand":
        from chipwise.fleet.demand import schema_text as demand_text

        write(demand_text(), out)
        return
    if file in ("job", "pools"):
        from chipwise.route.load import schema_text as route_text

        write(route_text(file), out)
        return
    from chipwise.workload.load import schema_text

    write(schema_text(), out)

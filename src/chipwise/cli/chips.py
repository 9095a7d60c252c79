"""chipwise chips: the catalog, every figure with its source and date."""

from __future__ import annotations

from typing import Annotated

from chipwise.cli.completion import complete_chips
from chipwise.cli.declare import argument
from chipwise.cli.options import NO_PRICE_FLAGS, OutFile, PriceFlags, TableJsonCsv, with_price_flags

EXAMPLES = """\b
Examples:
  chipwise chips
  chipwise chips v5e
  chipwise chips "NVIDIA H100 80GB HBM3" -o json
  chipwise chips -o csv --out chips.csv
"""


@with_price_flags
def chips(
    name: Annotated[str | None, argument("[CHIP]", "Show everything about one chip.", complete_chips)] = None,
    offers: PriceFlags = NO_PRICE_FLAGS,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """List the chips known, or show everything about one.

    About one: its figures with source, date and note, the cheapest offer of every cloud, software and known limits.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import show

    show(api.chips(name, knowledge=Knowledge.default(**offers)), output, out)

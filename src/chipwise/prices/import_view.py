"""What an importer of prices found, as every face shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import dollars, plural, price
from chipwise.present.result import Result
from chipwise.prices.custom_prices import PRICES, CustomPriceRow
from chipwise.prices.imported import Imported, LeftOut

HEADERS = ("on demand", "spot", "1 year", "3 years")  # of PRICES
DROP = (0, 0, 3, 2)


def _terms(i: int) -> Column[CustomPriceRow]:
    """One of PRICES: of an instance-hour in data, of a chip-hour for people."""

    def show(row: CustomPriceRow) -> str:
        usd = row.prices[i]
        return "-" if usd is None else price(usd / row.chips)

    return Column(PRICES[i], lambda row: row.prices[i], HEADERS[i], show, drop=DROP[i], help="of an instance-hour")


OWN: list[Column[CustomPriceRow]] = [
    Column("chip", lambda r: r.chip_id, "chip", words=True),
    Column("cloud", lambda r: r.cloud, "cloud", words=True),
    Column("region", lambda r: r.region, "region", words=True),
    Column("instance", lambda r: r.instance, "instance", words=True, under=True),
    Column("chips", lambda r: r.chips, "chips", lambda r: f"{r.chips:g}", drop=1, help="of one instance"),
    *(_terms(i) for i in range(len(PRICES))),
    Column("date", lambda r: r.date, "date", words=True),
    Column("source", lambda r: r.source),
    Column("note", lambda r: r.note),
]
LEFT_OUT: list[Column[LeftOut]] = [
    Column("reason", lambda r: r.reason, "left out because", words=True),
    Column("rows", lambda r: r.rows, "rows", lambda r: f"{r.rows:,}"),
    Column("usd", lambda r: r.usd, "cost", lambda r: "-" if r.usd is None else dollars(r.usd)),
]


@dataclass(frozen=True, slots=True, repr=False)
class ImportedPrices(Result):
    """Own prices made from `files` of a `kind`, and the file `out` they were written to."""

    VERB: ClassVar[str] = "prices import"
    imported: Imported
    kind: str
    files: tuple[str, ...]
    out: str

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "kind": self.kind,
            "files": list(self.files),
            "out": self.out,
            "rows_read": self.imported.read,
            "rows_used": self.imported.used,
            "own_prices": [record(OWN, row) for row in self.imported.rows],
            "left_out": [record(LEFT_OUT, reason) for reason in self.imported.left_out],
            "assumptions": list(self.imported.assumptions),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a price."""
        return [flat(OWN, row) for row in self.imported.rows]

    def blocks(self) -> list[Block]:
        """For people."""
        i = self.imported
        return [
            table(OWN, i.rows, title=f"{plural(len(i.rows), 'own price')} in {self.out}"),
            Text(f"US dollars per chip-hour, from {i.used:,} of {plural(i.read, 'row')}."),
            *([table(LEFT_OUT, i.left_out, title="Left out")] if i.left_out else []),
            *section("Assumptions", i.assumptions),
            Text(f"Use it: chipwise prices --prices {self.out}; cost, compare, predict and chips take it too."),
        ]

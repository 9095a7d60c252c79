"""Designs: what chips of one generation share beyond their own figures, and what is assumed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.catalog.cited import NOTHING, CitedTable, cited_table


@dataclass(frozen=True, slots=True)
class Design:
    """The facts that chips of one design share; calibration is shared under its name."""

    id: str
    source: str
    date: str
    leaders: tuple[str, ...] = ()  # chips whose measurements stand for the design, the best first
    power_reference: str = ""  # the chip to whose FLOP/s a watt the others are compared
    switch_reduces: bool = False  # its NVSwitch adds up on the way (NVLink SHARP)
    asynchronous: bool = False  # matrix units run beside the program; FlashAttention-2 does not use that
    trains_with: str = ""  # the published attention kernel that training runs; "": the tables' own
    matmul_share: float = 0.0  # assumed share of peak of large products; 0: none is assumed
    attention: CitedTable = NOTHING  # by kernel, its share of peak at head size 128 where no row has it
    links: CitedTable = NOTHING  # link coefficients assumed where no leader was measured

    @property
    def leader(self) -> str:
        """The chip that stands for the design; "" where none does."""
        return self.leaders[0] if self.leaders else ""


def design_from_table(table: Mapping[str, Any]) -> Design:
    """A `Design` from one table of designs.toml."""
    return Design(
        id=table["id"],
        source=table["source"],
        date=table["date"],
        leaders=tuple(table.get("leaders", ())),
        power_reference=table.get("power_reference", ""),
        switch_reduces=table.get("switch_reduces", False),
        asynchronous=table.get("asynchronous", False),
        trains_with=table.get("trains_with", ""),
        matmul_share=float(table.get("matmul_share", 0.0)),
        attention=cited_table(table.get("attention")),
        links=cited_table(table.get("links")),
    )

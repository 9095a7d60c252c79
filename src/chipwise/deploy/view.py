"""What was written, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.deploy.deployment import Deployment, NodePool
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.units import format_money

POOL_COLUMNS: tuple[Column[NodePool], ...] = (
    Column("pool", lambda p: p.name, "pool", words=True),
    Column("chip", lambda p: p.chip, "chip", words=True),
    Column("chips", lambda p: p.chips, "chips", help="in all"),
    Column("machine", lambda p: p.machine or None, "machine", lambda p: p.machine or "–", words=True),
    Column("hosts", lambda p: p.hosts, "hosts", help="at most"),
    Column("min_hosts", lambda p: p.min_hosts, "always up", help="hosts that never go"),
    Column("host_chips", lambda p: p.host_chips, help="chips of a host"),
    Column("slices", lambda p: p.slices if p.topology else None, "slices", lambda p: _slices(p), words=True),
    Column("topology", lambda p: p.topology or None, help="of each slice"),
    Column("term", lambda p: p.term, "terms", words=True),
    Column("reservation", lambda p: p.reservation or None),
    Column(
        "usd_per_chip_hour",
        lambda p: p.usd_per_chip_hour,
        "$/chip-hour",
        lambda p: f"{p.usd_per_chip_hour:.2f}" if p.usd_per_chip_hour else "–",
        unit="USD",
    ),
    Column(
        "usd_month",
        lambda p: p.usd_month,
        "a month",
        lambda p: format_money(p.usd_month) if p.usd_month else "–",
        help="with every machine up",
        unit="USD",
    ),
)


def _slices(pool: NodePool) -> str:
    return f"{pool.slices} x {pool.topology}" if pool.topology else "–"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WrittenDeployment(Result):
    """A deployment and the files that were written of it."""

    VERB: ClassVar[str] = "deploy write"
    deployment: Deployment
    target: str
    folder: Path
    files: Sequence[Path] = ()

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        made = self.deployment
        return {
            "name": made.name,
            "target": self.target,
            "source": made.source,
            "provider": str(made.provider),
            "engine": str(made.engine),
            "region": made.region or None,
            "zone": made.zone or None,
            "usd_month": made.usd_month,
            "pools": [record(POOL_COLUMNS, pool) for pool in made.pools],
            "assumptions": list(made.assumptions),
            "folder": str(self.folder),
            "files": [str(path.relative_to(self.folder)) for path in self.files],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a pool."""
        return [flat(POOL_COLUMNS, pool) for pool in self.deployment.pools]

    def blocks(self) -> list[Block]:
        """For people."""
        made = self.deployment
        place = f" in {made.region}" if made.region else ""
        return [
            Text(
                f"{made.name}: {self.target}{place}, of {made.source}; at most {format_money(made.usd_month)} a month"
            ),
            table(POOL_COLUMNS, made.pools),
            *(Text(f"assumed: {line}") for line in made.assumptions),
            Text(f"{plural(len(self.files), 'file')} in {safe(str(self.folder))}; README.md says how to apply them"),
        ]

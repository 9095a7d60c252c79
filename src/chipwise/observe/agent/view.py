"""What an agent says, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.observe.agent.agent import State
from chipwise.observe.device_table import VALUE_COLUMNS, device_table
from chipwise.observe.exporters import Sample
from chipwise.present.blocks import Block
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.result import Result
from chipwise.present.safe import safe

STATE_COLUMNS: tuple[Column[State], ...] = (
    Column("instrument", lambda s: s.name, "instrument", words=True),
    Column("devices", lambda s: s.devices, "devices"),
    Column("measurements", lambda s: s.measurements, "measurements"),
    Column("problem", lambda s: s.problem or None, "problem", lambda s: safe(s.problem) or "–", words=True),
)
SAMPLE_COLUMNS: tuple[Column[Sample], ...] = (
    *VALUE_COLUMNS,
    Column("labels", lambda s: dict(s.labels), nested=True),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AgentReading(Result):
    """What the instruments of a node said last."""

    VERB: ClassVar[str] = "observe agent"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in SAMPLE_COLUMNS if not column.nested)
    host: str
    rounds: int
    instruments: Sequence[State]
    samples: Sequence[Sample]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "host": self.host,
            "rounds": self.rounds,
            "instruments": [record(STATE_COLUMNS, state) for state in self.instruments],
            "values": [record(SAMPLE_COLUMNS, sample) for sample in self.samples],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a value."""
        return [flat(SAMPLE_COLUMNS, sample) for sample in self.samples]

    def blocks(self) -> list[Block]:
        """For people."""
        values = device_table((s.host, s.device, s.series, s.value) for s in self.samples)
        return [table(STATE_COLUMNS, self.instruments), *([values] if values.rows else [])]

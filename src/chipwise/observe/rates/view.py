"""What was met beside what is assumed, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar

from chipwise.catalog.assumption_file import write_assumption_file
from chipwise.catalog.economics import Assumption, Basis
from chipwise.observe.rates.records import Figure, LeftOut, Met, Rate
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, flat, record, table
from chipwise.present.numbers import number, plural
from chipwise.present.result import Result
from chipwise.present.safe import safe

_EXPOSED = {
    Figure.FAILURES: ("failure", "chip-hours"),
    Figure.INTERRUPTIONS: ("interruption", "instance-hours"),
    Figure.UTILIZATION: ("hour used", "chip-hours paid for"),
}
_REASONS = {
    LeftOut.NO_POOL: "the pools file has no such pool",
    LeftOut.NO_CLOUD: "the pools file names no cloud of theirs",
    LeftOut.NO_CHIP: "no accelerators",
}


def _met(rate: Rate) -> str:
    what, hours = _EXPOSED[rate.exposure.figure]
    if rate.exposure.figure is Figure.UTILIZATION:
        return f"{rate.exposure.count:,.4g} of {rate.exposure.hours:,.4g} {hours}"
    return f"{plural(round(rate.exposure.count), what)} in {rate.exposure.hours:,.4g} {hours}"


def _range(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


RATE_COLUMNS: tuple[Column[Rate], ...] = (
    Column("name", lambda r: r.name, "assumption", words=True, help="with its cloud, or `owned`"),
    Column(
        "assumed", lambda r: r.assumed.value, "assumed", lambda r: f"{r.assumed.value:.3g}", help="without these jobs"
    ),
    Column("assumed_low", lambda r: r.assumed.low, help="of its 90 % interval"),
    Column("assumed_high", lambda r: r.assumed.high, "90 %", lambda r: _range(r.assumed.low, r.assumed.high)),
    Column("value", lambda r: r.value, "with what was met", lambda r: f"{r.value:.3g}", help="the median"),
    Column("low", lambda r: r.low, help="of its 90 % interval"),
    Column("high", lambda r: r.high, "90 %", lambda r: _range(r.low, r.high)),
    Column("unit", lambda r: r.assumed.unit, "unit", words=True),
    Column("count", lambda r: r.exposure.count, help="failures, interruptions, or hours used"),
    Column("hours", lambda r: r.exposure.hours, "met", _met, words=True, help="of chips, of instances, or paid for"),
    Column("began", lambda r: _day(r.exposure.began), "from", words=True),
    Column("ended", lambda r: _day(r.exposure.ended), "to", words=True),
    Column("assumed_source", lambda r: r.assumed.source, help="where the assumption is from"),
    Column("assumed_date", lambda r: r.assumed.date),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rates(Result):
    """What costs assume, as a ledger's jobs met it."""

    VERB: ClassVar[str] = "observe rates"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in RATE_COLUMNS)
    met: Met
    rates: Sequence[Rate]
    today: date
    file: Path | None = None  # that was written

    def assumptions(self) -> list[Assumption]:
        """The figures that can stand in place of what is assumed."""
        return [
            replace(
                rate.assumed,
                name=rate.name,
                value=rate.value,
                low=rate.low,
                high=rate.high,
                source=f"measured: {self.source}",
                date=self.today.isoformat(),
                note=f"{_met(rate)}, {_day(rate.exposure.began)} to {_day(rate.exposure.ended)}",
                evidence=Basis.MEASURED,
            )
            for rate in self.rates
        ]

    @property
    def source(self) -> str:
        """What they are from, in words."""
        began = min((rate.exposure.began for rate in self.rates), default=0.0)
        ended = max((rate.exposure.ended for rate in self.rates), default=0.0)
        return f"jobs of ledger {Path(self.met.ledger).name}, {_day(began)} to {_day(ended)}"

    def write(self, path: Path) -> Path:
        """Write them as a file of assumptions, for `--assumptions`."""
        write_assumption_file(path, self.assumptions(), self.source, self.today)
        return path

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        met = self.met
        return {
            "ledger": met.ledger,
            "attempts": met.attempts,
            "rates": [record(RATE_COLUMNS, rate) for rate in self.rates],
            "left_out": [{"pool": pool, "reason": why, "chip_hours": hours} for pool, why, hours in met.left_out],
            "restarts": met.restarts,
            "unread": met.unread,
            "bad_rows": list(met.bad_rows),
            "file": None if self.file is None else str(self.file),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a figure."""
        return [flat(RATE_COLUMNS, rate) for rate in self.rates]

    def blocks(self) -> list[Block]:
        """For people."""
        where = f"ledger {safe(self.met.ledger)}"
        out: list[Block] = [Text(f"{where}: {plural(self.met.attempts, 'attempt')} that held chips")]
        if self.rates:
            out.append(table(RATE_COLUMNS, self.rates))
        return [*out, *(Text(line) for line in self._notes())]

    def _notes(self) -> list[str]:
        met = self.met
        lines = [
            f"Left out: {number(hours)} chip-hours of pool {safe(pool)}: {_REASONS[why]}"
            for pool, why, hours in met.left_out
        ]
        for pool, chips in met.by_instance:
            unit = f"an instance is {plural(chips, 'chip')}" if chips else "a slice counts as one instance"
            lines.append(f"Pool {safe(pool)}: {unit}")
        if met.restarts:
            lines.append(f"{plural(met.restarts, 'restart')} by backends themselves count as failures or interruptions")
        if met.unread:
            many = plural(met.unread, "attempt")
            lines.append(f"{many} failed without output to be had: taken for the program's own fault")
        lines += [f"left out: {safe(line)}" for line in met.bad_rows]
        if self.file is not None:
            lines.append(f"Written to {self.file}: `cost`, `report` and `fleet plan` take it by --assumptions")
        return lines

"""What was met beside what is assumed, as every face shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar

from chipwise.catalog.assumption_file import write_assumption_file
from chipwise.catalog.economics import Assumption, Basis
from chipwise.observe.rates.power import Use
from chipwise.observe.rates.records import DeviceLeftOut, Figure, LeftOut, Met, PoolPower, PowerMet, Rate, Untold
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
_USES = {Use.WORK: "a job holds them", Use.IDLE: "idle"}
_WATTS = (Figure.WATTS, Figure.IDLE_WATTS)
_REASONS = {
    LeftOut.NO_POOL: "the pools file has no such pool",
    LeftOut.NO_CLOUD: "the pools file names no cloud of theirs",
    LeftOut.NO_CHIP: "no accelerators",
}


def _met(rate: Rate) -> str:
    if rate.exposure.figure in _WATTS:
        devices, days = plural(rate.exposure.devices, "device"), plural(rate.exposure.days, "day")
        return f"{rate.exposure.count:,.4g} kWh in {rate.exposure.hours:,.4g} hours of {devices}, {days}"
    what, hours = _EXPOSED[rate.exposure.figure]
    if rate.exposure.figure is Figure.UTILIZATION:
        return f"{rate.exposure.count:,.4g} of {rate.exposure.hours:,.4g} {hours}"
    return f"{plural(round(rate.exposure.count), what)} in {rate.exposure.hours:,.4g} {hours}"


def _range(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


RATE_COLUMNS: tuple[Column[Rate], ...] = (
    Column(
        "name", lambda r: r.name, "assumption", words=True, help="with its cloud, or `owned`; of watts with the chip"
    ),
    Column(
        "assumed", lambda r: r.assumed.value, "assumed", lambda r: f"{r.assumed.value:.3g}", help="without these jobs"
    ),
    Column("assumed_low", lambda r: r.assumed.low, help="of its 90 % interval"),
    Column("assumed_high", lambda r: r.assumed.high, "90 %", lambda r: _range(r.assumed.low, r.assumed.high)),
    Column("value", lambda r: r.value, "with what was met", lambda r: f"{r.value:.3g}", help="the median"),
    Column("low", lambda r: r.low, help="of its 90 % interval"),
    Column("high", lambda r: r.high, "90 %", lambda r: _range(r.low, r.high)),
    Column("unit", lambda r: r.assumed.unit, "unit", words=True),
    Column("count", lambda r: r.exposure.count, help="failures, interruptions, hours used, or kWh"),
    Column("hours", lambda r: r.exposure.hours, "met", _met, words=True, help="of chips, of instances, or paid for"),
    Column("devices", lambda r: r.exposure.devices or None, help="of watts"),
    Column("days", lambda r: r.exposure.days or None, help="of watts, on which there is something"),
    Column("began", lambda r: _day(r.exposure.began), "from", words=True),
    Column("ended", lambda r: _day(r.exposure.ended), "to", words=True),
    Column("assumed_source", lambda r: r.assumed.source, help="where the assumption is from"),
    Column("assumed_date", lambda r: r.assumed.date),
)
POWER_COLUMNS: tuple[Column[PoolPower], ...] = (
    Column("pool", lambda p: p.pool, "pool", words=True),
    Column("chip", lambda p: p.chip, "chip", words=True),
    Column("use", lambda p: p.use.value, "while", lambda p: _USES[p.use], words=True),
    Column("watts", lambda p: p.drawn.watts, "W a chip", lambda p: f"{p.drawn.watts:.0f}", help="the mean over time"),
    Column("device_hours", lambda p: p.drawn.hours, "device-hours", lambda p: f"{p.drawn.hours:,.4g}"),
    Column("devices", lambda p: p.drawn.devices, "devices"),
    Column("days", lambda p: p.drawn.days, "days"),
    Column("kwh", lambda p: p.drawn.kwh),
)
MOST_NAMED = 8  # devices


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rates(Result):
    """What costs assume, as a ledger's jobs met it."""

    VERB: ClassVar[str] = "observe rates"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in RATE_COLUMNS)
    met: Met
    rates: Sequence[Rate]
    today: date
    power: PowerMet | None = None  # None: there is no store of telemetry
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
        power = "" if self.power is None or not self.power.pools else " and telemetry"
        return f"jobs of ledger {Path(self.met.ledger).name}{power}, {_day(began)} to {_day(ended)}"

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
            "power": None if self.power is None else _power(self.power),
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
        if self.power is not None and self.power.pools:
            title = f"Power, by the store {safe(self.power.store)}"
            out.append(table(POWER_COLUMNS, self.power.pools, title=title))
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
        lines += _power_notes(self.power)
        if self.file is not None:
            lines.append(
                f"Written to {self.file}: `cost`, `compare`, `report` and `fleet plan` take it by --assumptions"
            )
        return lines


def _power(power: PowerMet) -> dict[str, Any]:
    return {
        "store": power.store,
        "pools": [record(POWER_COLUMNS, row) for row in power.pools],
        "left_out": [
            {
                "host": d.host,
                "device": d.device,
                "pool": d.pool,
                "reason": d.why.value,
                "what": d.what,
                "hours": d.hours,
            }
            for d in power.left_out
        ],
        "unplaced": power.unplaced,
        "problems": list(power.problems),
    }


def _power_notes(power: PowerMet | None) -> list[str]:
    if power is None:
        return ["Power is as assumed: there is no store of telemetry (`observe agent` and `observe scrape` make one)"]
    lines = [_left_out(power.left_out, why) for why in Untold if any(d.why is why for d in power.left_out)]
    if power.unplaced:
        lines.append(
            f"Left out of power: {plural(power.unplaced, 'device')} of hosts that no pool names, or several do"
        )
    lines += [f"Nodes are not known: {safe(problem)}" for problem in power.problems]
    if not power.pools and not lines:
        lines.append(f"The store {safe(power.store)} has no power of devices")
    return lines


def _left_out(devices: Sequence[DeviceLeftOut], why: Untold) -> str:
    theirs = [device for device in devices if device.why is why]
    names = [f"{safe(d.host)} {safe(d.device)}" + (f" ({safe(d.what)})" if d.what else "") for d in theirs[:MOST_NAMED]]
    more = f" and {len(theirs) - MOST_NAMED} more" if len(theirs) > MOST_NAMED else ""
    hours = sum(device.hours or 0.0 for device in theirs)
    what = "sick" if why is Untold.SICK else f"throttled for {hours:,.3g} device-hours"
    return f"Left out of power, {what}: {', '.join(names)}{more}"

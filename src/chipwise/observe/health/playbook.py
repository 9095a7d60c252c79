"""What to do about each condition, and how grave it is: data, with sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from chipwise.observe.data_files import rows
from chipwise.observe.faults import xids
from chipwise.observe.health.records import Condition
from chipwise.observe.records import Fault, FaultClass, Severity


@dataclass(frozen=True, slots=True)
class Advice:
    """How grave something is, and what to do."""

    severity: Severity
    action: str
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSeries:
    """A series of an exporter that tells of a fault where its value is so."""

    series: str
    below: bool  # the value; else at least so much
    value: float
    condition: Condition
    fault: FaultClass | None
    severity: Severity
    meaning: str

    def tells(self, amount: float) -> bool:
        """Whether a value shows the fault."""
        return amount < self.value if self.below else amount >= self.value


@cache
def _playbook() -> dict[tuple[Condition, FaultClass | None], Advice]:
    return {
        (Condition(row["condition"]), FaultClass(row["fault"]) if row["fault"] else None): Advice(
            Severity(row["severity"]), row["action"]
        )
        for row in rows("playbook.csv")
    }


@cache
def device_series() -> tuple[DeviceSeries, ...]:
    """The series known to tell of faults."""
    return tuple(
        DeviceSeries(
            series=row["series"],
            below=row["compare"] == "below",
            value=float(row["value"]),
            condition=Condition(row["condition"]),
            fault=FaultClass(row["fault"]) if row["fault"] else None,
            severity=Severity(row["severity"]),
            meaning=row["meaning"],
        )
        for row in rows("device_series.csv")
    )


def advice(condition: Condition, fault: FaultClass | None = None) -> Advice:
    """What to do about a condition.

    >>> advice(Condition.HUNG).severity.value, advice(Condition.FAULT, FaultClass.PREEMPTED).severity.value
    ('critical', 'notice')
    """
    return _playbook()[condition, fault]


def advice_on(fault: Fault) -> Advice:
    """What to do about a fault that a line tells: by its Xid where it has one."""
    xid = xids().get(fault.xid) if fault.xid is not None else None
    if xid is not None:
        return Advice(xid.severity, xid.action, xid.meaning)
    condition = Condition.THROTTLED if fault.kind is FaultClass.THERMAL else Condition.FAULT
    return advice(condition, None if condition is Condition.THROTTLED else fault.kind)

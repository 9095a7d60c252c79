"""What a series shows of a node: a counter that rose, a number that turned, a state that holds. Pure.

A state of one moment proves nothing: it has to hold for a while, in several samples. A counter of faults that rose, or
an Xid that was another before, is a fact: the driver wrote it down when it happened. What was there before anybody
looked may be years old, and proves nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from chipwise.observe.data_files import rows
from chipwise.observe.faults import xids
from chipwise.observe.health.playbook import advice
from chipwise.observe.health.records import Condition
from chipwise.observe.records import FaultClass, Severity

FEWEST = 3  # samples in which a state has to hold
_CLASSES = {kind.value: kind for kind in FaultClass}
Samples = Sequence[tuple[int, float]]  # seconds since 1970 and value, by time


class Shows(StrEnum):
    """How a series shows a fault."""

    RISE = "rise"  # a counter: by how much it rose
    TURN = "turn"  # a number that stays: that it became this one
    HOLD = "hold"  # a state: that it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeries:
    """A series that tells of a node's health."""

    series: str
    shows: Shows
    value: float  # from which on
    hold_s: int
    condition: Condition
    fault: FaultClass | None  # None: by its labels or its value
    severity: Severity | None
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What a series has shown of a device."""

    device: str
    condition: Condition
    fault: FaultClass | None
    severity: Severity
    xid: int | None = None
    times: int = 1  # faults; of a state the samples that show it
    first: int  # seconds since 1970
    last: int
    confirmed: bool = True
    meaning: str
    action: str


@cache
def node_series() -> Mapping[str, tuple[NodeSeries, ...]]:
    """What is known to tell of nodes, by series; the gravest of each first."""
    out: dict[str, tuple[NodeSeries, ...]] = {}
    for row in rows("node_series.csv"):
        series = NodeSeries(
            series=row["series"],
            shows=Shows(row["shows"]),
            value=float(row["value"]),
            hold_s=int(row["hold_s"]),
            condition=Condition(row["condition"]),
            fault=FaultClass(row["fault"]) if row["fault"] else None,
            severity=Severity(row["severity"]) if row["severity"] else None,
            meaning=row["meaning"],
        )
        out[series.series] = (*out.get(series.series, ()), series)
    return out


def worth_a_look(series: str, newest: float) -> bool:
    """Whether a newest value leaves open that there is a symptom: all these values stay until something is mended."""
    return any(newest >= one.value for one in node_series().get(series, ()))


def symptom_of(
    series: str, device: str, labels: Mapping[str, str], samples: Samples, looked_since: int
) -> Symptom | None:
    """What a series shows, by its samples; `looked_since`: when its host was first looked at."""
    for one in node_series().get(series, ()):
        symptom = {Shows.RISE: _rise, Shows.TURN: _turn, Shows.HOLD: _hold}[one.shows](
            one, device, labels, samples, looked_since
        )
        if symptom is not None:
            return symptom
    return None


def _rise(
    one: NodeSeries, device: str, labels: Mapping[str, str], samples: Samples, looked_since: int
) -> Symptom | None:
    """Faults that were counted. One that falls was begun again; one that comes when others are there began at 0."""
    before = samples[0][1] if samples and samples[0][0] <= looked_since else 0.0
    times, moments = 0.0, []
    for at, value in samples:
        more = value - before if value >= before else value
        if more > 0:
            times += more
            moments.append(at)
        before = value
    if times < one.value:
        return None
    return _fault(one, device, labels.get("fault", ""), labels.get("xid", ""), round(times), moments)


def _turn(
    one: NodeSeries, device: str, labels: Mapping[str, str], samples: Samples, looked_since: int
) -> Symptom | None:
    """The last number that it became, while it was looked at. Exporters show none as 0 or not at all."""
    before = samples[0][1] if samples and samples[0][0] <= looked_since else 0.0
    turns = []
    for at, value in samples:
        if value != before and value >= one.value:
            turns.append((at, value))
        before = value
    if not turns:
        return None
    last = turns[-1][1]
    moments = [at for at, value in turns if value == last]
    return _fault(one, device, "", f"{last:g}", len(moments), moments)


def _fault(one: NodeSeries, device: str, fault: str, number: str, times: int, moments: Sequence[int]) -> Symptom | None:
    xid = xids().get(int(number)) if number.isdigit() else None
    kind = one.fault or (xid.kind if xid else _CLASSES.get(fault, FaultClass.DRIVER))
    playbook = advice(one.condition, kind)
    return Symptom(
        device=device,
        condition=one.condition,
        fault=kind,
        severity=one.severity or (xid.severity if xid else playbook.severity),
        xid=int(number) if number.isdigit() else None,
        times=times,
        first=moments[0],
        last=moments[-1],
        meaning=xid.meaning if xid else one.meaning,
        action=xid.action if xid else playbook.action,
    )


def _hold(
    one: NodeSeries, device: str, labels: Mapping[str, str], samples: Samples, looked_since: int
) -> Symptom | None:
    """A state that holds until now; not confirmed while it is too young."""
    holding: list[int] = []
    for at, value in reversed(samples):
        if value < one.value:
            break
        holding.append(at)
    if not holding:
        return None
    return Symptom(
        device=device,
        condition=one.condition,
        fault=one.fault,
        severity=one.severity or advice(one.condition, one.fault).severity,
        times=len(holding),
        first=holding[-1],
        last=holding[0],
        confirmed=len(holding) >= FEWEST and holding[0] - holding[-1] >= one.hold_s,
        meaning=one.meaning,
        action=advice(one.condition, one.fault).action,
    )

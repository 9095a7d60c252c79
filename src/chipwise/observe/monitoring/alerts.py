"""Alerting rules: those of data/alerts.csv, one for every Xid, and one for every bound of an SLO."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chipwise.observe.data_files import rows
from chipwise.observe.faults import EFFECTS, xids
from chipwise.observe.health.playbook import advice
from chipwise.observe.health.records import Condition
from chipwise.observe.monitoring.recordings import quantile_series
from chipwise.observe.monitoring.records import PREFIX, Alert, Topic
from chipwise.observe.records import FaultClass, Severity
from chipwise.workload.serve import Bound

_PLAYBOOK = "playbook:"  # an action that stands there
_LATENCIES = {  # metrics of an SLO: the series, and what it is called
    "ttft": ("serving_first_token_seconds", "the time to the first token"),
    "tpot": ("serving_later_token_seconds", "the time per later token"),
    "itl": ("serving_token_gap_seconds", "the gap between two tokens"),
    "e2e": ("serving_request_seconds", "the time of a request"),
}
_NEW = "15m"  # since when an Xid counts as new: the gauge keeps it for ever


def alerts(topics: Sequence[Topic] = tuple(Topic), slo: Iterable[Bound] = ()) -> list[Alert]:
    """The rules about some topics."""
    every = [*(_alert(row) for row in rows("alerts.csv")), *_xids(), *_missed(slo)]
    return [alert for topic in topics for alert in every if alert.topic is topic]


def _alert(row: Mapping[str, str]) -> Alert:
    action = row["action"]
    if action.startswith(_PLAYBOOK):
        condition, _, fault = action.removeprefix(_PLAYBOOK).partition("/")
        action = advice(Condition(condition), FaultClass(fault) if fault else None).action
    return Alert(
        name=row["alert"],
        topic=Topic(row["group"]),
        expression=row["expr"],
        hold=row["for"],
        severity=Severity(row["severity"]),
        summary=row["summary"],
        action=action,
    )


def _xids() -> Iterator[Alert]:
    """An exporter's gauge holds the last Xid and never goes back: it is new where it was not the same a while ago.

    An agent counts them: it is new where there were fewer.
    """
    series = f"{PREFIX}device_last_xid"
    for number, xid in xids().items():
        if number in EFFECTS:
            continue
        counted = f'{PREFIX}host_faults{{xid="{number}"}}'
        yield Alert(
            name="Xid",
            topic=Topic.DEVICES,
            expression=f"({series} == {number} unless on (host, device) ({series} offset {_NEW} == {number}))"
            f" or ({counted} > ({counted} offset {_NEW} or {counted} * 0))",
            hold="",
            severity=xid.severity,
            summary=f"Xid {number} of {{{{ $labels.device }}}} of {{{{ $labels.host }}}}: {xid.meaning}",
            action=xid.action,
            labels={"xid": str(number), "fault": xid.kind.value},
        )


def _missed(slo: Iterable[Bound]) -> Iterator[Alert]:
    for bound in slo:
        series, words = _LATENCIES[bound.metric]
        percentile = f"{bound.percentile:g}"
        yield Alert(
            name="SloMissed",
            topic=Topic.SERVING,
            expression=f"{quantile_series(series, percentile)} > {bound.seconds:.12g}",
            hold="5m",
            severity=Severity.WARNING,
            summary=f"p{percentile} of {words} at {{{{ $labels.host }}}} is {{{{ $value | humanizeDuration }}}}: "
            f"the SLO is {bound.seconds:g} s",
            action="add replicas; or admit fewer requests (`chipwise serving capacity`)",
            labels={"metric": bound.metric},
        )

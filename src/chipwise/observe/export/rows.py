"""Values of a store, host by host, with the names of what they are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.errors import UnknownName
from chipwise.observe.device_table import units
from chipwise.observe.store.schema import Resolution
from chipwise.observe.store.store import SeriesRow, TelemetryStore

if TYPE_CHECKING:
    from chipwise.observe.store.points import Points


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What of a store is wanted; nothing named is all of it."""

    since: int
    until: int
    resolution: Resolution
    series: Sequence[str] = ()
    hosts: Sequence[str] = ()
    devices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class HostRows:
    """The values of a host; `series` are those that they are of, by number."""

    host: str
    series: dict[int, SeriesRow]
    points: Points

    def columns(self) -> dict[str, list[object]]:
        """Columns as every file has them, by name."""
        points = self.points
        theirs = [self.series[number] for number in points.series.tolist()]
        return {
            "at": points.at.tolist(),
            "series": [one.name for one in theirs],
            "host": [self.host] * len(theirs),
            "device": [one.device for one in theirs],
            "labels": [one.labels for one in theirs],
            "unit": [units().get(one.name) for one in theirs],
            "count": points.count.tolist(),
            "mean": points.mean.tolist(),
            "least": points.least.tolist(),
            "most": points.most.tolist(),
        }


def rows_of(store: TelemetryStore, selection: Selection) -> Iterator[HostRows]:
    """The values that are wanted, a host at a time; a name that nothing has is refused."""
    hosts = store.hosts()
    _known("host", selection.hosts, hosts)
    _known("series", selection.series, store.names())
    devices: set[str] = set()
    for host in hosts:
        if selection.hosts and host not in selection.hosts:
            continue
        series = store.series(host)
        devices |= {one.device for one in series.values()}
        wanted = {
            number: one
            for number, one in series.items()
            if (not selection.series or one.name in selection.series)
            and (not selection.devices or one.device in selection.devices)
        }
        if wanted:
            points = store.points(
                host, selection.since, selection.until, resolution=selection.resolution, series=list(wanted)
            )
            yield HostRows(host, wanted, points)
    _known("device", selection.devices, sorted(devices))


def _known(field: str, names: Sequence[str], there: Sequence[str]) -> None:
    unknown = next((name for name in names if name not in there), None)
    if unknown is not None:
        raise UnknownName(field, unknown, there)

"""Jobs, devices and pools on one screen, in an order that whoever looks has chosen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from chipwise.observe.device_table import device_table
from chipwise.observe.jobs.observation import Observation
from chipwise.observe.jobs.view import COLUMNS, JobObservations
from chipwise.observe.records import SEVERITIES
from chipwise.observe.scrape.view import Devices
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import record, table
from chipwise.present.numbers import plural
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.pool_view import POOL_COLUMNS, PoolList


class JobOrder(StrEnum):
    """What jobs are sorted by."""

    NEWEST = "newest"
    SLOWEST = "slowest"  # actual over predicted
    HEALTH = "health"  # the sickest first
    LEFT = "left"  # those that end first
    GOODPUT = "goodput"  # the least first


class DeviceOrder(StrEnum):
    """What devices are sorted by."""

    HOST = "host"
    BUSY = "busy"  # the busiest first
    IDLE = "idle"  # the least busy first
    POWER = "power"
    HOT = "hot"
    MEMORY = "memory"


_LAST = float("inf")  # of a job or a device that does not say
_JOB_KEYS: dict[JobOrder, Callable[[Observation], float]] = {
    JobOrder.NEWEST: lambda o: -int(o.job.id),
    JobOrder.SLOWEST: lambda o: -o.ratio.ratio if o.ratio else _LAST,
    JobOrder.HEALTH: lambda o: min((SEVERITIES.index(f.severity) for f in o.findings), default=len(SEVERITIES)),
    JobOrder.LEFT: lambda o: o.remaining.value if o.remaining else _LAST,
    JobOrder.GOODPUT: lambda o: o.account.goodput if o.account.goodput is not None else _LAST,
}
_DEVICE_KEYS: dict[DeviceOrder, tuple[str, int]] = {
    DeviceOrder.BUSY: ("device_busy", -1),
    DeviceOrder.IDLE: ("device_busy", 1),
    DeviceOrder.POWER: ("device_power", -1),
    DeviceOrder.HOT: ("device_temperature", -1),
    DeviceOrder.MEMORY: ("device_memory_used", -1),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Top(Result):
    """Jobs under way, devices and pools as they are now."""

    VERB: ClassVar[str] = "observe top"
    CSV_HEADER: ClassVar[tuple[str, ...]] = tuple(column.key for column in COLUMNS)
    at: float  # seconds since 1970
    jobs: JobObservations | None  # None: no ledger
    devices: Devices | None  # None: no store
    pools: PoolList | None  # None: no pools file
    problems: Sequence[str] = ()
    job_order: JobOrder = JobOrder.NEWEST
    device_order: DeviceOrder = DeviceOrder.HOST

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "at": self.at,
            "jobs": [record(COLUMNS, one) for one in self._jobs()],
            "devices": None if self.devices is None else self.devices.record()["values"],
            "pools": None if self.pools is None else [record(POOL_COLUMNS, one) for one in self.pools.pools],
            "problems": list(self.problems),
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row a job."""
        return [] if self.jobs is None else self.jobs.flat_rows()

    def _jobs(self) -> list[Observation]:
        return [] if self.jobs is None else sorted(self.jobs.observations, key=_JOB_KEYS[self.job_order])

    def blocks(self) -> list[Block]:
        """For people who look once."""
        return [block for part in self.sections() for block in part]

    def sections(self) -> list[list[Block]]:
        """The head, then jobs, devices and pools, as far as they are known."""
        moment = datetime.fromtimestamp(self.at, UTC)
        head: list[Block] = [Text(f"{moment:%Y-%m-%d %H:%M:%S} UTC; {', '.join(self._counts())}")]
        out = [[*head, *(Text(safe(problem)) for problem in self.problems)]]
        if self.jobs is not None and self.jobs.observations:
            title = f"Jobs, by {self.job_order}"
            out.append([table(COLUMNS, self._jobs(), title=title)])
        if self.devices is not None and self.devices.newest:
            out.append([device_table(self._values(), title=f"Devices, by {self.device_order}")])
        if self.pools is not None:
            out.append([table(POOL_COLUMNS, self.pools.pools, title="Pools")])
        return out

    def _counts(self) -> list[str]:
        devices = set() if self.devices is None else {(one.host, one.device) for one in self.devices.newest}
        return [
            plural(len(self._jobs()), "job") if self.jobs is not None else "no ledger",
            plural(len(devices), "device") if self.devices is not None else "no store of telemetry",
            plural(len(self.pools.pools), "pool") if self.pools is not None else "no pools file",
        ]

    def _values(self) -> list[tuple[str, str, str, float]]:
        assert self.devices is not None
        rows = [(one.host, one.device, one.series, one.value) for one in self.devices.newest]
        if self.device_order is DeviceOrder.HOST:
            return rows
        series, sign = _DEVICE_KEYS[self.device_order]
        keys: dict[tuple[str, str], float] = defaultdict(lambda: _LAST)
        keys.update({(host, device): sign * value for host, device, name, value in rows if name == series})
        return sorted(rows, key=lambda row: (keys[row[0], row[1]], row[0], row[1]))


@dataclass(slots=True)
class Choice:
    """What a watcher has chosen by keys."""

    jobs: JobOrder = JobOrder.NEWEST
    devices: DeviceOrder = DeviceOrder.HOST
    only: int = 0  # 1: jobs, 2: devices, 3: pools; 0: all of them
    over: bool = field(default=False)

    def press(self, key: str) -> bool:
        """Take a key; whether to look again at once."""
        if key in ("q", "Q", "\x03", "\x04"):
            self.over = True
        elif key == "j":
            self.jobs = _next(list(JobOrder), self.jobs)
        elif key == "d":
            self.devices = _next(list(DeviceOrder), self.devices)
        elif key in ("0", "1", "2", "3"):
            self.only = int(key)
        return key in (" ", "r")

    HELP: ClassVar[str] = "q quit  j order of jobs  d order of devices  1 jobs  2 devices  3 pools  0 all  space now"


def _next(values: list[Any], value: Any) -> Any:
    return values[(values.index(value) + 1) % len(values)]

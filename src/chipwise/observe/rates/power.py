"""Watts of devices while jobs hold them and while nobody does: the mean over time, and how sure that is.

Devices differ and so do days (programs change), and all moments of a device or of a day have that in common. The
variance of the mean is therefore clustered by device and by day at once (Cameron, Gelbach and Miller, 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Device = tuple[str, str]  # its host, and its name there
Span = tuple[float, float, int]  # from when to when how many chips are held
DAY = 86_400
HOUR = 3_600.0
EDGE_S = 120.0  # on either side of what is otherwise: pauses of a job are mostly shorter (own, 2026-11-19)
AT_WORK = 0.01  # of the time busy: what a device whose job waits shows, and no idle one (own, 2026-11-19)


class Use(StrEnum):
    """What a device is used for."""

    WORK = "work"  # a job holds it
    IDLE = "idle"  # nobody does


@dataclass(frozen=True, slots=True)
class Windows:
    """What was kept of a series of a device: when, and the mean from there on."""

    at: Array
    mean: Array

    @property
    def seconds(self) -> Array:
        """How long each lasts: to the next, and never longer than they usually do."""
        if len(self.at) < 2:
            return np.zeros_like(self.at)
        usual = float(np.median(np.diff(self.at)))
        lasting: Array = np.minimum(np.append(np.diff(self.at), usual), usual * 1.5)
        return lasting

    def where(self, at: Array) -> Array:
        """Their mean at other moments; nan where nothing was kept."""
        if not len(self.at):
            return np.full_like(at, np.nan)
        place = np.clip(np.searchsorted(self.at, at, side="right") - 1, 0, None)
        fresh = (at >= self.at[place]) & (at < self.at[place] + np.maximum(self.seconds[place], 1.0))
        return np.where(fresh, self.mean[place], np.nan)


@dataclass(slots=True)
class Drawn:
    """Energy and time by device and day."""

    cells: dict[tuple[Device, int], list[float]] = field(default_factory=dict)  # watt-seconds and seconds
    began: float = float("inf")
    ended: float = 0.0

    def add(self, device: Device, at: Array, watts: Array, seconds: Array) -> None:
        """Count windows of a device."""
        if not len(at):
            return
        self.began, self.ended = min(self.began, float(at[0])), max(self.ended, float(at[-1] + seconds[-1]))
        days = (at // DAY).astype(int)
        for day in np.unique(days):
            there = days == day
            cell = self.cells.setdefault((device, int(day)), [0.0, 0.0])
            cell[0] += float((watts[there] * seconds[there]).sum())
            cell[1] += float(seconds[there].sum())

    def update(self, other: Drawn) -> None:
        """Count what another has."""
        for key, (joules, seconds) in other.cells.items():
            cell = self.cells.setdefault(key, [0.0, 0.0])
            cell[0] += joules
            cell[1] += seconds
        self.began, self.ended = min(self.began, other.began), max(self.ended, other.ended)

    @property
    def hours(self) -> float:
        """Device-hours."""
        return sum(seconds for _, seconds in self.cells.values()) / HOUR

    @property
    def kwh(self) -> float:
        """Energy."""
        return sum(joules for joules, _ in self.cells.values()) / 3.6e6

    @property
    def watts(self) -> float:
        """The mean over time."""
        return self.kwh * 1e3 / self.hours

    @property
    def devices(self) -> int:
        """How many devices there are in it."""
        return len({device for device, _ in self.cells})

    @property
    def days(self) -> int:
        """How many days."""
        return len({day for _, day in self.cells})

    def variance(self) -> float:
        """Of the mean, clustered by device and by day; 0 where there is one of each."""
        mean, total = self.watts, self.hours * HOUR
        left = {key: joules - seconds * mean for key, (joules, seconds) in self.cells.items()}
        of_devices = _clustered(left, lambda key: key[0])
        of_days = _clustered(left, lambda key: key[1])
        both = _clustered(left, lambda key: key)
        return max(of_devices + of_days - both, of_devices, of_days) / total**2


def _clustered(left: Mapping[tuple[Device, int], float], cluster: Callable[[tuple[Device, int]], object]) -> float:
    sums: dict[object, float] = {}
    for key, amount in left.items():
        sums[cluster(key)] = sums.get(cluster(key), 0.0) + amount
    count = len(sums)
    return sum(amount**2 for amount in sums.values()) * count / (count - 1) if count > 1 else 0.0


def used_for(power: Windows, busy: Windows, held: Callable[[Array], Array]) -> tuple[Flags, Flags]:
    """Which windows of a device's power are of work, and which of idling, as flags; the rest are told by nobody.

    `held` is the share of its pool's chips that jobs of the ledger hold: all of them hold this one, none of them
    leaves it idle unless it is busy for somebody else. In between, and at the edge of work, its own use says.
    """
    share, use = held(power.at), busy.where(power.at)
    full = share >= 1.0
    working = full | (use > AT_WORK)
    idle = ~working & ((use <= AT_WORK) | (share <= 0.0))
    return _well_inside(working, power.at), _well_inside(idle, power.at)


def _well_inside(flags: Flags, at: Array) -> Flags:
    """Those with none that is otherwise near: an edge of work has both in it, and work has pauses."""
    others = at[~flags]
    if not len(others):
        return flags
    after = np.clip(np.searchsorted(others, at), 0, len(others) - 1)
    nearest = np.minimum(np.abs(others[after] - at), np.abs(others[np.clip(after - 1, 0, None)] - at))
    usual = float(np.median(np.diff(at))) if len(at) > 1 else 0.0
    return flags & (nearest > max(EDGE_S, 1.5 * usual))


def share_held(spans: Sequence[Span], count: int) -> Callable[[Array], Array]:
    """The share of a pool's chips that attempts hold, by time: a step function of their spans."""
    edges = np.array([(began, chips) for began, _, chips in spans] + [(ended, -chips) for _, ended, chips in spans])
    if not len(edges):
        return lambda at: np.zeros_like(at)
    order = np.argsort(edges[:, 0], kind="stable")
    moments, held = edges[order, 0], np.cumsum(edges[order, 1])

    def share(at: Array) -> Array:
        place = np.searchsorted(moments, at, side="right") - 1
        return np.where(place >= 0, held[np.clip(place, 0, None)], 0.0) / max(1, count)

    return share

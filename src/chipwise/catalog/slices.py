"""Which TPU slices exist: legal shapes, the most cubic shape for a count, and which axes wrap around."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from chipwise.catalog.chip import Chip


@dataclass(frozen=True, slots=True)
class Gke:
    """Slices of a TPU generation on Google Kubernetes Engine."""

    accelerator: str  # the value of the label cloud.google.com/gke-tpu-accelerator
    host_chips: int  # of each machine in a slice over several
    source: str
    date: str
    note: str


@dataclass(frozen=True, slots=True)
class Slices:
    """The legal slice shapes of one TPU generation."""

    chip_id: str
    shapes: tuple[tuple[int, ...], ...]  # listed shapes; shapes of whole cubes come on top
    cube: int  # edge of the cube larger slices are made of; 0 where only `shapes` exist
    max_chips: int
    counts: str  # what the number in "v5p-128" counts: "cores" or "chips"
    source: str
    date: str
    note: str
    billed_by: str = "chip"  # what an hour in Google's bills is of: "chip" or "board"
    gke: Gke | None = None  # None: it is not to be had there

    def canonical(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The listed spelling of `shape` (axes in any order), or None where it is not legal."""
        for listed in self.shapes:
            if sorted(listed) == sorted(shape):
                return listed
        if self.cube and len(shape) == 3 and all(axis > 0 and axis % self.cube == 0 for axis in shape):
            ordered = tuple(sorted(shape))
            return ordered if prod(ordered) <= self.max_chips else None
        return None

    def shape_for(self, count: int) -> tuple[int, ...] | None:
        """The most cubic legal shape of `count` chips, or None."""
        return min(self.shapes_for(count), key=lambda s: sum(axis * axis for axis in s), default=None)

    def shapes_for(self, count: int) -> tuple[tuple[int, ...], ...]:
        """Every legal shape of `count` chips."""
        listed = [shape for shape in self.shapes if prod(shape) == count]
        unit = self.cube**3
        if unit and count % unit == 0 and unit <= count <= self.max_chips:
            listed += [(a * self.cube, b * self.cube, c * self.cube) for a, b, c in _triples(count // unit)]
        return tuple(dict.fromkeys(listed))

    def chip_counts(self) -> tuple[int, ...]:
        """Every number of chips one slice may have, ascending."""
        return _chip_counts(self)


@cache
def _chip_counts(slices: Slices) -> tuple[int, ...]:
    unit = slices.cube**3
    cubes = range(unit, slices.max_chips + 1, unit) if unit else range(0)
    return tuple(sorted({prod(shape) for shape in slices.shapes} | set(cubes)))


def _triples(n: int) -> Iterator[tuple[int, int, int]]:
    """All a <= b <= c with a * b * c == n."""
    a = 1
    while a * a * a <= n:
        if n % a == 0:
            rest = n // a
            b = a
            while b * b <= rest:
                if rest % b == 0:
                    yield a, b, rest // b
                b += 1
        a += 1


def wraps(chip: Chip, shape: tuple[int, ...]) -> tuple[bool, ...]:
    """For each axis of a slice, whether its links close into a ring.

    A 2D axis wraps when it spans the pod; 3D axes wrap in slices made of whole cubes.

    >>> from chipwise.catalog import load
    >>> wraps(load().chips["v5e"], (8, 16))
    (False, True)
    >>> wraps(load().chips["v5p"], (4, 4, 8)), wraps(load().chips["v5p"], (2, 4, 4))
    ((True, True, True), (False, False, False))
    """
    wrap = chip.fabric.wrap
    if not wrap:
        return tuple(False for _ in shape)
    axes_wrap = tuple(axis % wrap == 0 for axis in shape)
    if chip.fabric.dims == 3:
        return tuple(all(axes_wrap) for _ in shape)
    return axes_wrap


def _gke(table: dict[str, Any]) -> Gke:
    return Gke(table["accelerator"], table["host_chips"], table["source"], table["date"], table.get("note", ""))


def slices_from_table(table: dict[str, Any]) -> Slices:
    """A `Slices` from one table of slices.toml."""
    return Slices(
        chip_id=table["chip"],
        shapes=tuple(tuple(int(axis) for axis in shape.split("x")) for shape in table["shapes"]),
        cube=table["cube"],
        max_chips=table["max_chips"],
        counts=table["counts"],
        source=table["source"],
        date=table["date"],
        note=table["note"],
        billed_by=table.get("billed_by", "chip"),
        gke=_gke(table["gke"]) if "gke" in table else None,
    )

"""How far a prediction is from the published figures that serving was fitted to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from chipwise.catalog import Chip, Stack
from chipwise.catalog.stacks import era_of
from chipwise.predict.estimate import Distance

ENOUGH = 5  # figures of a place from which it counts as seen: one campaign's run or two say nothing. Assumed
SEPARATOR = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a figure has in common with others; `repository` is empty where nobody published it."""

    repository: str = ""
    vendor: str
    design: str
    chip: str
    stack: str
    load: str  # "batch", "closed", "offline" or "open"
    like: str = ""  # of a chip of one's own: the known chip that it is like

    def __str__(self) -> str:
        return SEPARATOR.join((self.repository, self.vendor, self.design, self.chip, self.stack, self.load))

    @classmethod
    def from_text(cls, text: str) -> Place:
        """What `str` gave."""
        names = ("repository", "vendor", "design", "chip", "stack", "load")
        return cls(**dict(zip(names, text.split(SEPARATOR), strict=True)))


def named(stack: Stack | None, chip: Chip) -> str:
    """A stack among those that rows were published of: one of another era is another.

    >>> from chipwise.catalog import find_chip, find_stack
    >>> from chipwise.catalog.stacks import released
    >>> [named(released(find_stack("vllm"), "gpu", year), find_chip("h100")) for year in (2026.0, 2024.7)]
    ['vllm', 'vllm@v0']
    """
    era = era_of(stack, chip.family) if stack else None
    return "@".join(part for part in (stack.id if stack else "", era.name if era else "") if part)


def place_of(chip: Chip, stack: Stack | None, load: str, repository: str = "") -> Place:
    """The place of a prediction."""
    return Place(
        repository=repository,
        vendor=chip.vendor,
        design=chip.design,
        chip=chip.id,
        stack=named(stack, chip),
        load=load,
        like=chip.like,
    )


def _parts(place: Place) -> tuple[tuple[Distance, tuple[str, ...]], ...]:
    """What figures at a distance have in common with the place, nearest first."""
    return (
        (Distance.SOURCE, (place.repository, place.chip, place.stack, place.load)),
        (Distance.REGIME, (place.chip, place.stack, place.load)),
        (Distance.CHIP, (place.chip,)),
        (Distance.DESIGN, (place.design,)),
        (Distance.VENDOR, (place.vendor,)),
    )


@dataclass(frozen=True)
class Seen:
    """Places with how many figures of each were fitted to."""

    counts: Mapping[Place, int]

    @classmethod
    def from_texts(cls, counts: Mapping[str, int]) -> Seen:
        """From what a calibration's file has."""
        return cls({Place.from_text(text): count for text, count in counts.items()})

    @cached_property
    def _parts(self) -> Counter[tuple[Distance, tuple[str, ...]]]:
        out: Counter[tuple[Distance, tuple[str, ...]]] = Counter()
        for place, count in self.counts.items():
            for part in _parts(place):
                out[part] += count
        return out

    def of_stack(self, stack: str) -> int:
        """Figures of a stack."""
        return sum(count for place, count in self.counts.items() if place.stack == stack)

    def distance(self, place: Place) -> Distance:
        """Of a place from the nearest that were seen."""
        for part in _parts(place):
            if (part[0] is not Distance.SOURCE or place.repository) and self._parts[part] >= ENOUGH:
                return part[0]
        return Distance.NOBODY

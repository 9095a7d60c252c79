"""What a report is made of: sections of prose, tables and figures as plain data. `page` turns them into HTML."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chipwise.present.blocks import Table

EVIDENCE = {
    "measured": "this workload was measured on this chip",
    "compiled": "the vendor's compiler compiled the program for that chip",
    "modelled": "the calibrated model; the interval comes from its errors on published results of the same kind",
    "bounded": "nothing published to learn from: physics and the chip's figures alone",
}


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph, with the words it begins with set off."""

    words: str
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """A list of short statements beneath a title."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with a caption, and its content in words for those who can't see it."""

    name: str  # unique in a report
    caption: str
    description: str
    svg: str


Part = Prose | Points | Table | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter."""

    id: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure of the decision: what it is, its value, its range, and what it rests on."""

    label: str
    value: str
    range: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The first page: what to do, at what cost, why, and what would change it."""

    headline: str
    summary: str
    tiles: tuple[Tile, ...]
    answers: tuple[Points, ...]
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report."""

    title: str
    about: str
    made: date
    decision: Decision
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure, in order."""
        first = [self.decision.figure] if self.decision.figure else []
        return (*first, *(p for s in self.sections for p in s.parts if isinstance(p, Figure)))

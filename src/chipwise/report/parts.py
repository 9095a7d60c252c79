"""What a report is made of: sections of prose, tables and figures as plain data. `page` turns them into HTML."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.result import Result

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


@dataclass(frozen=True, slots=True, repr=False)
class Report(Result):
    """A whole report: one HTML file that needs nothing else, or a PDF."""

    VERB: ClassVar[str] = "report"
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

    def html(self) -> str:
        """The report as one HTML file."""
        from chipwise.report.page import page

        return page(self)

    def write(self, path: str | Path) -> None:
        """Write the report atomically: HTML, or a PDF printed by the browser found here."""
        from chipwise.report.write import write

        write(self, Path(path))

    def record(self) -> dict[str, Any]:
        """As JSON has it: everything but the drawings, which are in words."""
        return {
            "title": self.title,
            "about": self.about,
            "date": self.made.isoformat(),
            "decision": {
                "headline": self.decision.headline,
                "summary": self.decision.summary,
                "tiles": [asdict(tile) for tile in self.decision.tiles],
                "answers": [asdict(answer) for answer in self.decision.answers],
            },
            "sections": [
                {"id": s.id, "title": s.title, "parts": [_part(part) for part in s.parts]} for s in self.sections
            ],
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the figures of the first page."""
        return [asdict(tile) for tile in self.decision.tiles]

    def blocks(self) -> list[Block]:
        """For people: the first page, then every section in words and tables."""
        d = self.decision
        out: list[Block] = [Text(d.headline), Text(d.summary)]
        for answer in d.answers:
            out += section(answer.title, answer.items)
        for s in self.sections:
            out.append(Text(s.title, heading=True))
            for part in s.parts:
                out += _blocks(part)
        return out

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own, so that its styles reach nothing else."""
        return f'<iframe srcdoc="{escape(self.html())}" width="100%" height="800" style="border: 0"></iframe>'


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Table):
        rows = [dict(zip(part.headers, map(str, row), strict=True)) for row in part.rows]
        return {"table": part.title, "rows": rows, "notes": part.notes}
    if isinstance(part, Figure):
        return {"figure": part.name, "caption": part.caption, "description": part.description}
    if isinstance(part, Points):
        return {"points": part.title, "items": part.items}
    return {"prose": f"{part.lead} {part.words}".strip()}


def _blocks(part: Part) -> list[Block]:
    if isinstance(part, Table):
        return [part, *map(Text, part.notes)]
    if isinstance(part, Figure):
        return [Text(f"{part.caption}: {part.description}")]
    if isinstance(part, Points):
        return section(part.title, part.items)
    return [Text(f"{part.lead} {part.words}".strip())]

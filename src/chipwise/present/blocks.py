"""What a result shows: lines of text and tables, before any face has drawn them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ASCII = str.maketrans(
    {"µ": "u", "×": "x", "–": "-", "−": "-", "→": "->", "█": "#", "░": ".", "≥": ">=", "²": "2", "─": "-"}
)


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead somewhere; shown without a link where the address is no web address."""

    words: str
    address: str

    def __str__(self) -> str:
        return self.words


Cell = str | Link


@dataclass(frozen=True, slots=True)
class Table:
    """A table; columns named in `left` are words, the others numbers. `strong` rows stand out.

    On a terminal too narrow for it, columns `under` move to a line beneath each row, one after another, then columns
    `drop` are left out in that order. A `bare` table shows no headers. `notes` stand beneath it. HTML shows the `tips`
    of headers to a reader who points at them.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: frozenset[str] = frozenset()
    strong: frozenset[int] = frozenset()
    title: str = ""
    bare: bool = False
    under: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tips: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """A line of words; a `heading` stands out."""

    words: str
    heading: bool = False


Block = Table | Text


def section(title: str, lines: Sequence[str]) -> list[Block]:
    """A heading and lines beneath it, indented; nothing without lines."""
    return [Text(title, True), *(Text(f"  {line}") for line in lines)] if lines else []

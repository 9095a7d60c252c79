"""What verbs show: lines of words and tables, before anybody has drawn them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ASCII = str.maketrans({"µ": "u", "×": "x", "–": "-", "→": "->", "█": "#", "░": ".", "≥": ">=", "²": "2", "─": "-"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table; columns named in `left` are words, the others numbers. `strong` rows stand out.

    On a terminal too narrow for it, columns `under` move to a line beneath each row, one after another, then columns
    `drop` are left out in that order. A `bare` table shows no headers.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[str] = frozenset()
    strong: frozenset[int] = frozenset()
    title: str = ""
    bare: bool = False
    under: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A line of words; a `heading` stands out."""

    words: str
    heading: bool = False


Block = Table | Text

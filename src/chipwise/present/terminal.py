"""Blocks on a terminal: nothing is cut inside a word, and a narrow terminal gets fewer columns, never half ones."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from chipwise.present.blocks import ASCII, Block, Table
from chipwise.present.safe import safe

STYLES = {"bold": "1", "dim": "2", "bold green": "1;32", "yellow": "33"}  # SGR codes, ECMA-48
GAP = 2  # between columns
HANG = 2  # more indent for the second line of a paragraph
UNDER = 4  # indent of the line beneath a row
LEAST = 24  # no column of words is wrapped to less


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where people read: its width, and whether it shows colors and more than ASCII."""

    stream: TextIO
    width: int
    color: bool
    ascii: bool

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """The terminal behind a stream; NO_COLOR (no-color.org) and TERM=dumb ask for no colors."""
        color = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        unicode = (stream.encoding or "ascii").lower().startswith("utf")
        return cls(stream, shutil.get_terminal_size().columns, color, not unicode)

    def line(self, text: str, style: str = "") -> None:
        """Print a line, whatever is in it."""
        text = safe(text).translate(ASCII) if self.ascii else safe(text)
        self.stream.write(f"\x1b[{STYLES[style]}m{text}\x1b[0m\n" if self.color and style and text else f"{text}\n")


def draw(blocks: Sequence[Block], terminal: Terminal) -> None:
    """Blocks in color, in the width of the terminal."""
    for block in blocks:
        for text, style in styled(block, terminal.width):
            terminal.line(text, style)
    terminal.stream.flush()


def styled(block: Block, width: int) -> Iterator[tuple[str, str]]:
    """Lines of a block with their styles."""
    heading = safe(block.title if isinstance(block, Table) else block.words if block.heading else "")
    if heading:
        yield "", ""
        yield from ((line, "bold") for line in wrap(heading, width))
    if isinstance(block, Table):
        yield from _table(block, width)
    elif not block.heading:
        yield from ((line, "") for line in wrap(safe(block.words), width))


def wrap(words: str, width: int) -> list[str]:
    """Lines of at most `width`, broken at spaces, and at commas where one word is longer than a line.

    >>> wrap("  layout: dp=32,zero=1,pp=2", 16)
    ['  layout: dp=32,', '    zero=1,pp=2']
    """
    lead = len(words) - len(words.lstrip(" "))
    here, hang = " " * lead, " " * (lead + HANG)
    lines = []
    for glue, piece in _pieces(words, max(1, width - len(hang))):
        glue = glue if here.strip() else ""
        if here.strip() and len(here) + len(glue) + len(piece) > width:
            lines.append(here)
            here, glue = hang, ""
        here += glue + piece
    return [*lines, here]


def _pieces(words: str, room: int) -> Iterator[tuple[str, str]]:
    """What may stand on a line of its own, each with what joins it to the piece before."""
    for word in words.split():
        parts = [word] if len(word) <= room else re.findall(r"[^,]*,|[^,]+$", word)
        parts = [part[i : i + room] for part in parts for i in range(0, len(part), room)]
        yield from zip([" ", *[""] * (len(parts) - 1)], parts, strict=True)


def _table(t: Table, width: int) -> Iterator[tuple[str, str]]:
    rows = [dict(zip(t.headers, (safe(str(cell)) for cell in row), strict=True)) for row in t.rows]
    widths = {h: max([0 if t.bare else len(h), *(len(row[h]) for row in rows)]) for h in t.headers}
    shown, below = _columns(t, widths, width)
    last = shown[-1]
    over = _width(shown, widths) - width
    if over > 0 and last in t.left:
        widths[last] = max(LEAST, widths[last] - over)
    start = _width(shown, widths) - widths[last]

    def lines(row: dict[str, str]) -> Iterator[str]:
        first, *more = wrap(row[last], widths[last]) if last in t.left else [row[last]]
        cells = [*(row[h] for h in shown[:-1]), first]
        pairs = zip(cells, shown, strict=True)
        yield (" " * GAP).join(c.ljust(widths[h]) if h in t.left else c.rjust(widths[h]) for c, h in pairs).rstrip()
        yield from (" " * start + line for line in more)
        words = "; ".join(row[h] for h in below if row[h])
        yield from wrap(" " * UNDER + words, width) if words else ()

    if not t.bare:
        yield next(lines({h: h if h in shown else "" for h in t.headers})), "bold"
        yield (" " * GAP).join("─" * widths[h] for h in shown), "dim"
    for i, row in enumerate(rows):
        yield from ((line, "bold green" if i in t.strong else "") for line in lines(row))


def _columns(t: Table, widths: dict[str, int], width: int) -> tuple[list[str], list[str]]:
    """The columns that fit beside each other, and those that move beneath."""
    shown, below = list(t.headers), []
    for name in t.under:
        if _width(shown, widths) > width:
            shown.remove(name)
            below.append(name)
    for name in t.drop:
        if _width(shown, widths) > width:
            shown.remove(name)
    return shown, below


def _width(shown: Sequence[str], widths: dict[str, int]) -> int:
    return sum(widths[h] for h in shown) + GAP * (len(shown) - 1)

"""A screen that is drawn again and again, and the keys that are pressed meanwhile; left as it was found."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TextIO

from chipwise.present.blocks import ASCII
from chipwise.present.safe import safe
from chipwise.present.terminal import STYLES, Terminal

# xterm's control sequences: the other screen, and no cursor; home; erase to the end of the line, and of the screen
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
LEAST = 6  # lines of a table: a blank, its title, its head, a rule, a row, and how many more there are
Line = tuple[str, str]  # text and style


class Screen:
    """The whole of a terminal while something is watched."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self._in, self._out = stdin or sys.stdin, stdout or sys.stdout
        self._before: Any = None

    @staticmethod
    def possible() -> bool:
        """Whether there is somebody who sees it, and keys that can be pressed."""
        return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._in.fileno())
        tty.setcbreak(self._in.fileno())
        self._out.write(_ENTER)
        self._out.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.write(_LEAVE)
        self._out.flush()
        if self._before is not None:
            termios.tcsetattr(self._in.fileno(), termios.TCSADRAIN, self._before)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        size = shutil.get_terminal_size()
        return size.columns, size.lines

    def draw(self, lines: Sequence[Line]) -> None:
        """Show lines, cut where the screen ends."""
        width, height = self.size
        terminal = Terminal.of(self._out)
        out = [_HOME]
        for place, (text, style) in enumerate(lines[:height]):
            shown = safe(text)[:width]
            shown = shown.translate(ASCII) if terminal.ascii else shown
            colored = f"\x1b[{STYLES[style]}m{shown}\x1b[0m" if terminal.color and style and shown else shown
            out.append(("\n" if place else "") + colored + _END_OF_LINE)
        self._out.write("".join(out) + _END_OF_SCREEN)
        self._out.flush()

    def key(self, seconds: float) -> str:
        """The next key, waited for so long; empty where none comes."""
        ready, _, _ = select.select([self._in], [], [], max(0.0, seconds))
        return os.read(self._in.fileno(), 16).decode("utf-8", "replace") if ready else ""


def fitted(sections: Sequence[Sequence[Line]], height: int) -> list[Line]:
    """Sections in so many lines: those that are short are whole, the others share what is left, and say how much more.

    Where a share would be less than a table's title, head and first row, the last sections are left out.

    >>> fitted([[("a", "")], [("b", "")] * 9], 5)
    [('a', ''), ('b', ''), ('b', ''), ('b', ''), ('... 6 more lines', 'dim')]
    """
    while len(sections) > 2 and sum(min(len(section), LEAST) for section in sections) > height:
        sections = sections[:-1]
    room, left = height, len(sections)
    shares: dict[int, int] = {}
    for place in sorted(range(len(sections)), key=lambda number: len(sections[number])):
        shares[place] = min(len(sections[place]), max(0, room // left))
        room -= shares[place]
        left -= 1
    out: list[Line] = []
    for place, lines in enumerate(sections):
        if shares[place] >= len(lines):
            out += lines
        elif shares[place] > 0:
            out += lines[: shares[place] - 1]
            out.append((f"... {len(lines) - shares[place] + 1} more lines", "dim"))
    return out

"""Text and tables: rich on a terminal, plain aligned ASCII anywhere else."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

_ASCII = str.maketrans({"µ": "u", "×": "x", "–": "-", "→": "->", "█": "#", "░": ".", "≥": ">=", "²": "2"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table; columns named in `left` are words, the others numbers. `strong` rows stand out."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[str] = frozenset()
    strong: frozenset[int] = frozenset()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A line of words; a `heading` stands out."""

    words: str
    heading: bool = False


Block = Table | Text


class PipeClosed(Exception):
    """The reader of stdout went away, as `head` does. No OSError: typer would leave with 1 on those."""


def formats(output: str, *known: str) -> str:
    """The output format, if it is one that the verb knows."""
    if output not in known:
        raise InputError("--output", output, f"one of {', '.join(known)}")
    return output


def emit(blocks: Sequence[Block], out: Path | None = None) -> None:
    """Print blocks, or write them to a file."""
    if out is None and sys.stdout.isatty():
        from rich.console import Console

        draw(blocks, Console(highlight=False))
    else:
        write("\n".join(plain(block) for block in blocks) + "\n", out)


def emit_json(value: Any, out: Path | None = None) -> None:
    """Print a JSON document, or write it to a file."""
    write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", out)


def emit_csv(rows: Sequence[Mapping[str, Any]], out: Path | None = None) -> None:
    """Print rows as CSV with a header, or write them to a file."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(buffer.getvalue(), out)


def write(text: str, out: Path | None) -> None:
    """Text to stdout, or to a file: under a temporary name first, so that a file is whole or absent."""
    if out is None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        return
    draft = out.parent / f".{out.name}.{os.getpid()}"
    try:
        if out.is_dir():
            raise IsADirectoryError(EISDIR, "it is a folder")
        draft.write_text(text, encoding="utf-8")
        draft.replace(out)
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            draft.unlink()
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError("--out", str(out), f"a file that can be written ({reason})") from None


def plain(block: Block) -> str:
    """A block as aligned ASCII.

    >>> print(plain(Table(["chip", "GiB"], [["h100", "80"], ["v5e", "16"]], frozenset({"chip"}))))
    chip  GiB
    ----  ---
    h100   80
    v5e    16
    """
    if isinstance(block, Text):
        return (f"\n{block.words}" if block.heading else block.words).translate(_ASCII)
    cells = [[str(c).translate(_ASCII) for c in row] for row in [block.headers, *block.rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(block.headers))]
    cells.insert(1, ["-" * width for width in widths])
    lines = []
    for row in cells:
        pairs = zip(row, widths, block.headers, strict=True)
        lines.append("  ".join(
            cell.ljust(width) if header in block.left else cell.rjust(width) for cell, width, header in pairs
        ).rstrip())
    title = [f"\n{block.title}".translate(_ASCII)] if block.title else []
    return "\n".join(title + lines)


def draw(blocks: Sequence[Block], console: Console) -> None:
    """Blocks in colour on a terminal."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table as Grid

    for block in blocks:
        if isinstance(block, Text):
            console.print(f"\n[bold]{escape(block.words)}[/]" if block.heading else escape(block.words))
            continue
        grid = Grid(box=box.SIMPLE_HEAD, title=escape(block.title) or None, title_justify="left",
                    title_style="bold", pad_edge=False)
        for header in block.headers:
            words = header in block.left
            grid.add_column(escape(header), justify="left" if words else "right", no_wrap=not words,
                            overflow="fold" if words else "ellipsis")
        for i, row in enumerate(block.rows):
            grid.add_row(*(escape(str(cell)) for cell in row), style="bold green" if i in block.strong else None)
        console.print(grid)


def bar(share: float, width: int = 24) -> str:
    """A bar of `width` characters filled to `share`.

    >>> bar(0.5, 8)
    '████░░░░'
    """
    filled = min(width, round(max(share, 0.0) * width))
    return "█" * filled + "░" * (width - filled)

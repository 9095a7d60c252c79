"""Text and tables: rich on a terminal, plain aligned ASCII anywhere else."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chipwise.cli.blocks import ASCII, Block, Text
from chipwise.errors import InputError
from chipwise.io.atomic import atomic_write


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

        from chipwise.cli.terminal import draw

        draw(blocks, Console(highlight=False))
    else:
        write("\n".join(plain(block) for block in blocks) + "\n", out)


def emit_json(value: Any, out: Path | None = None) -> None:
    """Print a JSON document, or write it to a file."""
    write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", out)


def emit_csv(rows: Sequence[Mapping[str, Any]], out: Path | None = None, field: str = "--out") -> None:
    """Print rows as CSV with a header, or write them to the file that the option `field` names."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(buffer.getvalue(), out, field)


def write(text: str, out: Path | None, field: str = "--out") -> None:
    """Text to stdout, or to a file that is whole or absent."""
    if out is None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        return
    atomic_write(text.encode("utf-8"), out, field)


def plain(block: Block) -> str:
    """A block as aligned ASCII.

    >>> from chipwise.cli.blocks import Table
    >>> print(plain(Table(["chip", "GiB"], [["h100", "80"], ["v5e", "16"]], frozenset({"chip"}))))
    chip  GiB
    ----  ---
    h100   80
    v5e    16
    """
    if isinstance(block, Text):
        return (f"\n{block.words}" if block.heading else block.words).translate(ASCII)
    rows = block.rows if block.bare else [block.headers, *block.rows]
    cells = [[str(c).translate(ASCII) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(block.headers))]
    if not block.bare:
        cells.insert(1, ["-" * width for width in widths])
    lines = []
    for row in cells:
        pairs = zip(row, widths, block.headers, strict=True)
        lines.append(
            "  ".join(
                cell.ljust(width) if header in block.left else cell.rjust(width) for cell, width, header in pairs
            ).rstrip()
        )
    title = [f"\n{block.title}".translate(ASCII)] if block.title else []
    return "\n".join(title + lines)


def bar(share: float, width: int = 24) -> str:
    """A bar of `width` characters filled to `share`.

    >>> bar(0.5, 8)
    '████░░░░'
    """
    filled = min(width, round(max(share, 0.0) * width))
    return "█" * filled + "░" * (width - filled)

"""Blocks as plain aligned ASCII: what a pipe or a file gets."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.present.blocks import ASCII, Block, Text
from chipwise.present.safe import safe


def document(blocks: Sequence[Block]) -> str:
    """Blocks one after another."""
    return "\n".join(plain(block) for block in blocks)


def plain(block: Block) -> str:
    """A block as aligned ASCII.

    >>> from chipwise.present.blocks import Table
    >>> print(plain(Table(["chip", "GiB"], [["h100", "80"], ["v5e", "16"]], frozenset({"chip"}))))
    chip  GiB
    ----  ---
    h100   80
    v5e    16
    """
    if isinstance(block, Text):
        words = safe(block.words).translate(ASCII)
        return f"\n{words}" if block.heading else words
    rows = block.rows if block.bare else [block.headers, *block.rows]
    cells = [[safe(str(c)).translate(ASCII) for c in row] for row in rows]
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
    title = ["\n" + safe(block.title).translate(ASCII)] if block.title else []
    return "\n".join(title + lines)


def bar(share: float, width: int = 24) -> str:
    """A bar of `width` characters filled to `share`.

    >>> bar(0.5, 8)
    '████░░░░'
    """
    filled = min(width, round(max(share, 0.0) * width))
    return "█" * filled + "░" * (width - filled)

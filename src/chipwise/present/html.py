"""Blocks as HTML: tables of the report and of notebooks; every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from chipwise.present.blocks import Block, Cell, Link, Table

KEPT = 16  # letters of a cell that is never broken
SHORT = 14  # rows of a table that is not broken over two printed pages


def document(blocks: Sequence[Block]) -> str:
    """Blocks one after another, for a notebook."""
    return '<div class="chipwise">' + "".join(map(_block, blocks)) + "</div>"


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return table(block)
    return f"<h4>{text(block.words)}</h4>" if block.heading else f"<p>{text(block.words)}</p>"


def text(words: str) -> str:
    """Words of anybody as HTML; a number keeps its percent sign on its line."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", escape(words))


def table(block: Table) -> str:
    """A table whose first column heads each row."""
    kinds = ["words" if header in block.left else "number" for header in block.headers]
    head = "".join(
        f'<th scope="col" class="{_class(header, kind)}"{_tip(block.tips.get(header, ""))}>{text(header)}</th>'
        for header, kind in zip(block.headers, kinds, strict=True)
    )
    rows = []
    for i, row in enumerate(block.rows):
        cells = [f'<th scope="row" class="{_class(row[0], kinds[0])}">{_cell(row[0], kinds[0])}</th>']
        cells += [
            f'<td class="{_class(cell, kind)}">{_cell(cell, kind)}</td>'
            for cell, kind in zip(row[1:], kinds[1:], strict=True)
        ]
        mark = ' class="strong"' if i in block.strong else ""
        rows.append(f"<tr{mark}>{''.join(cells)}</tr>")
    notes = f'<p class="notes">{" ".join(text(note) for note in block.notes)}</p>' if block.notes else ""
    short = ' class="short"' if len(rows) <= SHORT else ""
    caption = f"<caption>{text(block.title)}</caption>" if block.title else ""
    header = "" if block.bare else f"<thead><tr>{head}</tr></thead>"
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(block.title)}"><table{short}>'
        f"{caption}{header}<tbody>{''.join(rows)}</tbody></table></div>{notes}"
    )


def _tip(words: str) -> str:
    return f' title="{escape(words)}"' if words else ""


def _class(cell: Cell, kind: str) -> str:
    """Short words, dates and numbers stay on one line; ranges may take two where paper is narrow."""
    if isinstance(cell, Link):
        return kind
    return f"{kind} keep" if len(cell) <= KEPT else f"{kind} long"


def _cell(cell: Cell, kind: str) -> str:
    if isinstance(cell, Link):
        if re.match(r"https?://[^\s]+$", cell.address):
            return f'<a href="{escape(cell.address)}">{text(cell.words)}</a>'
        return text(cell.words)
    if kind == "number":
        return text(cell)
    return re.sub(r"([,/_])(?=[^\s\d])", r"\1<wbr>", text(cell))  # long words of no space: layouts, instances, paths

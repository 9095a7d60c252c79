"""Text of anybody's, made harmless for terminals, logs and spreadsheets."""

from __future__ import annotations

import re
from typing import Any
from unicodedata import category

# A cell that begins with one of these is a formula to Excel, LibreOffice or Google Sheets (OWASP, "CSV Injection",
# 2026-11-16); the last four are how East Asian keyboards write the first four
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?%?", re.ASCII)
MARK = "'"  # says to a spreadsheet that a cell is text


def printable(text: str) -> str:
    r"""A text on one line: what a terminal might obey, what reorders or hides text, and what can't be shown as escapes.

    Escaped are control characters (C0, DEL and C1), format characters (among them those of bidirectional text), line
    and paragraph separators, surrogates and what Unicode has not assigned. Spaces of all widths stay.

    >>> print(printable("a\x1b[31m\nb\x9b2J\u202ec"))
    a\x1b[31m\nb\x9b2J\u202ec
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or category(c) == "Zs" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def printable_lines(text: str) -> str:
    r"""A text of several lines, each made harmless; tabs stay.

    >>> printable_lines("a\tb\n\x1b[2Jc\n")
    'a\tb\n\\x1b[2Jc\n'
    """
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def json_escaped(document: str) -> str:
    r"""A JSON document that says the same with nothing in it that a terminal might obey.

    >>> print(json_escaped('{"name": "a\x9b2J\u202e"}'))
    {"name": "a\u009b2J\u202e"}
    """
    if document.replace("\n", "").isprintable():
        return document
    return "".join(c if c == "\n" or c.isprintable() or category(c) == "Zs" else _json_escape(c) for c in document)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def csv_cell(value: Any) -> Any:
    r"""A value as a cell of a CSV file: what a spreadsheet would compute is marked as text; numbers stay as they are.

    >>> csv_cell("=HYPERLINK(0)"), csv_cell("-1.5"), csv_cell(-1.5), csv_cell("-"), csv_cell("\tx"), csv_cell("a\x9b")
    ("'=HYPERLINK(0)", '-1.5', -1.5, '-', "'\\tx", 'a\\x9b')
    """
    if not isinstance(value, str):
        return value
    formula = value.startswith(FORMULA) and len(value) > 1 and not NUMBER.fullmatch(value)
    return (MARK if formula else "") + printable(value)


def csv_text(cell: str) -> str:
    """The text of a cell that `csv_cell` wrote.

    >>> csv_text("'=1+1"), csv_text("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith(MARK) and cell[1:].startswith(FORMULA) else cell

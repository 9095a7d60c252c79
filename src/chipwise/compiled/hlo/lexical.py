"""The tokens of HLO text: a few compiled patterns over one cursor, and the error that names a line.

A bracketed group is one token, nested brackets and quoted strings included, so the cursor steps over a kilobyte of
backend configuration in one match. The patterns are unrolled (no run of characters can be split two ways), so text
that does not match fails in linear time.
"""

from __future__ import annotations

import re

from chipwise.errors import BrokenFile

DEPTH = 16  # brackets deeper than any module prints (6 seen); text beyond it is refused

STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
NAME = r"[\w.\-]+"


def _nested(opening: str, closing: str) -> str:
    """Pattern of one bracketed group, up to DEPTH levels."""
    plain = f'[^{opening}{closing}"]*'
    group = f"{opening}{plain}{closing}"
    for _ in range(DEPTH):
        group = f"{opening}{plain}(?:(?:{STRING}|{group}){plain})*{closing}"
    return group


BRACES = _nested(r"\{", r"\}")
PARENS = _nested(r"\(", r"\)")
ARRAY = rf"\w+\[[^\]\n]*\](?:{BRACES})?"
SHAPE = rf"(?:{ARRAY}|(?:b)?{PARENS})"
# A value runs over words and groups; a space belongs to it only before a group (`mesh['x'=8] {'x'}`).
VALUE = rf"(?:{STRING}|{BRACES}|{PARENS}|\[[^\]\n]*\]|'[^'\n]*'|[^\s,\"'()\[\]{{}}]+| (?=\{{))+"


class NotHlo(BrokenFile):
    """Text that is not an HLO module; names the line and what was expected there."""


def refuse(text: str, position: int, expected: str) -> NotHlo:
    """The error for what stands at `position`."""
    line = text.count("\n", 0, position) + 1
    excerpt = text[position : position + 60].split("\n")[0]
    return NotHlo(f"HLO text, line {line}", excerpt, expected)


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern whose dot also spans lines: Pallas metadata and strings do."""
    return re.compile(pattern, re.DOTALL)

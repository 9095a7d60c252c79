"""Text of anyone's, made harmless for terminals."""

from __future__ import annotations

from chipwise.io.printable import printable


def safe(text: str, most: int = 0) -> str:
    """A text on one line, at most so long: what a terminal might obey, and what can't be printed, written as escapes.

    >>> safe("a\\x1b[31m\\nb"), safe("long name", 6)
    ('a\\\\x1b[31m\\\\nb', 'lon...')
    """
    shown = printable(text)
    return shown if not most or len(shown) <= most else shown[: most - 3] + "..."

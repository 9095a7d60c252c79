"""From the text of an optimized module to its schedule as JSON: in the worker, or later from a stored module."""

from __future__ import annotations

from typing import Any

UNREAD = "the compiled module could not be read"


def read_schedule(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The schedule, and notes. A module we can't read has compiled all the same: that becomes a note."""
    from chipwise.compiled.hlo import parse
    from chipwise.compiled.timing.extract import extract

    try:
        return extract(parse(text)).as_json(), ()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        return {}, (f"{UNREAD}, so that no time is known: {type(error).__name__}: {reason}",)

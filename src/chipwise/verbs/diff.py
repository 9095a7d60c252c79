"""The verb that holds two decisions against each other: diff."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.compare import AnyComparison
    from chipwise.compare.diff import Difference


def diff(
    before: str | Path | Mapping[str, Any] | AnyComparison, after: str | Path | Mapping[str, Any] | AnyComparison
) -> Difference:
    """Hold two decisions against each other: what changed in the pick and every row, and why.

    Each is a comparison, what its ``to_dict()`` gave, or a file that ``chipwise compare -o json`` saved: before and
    after a price update, under one deadline and another, by one version and the next.

    >>> from chipwise import compare, load
    >>> job = load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    >>> changed = diff(compare(job, on="h100:64,v5p:64"), compare(job, on="h100:64,v5p:128"))
    >>> changed.headline(), [cause.kind for cause in changed.rows[1].causes]
    ('Pick h100:64, as before', ['count', 'layout'])
    """
    from chipwise.compare.diff import compared, document

    return compared(document(before, "before"), document(after, "after"))

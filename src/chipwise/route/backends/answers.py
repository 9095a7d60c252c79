"""Answers of backends' programs and servers, which may be anything: what can't be read is a backend that is down.

Whoever runs a job can write into many of them (messages, reasons, records of actors), and versions differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isfinite
from typing import ParamSpec, TypeVar

from chipwise.route.backend import AttemptStatus, BackendDown

P = ParamSpec("P")
T = TypeVar("T")
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
MOST_CODE = 2**31  # of an exit status, and of restarts: what a column of PostgreSQL holds


def readable(source: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A reader whose every stumble over an answer is one line: the source, and what it stumbled over."""

    def guarded(read: Callable[P, T]) -> Callable[P, T]:
        @wraps(read)
        def attempted(*arguments: P.args, **options: P.kwargs) -> T:
            try:
                return read(*arguments, **options)
            except UNREADABLE as error:
                words = " ".join(f"{type(error).__name__}: {error}".split())
                raise BackendDown(f"{source} answered what can't be read: {words[:200]}") from None

        return attempted

    return guarded


def sound(status: AttemptStatus) -> AttemptStatus:
    """A status that a ledger can hold; a `ValueError` names what it can't."""
    code = status.exit_code
    if code is not None and (type(code) is not int or not -MOST_CODE <= code < MOST_CODE):
        raise ValueError(f"exit code {code!r:.40}")
    if type(status.restarts) is not int or not 0 <= status.restarts < MOST_CODE:
        raise ValueError(f"{status.restarts!r:.40} restarts")
    for at in (status.started, status.ended):
        if at is not None and (isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at)):
            raise ValueError(f"time {at!r:.40}")
    words = (status.attempt, status.backend_id, status.state, status.where, status.reason)
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a number or a list in place of words")
    return status

"""Requests that return at a known time, the earliest first: a heap, compiled."""

from __future__ import annotations

from chipwise.io.jit import jit_helper
from chipwise.serving.state import Record, State


@jit_helper
def before(a: Record, b: Record) -> bool:
    """Events go by time, then by request."""
    return a.when < b.when or (a.when == b.when and a.request < b.request)


@jit_helper
def swap(a: Record, b: Record) -> None:
    """Exchange two events."""
    when, request = a.when, a.request
    a.when, a.request = b.when, b.request
    b.when, b.request = when, request


@jit_helper
def push(s: State, when: float, i: int) -> None:
    """Into the heap of events."""
    at = s.counts[0].events
    s.counts[0].events = at + 1
    s.events[at].when, s.events[at].request = when, i
    while at > 0 and before(s.events[at], s.events[(at - 1) // 2]):
        swap(s.events[at], s.events[(at - 1) // 2])
        at = (at - 1) // 2


@jit_helper
def pop(s: State) -> int:
    """The request of the earliest event, out of the heap."""
    out, size = s.events[0].request, s.counts[0].events - 1
    s.counts[0].events = size
    swap(s.events[0], s.events[size])
    at = 0
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and before(s.events[down + 1], s.events[down]):
            down += 1
        if not before(s.events[down], s.events[at]):
            break
        swap(s.events[at], s.events[down])
        at = down
    return out

"""Replicas that work through their iterations, and a router that hands them requests, compiled.

A replica runs one iteration after the other while it has requests; what arrives during one is seen when the next
starts. So every replica may run ahead until an iteration of it would start at the next arrival or after, and where
answers bring new requests, or prompts are done elsewhere, the one that is furthest behind goes first.
"""

from __future__ import annotations

import numpy as np

from chipwise.io.jit import jit_cached, jit_helper
from chipwise.serving.events import pop
from chipwise.serving.replica import iterate
from chipwise.serving.state import Record, State

MUCH, TIMES = 32, 1.5  # a known prefix is left alone when its replica has so many requests more, and so many times


@jit_helper
def load(s: State, r: int, now: float) -> int:
    """Requests a replica has not answered; its last iteration may end after now."""
    w = s.replicas[r]
    return w.outstanding + w.just if w.clock > now else w.outstanding


@jit_helper
def route(s: State, pool: Record, group: int, now: float) -> int:
    """The replica that gets a request; the lowest number of those that are equal."""
    if pool.router == 0:
        turn = pool.turn
        pool.turn = (turn + 1) % (pool.end - pool.begin)
        return pool.begin + turn
    best, least, friend, few = -1, 0, -1, 0
    for r in range(pool.begin, pool.end):
        here = load(s, r, now)
        if best < 0 or here < least:
            best, least = r, here
        if group >= 0 and s.groups[r, group] & 2 and (friend < 0 or here < few):
            friend, few = r, here
    if pool.router == 2 and group >= 0:
        if friend >= 0 and not (few > least + MUCH and few > least * TIMES):
            best = friend
        s.groups[best, group] |= 2
    return best


@jit_helper
def enqueue(s: State, i: int, pool: Record, now: float) -> None:
    """Hand a request to a replica; a running iteration doesn't see it."""
    q = s.requests[i]
    r = route(s, pool, q.group, now)
    w = s.replicas[r]
    w.clock = max(w.clock, now)
    total = s.totals[s.counts[0].section, r]
    total.stay_s += w.clock - now
    total.wait_s += w.clock - now
    q.prefilled_by, q.replica, q.after = q.replica, r, -1
    if w.head < 0:
        w.head = i
    else:
        s.requests[w.tail].after = i
    w.tail = i
    w.waiting += 1
    w.outstanding += 1


@jit_helper
def issue(s: State, now: float) -> None:
    """The next request arrives; the sections of a run go by the requests that have arrived."""
    counts = s.counts[0]
    i = counts.issued
    while counts.section + 1 < len(s.sections) and s.sections[counts.section + 1].cut <= i:
        counts.section += 1
        s.sections[counts.section].mark = now
    s.requests[i].arrival = now
    enqueue(s, i, s.pools[0], now)
    counts.issued = i + 1
    if counts.issued == len(s.requests) and counts.section + 1 < len(s.sections):
        counts.section = len(s.sections) - 1
        s.sections[counts.section].mark = now


@jit_helper
def advance_one(s: State, due: float) -> bool:
    """Run the replica that is furthest behind, up to the next one or until it ends a request; False: all are there."""
    behind, first, second = -1, np.inf, np.inf
    for r in range(len(s.replicas)):
        if s.replicas[r].outstanding > 0:
            clock = s.replicas[r].clock
            if clock < first:
                behind, first, second = r, clock, first
            elif clock < second:
                second = clock
    if not first < due:
        return False
    w, limit = s.replicas[behind], min(due, second)
    iterate(s, w, limit)
    while w.just == 0 and w.clock < limit:
        iterate(s, w, limit)
    return True


@jit_cached
def run(s: State, users: int) -> None:
    """Until every request is answered: users of a closed loop, or 0 where requests come at times of their own."""
    counts, count = s.counts[0], len(s.requests)
    fixed = min(users, count) if users > 0 else count
    echoes = users > 0 or len(s.pools) > 1  # what one replica ends can start something on another
    counts.closed = 1 if users > 0 else 0
    while True:
        own = s.requests[counts.issued].arrival if counts.issued < fixed else np.inf
        back = s.events[0].when if counts.events > 0 else np.inf
        due = min(own, back)
        if echoes:
            if advance_one(s, due):
                continue
        else:
            for r in range(len(s.replicas)):
                w = s.replicas[r]
                while w.outstanding > 0 and w.clock < due:
                    iterate(s, w, due)
        if due == np.inf:
            break
        if own <= back:
            issue(s, own)
            continue
        i = pop(s)
        if np.isnan(s.requests[i].finish):
            s.requests[i].ready = 1
            enqueue(s, i, s.pools[len(s.pools) - 1], back)
        elif counts.issued < count:
            issue(s, back)

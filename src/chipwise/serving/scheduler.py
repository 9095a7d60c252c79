"""Continuous batching, compiled: replicas that run iterations, and a router that hands them requests.

A replica runs one iteration after the other while it has requests; what arrives during one is seen when the next
starts. Decoding sequences get one token each, then prompts fill what is left of the batch. Iterations that only decode
differ from each other in nothing but the contexts, so they run in one short loop until something else happens: a
request ends, a block is missing, or an arrival is due.

All compiled code and its records are in this one file: compiled code is kept on disk under the date of its own file,
and must not outlive a change to what it calls. No fastmath: equal input gives equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.options import DefaultOptions
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int64]
Records = NDArray[Any]
Record = Any  # one of them, by its fields' names
F = TypeVar("F", bound=Callable[..., object])

ROUTERS = ("round_robin", "least_loaded", "prefix")
MUCH, TIMES = 32, 1.5  # a known prefix is left alone when its replica has so many requests more, and so many times
BINS, SHORTEST, LONGEST = 800, 1e-5, 1e3  # of the gaps between tokens, s; logarithmic
PER_LOG = BINS / np.log(LONGEST / SHORTEST)


def _fields(whole: str, real: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in whole.split()] + [(name, np.float64) for name in real.split()])


# made: tokens so far; ends: step of its replica that makes the last one; ready: its cache came along; after: next in
# the queue; token: when it got the last token that its replica's `decoded` doesn't tell
REQUEST = _fields(
    "input output shared group after made ends ready preempted replica prefilled_by", "arrival start first finish token"
)
# steps: iterations that decoded; context: tokens in the cache of all that decode; just: requests that the last
# iteration ended; partial, done: the prompt that was cut, and how much of it is done; ending: the next step that ends a
# request, or an earlier one; fresh: the last ones running, which no step has given a token yet; clock, decoded: end of
# the last iteration, and of the last one that decoded
REPLICA = _fields(
    "number pool steps running context used peak head tail waiting outstanding just partial done ending fresh",
    "clock decoded",
)
POOL = _fields(
    "blocks sequences tokens block mixed reserve chunked prefills begin end router turn",
    "context_s pair_s sequence_s transfer_s latency_s",
)
TOTAL = _fields(
    "", "busy_s iterations kv_block_s prompt_tokens decode_tokens preemptions use_s stay_s wait_s sequence_s",
)
EVENT = _fields("request", "when")
SECTION = _fields("cut", "mark")  # the first request of a section, and when it came
COUNTS = _fields("issued events section closed", "")


class State(NamedTuple):
    """All that a run reads and writes."""

    requests: Records
    replicas: Records
    pools: Records
    running: Whole  # by replica: decoding requests in the order they were admitted
    growing: Whole  # by replica and step modulo block: decoding requests that then need a new block
    groups: Whole  # by replica and group: bit 0, the prefix is in the cache; bit 1, the router sent the group there
    joining: Whole  # requests whose prompt ends in the iteration at hand
    pace: Real  # by pool and tokens of an iteration: seconds, and share of the way from idle to busy watts
    totals: Records  # by section of the run and replica
    gaps: Real  # by section of the run and bin: between tokens of a sequence, how many and how long together
    events: Records  # heap of requests that return: answered in a closed loop, or on their way to where they decode
    sections: Records
    counts: Records  # one


# the arrays are the caller's, so nothing here counts references to them: that would take most of the time
ENTRY: dict[str, Any] = {"error_model": "numpy"} | ({"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {})
PART: dict[str, Any] = {**ENTRY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def part(function: F) -> F:
    """Compile as a part of what calls it."""
    return cast(F, njit(**PART)(function))


def entry(function: F) -> F:
    """Compile at the first call and keep the result on disk."""
    return cast(F, njit(cache=True, **ENTRY)(function))


@part
def held(q: Record, pool: Record, tokens: int) -> int:
    """Blocks a request takes for so many tokens, or for all it will ever store; its last token is never stored."""
    if pool.reserve:
        tokens = q.input if pool.prefills else q.input + q.output - 1
    return (tokens + pool.block - 1) // pool.block


@part
def batch_s(s: State, pool: int, tokens: int) -> float:
    """Seconds of an iteration by its tokens; beyond the table on the line through its middle and its end."""
    last = s.pace.shape[1] - 1
    if tokens <= last:
        return s.pace[pool, tokens, 0]
    half = (last + 1) // 2
    end = s.pace[pool, last, 0]
    if half == last:
        return end * tokens / last
    return end + (end - s.pace[pool, half, 0]) / (last - half) * (tokens - last)


@part
def bin_of(gap: float) -> int:
    """The bin of a gap between tokens."""
    return min(int(np.log(gap / SHORTEST) * PER_LOG), BINS - 1) if gap > SHORTEST else 0


@part
def note_gap(s: State, gap: float, count: float) -> None:
    """So many sequences waited this long for a token."""
    section, at = s.counts[0].section, bin_of(gap)
    s.gaps[section, at, 0] += count
    s.gaps[section, at, 1] += gap * count


@part
def before(a: Record, b: Record) -> bool:
    """Events go by time, then by request."""
    return a.when < b.when or (a.when == b.when and a.request < b.request)


@part
def swap(a: Record, b: Record) -> None:
    """Exchange two events."""
    when, request = a.when, a.request
    a.when, a.request = b.when, b.request
    b.when, b.request = when, request


@part
def push(s: State, when: float, i: int) -> None:
    """Into the heap of events."""
    at = s.counts[0].events
    s.counts[0].events = at + 1
    s.events[at].when, s.events[at].request = when, i
    while at > 0 and before(s.events[at], s.events[(at - 1) // 2]):
        swap(s.events[at], s.events[(at - 1) // 2])
        at = (at - 1) // 2


@part
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


@part
def leave(s: State, w: Record, i: int) -> None:
    """A request is done with its replica: answered, or on its way to the replica that decodes it."""
    w.outstanding -= 1
    w.just += 1
    q, pool = s.requests[i], s.pools[w.pool]
    if pool.prefills and q.output > 1:
        transfer = pool.transfer_s * q.input + pool.latency_s
        s.totals[s.counts[0].section, w.number].stay_s += transfer
        push(s, w.clock + transfer, i)
        return
    q.finish = w.clock
    if s.counts[0].closed:
        push(s, w.clock, i)


@part
def join(s: State, w: Record, i: int) -> None:
    """A request whose tokens so far are all in the cache, but for the last, decodes from the next step on."""
    q, pool = s.requests[i], s.pools[w.pool]
    stored = q.input + q.made - 1
    q.ends = w.steps + q.output - q.made
    if w.running == 0 or q.ends < w.ending:
        w.ending = q.ends
    s.running[w.number, w.running] = i
    w.running += 1
    w.fresh += 1
    w.context += stored
    if not pool.reserve:
        s.growing[w.number, (w.steps - stored) % pool.block] += 1


@part
def take_ready(s: State, w: Record) -> None:
    """Admit requests whose cache came along from another replica: they need no prompt."""
    pool = s.pools[w.pool]
    while w.head >= 0:
        i = w.head
        q = s.requests[i]
        if not q.ready or w.running + (w.partial >= 0) >= pool.sequences:
            return
        # with room for the step that follows, or it would be thrown out at once and its cache be lost
        grown = s.growing[w.number, w.steps % pool.block] + held(q, pool, q.input + 1)
        if w.used + grown > pool.blocks:
            return
        w.head = q.after
        w.waiting -= 1
        w.used += held(q, pool, q.input)
        if q.group >= 0:
            s.groups[w.number, q.group] |= 1
        join(s, w, i)


@part
def make_room(s: State, w: Record) -> int:
    """Throw out the newest until every decoding sequence can store a token; they wait in front. How many went.

    A prompt that was cut goes first, then whoever began to decode last.
    """
    pool = s.pools[w.pool]
    gone = 0
    while w.used + s.growing[w.number, w.steps % pool.block] > pool.blocks:
        i = w.partial
        if i >= 0:
            q = s.requests[i]
            w.partial = -1
            w.used -= held(q, pool, q.input + q.made)
        else:
            w.running -= 1
            i = s.running[w.number, w.running]
            q = s.requests[i]
            q.made = q.output - (q.ends - w.steps)
            stored = q.input + q.made - 1
            w.context -= stored
            w.used -= held(q, pool, stored)
            s.growing[w.number, (w.steps - stored) % pool.block] -= 1
            if w.fresh > 0:
                w.fresh -= 1
            else:
                q.token = w.decoded
        q.ready = 0
        q.preempted += 1
        q.after = w.head
        if w.head < 0:
            w.tail = i
        w.head = i
        w.waiting += 1
        gone += 1
    return gone


@part
def admissible(s: State, w: Record, more: int) -> bool:
    """Whether the first in the queue finds a slot and blocks, beside so many that were just admitted."""
    pool = s.pools[w.pool]
    if w.head < 0 or w.running + more >= pool.sequences:
        return False
    q = s.requests[w.head]
    return not q.ready and w.used + held(q, pool, q.input + q.made) <= pool.blocks


@part
def take_prompts(s: State, w: Record, decoding: int, admits: bool) -> tuple[int, float, int]:
    """Fill an iteration with prompts, first come first served: new tokens, their pairs, prompts that end in it."""
    pool = s.pools[w.pool]
    budget = pool.tokens - decoding
    tokens, pairs, ended = 0, 0.0, 0
    while True:
        i = w.partial
        if i < 0:  # only the last prompt taken can be cut, so there is never more than one
            if not admits or tokens >= budget or not admissible(s, w, ended):
                break
            i = w.head
            q = s.requests[i]
            known = q.group >= 0 and s.groups[w.number, q.group] & 1
            prefix = q.shared if known else 0
            if not pool.chunked and tokens > 0 and tokens + q.input + q.made - prefix > budget:
                break
            w.head = q.after
            w.waiting -= 1
            w.used += held(q, pool, q.input + q.made)
            w.done = prefix
            if np.isnan(q.start):
                q.start = w.clock
        q = s.requests[i]
        left = q.input + q.made - w.done
        new = min(left, budget - tokens) if pool.chunked else left
        pairs += new * (w.done + 0.5 * new)
        tokens += new
        if new < left:
            w.partial = i
            w.done += new
            break
        w.partial = -1
        s.joining[ended] = i
        ended += 1
    return tokens, pairs, ended


@part
def decode_on(s: State, w: Record, first_s: float, until: float, once: bool) -> tuple[int, float, float, float]:
    """Iterations that only decode, till a request ends, a block is missing or `until`.

    Gives their number, seconds and block-seconds, and the seconds of the last one.
    """
    pool = s.pools[w.pool]
    longer = pool.context_s * w.running
    last = 1 if once else w.ending - w.steps
    k, seconds, block_s, each = 0, 0.0, 0.0, first_s
    used, slot = w.used, w.steps % pool.block
    while True:
        k += 1
        seconds += each
        block_s += used * each
        if k >= last or w.clock + seconds >= until:
            break
        slot = slot + 1 if slot + 1 < pool.block else 0
        grown = used + s.growing[w.number, slot]
        if grown > pool.blocks:
            break
        used = grown
        each += longer
    w.used = used
    return k, seconds, block_s, each


@part
def note_decoding(s: State, w: Record, decoding: int, steps: int, first_s: float, last_s: float) -> None:
    """The gaps that some steps from now on end."""
    now = w.clock + first_s
    old = decoding - w.fresh
    if old > 0:
        note_gap(s, now - w.decoded, old)
    for j in range(old, decoding):
        note_gap(s, now - s.requests[s.running[w.number, j]].token, 1.0)
    w.fresh = 0
    if steps == 1:
        return
    longer = (last_s - first_s) / (steps - 1)
    if bin_of(first_s) == bin_of(last_s):  # most often
        note_gap(s, first_s + longer * steps / 2, decoding * (steps - 1))
        return
    for j in range(1, steps):
        note_gap(s, first_s + longer * j, decoding)


@part
def end_answers(s: State, w: Record) -> None:
    """Let go of the decoding requests that got their last token, and find the step at which the next one will."""
    pool = s.pools[w.pool]
    kept, soonest = 0, np.int64(2**62)
    for j in range(w.running):
        i = s.running[w.number, j]
        q = s.requests[i]
        if q.ends > w.steps:
            s.running[w.number, kept] = i
            kept += 1
            soonest = min(soonest, q.ends)
            continue
        q.made = q.output
        stored = q.input + q.made - 1
        w.context -= stored
        w.used -= held(q, pool, stored)
        if not pool.reserve:
            s.growing[w.number, (w.steps - stored) % pool.block] -= 1
        leave(s, w, i)
    w.running, w.ending = kept, soonest


@part
def end_prompts(s: State, w: Record, ended: int) -> None:
    """Every prompt that ended gives a token: the first, or the one after those a preempted request had."""
    pool = s.pools[w.pool]
    for j in range(ended):
        i = s.joining[j]
        q = s.requests[i]
        if q.made == 0:
            q.first = w.clock
        else:
            note_gap(s, w.clock - q.token, 1.0)
        q.made += 1
        q.token = w.clock
        if q.group >= 0:
            s.groups[w.number, q.group] |= 1
        if q.made == q.output or pool.prefills:
            w.used -= held(q, pool, q.input + q.made - 1)
            leave(s, w, i)
        else:
            join(s, w, i)


@part
def iterate(s: State, w: Record, until: float) -> None:
    """One iteration of a replica that has requests, or several that only decode."""
    pool = s.pools[w.pool]
    w.just = 0
    if pool.begin > 0:  # only behind a pool that prefills
        take_ready(s, w)
    decoding, gone, tokens, pairs, ended = w.running, 0, 0, 0.0, 0
    if decoding > 0 and not pool.mixed and (w.partial >= 0 or admissible(s, w, 0)):
        decoding = 0
    if decoding > 0:
        slot = w.steps % pool.block
        if w.used + s.growing[w.number, slot] > pool.blocks:
            gone = make_room(s, w)
            decoding = w.running
        w.used += s.growing[w.number, slot]
    if w.partial >= 0 or w.head >= 0:
        tokens, pairs, ended = take_prompts(s, w, decoding, gone == 0)
    first_s = batch_s(s, w.pool, decoding + tokens) + pool.sequence_s * (decoding + ended) + pool.pair_s * pairs
    if decoding > 0:
        first_s += pool.context_s * w.context
    k, seconds, block_s, last_s = 1, first_s, w.used * first_s, first_s
    if tokens == 0:
        k, seconds, block_s, last_s = decode_on(s, w, first_s, until, gone > 0)
    if decoding > 0:
        note_decoding(s, w, decoding, k, first_s, last_s)
        w.steps += k
        w.context += k * decoding
        w.decoded = w.clock + seconds
    w.clock += seconds
    w.peak = max(w.peak, w.used)
    total = s.totals[s.counts[0].section, w.number]
    total.busy_s += seconds
    total.iterations += k
    total.kv_block_s += block_s
    total.prompt_tokens += tokens
    total.decode_tokens += k * decoding
    total.preemptions += gone
    total.use_s += seconds * s.pace[w.pool, min(decoding + tokens, s.pace.shape[1] - 1), 1]
    total.stay_s += seconds * w.outstanding
    total.wait_s += seconds * w.waiting
    total.sequence_s += seconds * (decoding + ended)
    if decoding > 0 and w.steps >= w.ending:
        end_answers(s, w)
    if ended > 0:
        end_prompts(s, w, ended)


@part
def load(s: State, r: int, now: float) -> int:
    """Requests a replica has not answered; its last iteration may end after now."""
    w = s.replicas[r]
    return w.outstanding + w.just if w.clock > now else w.outstanding


@part
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


@part
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


@part
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


@part
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


@entry
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

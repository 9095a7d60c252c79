"""The iterations of one replica under continuous batching, compiled.

Decoding sequences get one token each, then prompts fill what is left of the batch. Iterations that only decode differ
from each other in nothing but the contexts, so they run in one short loop until something else happens: a request ends,
a block is missing, or an arrival is due.
"""

from __future__ import annotations

import numpy as np

from chipwise.io.jit import jit_helper
from chipwise.serving.events import push
from chipwise.serving.state import BINS, PER_LOG, SHORTEST, Record, State


@jit_helper
def held(q: Record, pool: Record, tokens: int) -> int:
    """Blocks a request takes for so many tokens, or for all it will ever store; its last token is never stored."""
    if pool.reserve:
        tokens = q.input if pool.prefills else q.input + q.output - 1
    return (tokens + pool.block - 1) // pool.block


@jit_helper
def batch_s(s: State, pool: int, tokens: int, column: int = 0) -> float:
    """Seconds of an iteration by its tokens; beyond the table on the line through its middle and its end.

    Column 2 has those of prompts that pass layers of their own.
    """
    last = s.step_times.shape[1] - 1
    if tokens <= last:
        return s.step_times[pool, tokens, column]
    half = (last + 1) // 2
    end = s.step_times[pool, last, column]
    if half == last:
        return end * tokens / last
    return end + (end - s.step_times[pool, half, column]) / (last - half) * (tokens - last)


@jit_helper
def gained(w: Record, pool: Record) -> int:
    """Tokens that the next iteration gives every decoding sequence: whole numbers that are their mean over time."""
    if pool.scored == 1:
        return 1
    w.credit += pool.per_pass
    tokens = int(w.credit + 1e-9)
    w.credit -= tokens
    return tokens


@jit_helper
def grown(s: State, w: Record, steps: int, tokens: int) -> int:
    """Blocks that decoding requests need for so many more tokens, after so many steps."""
    block, blocks = s.pools[w.pool].block, 0
    for j in range(tokens):
        blocks += s.growing[w.number, (steps + j) % block]
    return blocks


@jit_helper
def bin_of(gap: float) -> int:
    """The bin of a gap between tokens."""
    return min(int(np.log(gap / SHORTEST) * PER_LOG), BINS - 1) if gap > SHORTEST else 0


@jit_helper
def note_gap(s: State, gap: float, count: float) -> None:
    """So many sequences waited this long for a token."""
    section, at = s.counts[0].section, bin_of(gap)
    s.gaps[section, at, 0] += count
    s.gaps[section, at, 1] += gap * count


@jit_helper
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


@jit_helper
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


@jit_helper
def take_ready(s: State, w: Record) -> None:
    """Admit requests whose cache came along from another replica: they need no prompt."""
    pool = s.pools[w.pool]
    while w.head >= 0:
        i = w.head
        q = s.requests[i]
        if not q.ready or w.running + (w.partial >= 0) >= pool.sequences:
            return
        # with room for the step that follows, or it would be thrown out at once and its cache be lost
        more = grown(s, w, w.steps, pool.scored) + held(q, pool, q.input + pool.scored)
        if w.used + more > pool.blocks:
            return
        w.head = q.after
        w.waiting -= 1
        w.used += held(q, pool, q.input)
        if q.group >= 0:
            s.groups[w.number, q.group] |= 1
        join(s, w, i)


@jit_helper
def preempt(s: State, w: Record, new: int) -> int:
    """Throw out the newest until every decoding sequence can store its new tokens; they wait in front. How many went.

    A prompt that was cut goes first, then whoever began to decode last.
    """
    pool = s.pools[w.pool]
    gone = 0
    while w.used + grown(s, w, w.steps, new) > pool.blocks:
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


@jit_helper
def admissible(s: State, w: Record, more: int) -> bool:
    """Whether the first in the queue finds a slot and blocks, beside so many that were just admitted."""
    pool = s.pools[w.pool]
    if w.head < 0 or w.running + more >= pool.sequences:
        return False
    q = s.requests[w.head]
    return not q.ready and w.used + held(q, pool, q.input + q.made) <= pool.blocks


@jit_helper
def take_prompts(s: State, w: Record, decoding: int, admits: bool) -> tuple[int, float, int]:
    """Fill an iteration with prompts, first come first served: new tokens, their pairs, prompts that end in it."""
    pool = s.pools[w.pool]
    budget = pool.tokens - decoding * pool.scored
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


@jit_helper
def decode_on(
    s: State, w: Record, first_s: float, until: float, once: bool, new: int
) -> tuple[int, int, float, float, float]:
    """Iterations that only decode, till a request ends, a block is missing or `until`; the first gives `new` tokens.

    Gives their number, the tokens of each sequence, seconds and block-seconds, and the seconds of the last one.
    """
    pool = s.pools[w.pool]
    longer = (pool.context_s + pool.draft_context_s) * w.running
    last = 1 if once else w.ending - w.steps
    k, tokens, seconds, block_s, each = 0, 0, 0.0, 0.0, first_s
    used = w.used
    while True:
        k += 1
        tokens += new
        seconds += each
        block_s += used * each
        if once or tokens >= last or w.clock + seconds >= until:
            break
        credit = w.credit
        more = gained(w, pool)
        needed = used + grown(s, w, w.steps + tokens, more)
        if needed > pool.blocks:
            w.credit = credit
            break
        used = needed
        each += longer * new
        new = more
    w.used = used
    return k, tokens, seconds, block_s, each


@jit_helper
def note_decoding(s: State, w: Record, decoding: int, steps: int, tokens: int, first_s: float, last_s: float) -> None:
    """The gaps that some steps from now on end; what one step gives a sequence beyond a token comes with it."""
    if tokens > steps:
        note_gap(s, 0.0, decoding * (tokens - steps))
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


@jit_helper
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
        stored, beyond = q.input + q.made - 1, w.steps - q.ends  # tokens that its last iteration gave it in vain
        w.context -= stored + beyond
        w.used -= held(q, pool, stored + beyond)
        s.totals[s.counts[0].section, w.number].decode_tokens -= beyond
        if not pool.reserve:
            s.growing[w.number, (q.ends - stored) % pool.block] -= 1
        leave(s, w, i)
    w.running, w.ending = kept, soonest


@jit_helper
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


@jit_helper
def iterate(s: State, w: Record, until: float) -> None:
    """One iteration of a replica that has requests, or several that only decode."""
    pool = s.pools[w.pool]
    w.just = 0
    if pool.begin > 0:  # only behind a pool that prefills
        take_ready(s, w)
    decoding, gone, tokens, pairs, ended = w.running, 0, 0, 0.0, 0
    if decoding > 0 and not pool.mixed and (w.partial >= 0 or admissible(s, w, 0)):
        decoding = 0
    new = gained(w, pool) if decoding > 0 else 0
    if decoding > 0:
        if w.used + grown(s, w, w.steps, new) > pool.blocks:
            gone = preempt(s, w, new)
            decoding = w.running
        w.used += grown(s, w, w.steps, new)
    if w.partial >= 0 or w.head >= 0:
        tokens, pairs, ended = take_prompts(s, w, decoding, gone == 0)
    scored = decoding * pool.scored
    if pool.apart and tokens > 0:  # whole prompts pass the encoder, then the decoder writes their first tokens as well
        first_s = batch_s(s, w.pool, tokens, 2) + batch_s(s, w.pool, decoding + ended)
    else:
        first_s = batch_s(s, w.pool, scored + tokens)
    first_s = first_s + pool.sequence_s * (decoding + ended) + pool.pair_s * pairs
    if decoding > 0:
        first_s += pool.context_s * w.context
    if pool.scored > 1:
        first_s += pool.draft_prompt_s * tokens
        if decoding > 0:
            first_s += batch_s(s, w.pool, decoding, 3) + pool.draft_context_s * w.context
    k, seconds, block_s, last_s, each = 1, first_s, w.used * first_s, first_s, new
    if tokens == 0:
        k, each, seconds, block_s, last_s = decode_on(s, w, first_s, until, gone > 0, new)
    if decoding > 0:
        note_decoding(s, w, decoding, k, each, first_s, last_s)
        w.steps += each
        w.context += each * decoding
        w.decoded = w.clock + seconds
    w.clock += seconds
    w.peak = max(w.peak, w.used)
    total = s.totals[s.counts[0].section, w.number]
    total.busy_s += seconds
    total.iterations += k
    total.kv_block_s += block_s
    total.prompt_tokens += tokens
    total.decode_tokens += each * decoding
    total.preemptions += gone
    total.use_s += seconds * s.step_times[w.pool, min(scored + tokens, s.step_times.shape[1] - 1), 1]
    total.stay_s += seconds * w.outstanding
    total.wait_s += seconds * w.waiting
    total.sequence_s += seconds * (decoding + ended)
    if decoding > 0 and w.steps >= w.ending:
        end_answers(s, w)
    if ended > 0:
        end_prompts(s, w, ended)

"""EASY backfill, compiled: one pass over the queue, by job or by job and pool, however many are pending.

A pool's running and allocated jobs stand sorted by their predicted ends, so that the wait for so many chips is known.
The first job that must wait for a pool gets a reservation there; later jobs backfill only if they end before the
reserved start, or take chips that the reserved job leaves over. Preemptible running jobs hold their chips softly until
they are reached in the queue: until then jobs ahead of them may take the chips.

No fastmath: equal input gives equal bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chipwise.io.jit import jit_cached, jit_inline
from chipwise.route.allocate.queue_order import LEASE_S, OVERHEAD

# times as long to the end as waiting would take, up to which a job starts in a free pool of about the same score: idle
# chips are used, yet nobody is sent to chips far too slow for it; our choice
SLOWER = 2.0


@jit_cached
def settle(f: Any, running: Any, ends: Any, jobs: Any, pools: Any) -> None:
    """Fill in running jobs, sorted by their ends; list those that may be preempted, last in the queue first."""
    for k in range(running.shape[0]):
        j = running[k]
        p = f.current_pool[j]
        i = f.size[p]
        f.ends[p, i], f.held[p, i], f.who[p, i] = ends[k], f.chips[j, p], j
        f.size[p] += 1
        f.pos[j] = p
    if f.preempts:
        for k in range(jobs.shape[0] - 1, -1, -1):
            j = jobs[k]
            p = f.current_pool[j]
            if p >= 0 and p == pools[k] and f.restartable[j]:
                f.behind[p, f.behind_count[p]] = j
                f.behind_count[p] += 1
                f.preemptible[p] += f.chips[j, p]


@jit_inline
def _closed(f: Any, j: int, p: int) -> bool:
    """Whether a job may not go to a pool: it can't run there or pay for it."""
    c = f.chips[j, p]
    return bool(f.score[j, p] == np.inf or c > f.total[p] or c == 0 or f.usd[j, p] > f.budget[j])


@jit_inline
def _failed(f: Any, j: int, p: int) -> bool:
    """Whether a job failed last in a pool, and has another."""
    if not f.last_failed[j, p]:
        return False
    for q in range(f.score.shape[1]):  # noqa: SIM110 - compiled
        if not f.last_failed[j, q] and not _closed(f, j, q):
            return True
    return False


@jit_inline
def _enter(f: Any, j: int, p: int) -> None:
    """A job takes its chips in a pool."""
    f.pos[j] = p
    c, end = f.chips[j, p], f.now + f.seconds[j, p]
    f.free[p] -= c
    if f.holder[p] >= 0 and f.holder[p] != j and f.now + f.high[j, p] > f.shadow[p]:
        f.spare[p] -= c
    k = f.size[p]
    while k > 0 and f.ends[p, k - 1] > end:
        f.ends[p, k], f.held[p, k], f.who[p, k] = f.ends[p, k - 1], f.held[p, k - 1], f.who[p, k - 1]
        k -= 1
    f.ends[p, k], f.held[p, k], f.who[p, k] = end, c, j
    f.size[p] += 1
    f.memo_valid[p, :] = False
    f.touched[p] = True


@jit_inline
def _leave(f: Any, j: int) -> None:
    """A job gives its chips back."""
    p = f.pos[j]
    f.free[p] += f.chips[j, p]
    f.pos[j] = -1
    k = 0
    while f.who[p, k] != j:
        k += 1
    for i in range(k, f.size[p] - 1):
        f.ends[p, i], f.held[p, i], f.who[p, i] = f.ends[p, i + 1], f.held[p, i + 1], f.who[p, i + 1]
    f.size[p] -= 1
    f.memo_valid[p, :] = False
    f.touched[p] = True


@jit_inline
def _free_at(f: Any, p: int, c: int) -> float:
    """When so many chips of a pool are free, with no queue. Chips of unknown jobs are taken to be free by then."""
    if c > f.total[p]:
        return np.inf
    if not f.memo_valid[p, c]:
        free, k, when = f.free[p], 0, f.now
        while free < c and k < f.size[p]:
            when = max(when, f.ends[p, k])
            free += f.held[p, k]
            k += 1
        f.memo[p, c], f.memo_valid[p, c] = when, True
    return float(f.memo[p, c])


@jit_inline
def _passes(f: Any, j: int, p: int) -> bool:
    """Backfill: whether a job's start in a pool now would not delay the one that has the reservation."""
    c, r = f.chips[j, p], f.holder[p]
    if r < 0 or r == j or c <= f.spare[p] or f.now + f.high[j, p] <= f.shadow[p]:
        return True
    return bool(f.preempts and f.restartable[j] and not f.aged[r] and f.restart_cost_s[j] == 0)


@jit_inline
def _fits(f: Any, j: int, p: int) -> bool:
    """Whether a job can start in a pool now."""
    return bool(f.chips[j, p] <= f.free[p] and _passes(f, j, p))


@jit_inline
def _may_preempt(f: Any, j: int, p: int) -> bool:
    """Whether there are jobs to stop so that this one fits."""
    c = f.chips[j, p]
    return bool(f.preempts and f.free[p] < c <= f.free[p] + f.preemptible[p] and _passes(f, j, p))


@jit_inline
def _expected(f: Any, j: int, p: int) -> float:
    """When a job would start in a pool that it must wait for: after the jobs there and the queue ahead of it."""
    when = max(_free_at(f, p, f.chips[j, p]), f.start[j, p])
    return float(when + f.queue[p])


@jit_inline
def _costly_to_stop(f: Any, v: int) -> bool:
    """Whether preempting a running job for fair shares would waste too much: it has run for too short a time."""
    ran = f.now - f.since[v]
    return bool(ran < LEASE_S or f.restart_cost_s[v] > OVERHEAD * ran)


@jit_inline
def _spared(f: Any, j: int, p: int, v: int, sharing: bool) -> bool:
    """Whether a running job is not to be stopped for another that is ahead of it.

    Whoever has waited too long may stop others whatever they repeat, but not one that has waited too long itself: two
    of those, each ahead as soon as the other runs, would stop each other for ever and neither would end.
    """
    if f.pos[v] != p or f.considered[v] or v == j or f.since[v] >= f.now:
        return True
    if sharing:
        return bool(_costly_to_stop(f, v) and (f.aged[v] or not f.aged[j] or f.now - f.since[v] < LEASE_S))
    return bool(f.aged[v])


@jit_inline
def _preempt_for(f: Any, j: int, p: int, sharing: bool) -> bool:
    """Preemption: stop running jobs behind so that this one fits, if its gain is worth the work they repeat."""
    if not _may_preempt(f, j, p):
        return False
    c, free, cost = f.chips[j, p], f.free[p], 0.0
    gain = f.weight[j] * c * max(_expected(f, j, p) - f.now, 0.0)
    n = 0
    while free < c and n < f.behind_count[p]:
        v = f.behind[p, n]
        n += 1
        if _spared(f, j, p, v, sharing):
            continue
        free += f.chips[v, p]
        cost += f.weight[v] * f.chips[v, p] * f.restart_cost_s[v]
        if gain <= cost and not f.aged[j]:  # it only grows
            return False
    if free < c or (gain <= cost and not f.aged[j]):
        return False
    for i in range(n):
        v = f.behind[p, i]
        if _spared(f, j, p, v, sharing):
            continue
        f.preemptible[p] -= f.chips[v, p]
        f.preemptor[v] = j
        _leave(f, v)
    return True


@jit_inline
def _reserve(f: Any, j: int, p: int) -> None:
    """EASY reservation: the first job that waits for a pool has its start there kept."""
    c = f.chips[j, p]
    f.holder[p], f.shadow[p] = j, _free_at(f, p, c)
    free = f.free[p]
    for k in range(f.size[p]):
        if f.ends[p, k] > f.shadow[p]:
            break
        free += f.held[p, k]
    f.spare[p] = max(free - c, 0)


@jit_inline
def _queue_up(f: Any, j: int, p: int, reserves: bool) -> None:
    """A job waits for a pool."""
    f.target[j], f.predicted[j] = p, _expected(f, j, p)
    if reserves and f.holder[p] < 0:
        _reserve(f, j, p)
    f.queue[p] += f.chips[j, p] * f.seconds[j, p] / max(f.total[p], 1)


@jit_inline
def _best(f: Any, j: int, tried: Any) -> int:
    """The pool with the least score, waits as they now are; -1 where there is none. `tried`: no stopping there."""
    best, least, late, rank, current = -1, np.inf, False, 0, f.pos[j]
    for p in range(f.score.shape[1]):
        when, score = _weighed(f, j, p, tried)
        f.when[p], f.weighed[p] = when, score
        if np.isnan(when):
            continue
        too_late = _too_late(f, j, p, when)
        if too_late:
            score = when - f.latest[j, p]
        better = score < least or (
            score == least and (p == current or (best != current and f.variant_order[j, p] < rank))
        )
        if best < 0 or (late and not too_late) or (late == too_late and better):
            best, least, late, rank = p, score, too_late, f.variant_order[j, p]
    if f.tie[j] == 0 or best < 0 or late or best == current:
        return best
    return _first_end(f, j, best, least + f.tie[j] * abs(least))


@jit_inline
def _weighed(f: Any, j: int, p: int, tried: Any) -> Any:
    """When a job would start in a pool and its score there, the wait as it now is; a start of nan: not to be had."""
    score, c, current, wait = f.score[j, p], f.chips[j, p], f.pos[j], f.wait[j]
    if p == current:
        when = f.now
        score = min(score, 1e300) if c <= f.total[p] else 1e300  # its chips are gone: anything is better
    elif _closed(f, j, p) or _failed(f, j, p):
        return np.nan, score
    elif c > f.free[p] and (tried[p] or c > f.free[p] + f.preemptible[p]):  # the common case: full
        if current >= 0:
            return np.nan, score
        when = f.start[j, p]
        if f.touched[p]:
            when = max(when, _free_at(f, p, c))
        when += f.queue[p]
    elif _fits(f, j, p):
        when = max(f.start[j, p], f.now) if c <= f.free_at_first[p] else f.now
    elif not tried[p] and _may_preempt(f, j, p):
        when = f.now
    elif current >= 0:
        return np.nan, score
    else:
        when = _expected(f, j, p)
    if wait != 0 and f.start[j, p] < np.inf:  # a pool that is never free again has no wait to take off its score
        score += wait * (when - max(f.start[j, p], f.now))
    if current >= 0 and p != current:  # it moves: the work it repeats is paid for there
        score += abs(score) * f.restart_cost_s[j] / max(f.seconds[j, current], 1e-9)
    return when, score


@jit_inline
def _without_delay(f: Any, j: int, p: int) -> float:
    """A job's score in a pool without what the time to its end counts in it: its dollars, where those are scored."""
    start = f.start[j, p]
    until = f.seconds[j, p] + (max(start - f.now, 0.0) if start < np.inf else 0.0)
    return float(f.score[j, p] - f.wait[j] * until) if f.wait[j] != 0 else float(f.score[j, p])


@jit_inline
def _first_end(f: Any, j: int, best: int, bound: float) -> int:
    """Of pools up to a score, as just weighed, the one in which a job ends first; a free one, at no more cost, before.

    A job that runs in one of them stays. It waits beside a free one only where that would take it more than `SLOWER`
    times as long to its end.
    """
    first, first_start, first_end = best, np.inf, np.inf
    for p in range(f.score.shape[1]):
        when = f.when[p]
        if np.isnan(when) or f.weighed[p] > bound or _too_late(f, j, p, when):
            continue
        if p == f.pos[j]:
            return p
        end = when + f.seconds[j, p]
        if end < first_end or (end == first_end and f.variant_order[j, p] < f.variant_order[j, first]):
            first, first_start, first_end = p, when, end
    if first_start <= f.now or f.pos[j] >= 0:
        return first
    apart = _without_delay(f, j, first)
    free, free_end = first, f.now + SLOWER * (first_end - f.now)
    for p in range(f.score.shape[1]):
        when = f.when[p]
        if not when <= f.now or _without_delay(f, j, p) > apart + f.tie[j] * abs(apart):
            continue
        end = when + f.seconds[j, p]
        if end <= free_end and not _too_late(f, j, p, when):
            free, free_end = p, end
    return free


@jit_inline
def _too_late(f: Any, j: int, p: int, when: float) -> bool:
    """Whether the score of a job in a pool does not hold for a start then."""
    return bool(f.latest.shape[0] > 0 and when > f.latest[j, p])


@jit_inline
def _allocate_job(f: Any, j: int, tried: Any) -> None:
    """Allocate one job: it stays, moves, starts or waits, with a reservation where it is the first to wait."""
    current = f.pos[j]
    f.considered[j] = True
    if current >= 0:
        if not f.restartable[j]:
            return
        f.preemptible[current] -= f.chips[j, current] if f.preempts else 0
        if not f.moves or _surely_stays(f, j):
            return
    tried[:] = False
    while True:
        p = _best(f, j, tried)
        if p < 0 or (p == current and current >= 0):
            return
        if _fits(f, j, p):
            break
        if not tried[p] and _may_preempt(f, j, p):
            if _preempt_for(f, j, p, False):
                break
            tried[p] = True  # it would not pay: compare again, with the wait
            continue
        _queue_up(f, j, p, True)
        return
    if current >= 0:
        f.preemptor[j] = j
        _leave(f, j)
    _enter(f, j, p)


@jit_inline
def _surely_stays(f: Any, j: int) -> bool:
    """Shortcut: whether no pool that has room for a running job can be better than where it is; else all are compared.

    A move starts at once or never, so that its score is at the least what it would be without any wait, and the work it
    repeats; ties stay.
    """
    current, wait = f.pos[j], f.wait[j]
    if wait < 0 or f.chips[j, current] > f.total[current] or _too_late(f, j, current, f.now):
        return False
    own = f.score[j, current]
    for p in range(f.score.shape[1]):
        if p == current or f.chips[j, p] > f.free[p] + f.preemptible[p]:
            continue
        score = f.score[j, p]
        if wait != 0 and f.start[j, p] < np.inf:
            score -= wait * max(f.start[j, p] - f.now, 0.0)
        if score > 0:
            score += score * f.restart_cost_s[j] / max(f.seconds[j, current], 1e-9)
        if score < own:
            return False
    return True


@jit_inline
def _surely_full(f: Any, j: int) -> int:
    """Shortcut: the full pool that a job surely waits for; -1 where all pools must be compared.

    Scores with the least that waiting adds to them are compared. If the winner is full, and no less with all that is to
    be added to it than the next at the least, then it is the winner.
    """
    best, least, second, wait = -1, np.inf, np.inf, f.wait[j]
    for p in range(f.score.shape[1]):
        score, c, free = f.score[j, p], f.chips[j, p], f.free[p]
        if c > free:
            if c > free + f.preemptible[p]:
                score += wait * f.queue[p]
            else:
                score -= wait * max(f.start[j, p] - f.now, 0.0)
        if score < least:
            best, least, second = p, score, least
        elif score < second:
            second = score
    if best < 0 or f.chips[j, best] <= f.free[best] + f.preemptible[best]:
        return -1
    if second <= least + f.tie[j] * abs(least) or f.last_failed[j, best] or _closed(f, j, best):
        return -1
    if f.tie[j] > 0:
        apart = _without_delay(f, j, best)
        for p in range(f.score.shape[1]):
            if f.chips[j, p] <= f.free[p] and _without_delay(f, j, p) <= apart + f.tie[j] * abs(apart):
                return -1
    if f.touched[best]:
        later = _free_at(f, best, f.chips[j, best]) - f.start[j, best]
        score = least + wait * later
        if later > 0 and score + f.tie[j] * abs(score) >= second:
            return -1
    if f.latest.shape[0] > 0 and _expected(f, j, best) > f.latest[j, best]:
        return -1
    return best


@jit_cached
def by_jobs(f: Any, sequence: Any, tried: Any) -> None:
    """Allocate job by job, with backfill. `tried` is scratch, by pool."""
    for k in range(sequence.shape[0]):
        j = sequence[k]
        p = _surely_full(f, j) if f.pos[j] < 0 else -1
        if p >= 0:
            f.considered[j] = True
            _queue_up(f, j, p, True)
        else:
            _allocate_job(f, j, tried)


@jit_cached
def by_pairs(f: Any, jobs: Any, pools: Any, first: int) -> None:
    """Allocate by job and pool, for policies that share time. The first so many pairs are of overdue jobs."""
    for k in range(jobs.shape[0]):
        j, p = jobs[k], pools[k]
        if f.considered[j]:
            continue
        current, c = f.pos[j], f.chips[j, p]
        if current == p:
            f.considered[j] = True
            if f.restartable[j] and f.preempts:
                f.preemptible[p] -= c
            continue
        if current >= 0 and not (f.moves and f.restartable[j] and not _costly_to_stop(f, j)):
            continue
        if not _fits(f, j, p) and not _preempt_for(f, j, p, True):
            if current < 0 and f.target[j] < 0:
                _queue_up(f, j, p, k < first)
            continue
        if current >= 0:
            f.preemptor[j] = j
            f.preemptible[current] -= f.chips[j, current] if f.preempts else 0
            _leave(f, j)
        _enter(f, j, p)
        f.considered[j] = True
        q = f.target[j]
        if q >= 0:  # it waited for another pool, first
            f.target[j] = -1
            f.queue[q] -= f.chips[j, q] * f.seconds[j, q] / max(f.total[q], 1)
            if f.holder[q] == j:
                f.holder[q] = -1

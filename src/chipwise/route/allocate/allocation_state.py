"""`AllocationState`: the arrays of one scheduling pass, in the form that compiled code takes."""

from __future__ import annotations

from typing import NamedTuple

from chipwise.route.cluster_state import Flags, Floats, Ints


class AllocationState(NamedTuple):
    """All that a pass reads and writes. Arrays are by job, by pool, by both, or by pool and position in its list."""

    now: float
    preempts: bool
    moves: bool
    # read
    score: Floats
    usd: Floats
    budget: Floats
    last_failed: Flags
    start: Floats
    seconds: Floats
    high: Floats
    chips: Ints
    variant_order: Ints
    wait: Floats  # [J] score of a second of waiting
    tie: Floats  # [J] share of the least score within which pools are equal
    latest: Floats  # [J, P] start from which the score no longer holds; [0, 0]: none
    weight: Floats
    restartable: Flags
    restart_cost_s: Floats
    since: Floats
    aged: Flags
    current_pool: Ints
    total: Ints
    free_at_first: Ints  # chips
    # written
    free: Ints
    pos: Ints  # where each job is after the pass; -1: nowhere
    target: Ints  # where it waits; -1: nowhere
    predicted: Floats  # when it would start there
    preemptor: Ints  # the job it was stopped for; itself: it moves; -1: none
    considered: Flags  # the pass has reached it in the queue
    ends: Floats  # by pool: of jobs there, sorted
    held: Ints  # chips of those
    who: Ints  # which job
    size: Ints  # how many
    queue: Floats  # by pool: seconds of the whole pool that the jobs which wait for it take
    preemptible: Ints  # by pool: chips of running jobs that may be stopped, until they are considered
    behind: Ints  # by pool: those jobs, last in order first
    behind_count: Ints  # how many
    holder: Ints  # by pool: who has the reservation; -1: nobody
    shadow: Floats  # by pool: when it starts
    spare: Ints  # chips that are then left over
    memo: Floats  # by pool and chips: when so many are free
    memo_valid: Flags  # whether that is up to date
    when: Floats  # by pool: of the job at hand, when it would start there
    weighed: Floats  # and its score there, the wait as it then is
    touched: Flags  # by pool: somebody came or went in this pass

"""All that a run of the compiled scheduler reads and writes, as records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int64]
Records = NDArray[Any]
Record = Any  # one of them, by its fields' names

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
    "clock decoded credit",
)
POOL = _fields(
    "blocks sequences tokens block mixed reserve chunked apart prefills begin end router turn scored",
    "context_s pair_s sequence_s transfer_s latency_s per_pass draft_context_s draft_prompt_s",
)
TOTAL = _fields(
    "",
    "busy_s iterations kv_block_s prompt_tokens decode_tokens preemptions use_s stay_s wait_s sequence_s",
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
    # by pool and tokens of an iteration: seconds, share of the way from idle to busy watts, seconds of prompts apart;
    # and by decoding sequences: seconds of drafts
    step_times: Real
    totals: Records  # by section of the run and replica
    gaps: Real  # by section of the run and bin: between tokens of a sequence, how many and how long together
    events: Records  # heap of requests that return: answered in a closed loop, or on their way to where they decode
    sections: Records
    counts: Records  # one

"""What a benchmark sends to a server, and what it counts: as a published row says, else as others of its kind do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.validate.cells import has, number, some

# Lengths of the closed-loop benchmark that most rows come from are drawn from 80 to 100 % of the nominal ones
# (InferenceMAX --random-range-ratio 0.8, 2025-10); its nominal lengths are these
DRAWN, NOMINAL = 0.2, (1024.0, 8192.0)
# Rows of other lengths come from a tool that warms up before it counts, and whose requests drift apart. Assumed.
DRIFTED = 0.1
ROUNDS = 10  # requests a user of that benchmark sends (InferenceMAX --num-prompts 10 x concurrency, 2025-10)
WHOLE = 128  # tokens: a length that is a multiple of it is what was asked for, any other the mean of what was sent
POISSON = "Poisson"  # how the column `arrival` begins where requests come by themselves
# Requests of trtllm-bench's published runs by tokens of a request (TensorRT-LLM perf-overview.md v0.17 to v1.0)
BENCHED = ((256, 30_000), (4_000, 3_000), (5_500, 1_500), (float("inf"), 1_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a benchmark sends, and what it counts."""

    load: str
    batch: float
    slots: int
    rounds: int
    drawn: float
    warm: bool
    nominal: float = 1.0  # what the longest lengths are to the mean ones that a row has
    requests: float = 0.0


def protocol_of(row: Mapping[str, str], length: float, answer: float, fixed: bool) -> Protocol:
    """As the row says; where it says nothing, as the benchmarks of its kind do."""
    users, requests = number(row, "concurrency"), number(row, "num_prompts")
    load = "batch" if fixed else "closed" if users else "offline"
    slots = 0 if fixed else int(number(row, "batch_size"))
    if load != "closed":
        many = some(row, "batch_size") if fixed else requests or float(_requests(length + answer))
        return Protocol(load=load, batch=many, slots=slots, rounds=ROUNDS, drawn=0.0, warm=False, requests=requests)
    if row.get("arrival", "").startswith(POISSON):
        return Protocol(load="open", batch=users, slots=slots, rounds=ROUNDS, drawn=DRIFTED, warm=True)
    nominal = {length, answer} <= set(NOMINAL)
    if not requests or not has(row, "range_ratio"):
        drawn = DRAWN if nominal else DRIFTED
        return Protocol(load=load, batch=users, slots=slots, rounds=ROUNDS, drawn=drawn, warm=not nominal)
    drawn = 1.0 - min(number(row, "range_ratio"), 1.0)
    mean = any(value % WHOLE for value in (length, answer) if value > 1)
    return Protocol(
        load=load,
        batch=users,
        slots=slots,
        rounds=max(round(requests / users), 1),
        drawn=drawn,
        warm=False,
        nominal=1 / (1 - drawn / 2) if mean else 1.0,
        requests=requests,
    )


def _requests(tokens: float) -> int:
    return next(count for most, count in BENCHED if tokens <= most)

"""A fleet of replicas under a stream of requests, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import DoesNotFit, InputError
from chipwise.io.brief import brief
from chipwise.serving.limits import DEFAULT_ROUTER, ROUTERS
from chipwise.serving.requests import Requests, draw
from chipwise.serving.step_times import EngineConfig, StepTimeTable
from chipwise.workload.serve import Serve

if TYPE_CHECKING:
    from chipwise.serving.state import State

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

WARM_UP = 0.1  # share of the requests that find a system still filling
SECTIONS = 20  # of what follows, for the intervals


@dataclass(frozen=True, slots=True, eq=False)
class Prefill:
    """Replicas of their own for the prompts; the cache then travels to those that decode."""

    step_times: StepTimeTable
    kv_blocks: int  # of a replica; a prompt's are free again when it ends, the transfer has memory of its own
    replicas: int = 1
    config: EngineConfig | None = None  # None: those of the fleet
    transfer_s_per_token: float = 0.0
    transfer_latency_s: float = 0.0
    use: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """Equal replicas behind a router.

    `least_loaded` counts unanswered requests, as a router can; `prefix` prefers a replica that has had the request's
    group unless it has over 32 requests more than the least loaded one and over 1.5 times as many.
    """

    step_times: StepTimeTable
    kv_blocks: int  # of a replica
    config: EngineConfig = field(default_factory=EngineConfig)
    replicas: int = 1
    router: str = DEFAULT_ROUTER
    prefill: Prefill | None = None
    # by tokens in an iteration, beside `step_times.tokens_s`: share of the way from idle to busy watts; None: all of it
    use: Array | None = None


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums over the run, (section, replica); replicas that prefill come first."""

    busy_s: Array
    iterations: Array
    kv_block_s: Array  # blocks held x seconds
    prompt_tokens: Array  # computed, again after a preemption
    decode_tokens: Array  # without those that prompts gave
    preemptions: Array
    use_s: Array  # busy seconds weighted by the use of the chips
    stay_s: Array  # requests there x seconds
    wait_s: Array  # requests waiting for a slot or blocks x seconds
    sequence_s: Array  # sequences that get a token x seconds


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What became of every request, and what the replicas did."""

    requests: Requests
    fleet: Fleet
    arrival_s: Array
    start_s: Array  # first scheduled
    first_s: Array  # first token
    finish_s: Array
    replica: Whole  # that decoded it, from 0
    prefilled_by: Whole  # replica of the prefill pool, -1: none
    preempted: Whole  # times
    totals: Totals
    peak_blocks: Whole  # by replica
    gaps: Array  # (section, bin of `gap_edges`): gaps between tokens of a sequence
    gap_s: Array  # their seconds together
    warm: int  # requests before this one are warm-up
    marks: Array  # when each section of the run began, and the end

    @property
    def end_s(self) -> float:
        """When the last request was answered."""
        return float(self.marks[-1])

    @property
    def steady(self) -> bool:
        """Whether requests kept coming, so that neither warm-up nor what was left at the end counts."""
        return self.requests.kind != "offline" and bool(self.marks[-2] > self.marks[1])

    @property
    def sections(self) -> slice:
        """Those that count."""
        return slice(1, -1) if self.steady else slice(0, None)

    @property
    def counted(self) -> slice:
        """Requests that count."""
        return slice(self.warm if self.steady else 0, None)

    @property
    def edges(self) -> Array:
        """When the sections that count begin, and when the last of them ends."""
        return self.marks[1:-1] if self.steady else np.array([self.arrival_s[0], self.end_s])


def simulate(
    what: Serve | Requests,
    fleet: Fleet,
    *,
    count: int = 0,
    seed: int = 0,
    rate: float | None = None,
    users: int | None = None,
    warm_up: float = WARM_UP,
) -> Simulation:
    """Serve every request; count, seed, rate and users are for a `Serve`, whose requests are drawn here."""
    requests = draw(what, count, seed, rate=rate, users=users) if isinstance(what, Serve) else what
    _check(requests, fleet)
    from chipwise.serving.scheduler import run  # compiles at its first call: only where something is simulated

    warm, cuts = _sections(requests, warm_up)
    state = _state(requests, fleet, cuts)
    run(state, requests.users if requests.kind == "closed" else 0)
    return _simulation(requests, fleet, state, warm)


def gap_edges() -> Array:
    """Edges of the bins of `Simulation.gaps`, s."""
    from chipwise.serving.state import BINS, LONGEST, SHORTEST

    return np.geomspace(SHORTEST, LONGEST, BINS + 1)


def _sections(requests: Requests, warm_up: float) -> tuple[int, Whole]:
    """Requests of the warm-up, and the first request of every section of the run."""
    count = len(requests)
    if requests.kind == "offline":
        return 0, np.array([0], np.int64)
    # all users of a closed loop start at once; what follows the first round is spread
    first = max(int(np.ceil(warm_up * count)), min(requests.users, count // 2) if requests.kind == "closed" else 0)
    warm = min(first, count - 1)
    cuts = warm + (count - warm) * np.arange(SECTIONS) // SECTIONS
    return warm, np.concatenate([[-1], cuts, [count]]).astype(np.int64)


def _check(requests: Requests, fleet: Fleet) -> None:
    """Refuse a fleet that can't hold the longest request, and nonsense."""
    if fleet.router not in ROUTERS:
        raise InputError("router", fleet.router, f"one of {', '.join(ROUTERS)}")
    longest = int(np.argmax(requests.input + requests.output))
    tokens = int(requests.input[longest] + requests.output[longest]) - 1
    _check_pool("replica", fleet, fleet.config, tokens)
    if fleet.prefill is not None:
        _check_pool("prefill replica", fleet.prefill, fleet.prefill.config or fleet.config, int(requests.input.max()))


def _check_pool(name: str, pool: Fleet | Prefill, config: EngineConfig, tokens: int) -> None:
    if pool.replicas < 1:
        raise InputError(f"{name}s", pool.replicas, "at least 1")
    least = min(config.most_sequences, config.most_tokens, config.block)
    if least < 1:
        raise InputError("settings", least, "at least one sequence, one token in an iteration and one in a block")
    table = pool.step_times.tokens_s
    if len(table) < 2 or not np.all(np.isfinite(table[1:])) or not np.all(table[1:] > 0):
        raise InputError("step_times.tokens_s", f"{len(table)} times", "seconds above 0 for 1 token and more")
    if pool.use is not None and len(pool.use) != len(table):
        raise InputError("use", f"{len(pool.use)} shares", f"one for each of {len(table)} times of an iteration")
    if pool.step_times.drafted and config.most_tokens <= pool.step_times.drafted:
        raise InputError("chunk", config.most_tokens, f"more than the {pool.step_times.drafted} tokens drafted")
    need = -(-(tokens + pool.step_times.drafted) // config.block)
    if need > pool.kv_blocks:
        raise DoesNotFit(
            f"the longest request stores {tokens:,} tokens = {need:,} blocks of {config.block}, a {name}'s cache has "
            f"{max(pool.kv_blocks, 0):,}",
            "more memory per replica, a smaller cache precision or shorter requests would hold it",
        )


def _state(requests: Requests, fleet: Fleet, cuts: Whole) -> State:
    from chipwise.serving import state as core

    parts: list[tuple[Fleet | Prefill, EngineConfig]] = [(fleet, fleet.config)]
    if fleet.prefill is not None:
        parts.insert(0, (fleet.prefill, fleet.prefill.config or fleet.config))
    count, replicas = len(requests), sum(part.replicas for part, _ in parts)
    longest = max(len(part.step_times.tokens_s) for part, _ in parts)
    step_times = np.ones((len(parts), longest, 4))
    pools = np.zeros(len(parts), core.POOL)
    each = np.zeros(replicas, core.REPLICA)
    each["number"] = np.arange(replicas)
    each["head"] = each["tail"] = each["partial"] = -1
    begin = 0
    for p, (part, config) in enumerate(parts):
        pool, most = pools[p], min(config.most_tokens, part.step_times.most_tokens)
        pool["blocks"], pool["block"], pool["tokens"] = part.kv_blocks, config.block, most
        pool["scored"], pool["per_pass"] = 1 + part.step_times.drafted, part.step_times.per_pass
        # each needs room for its tokens in every iteration
        pool["sequences"] = min(config.most_sequences, max(most // int(pool["scored"]), 1))
        pool["mixed"], pool["reserve"], pool["chunked"] = config.mixed, config.reserve, config.chunked
        pool["begin"], pool["end"] = begin, begin + part.replicas
        pool["router"] = ROUTERS.index(fleet.router if fleet.prefill is None else "least_loaded")
        for name in ("context_s", "pair_s", "sequence_s", "draft_context_s", "draft_prompt_s"):
            pool[name] = getattr(part.step_times, name)
        if isinstance(part, Prefill):
            pool["prefills"] = True
            pool["transfer_s"], pool["latency_s"] = part.transfer_s_per_token, part.transfer_latency_s
        step_times[p, :, 0] = _stretched(part.step_times.tokens_s, longest)
        if part.step_times.prompt_s is not None:
            pool["apart"] = True
            step_times[p, :, 2] = _stretched(part.step_times.prompt_s, longest)
        if part.step_times.draft_s is not None:
            step_times[p, :, 3] = _stretched(part.step_times.draft_s, longest)
        if part.use is not None:
            step_times[p, :, 1] = np.pad(part.use, (0, longest - len(part.use)), "edge")
        each["pool"][begin : begin + part.replicas] = p
        begin += part.replicas
    records = np.zeros(count, core.REQUEST)
    for name in ("input", "output", "shared", "group"):
        records[name] = getattr(requests, name)
    records["arrival"] = requests.arrival_s
    records["after"] = records["replica"] = records["prefilled_by"] = -1
    records["start"] = records["first"] = records["finish"] = records["token"] = np.nan
    sections = np.zeros(len(cuts), core.SECTION)
    sections["cut"] = cuts
    slots = int(pools["sequences"].max())
    return core.State(
        requests=records,
        replicas=each,
        pools=pools,
        running=np.zeros((replicas, slots), np.int64),
        growing=np.zeros((replicas, int(pools["block"].max())), np.int64),
        groups=np.zeros((replicas, max(int(requests.group.max()) + 1, 1)), np.int64),
        joining=np.zeros(slots, np.int64),
        step_times=step_times,
        totals=np.zeros((len(cuts), replicas), core.TOTAL),
        gaps=np.zeros((len(cuts), core.BINS, 2)),
        events=np.zeros(count + 1, core.EVENT),
        sections=sections,
        counts=np.zeros(1, core.COUNTS),
    )


def _stretched(tokens_s: Array, length: int) -> Array:
    """A table as long as the longest of all pools; the added end is never read but by prompts that aren't cut."""
    last = len(tokens_s) - 1
    half = (last + 1) // 2
    slope = tokens_s[last] / last if half == last else (tokens_s[last] - tokens_s[half]) / (last - half)
    return np.concatenate([tokens_s, tokens_s[last] + slope * np.arange(1, length - last)])


def _simulation(requests: Requests, fleet: Fleet, state: State, warm: int) -> Simulation:
    records = state.requests
    shift = fleet.prefill.replicas if fleet.prefill is not None else 0
    in_prefill = records["replica"] < shift  # answered where its prompt was
    return Simulation(
        requests=requests,
        fleet=fleet,
        arrival_s=records["arrival"].copy(),
        start_s=records["start"].copy(),
        first_s=records["first"].copy(),
        finish_s=records["finish"].copy(),
        replica=np.where(in_prefill, -1, records["replica"] - shift),
        prefilled_by=np.where(in_prefill, records["replica"], records["prefilled_by"]),
        preempted=records["preempted"].copy(),
        totals=Totals(**{field.name: state.totals[field.name].copy() for field in fields(Totals)}),
        peak_blocks=state.replicas["peak"].copy(),
        gaps=state.gaps[:, :, 0].copy(),
        gap_s=state.gaps[:, :, 1].copy(),
        warm=warm,
        marks=np.append(state.sections["mark"], records["finish"].max()),
    )

"""Continuous batching the plain way: an event calendar, one iteration at a time, no arithmetic but the definition's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from chipwise.serving.requests import Requests
from chipwise.serving.simulate import Fleet
from chipwise.serving.step_times import EngineConfig, StepTimeTable


@dataclass
class Request:
    number: int
    input: int
    output: int
    shared: int
    group: int
    made: int = 0
    computed: int = 0  # tokens of prompt and answer that this admission has in the cache
    blocks: int = 0
    decodes: bool = False
    ready: bool = False
    arrival: float = math.nan
    start: float = math.nan
    first: float = math.nan
    finish: float = math.nan
    replica: int = -1
    preempted: int = 0
    tokens_at: list[float] = field(default_factory=list)


@dataclass
class Replica:
    step_times: StepTimeTable
    config: EngineConfig
    kv_blocks: int
    prefills: bool = False
    waiting: list[Request] = field(default_factory=list)
    admitted: list[Request] = field(default_factory=list)  # oldest first, a prompt that was cut anywhere
    batch: list[Request] = field(default_factory=list)  # get a token when the iteration ends
    groups: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    ends: float = math.nan  # of the iteration that runs
    busy: float = 0.0
    iterations: int = 0
    block_s: float = 0.0
    most_blocks: int = 0
    prompt_tokens: int = 0

    @property
    def used(self) -> int:
        return sum(q.blocks for q in self.admitted)

    @property
    def load(self) -> int:
        return len(self.waiting) + len(self.admitted)

    def need(self, q: Request, tokens: int) -> int:
        if self.config.reserve:
            tokens = q.input if self.prefills else q.input + q.output - 1
        return math.ceil(tokens / self.config.block)

    def fits(self, q: Request, tokens: int) -> bool:
        most = min(self.config.most_sequences, self.config.most_tokens, self.step_times.most_tokens)
        return len(self.admitted) < most and self.used + self.need(q, tokens) <= self.kv_blocks

    def decoding(self) -> list[Request]:
        return [q for q in self.admitted if q.decodes]

    def begin(self, now: float) -> None:
        config, most = self.config, min(self.config.most_tokens, self.step_times.most_tokens)
        while self.waiting and self.waiting[0].ready:
            q = self.waiting[0]
            growth = sum(self.need(x, x.computed + 1) - x.blocks for x in self.decoding())
            if len(self.admitted) >= min(config.most_sequences, most):
                break
            if self.used + growth + self.need(q, q.input + 1) > self.kv_blocks:
                break
            self.waiting.pop(0)
            if q.group >= 0:
                self.groups.add(q.group)
            q.blocks, q.computed, q.decodes = self.need(q, q.input), q.input, True
            self.admitted.append(q)
        decode, thrown = self.decoding(), False
        cut = [q for q in self.admitted if q not in decode]
        head = self.waiting[0] if self.waiting else None
        can = head is not None and not head.ready and self.fits(head, head.input + head.made)
        if not config.mixed and (cut or can):
            decode = []
        while (
            sum(q.blocks for q in self.admitted if q not in decode) + sum(self.need(q, q.computed + 1) for q in decode)
            > self.kv_blocks
        ):
            out = cut.pop() if cut else self.admitted[-1]
            self.admitted.remove(out)
            decode = [q for q in decode if q is not out]
            out.blocks, out.computed, out.ready, out.decodes, thrown = 0, 0, False, False, True
            out.preempted += 1
            self.waiting.insert(0, out)
        tokens, contexts, pairs = len(decode), sum(q.computed for q in decode), 0.0
        for q in decode:
            q.blocks, q.computed = self.need(q, q.computed + 1), q.computed + 1
        self.batch = list(decode)
        new = 0
        while not thrown or cut:
            if cut:
                q = cut.pop()
            else:
                if not self.waiting or self.waiting[0].ready or tokens >= most:
                    break
                q = self.waiting[0]
                length = q.input + q.made
                if not self.fits(q, length):
                    break
                known = q.shared if q.group in self.groups else 0
                if not config.chunked and new and tokens + length - known > most:
                    break
                self.waiting.pop(0)
                q.blocks, q.computed = self.need(q, length), known
                self.admitted.append(q)
                if math.isnan(q.start):
                    q.start = now
            left = q.input + q.made - q.computed
            chunk = min(left, most - tokens) if config.chunked else left
            pairs += chunk * (q.computed + chunk / 2)
            q.computed += chunk
            tokens, new = tokens + chunk, new + chunk
            self.prompt_tokens += chunk
            if chunk < left:
                break
            self.batch.append(q)
        step_times, last = self.step_times, self.step_times.most_tokens
        if tokens <= last:
            seconds = float(step_times.tokens_s[tokens])
        else:
            half = (last + 1) // 2
            end, middle = float(step_times.tokens_s[last]), float(step_times.tokens_s[half])
            seconds = end * tokens / last if half == last else end + (end - middle) / (last - half) * (tokens - last)
        seconds += step_times.context_s * contexts + step_times.pair_s * pairs + step_times.sequence_s * len(self.batch)
        self.ends, self.busy, self.iterations = now + seconds, self.busy + seconds, self.iterations + 1
        self.block_s += self.used * seconds
        self.most_blocks = max(self.most_blocks, self.used)

    def end(self, now: float) -> list[Request]:
        done = []
        for q in self.batch:
            if not q.decodes:  # the newest is the last to begin decoding
                self.admitted.remove(q)
                self.admitted.append(q)
            q.made, q.decodes = q.made + 1, True
            q.tokens_at.append(now)
            if q.made == 1:
                q.first = now
            if q.group >= 0:
                self.groups.add(q.group)
            if q.made == q.output or self.prefills:
                self.admitted.remove(q)
                q.decodes = False
                done.append(q)
        self.batch, self.ends = [], math.nan
        return done


def pick(pool: list[Replica], router: str, turn: int, q: Request) -> Replica:
    if router == "round_robin":
        return pool[turn % len(pool)]
    least = min(pool, key=lambda r: r.load)
    if router == "prefix" and q.group >= 0:
        friends = [r for r in pool if q.group in r.sent]
        if friends:
            friend = min(friends, key=lambda r: r.load)
            if not (friend.load > least.load + 32 and friend.load > least.load * 1.5):
                least = friend
        least.sent.add(q.group)
    return least


def reference(requests: Requests, fleet: Fleet) -> tuple[list[Request], list[Replica]]:
    """Every request and replica after the run; replicas that prefill come first."""
    asked = [
        Request(i, *(int(x[i]) for x in (requests.input, requests.output, requests.shared, requests.group)))
        for i in range(len(requests))
    ]
    decoders = [Replica(fleet.step_times, fleet.config, fleet.kv_blocks) for _ in range(fleet.replicas)]
    front, router, split = decoders, fleet.router, fleet.prefill
    if split is not None:
        router = "least_loaded"
        front = [
            Replica(split.step_times, split.config or fleet.config, split.kv_blocks, True)
            for _ in range(split.replicas)
        ]
    every = front + decoders if split is not None else decoders
    closed = requests.kind == "closed"
    fixed = [
        (float(requests.arrival_s[i]), i) for i in range(min(requests.users, len(asked)) if closed else len(asked))
    ]
    back: list[tuple[float, int]] = []
    issued = 0
    while True:
        times = [r.ends for r in every if not math.isnan(r.ends)] + [t for t, _ in fixed[:1]] + [t for t, _ in back]
        if not times:
            return asked, every
        now = min(times)
        for r in every:
            if r.ends == now:
                for q in r.end(now):
                    if r.prefills and q.output > 1:
                        move = split.transfer_s_per_token * q.input + split.transfer_latency_s
                        back.append((now + move, q.number))
                    else:
                        q.finish = now
                        if closed:
                            back.append((now, q.number))
        back.sort()
        while (fixed and fixed[0][0] == now) or (back and back[0][0] == now):
            if fixed and fixed[0][0] == now:
                fixed.pop(0)
                fresh = True
            else:
                _, number = back.pop(0)
                fresh = not math.isnan(asked[number].finish)
                if fresh and issued == len(asked):
                    continue
            if fresh:
                q, pool = asked[issued], front
                q.arrival = now
                issued += 1
            else:
                q, pool = asked[number], decoders
                q.ready = True
            chosen = pick(pool, router, issued - 1, q)
            q.replica = next(i for i, r in enumerate(every) if r is chosen)
            chosen.waiting.append(q)
        for r in every:
            if math.isnan(r.ends) and r.load:
                r.begin(now)

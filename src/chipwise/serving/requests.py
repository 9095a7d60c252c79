"""The requests of one run: when each arrives, how long it is, and what of it another request may have left behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InputError
from chipwise.io.brief import brief
from chipwise.workload.model import PICTURES
from chipwise.workload.serve import ARRIVALS, Arrival, Serve, Trace

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

GROUPS = 64  # sessions that share a prefix
ROUNDS = 4  # requests of each user of a closed loop, at least: the first of them is warm-up
OPEN = ("poisson", "bursty", "trace")


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """One run's requests in the order of their arrival."""

    arrival_s: Array  # rising; in a closed loop only the first `users` count, at time 0
    input: Whole  # tokens, at least 1
    output: Whole  # tokens, at least 1: the pass that ends the prompt gives the first
    shared: Whole  # of the input: the group's prefix, not computed where the group is known
    group: Whole  # sessions by number, -1: shares nothing
    kind: str = "poisson"  # one of ARRIVALS
    users: int = 0  # of a closed loop
    rate: float = 0.0  # requests/s that were asked for, or that a trace has; 0: no times of their own

    def __len__(self) -> int:
        return len(self.input)

    def with_users(self, users: int) -> Requests:
        """The same requests from so many users, over and over until each has sent several."""
        turn = np.arange(max(len(self), ROUNDS * users)) % len(self)
        return replace(
            self,
            arrival_s=self.arrival_s[turn],
            input=self.input[turn],
            output=self.output[turn],
            shared=self.shared[turn],
            group=self.group[turn],
            users=users,
        )

    def at_rate(self, rate: float) -> Requests:
        """The same requests, closer together or further apart: all that two rates differ in."""
        if not self.rate > 0:
            raise InputError("arrival.kind", self.kind, f"an arrival that has a rate: {', '.join(OPEN)}")
        if not rate > 0 or not np.isfinite(rate):
            raise InputError("rate", rate, "requests per second above 0")
        return replace(self, arrival_s=self.arrival_s * (self.rate / rate), rate=rate)


def given(
    arrival_s: Array | None,
    input: Array | Whole,
    output: Array | Whole,
    *,
    shared: Array | Whole | None = None,
    group: Array | Whole | None = None,
    users: int = 0,
) -> Requests:
    """Requests from arrays; without arrival times a closed loop of users, or an offline job where there are none.

    >>> given(np.array([0.0, 1.5]), np.array([100, 20]), np.array([0, 7])).output.tolist()
    [1, 7]
    """
    count = len(input)
    if count == 0:
        raise InputError("requests", 0, "at least one request")
    at = np.zeros(count) if arrival_s is None else np.asarray(arrival_s, float)
    if len(at) != count or len(output) != count:
        raise InputError("requests", f"{len(at)} arrivals, {count} inputs, {len(output)} outputs", "as many of each")
    if not np.all(np.isfinite(at)) or at[0] < 0 or np.any(np.diff(at) < 0):
        raise InputError("arrival_s", "times that fall or are no times", "seconds from 0, rising")
    prompt = np.maximum(np.asarray(input, np.int64), 1)
    prefix = np.zeros(count, np.int64) if shared is None else np.asarray(shared, np.int64)
    session = np.full(count, -1 if shared is None else 0, np.int64) if group is None else np.asarray(group, np.int64)
    kind = "trace" if arrival_s is not None else "closed" if users else "offline"
    return Requests(
        arrival_s=at,
        input=prompt,
        output=np.maximum(np.asarray(output, np.int64), 1),
        shared=np.clip(prefix, 0, prompt - 1),  # a prompt's last token is always computed: it gives the first answer
        group=session,
        kind=kind,
        users=users,
        rate=_rate(at),
    )


def draw(
    serve: Serve,
    count: int = 0,
    seed: int = 0,
    *,
    rate: float | None = None,
    users: int | None = None,
    groups: int = GROUPS,
) -> Requests:
    """Requests of a stream; gaps, inputs, outputs and groups are drawn apart, so that a rate changes no length.

    Without a count an offline job has its own, a trace is taken whole, and anything else has 10,000.
    """
    arrival = serve.arrival
    if arrival.kind not in ARRIVALS:
        raise InputError("arrival.kind", arrival.kind, f"one of {', '.join(ARRIVALS)}")
    trace = serve.trace if arrival.kind == "trace" else None
    if arrival.kind == "trace" and (trace is None or len(trace.input) == 0):
        raise InputError("arrival.trace", "none", "a trace with at least one request")
    known = len(trace.input) if trace is not None else serve.requests if arrival.kind == "offline" else 0
    number = count or known or 10_000
    if number < 1 or groups < 1:
        raise InputError("requests", min(number, groups), "at least one request and one group")
    gaps, inputs, outputs, sessions = (
        np.random.Generator(np.random.PCG64(stream)) for stream in np.random.SeedSequence(seed).spawn(4)
    )
    if trace is not None:
        turn = np.arange(number) % known
        prompt, answer = trace.input[turn], trace.output[turn]
    else:
        prompt, answer = serve.input.at(inputs.random(number)), serve.output.at(outputs.random(number))
    prompt = (
        np.ones(number) if serve.unit in PICTURES else np.maximum(np.rint(prompt), 1)
    )  # replicas count whole images
    hit = serve.prefix_hit > 0
    made = given(
        None,
        prompt,
        np.rint(answer),
        shared=np.rint(serve.prefix_hit * prompt) if hit else None,
        group=sessions.integers(0, groups, number) if hit else None,
        users=1 if arrival.kind == "closed" else 0,
    )
    if arrival.kind == "offline":
        return made
    if arrival.kind == "closed":
        crowd = arrival.users if users is None else users
        if crowd < 1:
            raise InputError("arrival.users", crowd, "at least 1 in a closed loop")
        return replace(made, users=crowd)
    wanted = arrival.rate if rate is None else rate
    if trace is not None:
        at = _repeated(trace, number)
        seen = replace(made, arrival_s=at, kind="trace", rate=_rate(at))
        return seen.at_rate(wanted) if wanted > 0 and seen.rate > 0 else seen
    if not wanted > 0 or not np.isfinite(wanted):
        raise InputError("arrival.rate", wanted, "requests per second above 0")
    at = np.cumsum(_unit_gaps(arrival, gaps, number)) / wanted
    return replace(made, arrival_s=at, kind=arrival.kind, rate=wanted)


def _rate(arrival_s: Array) -> float:
    """Requests per second from the first arrival to the last; 0: all at once."""
    span = float(arrival_s[-1] - arrival_s[0])
    return (len(arrival_s) - 1) / span if span > 0 else 0.0


def _unit_gaps(arrival: Arrival, stream: np.random.Generator, count: int) -> Array:
    """Gaps of mean 1."""
    if arrival.kind == "poisson" or arrival.burstiness == 1:
        return stream.standard_exponential(count)
    if arrival.burstiness < 0:
        raise InputError("arrival.burstiness", arrival.burstiness, "a squared coefficient of variation of at least 0")
    if arrival.burstiness == 0:
        return np.ones(count)
    return stream.gamma(1 / arrival.burstiness, arrival.burstiness, count)


def _repeated(trace: Trace, count: int) -> Array:
    """A trace's arrivals, from the start again when it is over, one mean gap later."""
    known = len(trace.arrival_s)
    at = np.asarray(trace.arrival_s, float) - float(trace.arrival_s[0])
    span = float(at[-1]) * known / max(known - 1, 1)
    turn = np.arange(count)
    return np.asarray(at[turn % known] + span * (turn // known))

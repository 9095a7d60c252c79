"""What is measured under a load: a batch that starts and ends together, users in a closed loop, an offline job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.calibration import Calibration
from chipwise.serving.coefficients import Coefficients
from chipwise.serving.requests import given
from chipwise.serving.setup import Replica, terms
from chipwise.serving.simulate import Fleet, Simulation, simulate
from chipwise.serving.steps import parts

Array = NDArray[np.float64]
Terms = Mapping[str, float]

FEWEST = 40  # requests of a closed loop that are simulated, at least


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one length (drawn from 1 - `drawn` to 1 of it), so many at once or in all."""

    kind: str  # "batch", "closed" or "offline"
    count: float  # sequences of the batch, users, or requests of the job
    input: float
    output: float
    drawn: float = 0.0
    rounds: int = 10  # requests of each user
    slots: int = 0  # most sequences at once; 0: the replica's own limit
    warm: bool = False  # what a closed loop's first round meets isn't counted


@dataclass(frozen=True, slots=True)
class Outcome:
    """Mean seconds to the first token and between tokens; output tokens per second of one replica."""

    ttft: float
    tpot: float
    throughput: float

    def of(self, metric: str) -> float:
        """The metric by name."""
        return float(getattr(self, metric))


def added(one: Terms, other: Terms, times: float = 1.0) -> dict[str, float]:
    """Terms of two pieces of work, the second done so many times."""
    return {name: one.get(name, 0.0) + times * other.get(name, 0.0) for name in {**one, **other}}


def seconds(coefficients: Coefficients, of: Terms) -> float:
    """Seconds of terms."""
    return sum(float(getattr(coefficients, name)) * value for name, value in of.items())


def iteration_terms(
    replica: Replica, tokens: float, calibration: Calibration | None, prompt: bool = False
) -> dict[str, float]:
    """What the coefficients multiply in one iteration; beyond the replica's own times, worked out again."""
    p = (replica.prompt_parts if prompt else None) or replica.parts
    if tokens <= p.tokens[-1] or calibration is None:
        return {name: float(np.interp(tokens, p.tokens, term)) for name, term in terms(p, replica.spec).items()}
    more = parts(replica.spec, calibration, np.array([max(tokens, 1.0)]), prompt=prompt)
    return {name: float(term[0]) for name, term in terms(more, replica.spec).items()}


def prompt_terms(replica: Replica, batch: float, length: float, calibration: Calibration | None) -> dict[str, float]:
    """One pass over `batch` prompts of `length` tokens."""
    p, causal = replica.prompt_parts or replica.parts, replica.model.causal_prompt
    pairs = batch * length * length * (0.5 if causal else 1.0)
    return added(iteration_terms(replica, batch * length, calibration, prompt=True), {"prompt": p.pair_s * pairs})


def decode_terms(replica: Replica, batch: float, context: float) -> dict[str, float]:
    """One token for each of `batch` sequences with this much behind them."""
    p = replica.parts
    each = {"context": batch * ((replica.slot or context) * p.context_s + p.window_s), "sequence_s": batch}
    return added(iteration_terms(replica, batch, None), each)


def batch_terms(replica: Replica, load: Load, calibration: Calibration) -> tuple[dict[str, float], dict[str, float]]:
    """Terms of a batch's prompts, and of the whole batch until its last token. Prompts alone are never captured."""
    first = prompt_terms(replica, load.count, load.input, calibration)
    if replica.chip.family != "tpu":
        first["eager_s"] = replica.parts.layers
    step = decode_terms(replica, load.count, load.input + load.output / 2)
    return first, added(first, step, max(load.output - 1, 0.0))


def lengths(load: Load, count: int) -> tuple[Array, Array]:
    """Tokens in and out of so many requests, always the same."""
    rng = np.random.Generator(np.random.PCG64(0))
    low = 1.0 - load.drawn
    share = low + load.drawn * rng.random((2, count))
    return np.maximum(np.rint(load.input * share[0]), 1.0), np.maximum(np.rint(load.output * share[1]), 1.0)


def run(replica: Replica, load: Load) -> Simulation:
    """Simulate a closed loop or an offline job on one replica."""
    closed = load.kind == "closed"
    count = max(int(load.count) * load.rounds, FEWEST) if closed else int(load.count)
    into, out = lengths(load, count)
    requests = given(None, into, out, users=int(load.count) if closed else 0)
    config = replica.config
    if load.slots:
        config = replace(config, most_sequences=load.slots)
    longest = int((into + out).max())
    blocks = replica.kv_cache.blocks(config.block, load.input + load.output)
    # what was measured did run, whatever our bookkeeping says of its memory
    return simulate(requests, Fleet(replica.step_times(), max(blocks, -(-longest // config.block)), config))


def outcome(replica: Replica, load: Load, calibration: Calibration) -> Outcome:
    """What would be measured on one replica."""
    c = replica.coefficients
    if load.kind == "batch":
        first, whole = (seconds(c, t) * replica.factor for t in batch_terms(replica, load, calibration))
        least = replica.least_prompt(load.input)
        step = replica.bound.decode(load.count, load.input)
        first, whole = max(first, least), max(whole, least + step * max(load.output - 1, 0.0))
        later = (whole - first) / max(load.output - 1, 1.0)
        return Outcome(first, later, load.count * load.output / whole)
    done = run(replica, load)
    answers = done.requests.output
    gaps = (done.finish_s - done.first_s)[answers > 1] / (answers[answers > 1] - 1)
    counted = slice(int(load.count) if load.warm and load.rounds > 1 else 0, None)
    wait = float(np.mean((done.first_s - done.arrival_s)[counted]))
    shown = c.request_s * replica.factor if load.kind == "closed" else 0.0
    if load.kind == "closed" and load.output > 1:  # with one token nobody waits for other answers' iterations
        iteration = decode_terms(replica, min(load.count, 256.0), load.input + load.output / 2)
        shown += c.stream * seconds(c, iteration) * replica.factor
    tpot = float(np.mean(gaps)) if len(gaps) else 0.0
    total = float(answers.sum()) / done.end_s
    return Outcome(wait + shown, tpot, total)

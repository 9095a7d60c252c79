"""A service and its requests in words, for tables and for records."""

from __future__ import annotations

from chipwise.predict.estimate import Estimate
from chipwise.present.numbers import plural
from chipwise.serving.formats import in_words
from chipwise.serving.service import Served, Service, ServingTarget
from chipwise.units import format_seconds
from chipwise.workload.serve import Arrival, Serve

METRICS = {"ttft": "first token (TTFT)", "tpot": "per token (TPOT)", "itl": "between tokens (ITL)", "e2e": "end to end"}


def number(value: float) -> str:
    """Three digits, thousands whole.

    >>> number(5.7569), number(0.0), number(1234.5), number(64.0)
    ('5.76', '0', '1,234', '64')
    """
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def rate(e: Estimate) -> str:
    """A rate with its interval."""
    return f"{number(e.value)} ({number(max(e.low, 0.0))} to {number(e.high)})"


def load_unit(arrival: Arrival) -> str:
    """What a load is counted in."""
    return "users" if arrival.kind == "closed" else "requests/s"


def requests_of(serve: Serve) -> str:
    """Lengths of the requests."""
    if serve.unit == "images":
        return "images"
    prompt = f"{number(serve.input.mean)} tokens in"
    return f"{prompt} and {number(serve.output.mean)} out (means)" if serve.unit == "tokens" else f"{prompt} (mean)"


def arrival_of(served: Served) -> str:
    """How the requests came."""
    r, serve = served.simulation.requests, served.service.target.workload.serve
    if r.kind == "offline":
        return f"{plural(len(r), 'request')} at once"
    if r.kind == "closed":
        return plural(r.users, "user")
    if r.kind == "trace" and serve.trace is not None:
        return f"{serve.trace.name} at {number(r.rate)} requests/s"
    kind = "Poisson" if r.kind == "poisson" else f"gaps of squared variation {serve.arrival.burstiness:g}"
    return f"{number(r.rate)} requests/s, {kind}"


def settings_of(of: Service) -> str:
    """What a replica's operator sets."""
    config, unit = of.replica.config, of.target.workload.serve.unit
    if unit == "images":
        return f"at most {config.most_sequences:,} images at once"
    if unit == "sequences":
        return f"at most {config.most_sequences:,} sequences and {config.most_tokens:,} tokens at once"
    way = "prompts ride along with decoding" if config.mixed else "prompts go first, alone"
    room = "; a request is let in when its whole answer has room" if config.reserve else ""
    return f"at most {config.most_sequences:,} sequences and {config.most_tokens:,} tokens an iteration; {way}{room}"


def mean_tokens(of: Service) -> float:
    """Tokens of cache that a request of mean length has at its end."""
    serve = of.target.workload.serve
    return serve.input.mean + serve.output.mean


def fitting(of: Service) -> float | None:
    """Sequences of mean length that a replica's cache holds; None: it keeps no cache."""
    room = of.replica.room
    return room.sequences(mean_tokens(of)) if room.caches else None


def cache_of(of: Service) -> str:
    """The cache of a replica."""
    fit, r = fitting(of), of.replica
    if fit is None:
        return "none: nothing is kept between iterations"
    return (
        f"{of.blocks(r):,} blocks of {r.config.block} tokens a replica in {r.kv_precision}: "
        f"{number(fit)} sequences of mean length, {number(mean_tokens(of))} tokens"
    )


def duration_of(served: Served) -> Estimate:
    """Seconds that an offline job takes."""
    count = served.service.target.workload.serve.requests or len(served.simulation.requests)
    return served.request_rate.inverted(count)


def deadline_of(served: Served) -> str:
    """What the job's deadline says to that; empty without one."""
    limit, took = served.service.target.workload.serve.deadline_s, duration_of(served)
    if not limit:
        return ""
    if took.value > limit:
        return f"deadline {format_seconds(limit)}: missed"
    return f"deadline {format_seconds(limit)}: kept{'' if took.high <= limit else ', but its interval ends after it'}"


def common_assumptions(at: ServingTarget) -> list[str]:
    """What is taken for granted of a place."""
    serve = at.workload.serve
    software = "named" if serve.stack else "assumed: none was named"
    cache = f", {serve.kv_precision} cache" if serve.unit == "tokens" else ""
    out = [f"software: {at.stack.name} ({software})", f"precision: {serve.precision} weights{cache}"]
    if note := in_words(at.chip, at.workload.model, serve.precision):
        out.append(note)
    if serve.slo:
        out.append("an SLO without a percentile is one for p99")
    serving, training = at.calibration.serving, at.calibration.training
    if serving.date:
        out.append(
            f"calibration of {serving.date} on {serving.rows:,} published serving rows; kernels and wires "
            f"of {training.date} on {training.rows:,}"
        )
    return out

"""A service and its requests in words, for people and for the assumptions of a record."""

from __future__ import annotations

from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Block, section
from chipwise.present.numbers import plural, rate, time_interval
from chipwise.serving.formats import in_words
from chipwise.serving.launched import flags
from chipwise.serving.observed import observed_in_words
from chipwise.serving.service import Served, Service, ServingTarget
from chipwise.units import format_seconds
from chipwise.workload.model import PICTURES
from chipwise.workload.serve import Arrival, ServingWorkload

LATENCIES = {
    "ttft": "first token (TTFT)",
    "tpot": "per token (TPOT)",
    "itl": "between tokens (ITL)",
    "e2e": "end to end",
}


def rate_interval(e: Estimate) -> str:
    """A rate with its interval."""
    return f"{rate(e.value)} ({rate(max(e.low, 0.0))} to {rate(e.high)})"


def seconds_interval(e: Estimate) -> str:
    """A time with its interval."""
    return f"{format_seconds(e.value)} ({time_interval(Estimate(e.value, max(e.low, 0.0), e.high, e.evidence))})"


def load_unit(arrival: Arrival) -> str:
    """What a load is counted in."""
    return "users" if arrival.kind == "closed" else "requests/s"


def requests_of(workload: ServingWorkload) -> str:
    """Lengths of the requests."""
    serve, model = workload.serve, workload.model
    if serve.unit in PICTURES:
        return model.pictures
    prompt = f"{rate(serve.input.mean)} tokens in"
    return f"{prompt} and {rate(serve.output.mean)} out (means)" if serve.unit == "tokens" else f"{prompt} (mean)"


def arrival_of(served: Served) -> str:
    """How the requests came."""
    requests, serve = served.simulation.requests, served.service.target.workload.serve
    if requests.kind == "offline":
        return f"{plural(len(requests), 'request')} at once"
    if requests.kind == "closed":
        return plural(requests.users, "user")
    if requests.kind == "trace" and serve.trace is not None:
        return f"{serve.trace.name} at {rate(requests.rate)} requests/s"
    kind = "Poisson" if requests.kind == "poisson" else f"gaps of squared variation {serve.arrival.burstiness:g}"
    return f"{rate(requests.rate)} requests/s, {kind}"


def settings_of(of: Service) -> str:
    """How the stack's scheduler is set."""
    config, unit = of.replica.config, of.target.workload.serve.unit
    if unit in PICTURES:
        return f"at most {config.most_sequences:,} {unit} at once"
    most = f"at most {config.most_sequences:,} sequences and {config.most_tokens:,} tokens"
    if unit == "sequences":
        return f"{most} at once"
    if of.target.workload.model.encoder is not None:
        return f"{most} an iteration; whole prompts pass the encoder, then all sequences the decoder"
    order = "chunked prefill together with decode" if config.mixed else "prefill first, decode after it"
    admission = "; a request is admitted once its whole output fits in the KV cache" if config.reserve else ""
    return f"{most} an iteration; {order}{admission}"


def cache_of(of: Service) -> str:
    """The KV cache of a replica."""
    fit, replica = of.cache_sequences, of.replica
    if fit is None:
        return "none: nothing is kept between iterations"
    return (
        f"{of.blocks(replica):,} blocks of {replica.config.block} tokens a replica in {replica.kv_precision}: "
        f"{rate(fit)} sequences of mean length, {rate(of.mean_tokens)} tokens"
    )


def use_of(served: Served) -> str:
    """How busy the replicas are."""
    m = served.measures
    prefill = f"; prefill replicas {m.busy_prefill:.0%}" if served.service.prefill is not None else ""
    return f"{m.busy:.0%} of the time busy with {rate(m.batch)} sequences an iteration{prefill}"


def command_of(of: Service) -> list[Block]:
    """The command line of one replica; nothing for stacks without one of their own."""
    command = flags(of)
    return section("Command line of one replica", [command] if command else [])


def deadline_of(served: Served) -> str:
    """What the deadline of an offline job says to its duration; empty without one."""
    limit, duration = served.service.target.workload.serve.deadline_s, served.duration
    if not limit:
        return ""
    if duration.value > limit:
        return f"; deadline {format_seconds(limit)}: missed"
    return f"; deadline {format_seconds(limit)}: met" + ("" if duration.high <= limit else ", but not by its high end")


def speculation_in_words(workload: ServingWorkload) -> list[str]:
    """What is taken for granted of speculative decoding; nothing without it."""
    speculation = workload.serve.speculation
    if speculation is None:
        return []
    given = f"{speculation}: {speculation.tokens_per_pass:.3g} tokens a pass, as you say"
    return [f"speculative decoding: {given}; no published figure with it was learned from"]


def target_assumptions(target: ServingTarget) -> list[str]:
    """What is taken for granted wherever a workload is served on a chip."""
    serve = target.workload.serve
    software = "named" if serve.stack else "assumed: none was named"
    cache = f", {serve.kv_precision} KV cache" if serve.unit == "tokens" else ""
    out = [f"software: {target.stack.name} ({software})", f"precision: {serve.precision} weights{cache}"]
    if note := in_words(target.chip, target.workload.model, serve.precision):
        out.append(note)
    out += speculation_in_words(target.workload)
    if serve.slo:
        out.append("an SLO without a percentile is one for p99")
    serving, training = target.calibration.serving, target.calibration.training
    if serving.date:
        out.append(
            f"calibration of {serving.date} on {serving.rows:,} published serving rows; kernels and wires "
            f"of {training.date} on {training.rows:,}"
        )
    return [*out, *observed_in_words(target.workload, target.chip, target.stack, target.calibration)]

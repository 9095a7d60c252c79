"""From the checked `serve` section to a Serve: what one kind of model needs, and what contradicts itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import NOTHING, Conflict, InputError, UnknownName
from chipwise.workload.model import Model
from chipwise.workload.params import count
from chipwise.workload.presets import preset, preset_names
from chipwise.workload.serve import METRICS, Arrival, Bound, Lengths, Serve, Speculation, Trace
from chipwise.workload.trace import at_rate, rate_of, read_trace

if TYPE_CHECKING:
    from chipwise.workload.serve_spec import ServeSpec

DRAFTS = ("ngram", "mtp")  # what drafts beside other models
SPECULATION = {
    "draft": "ngram, mtp or the name of a smaller model",
    "tokens": "tokens drafted for every pass such as 3",
    "acceptance": "the share of drafted tokens that your requests keep such as 0.7",
}
UNITS = {"decoder": "tokens", "encoder-decoder": "tokens", "encoder": "sequences"}
_WAYS = "one of arrival: {rate: 20}, arrival: {users: 64}, trace: file.csv and offline: {requests: 1M}"


def build_serve(spec: ServeSpec, model: Model, base: Path) -> Serve:
    """The stream of requests a checked section describes; paths in it start from `base`."""
    _only_for_its_family(spec, model)
    trace = _trace(spec, model, base)
    given, taken = _lengths(spec, model, trace)
    if trace is None:
        _within_context(given, taken, model)
    arrival = _arrival(spec, trace)
    precision = spec.precision or model.serve_precision
    return Serve(
        input=given,
        output=taken,
        arrival=arrival,
        precision=precision,
        kv_precision=spec.kv_precision or (precision if precision in ("fp16", "fp32") else "bf16"),
        prefix_hit=spec.prefix_hit or 0.0,
        slo=_slo(spec, model, taken),
        requests=spec.offline.requests if spec.offline else 0,
        deadline_s=(spec.offline.deadline or 0.0) if spec.offline else 0.0,
        passes=spec.denoise_steps or 1,
        unit=UNITS.get(model.family) or model.picture_unit or "images",
        stack=_stack(spec.stack),
        trace=at_rate(trace, arrival.rate) if trace and spec.arrival else trace,
        speculation=_speculation(spec, model),
    )


def _speculation(spec: ServeSpec, model: Model) -> Speculation | None:
    given = spec.speculation
    if given is None:
        return None
    for key, such in SPECULATION.items():
        if getattr(given, key) is None:
            raise InputError(f"serve.speculation.{key}", NOTHING, f"{such}, beside the others of speculation")
    draft, tokens, acceptance = given.draft, given.tokens, given.acceptance
    assert draft is not None and tokens is not None and acceptance is not None
    if not model.writes or model.encoder is not None:
        raise InputError("serve.speculation.draft", draft, f"nothing: only decoders speculate, not {model.name}")
    if draft in DRAFTS:
        return Speculation(draft, tokens, acceptance)
    try:
        small = preset(draft)
    except UnknownName:
        raise UnknownName("serve.speculation.draft", draft, [*DRAFTS, *preset_names()]) from None
    if small.family != "decoder":
        raise InputError("serve.speculation.draft", draft, "a decoder")
    if count(small).active >= count(model).active:
        raise InputError("serve.speculation.draft", draft, f"a model smaller than {model.name}")
    return Speculation(draft, tokens, acceptance, small)


def _only_for_its_family(spec: ServeSpec, model: Model) -> None:
    """Keys that mean nothing for a kind of model are refused rather than ignored."""
    kind = f"an {model.family}" if model.family[0] in "aeiou" else f"a {model.family}"
    images, sample = bool(model.image_tokens), model.picture_unit.removesuffix("s")
    if images and spec.input is not None:
        raise InputError("serve.input", str(spec.input), f"nothing: {kind} takes {model.picture_unit}, of one size")
    if model.fixed_input and not images and spec.input is not None:
        raise InputError(
            "serve.input", str(spec.input),
            f"nothing: {model.name} reads 30 s of audio at a time, {model.fixed_input:,} frames a request",
        )  # fmt: skip
    if model.encoder is not None and spec.prefix_hit is not None:
        raise InputError("serve.prefix_hit", spec.prefix_hit, f"nothing: {kind} reads a prompt as a whole")
    if not model.writes:
        if spec.output is not None:
            raise InputError("serve.output", str(spec.output), f"nothing: {kind} answers in one pass")
        for key in ("kv_precision", "prefix_hit"):
            if getattr(spec, key) is not None:
                raise InputError(f"serve.{key}", getattr(spec, key), f"nothing: {kind} keeps no keys and values")
    if model.denoises and spec.denoise_steps is None:
        raise InputError(
            "serve.denoise_steps",
            NOTHING,
            f"a value: passes per {sample} of {kind}, such as 50",
        )
    if not model.denoises and spec.denoise_steps is not None:
        raise InputError(
            "serve.denoise_steps", spec.denoise_steps, f"nothing: diffusion models denoise, {kind} does not"
        )


def _trace(spec: ServeSpec, model: Model, base: Path) -> Trace | None:
    if spec.trace is None:
        return None
    for key in ("input", "output"):
        if getattr(spec, key) is not None:
            raise Conflict(f"serve.{key}", "trace", "the trace has lengths")
    if spec.offline is not None:
        raise Conflict("serve.offline", "trace")
    if spec.arrival is not None and (spec.arrival.rate is None or spec.arrival.users or spec.arrival.burstiness):
        given = " and ".join(key for key in ("users", "rate", "burstiness") if getattr(spec.arrival, key) is not None)
        raise InputError("serve.arrival", given or NOTHING, "beside a trace only the rate to scale it to")
    return read_trace(base / spec.trace, model)


def _lengths(spec: ServeSpec, model: Model, trace: Trace | None) -> tuple[Lengths, Lengths]:
    none = Lengths.fixed(0)
    if model.image_tokens:
        return Lengths.fixed(model.image_tokens), none
    if trace is not None:
        return Lengths.of(trace.input), Lengths.of(trace.output) if model.writes else none
    given = Lengths.fixed(model.fixed_input) if model.fixed_input else spec.input
    if given is None:
        raise InputError("serve.input", NOTHING, "tokens of a prompt such as 1000 or {p50: 900, p99: 8000}, or a trace")
    if not model.writes:
        return given, none
    if spec.output is None:
        raise InputError("serve.output", NOTHING, "tokens of an answer such as 300 or {p50: 200, p99: 900}, or a trace")
    return given, spec.output


def _within_context(given: Lengths, taken: Lengths, model: Model) -> None:
    if model.encoder is not None:  # encoder and decoder have positions of their own
        for field, lengths in {"serve.input": given, "serve.output": taken}.items():
            most = lengths.most
            if model.context and most > model.context and not (field == "serve.input" and model.fixed_input):
                raise InputError(
                    field, f"{most:,.0f} tokens at the longest",
                    f"at most the {model.context:,} tokens {model.name} takes (model.context changes that)",
                )  # fmt: skip
        return
    longest = given.most + taken.most
    if model.context and longest > model.context:
        field = "serve.input + serve.output" if taken.most else "serve.input"
        raise InputError(
            field, f"{longest:,.0f} tokens at the longest",
            f"at most the {model.context:,} tokens {model.name} takes (model.context changes that)",
        )  # fmt: skip


def _arrival(spec: ServeSpec, trace: Trace | None) -> Arrival:
    """Exactly one kind."""
    given = spec.arrival
    if spec.offline is not None:
        if given is not None:
            raise InputError("serve", "arrival and offline", _WAYS)
        return Arrival("offline")
    if trace is not None:
        return Arrival("trace", rate=given.rate if given and given.rate else rate_of(trace))
    if given is None:
        raise InputError("serve.arrival", NOTHING, _WAYS)
    if (given.users is None) == (given.rate is None):
        shown = "users and rate" if given.users is not None else NOTHING
        raise InputError("serve.arrival", shown, "either users, such as 64, or a rate in requests/s, such as 20")
    if given.rate is None:
        if given.burstiness is not None:
            raise InputError("serve.arrival.burstiness", given.burstiness, "a rate beside it, not users")
        return Arrival("closed", users=given.users or 0)
    burstiness = given.burstiness or 1.0
    return Arrival("poisson" if burstiness == 1 else "bursty", rate=given.rate, burstiness=burstiness)


def _slo(spec: ServeSpec, model: Model, taken: Lengths) -> tuple[Bound, ...]:
    if spec.slo is None:
        return ()
    bounds = tuple(Bound(metric, percentile, seconds) for metric in METRICS
                   for percentile, seconds in getattr(spec.slo, metric) or ())  # fmt: skip
    if bounds and spec.offline is not None:
        raise Conflict("serve.slo", "offline", "its SLO is offline.deadline")
    for bound in bounds:
        if not model.writes and bound.metric != "e2e":
            raise InputError(f"serve.slo.{bound.metric}", str(bound), f"e2e: {model.name} answers in one pass")
        if bound.metric in ("tpot", "itl") and taken.most < 2:
            raise InputError(f"serve.slo.{bound.metric}", str(bound), "answers of two tokens or more: one has no gap")
    return bounds


def _stack(name: str | None) -> str:
    """The catalog's name of a stack that serves, with its version where one is named."""
    from chipwise.catalog.names import serving_stack

    if not name:
        return ""
    _, apart, version = name.partition("@")
    return serving_stack(name, "serve.stack").id + apart + version.strip()

"""The `serve` section of the workload file, as pydantic checks it: every key, its bounds and what it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from chipwise.units import parse_rate, parse_share
from chipwise.workload.fields import (
    COUNT_JSON,
    COUNT_TEXT,
    DURATION_JSON,
    Count,
    FilePath,
    Label,
    StackRelease,
    Strict,
    number_of,
    precision_of,
    read,
    seconds_of,
    tokens_of,
)
from chipwise.workload.model import SPELLINGS

MOST_TOKENS = 10**9  # of one request
USUAL_PERCENTILE = 99.0  # what an SLO without a percentile means
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d{1,6})?)", re.ASCII)
_P_PATTERN = r"^p[0-9]{1,3}(\.[0-9]{1,6})?$"
_LENGTHS = "tokens such as 1000, percentiles such as {p50: 900, p99: 8000}, or {mean: 1000, cv: 0.5}"
_BOUND = "a duration such as 500ms, 0.5s or 2 (seconds), or percentiles such as {p90: 40ms, p99: 60ms}"
_DURATION = "a duration such as 90s, 6h or 2d, below a century"
_SHARE = "a share from 0 to 1"
_ACCEPTANCE = "a share of drafted tokens from 0 to 1"
_RATE = "requests per second above 0, up to 1e9"
_BURSTINESS = "a number above 0, up to 10,000: 1 is Poisson"


def _percentiles(value: Mapping[Any, Any], accepted: str) -> list[tuple[float, str, Any]]:
    """(percentile, its key, the value) of each entry, lowest first."""
    found = []
    for key, inside in value.items():
        match = _PERCENTILE.fullmatch(key) if isinstance(key, str) else None
        if match is None or float(match[1]) > 100:
            raise ValueError(accepted)
        found.append((float(match[1]), key, inside))
    found.sort(key=lambda each: each[0])
    if not found:
        raise ValueError(accepted)
    for (low, first, _), (high, second, _) in pairwise(found):
        if low == high:
            raise ValueError(f"each percentile once: {first} and {second} are the same")
    return found


def _rising(found: list[tuple[float, str, float]]) -> None:
    for (_, low, before), (_, high, after) in pairwise(found):
        if after < before:
            raise ValueError(f"percentiles that rise: {high} ({after:g}) is below {low} ({before:g})")


def _tokens(value: Any) -> float:
    try:
        tokens = tokens_of(value)
    except ValueError as error:
        raise ValueError(_LENGTHS if str(error) == COUNT_TEXT else str(error)) from None
    if tokens > MOST_TOKENS:
        raise ValueError(f"at most {MOST_TOKENS:,} tokens")
    return float(tokens)


def _lengths(value: Any) -> Any:
    """Lengths of requests, however they are written."""
    from chipwise.workload.serve import Lengths

    if not isinstance(value, Mapping):
        return Lengths.fixed(_tokens(value))
    if "mean" in value or "cv" in value:
        if set(value) != {"mean", "cv"}:
            raise ValueError("both mean and cv, and nothing else")
        cv = number_of(value["cv"], "a cv above 0, up to 10: the standard deviation over the mean")
        if not 0 < cv <= 10:
            raise ValueError("a cv above 0, up to 10: the standard deviation over the mean")
        return Lengths.lognormal(_tokens(value["mean"]), cv)
    found = [(percent, key, _tokens(inside)) for percent, key, inside in _percentiles(value, _LENGTHS)]
    _rising(found)
    return Lengths(tuple((percent / 100, tokens) for percent, _, tokens in found))


def _slo_bound(value: Any) -> Any:
    """(percentile, seconds) of one metric."""
    if not isinstance(value, Mapping):
        return ((USUAL_PERCENTILE, seconds_of(value, _BOUND)),)
    found = [(percent, key, seconds_of(inside, _BOUND)) for percent, key, inside in _percentiles(value, _BOUND)]
    if found[0][0] <= 0 or found[-1][0] > 99.99:
        raise ValueError("percentiles above p0, up to p99.99")
    _rising(found)
    return tuple((percent, seconds) for percent, _, seconds in found)


def _between(
    accepted: str, most: float, *, zero: bool = False, parse: Callable[[object], float] | None = None
) -> BeforeValidator:
    def check(value: Any) -> float:
        number = read(parse, value, accepted) if parse else number_of(value, accepted)
        if number > most or number < 0 or (number == 0 and not zero):
            raise ValueError(accepted)
        return number

    return BeforeValidator(check)


def _by_percentile(inside: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object", "minProperties": 1, "additionalProperties": False,
        "patternProperties": {_P_PATTERN: {"anyOf": inside}},
    }  # fmt: skip


_LENGTHS_JSON: dict[str, Any] = {"anyOf": [*COUNT_JSON, _by_percentile(COUNT_JSON), {
    "type": "object", "required": ["mean", "cv"], "additionalProperties": False,
    "properties": {
        "mean": {"anyOf": COUNT_JSON, "description": "Mean tokens."},
        "cv": {"type": "number", "exclusiveMinimum": 0, "maximum": 10,
               "description": "Standard deviation over the mean."},
    },
}]}  # fmt: skip
LengthsField = Annotated[Any, BeforeValidator(_lengths), WithJsonSchema(_LENGTHS_JSON)]
SloBound = Annotated[
    tuple[tuple[float, float], ...],
    BeforeValidator(_slo_bound),
    WithJsonSchema({"anyOf": [*DURATION_JSON, _by_percentile(DURATION_JSON)]}),
]
Duration = Annotated[
    float, BeforeValidator(lambda value: seconds_of(value, _DURATION)), WithJsonSchema({"anyOf": DURATION_JSON})
]
Users = Annotated[Count, Field(le=10**6)]


class ArrivalSpec(Strict):
    """How requests come: users who wait for answers, or a rate."""

    users: Users | None = Field(
        None, description="Closed loop: so many users, each sends its next request when the last one is answered."
    )
    rate: Annotated[float, _between(_RATE, 1e9, parse=parse_rate), Field(gt=0, le=1e9)] | None = Field(
        None, description="Requests per second, whether or not earlier ones are answered."
    )
    burstiness: Annotated[float, _between(_BURSTINESS, 1e4), Field(gt=0, le=1e4)] | None = Field(
        None, description="With a rate: squared coefficient of variation of the gaps; default: 1, Poisson arrivals."
    )


class SloSpec(Strict):
    """The SLO: a bound on each metric, of its 99th percentile unless percentiles are given."""

    ttft: SloBound | None = Field(None, description="Time to the first token.")
    tpot: SloBound | None = Field(None, description="Time per later token, the mean over an answer.")
    itl: SloBound | None = Field(None, description="Every gap between two tokens.")
    e2e: SloBound | None = Field(None, description="Time to the whole answer.")


class OfflineSpec(Strict):
    """A batch of requests that are all there at the start."""

    requests: Count = Field(description="Requests of the whole job.")
    deadline: Duration | None = Field(None, description="When the last one must be answered, such as 6h.")


_WEIGHTS = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int8w", "int4", "fp4"]
Precision = Annotated[
    _WEIGHTS,
    BeforeValidator(precision_of),
    WithJsonSchema({"enum": [*get_args(_WEIGHTS), *SPELLINGS], "type": "string"}),
]


class SpeculationSpec(Strict):
    """Speculative decoding: tokens drafted ahead, checked by one pass of the model."""

    draft: Label | None = Field(
        None, description="What drafts: ngram (the prompt itself), mtp (a layer of the model's own, MTP or EAGLE), "
        "or the name of a smaller model."
    )  # fmt: skip
    tokens: Annotated[Count, Field(ge=1, le=16)] | None = Field(None, description="Tokens drafted for every pass.")
    acceptance: Annotated[float, _between(_ACCEPTANCE, 1, zero=True, parse=parse_share), Field(ge=0, le=1)] | None = (
        Field(None, description="Share of drafted tokens that are kept, 0 to 1, as measured on your own requests.")
    )


class ServeSpec(Strict):
    """What the model must answer, and how soon."""

    input: LengthsField | None = Field(
        None, description="Tokens of a prompt (decoder) or sequence (encoder): a number, percentiles, or mean and cv."
    )
    output: LengthsField | None = Field(
        None, description="Tokens of an answer, decoders only: a number, percentiles, or mean and cv."
    )
    trace: FilePath | None = Field(
        None,
        description="CSV of requests, relative to this file, with columns arrival_s, input and output (decoder), "
        "arrival_s and input (encoder) or arrival_s (images); instead of input, output and arrival.",
    )
    arrival: ArrivalSpec | None = Field(
        None, description="How requests come; beside a trace, the rate its timestamps are scaled to."
    )
    offline: OfflineSpec | None = Field(None, description="Instead of arrival: a job of so many requests.")
    precision: Precision | None = Field(
        None,
        description="Precision of the weights, mxfp4 and nvfp4 as fp4; int8w and int4 are weights alone, products run "
        "in 16 bits. Default: what the model is published in.",
    )
    kv_precision: Literal["bf16", "fp16", "fp8", "int8", "fp32"] | None = Field(
        None, description="Precision of cached keys and values; default: that of activations, whatever the weights: "
        "bf16, or fp16 and fp32 where the weights are."
    )  # fmt: skip
    prefix_hit: Annotated[float, _between(_SHARE, 1, zero=True, parse=parse_share), Field(ge=0, le=1)] | None = Field(
        None, description="Share of input tokens found in the prefix cache, 0 to 1; default: 0."
    )
    slo: SloSpec | None = Field(
        None, description="The SLO: bounds on latency; a bare duration bounds the 99th percentile."
    )
    denoise_steps: Annotated[Count, Field(le=10**4)] | None = Field(
        None, description="Passes per image of a dit, which needs it."
    )
    speculation: SpeculationSpec | None = Field(None, description="Speculative decoding; default: none. Decoders only.")
    stack: StackRelease | None = Field(
        None,
        description="Software stack that serves, such as vllm, sglang, tensorrt-llm, jetstream, or vllm@0.6 of then.",
    )

"""What must be served: requests of some lengths, arriving somehow, within an SLO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import InputError
from chipwise.units import format_count, format_seconds
from chipwise.workload.model import KV_PRECISIONS as KV_PRECISIONS
from chipwise.workload.model import SERVE_PRECISIONS as SERVE_PRECISIONS
from chipwise.workload.model import Model

Array = NDArray[np.float64]

METRICS = ("ttft", "tpot", "itl", "e2e")  # first token, mean later gap, every gap, whole request
_SHARES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
ARRIVALS = ("closed", "poisson", "bursty", "trace", "offline")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of a request: (share of requests that are shorter, tokens), rising; one pair is a fixed length."""

    percentiles: tuple[tuple[float, float], ...]

    @classmethod
    def fixed(cls, tokens: float) -> Lengths:
        """Every request the same."""
        return cls(((0.5, float(tokens)),))

    @classmethod
    def lognormal(cls, mean: float, cv: float) -> Lengths:
        """Of that mean and standard deviation over it; the tail ends at the last percentile, the mean is kept.

        >>> sizes = Lengths.lognormal(1000, 0.5)
        >>> round(sizes.mean, -1), round(sizes.most, -2)
        (1000.0, 3800.0)
        """
        sigma = float(np.sqrt(np.log1p(cv**2)))
        shape = cls(tuple((share, float(np.exp(sigma * NormalDist().inv_cdf(share)))) for share in _SHARES))
        for _ in range(8):  # whole tokens, of which there is at least one, shift the mean of short requests
            scale = mean / shape.mean
            shape = cls(tuple((share, max(tokens * scale, 1.0)) for share, tokens in shape.percentiles))
        return shape

    @classmethod
    def of(cls, seen: Array) -> Lengths:
        """Of requests that were seen."""
        shares = (0.0, *_SHARES, 1.0)
        return cls(tuple(zip(shares, np.quantile(seen, shares).tolist(), strict=True)))

    def at(self, share: Array) -> Array:
        """Whole tokens at these shares of the distribution, between the percentiles in proportion of their logarithms.

        >>> Lengths(((0.5, 100.0), (0.9, 400.0))).at(np.array([0.0, 0.5, 0.7, 1.0])).tolist()
        [100.0, 100.0, 200.0, 400.0]
        """
        shares = [share for share, _ in self.percentiles]
        logs = [np.log(max(tokens, 1e-9)) for _, tokens in self.percentiles]
        return np.asarray(np.rint(np.exp(np.interp(share, shares, logs))))

    def __str__(self) -> str:
        if len(self.percentiles) == 1:
            return f"{self.most:g} tokens"
        return " ".join(f"p{share * 100:g}: {tokens:.0f}" for share, tokens in self.percentiles)

    @property
    def mean(self) -> float:
        """Mean tokens of a request."""
        return _mean(self)

    @property
    def most(self) -> float:
        """The longest."""
        return self.percentiles[-1][1]


@lru_cache(maxsize=256)
def _mean(lengths: Lengths) -> float:
    return float(lengths.at((np.arange(1000) + 0.5) / 1000).mean())  # asked for in every run


@dataclass(frozen=True, slots=True)
class Arrival:
    """How requests come."""

    kind: str  # one of ARRIVALS
    rate: float = 0.0  # requests/s, open arrivals
    users: int = 0  # closed loop: each sends its next request when the last one is answered
    burstiness: float = 1.0  # squared coefficient of variation of the gaps; 1 is Poisson


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests that were seen: seconds from the first, tokens in and out."""

    name: str
    arrival_s: Array
    input: Array
    output: Array


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound of an SLO: this percentile of this metric stays within these seconds."""

    metric: str  # one of METRICS
    percentile: float  # 50, 90, 99...
    seconds: float

    def __str__(self) -> str:
        return f"{self.metric} p{self.percentile:g} <= {self.seconds * 1e3:g} ms"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"metric": self.metric, "percentile": self.percentile, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Speculation:
    """Tokens drafted ahead for every sequence and checked by one pass of the model (Leviathan et al., 2211.17192)."""

    draft: str  # "ngram", "mtp", or the name of a smaller model
    tokens: int  # drafted for each pass
    acceptance: float  # share of drafted tokens that are kept, of those behind kept ones alone
    model: Model | None = None  # that drafts, where one does

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a pass of the model gives a sequence on average: those kept, and one of its own.

        >>> Speculation("mtp", 3, 0.0).tokens_per_pass, Speculation("mtp", 3, 1.0).tokens_per_pass
        (1.0, 4.0)
        """
        return float(sum(self.acceptance**i for i in range(self.tokens + 1)))

    def __str__(self) -> str:
        return f"{self.tokens} by {self.draft}, {self.acceptance:g} of them accepted"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "draft": self.draft,
            "tokens": self.tokens,
            "acceptance": self.acceptance,
            "tokens_per_pass": self.tokens_per_pass,
        }


@dataclass(frozen=True, slots=True)
class Serve:
    """A stream of requests and their SLO."""

    input: Lengths
    output: Lengths  # 0 tokens for models that answer in one pass
    arrival: Arrival
    precision: str = "bf16"
    kv_precision: str = "bf16"
    prefix_hit: float = 0.0  # share of input tokens whose keys and values are in the prefix cache already
    slo: tuple[Bound, ...] = ()
    requests: int = 0  # of an offline job; 0: not said
    deadline_s: float = 0.0  # of an offline job; 0: none
    passes: int = 1  # denoising steps of a diffusion model
    unit: str = "tokens"  # "tokens", "sequences", "images" or "videos": what is counted
    stack: str = ""  # software stack, empty: not said
    trace: Trace | None = None
    speculation: Speculation | None = None

    @property
    def request_tokens(self) -> float:
        """Tokens of a request on average, of its prompt and its answer."""
        return self.input.mean + self.output.mean


@dataclass(frozen=True, slots=True, repr=False)
class ServingWorkload:
    """A named stream of requests to a model."""

    name: str
    model: Model
    serve: Serve

    def __repr__(self) -> str:
        return f"<ServingWorkload {self.name!r}>"

    @property
    def unit(self) -> str:
        """What is answered: tokens of a model that writes, else sequences, images or videos."""
        return "tokens" if self.model.writes else self.serve.unit

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        s, a = self.serve, self.serve.arrival
        return {
            "name": self.name,
            "model": self.model.name,
            "family": self.model.family,
            "precision": s.precision,
            "kv_precision": s.kv_precision if self.unit == "tokens" else None,
            "input_tokens": s.input.mean,
            "output_tokens": s.output.mean,
            "arrival": a.kind,
            "rate": a.rate or None,
            "users": a.users or None,
            "burstiness": a.burstiness,
            "trace": s.trace.name if s.trace else None,
            "prefix_hit": s.prefix_hit,
            "speculation": s.speculation.to_dict() if s.speculation else None,
            "slo": [bound.to_dict() for bound in s.slo],
            "requests": s.requests or None,
            "deadline_seconds": s.deadline_s or None,
            "denoise_steps": s.passes,
            "unit": self.unit,
        }


def job_in_words(workload: ServingWorkload) -> str:
    """How much an offline job is: its requests, and the tokens of their prompts and answers."""
    serve = workload.serve
    requests = f"{serve.requests:,} request{'' if serve.requests == 1 else 's'}"
    if workload.unit not in ("tokens", "sequences"):
        return requests
    return f"{requests} ({format_count(serve.requests * serve.request_tokens)} tokens, prompts and answers alike)"


def with_deadline(workload: ServingWorkload, seconds: float) -> ServingWorkload:
    """An offline job with that deadline, in place of its own."""
    serve = workload.serve
    if serve.arrival.kind != "offline" or not serve.requests:
        text = "an offline job with a number of requests: a service has no end"
        raise InputError("deadline", format_seconds(seconds), text)
    return replace(workload, serve=replace(serve, deadline_s=seconds))

"""A workload served somewhere: the replica, how many of them, and what their users would see, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from chipwise.catalog import Accelerators, Chip, Stack, default_stack, plain_stack
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.names import serving_stack
from chipwise.catalog.stacks import released, runs_on
from chipwise.errors import DoesNotFit, InputError, Refusal
from chipwise.io.brief import brief
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.fabric import send_seconds
from chipwise.predict.site import slice_for, wires
from chipwise.present.numbers import plural
from chipwise.serving.coefficients import OPEN_LOAD
from chipwise.serving.distance import place_of
from chipwise.serving.estimates import Correction, correction, unlearned
from chipwise.serving.first_tokens import open_correction
from chipwise.serving.formats import formats
from chipwise.serving.limits import DEFAULT_ROUTER
from chipwise.serving.loads import Load, decode_terms, prompt_terms, seconds
from chipwise.serving.measures import Measures, SloCheck, Spread, measure
from chipwise.serving.memory import cache_bytes
from chipwise.serving.observed import group_at, with_observed
from chipwise.serving.requests import OPEN, Requests
from chipwise.serving.residuals import point
from chipwise.serving.setup import Replica, set_up
from chipwise.serving.simulate import Fleet, Prefill, Simulation, simulate
from chipwise.serving.spec import ReplicaSpec
from chipwise.serving.speculation import check_speculation
from chipwise.serving.split import Split
from chipwise.serving.step_times import EngineConfig
from chipwise.workload.model import Model
from chipwise.workload.serve import Bound, ServingWorkload

PASS_S = 1e-3  # on the way to a server that answers in one pass, and back: no tokeniser, no stream. Assumed.
UNSPECULATIVE = "no published figure with speculative decoding was learned from"
USUAL = 32.0  # sequences at once at which published rows near a service are looked up, before a run tells how many
OFFLINE = 3_000.0  # requests of an offline job at which they are (most published ones have so many)


@brief
@dataclass(frozen=True, slots=True)
class ServingTarget:
    """What every service of a workload on one kind of chip shares."""

    workload: ServingWorkload
    chip: Chip
    stack: Stack
    calibration: Calibration


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Service:
    """Equal replicas of a model behind a router."""

    target: ServingTarget
    replica: Replica
    replicas: int
    router: str
    corrections: Mapping[str, Correction]
    prefill: Replica | None = None  # replicas of their own for prompts
    prefill_replicas: int = 0
    at_once: float = USUAL  # sequences that a replica has at once

    def __repr__(self) -> str:
        return f"<Service {self.replicas} replicas of {self.target.workload.model.name!r} on {self.replica.chip.id}>"

    @property
    def chips(self) -> int:
        """All chips."""
        apart = self.prefill.split.chips * self.prefill_replicas if self.prefill else 0
        return self.replica.split.chips * self.replicas + apart

    @property
    def accelerators(self) -> Accelerators:
        """All chips, in their most cubic slice where they are TPUs."""
        return slice_for(self.target.chip, self.chips)

    def __str__(self) -> str:
        split = self.replica.split
        if self.prefill is not None:
            prefill = plural(self.prefill_replicas, "replica")
            return f"{prefill} for prefill and {self.replicas:,} for decode, each of {split}"
        return f"{plural(self.replicas, 'replica')} of {split}"

    def fleet(self) -> Fleet:
        """What is simulated."""
        r = self.replica
        apart = None
        if self.prefill is not None:
            p = self.prefill
            apart = Prefill(p.step_times(), self.blocks(p), self.prefill_replicas, p.config, *self._transfer())
        return Fleet(r.step_times(), self.blocks(r), r.config, self.replicas, self.router, apart)

    def _transfer(self) -> tuple[float, float]:
        """Seconds to move the cache of one prompt token, and to start, from one replica to another."""
        assert self.prefill is not None
        r = self.replica
        links = wires(slice_for(r.chip, max(self.chips, 2)), self.target.calibration)
        fmt = formats(r.chip, r.model, r.precision, r.kv_precision)
        each = cache_bytes(r.model, fmt, r.split)[0]  # every chip sends its part at once
        size, far = 1e6, np.asarray(float(self.prefill.split.chips))
        start = float(send_seconds(links, far, np.asarray(0.0)))
        return (float(send_seconds(links, far, np.asarray(size))) - start) / size * each, start

    @property
    def shown_s(self) -> float:
        """What comes on top of the replica's first token: the way in, and the iterations until it is streamed."""
        r, serve = self.replica, self.target.workload.serve
        if not r.model.writes:
            return PASS_S
        step = decode_terms(r, self.at_once, serve.input.mean + serve.output.mean / 2)
        shown = r.coefficients.request_s + r.coefficients.stream * seconds(r.coefficients, step)
        if r.split.pp > 1:  # iterations keep all stages busy at once, but a prompt passes one after the other
            shown += (r.split.pp - 1) * seconds(r.coefficients, prompt_terms(r, 1.0, serve.input.mean, None))
        return shown * r.factor

    def with_replicas(self, count: int) -> Service:
        """The same with another number of replicas."""
        return replace(self, replicas=count)

    def slower(self, factor: float) -> Service:
        """The same with every time of its replicas multiplied."""
        apart = self.prefill.slower(factor) if self.prefill is not None else None
        return replace(self, replica=self.replica.slower(factor), prefill=apart)

    @property
    def mean_tokens(self) -> float:
        """Tokens that a request stores, on average."""
        serve = self.target.workload.serve
        return max(serve.input.mean + serve.output.mean, 1.0)

    @property
    def cache_sequences(self) -> float | None:
        """Sequences of mean length that the KV cache of a replica holds; None: it keeps none."""
        budget = self.replica.kv_cache
        return budget.sequences(self.mean_tokens) if budget.caches else None

    def blocks(self, r: Replica) -> int:
        """Blocks of a replica's KV cache, by sequences of mean length."""
        return r.kv_cache.blocks(r.config.block, self.mean_tokens)


def stack_of(workload: ServingWorkload, chip: Chip, name: str = "") -> Stack:
    """The stack named, or the chip's usual one; refused where it doesn't run there or doesn't serve."""
    text = name or workload.serve.stack
    if text:
        named = serving_stack(text)
        if not runs_on(named, chip):
            runs = " and ".join(f"{kind} chips" for kind in named.vendors or named.families)
            raise Refusal(f"{named.name} does not run on {chip.id}", f"it runs on {runs}")
        return released(named, chip.family, named.release)
    # vLLM serves Whisper on GPUs, and no T5 (its list of supported models)
    hears = bool(workload.model.encoder and workload.model.encoder.mels) and chip.family == "gpu"
    if workload.model.family == "decoder" or hears:
        return default_stack(chip, "serve")
    return plain_stack(chip, "serve")


def serving_target(workload: ServingWorkload, chip: Chip, calibration: Calibration, stack: str = "") -> ServingTarget:
    """Where a workload is served, before it is split; refused where its stack can't draft as it asks."""
    software = stack_of(workload, chip, stack)
    check_speculation(workload.serve.speculation, software, chip)
    return ServingTarget(workload, chip, software, calibration)


def replica_with_corrections(
    target: ServingTarget, split: Split, config: EngineConfig | None = None
) -> tuple[Replica, dict[str, Correction]]:
    """One replica with what published rows near it say; a `Refusal` where it can't be."""
    serve = target.workload.serve
    longest = serve.input.most + serve.output.most
    kind = serve.arrival.kind
    offline = kind == "offline"
    spec = ReplicaSpec(
        target.workload.model,
        target.chip,
        split,
        serve.precision,
        serve.kv_precision,
        target.stack,
        load="offline" if offline else OPEN_LOAD if kind in OPEN else "online",
        longest=longest,
        typical=serve.input.mean + serve.output.mean / 2,
        speculation=serve.speculation,
    )
    replica = set_up(spec, target.calibration, config)
    if replica.kv_cache.sequences(longest) < 1:
        raise DoesNotFit(
            f"the KV cache of {split.chips} {target.chip.id} holds {replica.kv_cache.tokens(longest):,.0f} tokens, the "
            f"longest request needs {longest:,.0f}",
            "more chips per replica, a smaller cache precision or shorter requests would do",
        )
    near = _possible(replica, corrections(target, split, OFFLINE if offline else USUAL), serve.input.mean)
    return replace(replica, factor=near["tpot"].factor, passes=serve.passes), near


def _possible(replica: Replica, near: dict[str, Correction], prompt: float) -> dict[str, Correction]:
    """Corrections without what would put a first token before the prompt's FLOPs at peak: that one is refused."""
    if replica.model.family != "decoder":
        return near
    prompt = min(prompt, float(replica.parts.tokens[-1]))  # as far as there are times
    modelled = seconds(replica.coefficients, prompt_terms(replica, 1.0, prompt, None))
    least = replica.least_prompt(prompt) / modelled
    first = near["ttft"]
    if first.factor >= least:
        return near
    why = f"{first.because}; its factor of {first.factor:.2f} is refused: a prompt would beat the chip's peak"
    return {**near, "ttft": replace(first, factor=max(1.0, least), because=why)}


def corrections(target: ServingTarget, split: Split, count: float) -> dict[str, Correction]:
    """What published rows say of a replica with so many sequences at once; an offline job has one answer to all."""
    serve, model = target.workload.serve, target.workload.model
    offline = serve.arrival.kind == "offline"
    near = Load("offline" if offline else "closed", count, max(serve.input.mean, 1.0), max(serve.output.mean, 1.0))
    here = point(model, target.chip, split, target.stack, serve.precision, near)
    language = model.family == "decoder"
    metrics = {"tpot": "throughput", "ttft": "throughput"} if offline else {"tpot": "tpot", "ttft": "ttft"}
    place = place_of(target.chip, target.stack, near.kind)
    learned = target.calibration.serving
    out = {
        name: correction(learned, metric, "scheduled", place, target.chip.family, here, language)
        for name, metric in metrics.items()
    }
    if language and serve.arrival.kind in OPEN:
        out["ttft"] = open_correction(learned, place, out["tpot"], out["ttft"])
    out = with_observed(out, group_at(target.workload, target.chip, target.stack, target.calibration), target.chip.id)
    if serve.speculation is not None:
        return {name: unlearned(learned, metrics[name], c, UNSPECULATIVE) for name, c in out.items()}
    return out


def can_prefill_apart(model: Model, text: str) -> None:
    """Refuse replicas of their own for prompts where a model has nothing to send on, or to decode."""
    if model.encoder is not None:
        raise InputError("disaggregate", text, "a decoder: no stack sends an encoder's output on")
    if not model.writes:
        raise InputError("disaggregate", text, "a model that writes: there is nothing to decode")


def service(
    target: ServingTarget,
    split: Split,
    replicas: int = 1,
    router: str = DEFAULT_ROUTER,
    config: EngineConfig | None = None,
    disaggregate: tuple[int, int] | None = None,
) -> Service:
    """Replicas behind a router; `disaggregate` gives so many of them to prefill and the others to decode."""
    replica, near = replica_with_corrections(target, split, config)
    if disaggregate is None:
        return Service(target, replica, replicas, router, near)
    prompts, decoding = disaggregate
    if min(prompts, decoding) < 1:
        raise InputError("disaggregate", f"{prompts}:{decoding}", "at least one replica on each side, such as 2:6")
    can_prefill_apart(target.workload.model, f"{prompts}:{decoding}")
    return Service(target, replica, decoding, router, near, replica, prompts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Served:
    """A service under a load: what was simulated, and every latency with the interval of model and run together."""

    service: Service
    simulation: Simulation
    measures: Measures  # as simulated
    ttft: Spread
    tpot: Spread | None
    itl: Spread | None
    e2e: Spread
    token_rate: Estimate
    request_rate: Estimate

    def __repr__(self) -> str:
        return f"<Served {self.request_rate.value:.3g} requests/s, {self.token_rate.value:.3g} tokens/s>"

    @property
    def offline(self) -> bool:
        """Whether all requests were there from the start: a job, not a stream."""
        return self.simulation.requests.kind == "offline"

    @property
    def duration(self) -> Estimate:
        """Seconds that all requests of an offline job take."""
        count = self.service.target.workload.serve.requests or len(self.simulation.requests)
        return self.request_rate.inverted(count)

    @property
    def joules(self) -> Estimate:
        """Energy of an output token or of a request; the ends as if all of it grew with the time."""
        value = self.measures.joules_per_token
        return self.service.corrections["tpot"].around(value, value, value)

    @property
    def user_rate(self) -> float:
        """Output that one user sees, 1/s: of tokens, or of whole answers where a model gives them in one pass."""
        seconds = self.tpot.mean.value if self.tpot else self.e2e.mean.value
        return 1 / seconds if seconds > 0 else inf


def settled(of: Service, served: Served) -> Service:
    """The service with what published rows say at the number of sequences that a run had at once."""
    if served.offline:
        return of
    waiting = max(served.measures.in_system / of.replicas, 1.0)
    near = corrections(of.target, of.replica.split, waiting)
    near = _possible(of.replica, near, of.target.workload.serve.input.mean)
    change = near["tpot"].factor / of.corrections["tpot"].factor
    at_once = min(waiting, float(of.replica.config.most_sequences))
    return replace(of.slower(change), corrections=near, at_once=at_once)


def run(
    of: Service,
    requests: Requests | None = None,
    *,
    count: int = 0,
    seed: int = 0,
    rate: float | None = None,
    users: int | None = None,
    settle: bool = False,
) -> Served:
    """Serve the workload's requests (or these); `settle`: and again with what is known at the load they made."""
    if settle:
        before = run(of, requests, count=count, seed=seed, rate=rate, users=users)
        return run(settled(of, before), requests, count=count, seed=seed, rate=rate, users=users)
    serve = of.target.workload.serve
    what = serve if requests is None else requests
    done = simulate(what, of.fleet(), count=count, seed=seed, rate=rate, users=users)
    tpot, ttft = of.corrections["tpot"], of.corrections["ttft"]
    shown_s = of.shown_s
    m = _told(measure(done, tuple(inside(b, of) for b in serve.slo)), serve.slo, of)
    first = _moved(m.ttft, shown_s, ttft.factor / tpot.factor, ttft)
    later = _moved(m.tpot, 0.0, 1.0, tpot) if m.tpot else None
    gaps = _moved(m.itl, 0.0, 1.0, tpot) if m.itl else None
    whole = _moved(m.e2e, shown_s, 1.0, tpot if m.tpot else ttft)
    kind = done.requests.kind  # only in closed loops and jobs does speed set the rate
    stay = m.e2e.mean.value  # in the replica: users of a closed loop wait for the way in and the stream as well
    back = stay / (stay + shown_s) if kind == "closed" else 1.0
    rates = [
        _rate(r.scaled(back), tpot)
        if kind in ("closed", "offline")
        else replace(r, evidence=tpot.evidence, distance=tpot.distance)
        for r in (m.token_rate, m.request_rate)
    ]
    return Served(of, done, m, first, later, gaps, whole, *rates)


def inside(bound: Bound, of: Service) -> Bound:
    """An SLO for users as one on what the replica does by itself."""
    if bound.metric == "ttft":
        scale = of.corrections["ttft"].factor / of.corrections["tpot"].factor
        return replace(bound, seconds=bound.seconds / scale - of.shown_s)
    return replace(bound, seconds=bound.seconds - of.shown_s) if bound.metric == "e2e" else bound


def as_users_see(bound: Bound, of: Service) -> tuple[float, float]:
    """Seconds that a bound's metric has on top of the replica's own, and the factor on both."""
    if bound.metric in ("tpot", "itl"):
        return 0.0, 1.0
    scale = of.corrections["ttft"].factor / of.corrections["tpot"].factor if bound.metric == "ttft" else 1.0
    return of.shown_s, scale


def _told(m: Measures, slo: tuple[Bound, ...], of: Service) -> Measures:
    """Measures whose bounds are those of the users again."""
    seen = [(check, *as_users_see(bound, of), bound) for bound, check in zip(slo, m.slo_checks, strict=True)]
    checks = tuple(SloCheck(bound, (check.seconds + more) * scale) for check, more, scale, bound in seen)
    return replace(m, slo_checks=checks)


def _moved(spread: Spread, shift: float, scale: float, by: Correction) -> Spread:
    """A spread of latencies shifted and scaled, with the model's interval on top of the run's."""

    def one(e: Estimate) -> Estimate:
        low, value, high = ((x + shift) * scale for x in (e.low, e.value, e.high))
        return by.around(low, value, high)

    return Spread(*(one(getattr(spread, name)) for name in ("mean", "p50", "p90", "p99")))


def _rate(e: Estimate, by: Correction) -> Estimate:
    return by.around_rate(max(e.low, 0.0), e.value, e.high)

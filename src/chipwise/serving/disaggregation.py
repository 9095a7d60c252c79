"""Replicas of their own for prompts: the largest load of so many beside so many that decode, or of the best number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing
from chipwise.layout.splits import domain
from chipwise.predict.site import slice_for
from chipwise.serving.capacity import (
    TIE,
    Capacity,
    CapacitySearch,
    Progress,
    RefusedSplit,
    at_load,
    best_confirmed,
    by_load,
    capacity_of,
    holds,
    impossible,
    together,
    trial_requests,
)
from chipwise.serving.loads import decode_terms, prompt_terms, seconds
from chipwise.serving.requests import Requests
from chipwise.serving.service import USUAL, Served, Service, ServingTarget, service
from chipwise.serving.split import Split
from chipwise.serving.splits import splits
from chipwise.serving.trials import unloaded


def in_pools(target: ServingTarget, split: Split, pools: tuple[int, int], chips: int, seed: int = 0) -> Capacity:
    """The largest load of replicas for prefill and others for decode, as many times as the chips hold both."""
    times = max(1, chips // (split.chips * sum(pools)))
    of = service(target, split, disaggregate=(pools[0] * times, pools[1] * times))
    return capacity_of(of, trial_requests(target, seed, together(of)))


def search_pools(
    target: ServingTarget,
    chips: int,
    pools: tuple[int, int],
    seed: int = 0,
    progress: Progress | None = None,
    only: Sequence[Split] | None = None,
) -> CapacitySearch:
    """The splits of which the chips hold so many replicas for prefill and for decode, each with its largest load."""
    fast = domain(slice_for(target.chip, chips))
    legal = list(only) if only is not None else splits(target.workload.model, chips // sum(pools), fast)
    capacities: list[Capacity] = []
    refused: list[RefusedSplit] = []
    for done, split in enumerate(legal):
        if progress:
            progress(done, len(legal), str(split))
        try:
            capacities.append(in_pools(target, split, pools, chips, seed))
        except (DoesNotFit, NoLayout, PrecisionMissing) as refusal:
            refused.append(RefusedSplit(split, str(refusal)))
    if not capacities:
        why = f": {refused[0].split}: {refused[0].reason}" if refused else ""
        what = f"{pools[0]} replicas for prefill and {pools[1]} for decode"
        raise NoLayout(f"{chips} {target.chip.id} hold no {what}{why}", "fewer replicas or more chips would do")
    ranked = by_load(capacities)
    if ranked[0].load.value <= 0:
        raise impossible(target, (c.served.measures.slo_checks for c in ranked))
    return CapacitySearch(target, chips, tuple(best_confirmed(ranked, seed)), tuple(refused))


def disaggregated(ranked: Sequence[Capacity], seed: int = 0, progress: Progress | None = None) -> list[Capacity]:
    """Splits with some of their replicas for prompts alone: for each the number that sustains most.

    Left out are those that no number lets sustain more than the best so far; a split whose replicas sustain nothing
    where they do both may sustain most where they don't.
    """
    out: list[Capacity] = []
    most = max((c.load.value for c in ranked), default=0.0)
    both = [c.service for c in ranked if c.service.replicas >= 2 and c.service.prefill is None]
    for done, of in enumerate(both):
        if progress:
            progress(done, len(both), f"{of.replica.split}, prefill apart")
        begin = pools_at(of, most * (1 + TIE), trial_requests(of.target, seed, together(apart(of, 1))))
        if begin is None:
            continue
        out.append(_most(of, begin.prefill_replicas, seed))
        most = max(most, out[-1].load.value)
    return out


def _most(of: Service, begin: int, seed: int) -> Capacity:
    """The number of replicas for prompts that sustains most, from one that is near: the load has one peak over it."""
    tried: dict[int, Capacity] = {}

    def at(prompts: int) -> float:
        if not 0 < prompts < of.replicas:
            return 0.0
        if prompts not in tried:
            candidate = apart(of, prompts)
            tried[prompts] = capacity_of(candidate, trial_requests(of.target, seed, together(candidate)))
        return tried[prompts].load.value

    here = begin
    while True:
        best = max((here, here - 1, here + 1), key=at)
        if best == here:
            return tried[here]
        here = best


def apart(of: Service, prompts: int) -> Service:
    """So many of the replicas for prompts alone, the others for decode."""
    return replace(of, replicas=of.replicas - prompts, prefill=of.replica, prefill_replicas=prompts)


def pools_at(of: Service, load: float, requests: Requests) -> Service | None:
    """A number of the replicas for prompts alone at which all of them hold a load, by what others ran into.

    None where no number does, or where there is no replica for each.
    """
    low, high = 1, of.replicas - 1
    here = min(max(1, round(of.replicas * prompt_share(of))), max(high, 1))
    while low <= high:
        candidate = apart(of, here)
        served = at_load(candidate, requests, load) if load > 0 else _lightly(candidate, requests)
        if holds(served) and (not served.offline or served.request_rate.value >= load):
            return candidate
        if _short_of_prompts(served):
            low = here + 1
        else:
            high = here - 1
        here = (low + high) // 2
    return None


def _lightly(of: Service, requests: Requests) -> Served:
    """At a load at which requests hardly meet."""
    return unloaded(replace(of, replicas=1, prefill_replicas=1), requests)


def _short_of_prompts(served: Served) -> bool:
    """Whether a service that misses its load lacks replicas for prompts, and not others."""
    missed = {check.bound.metric for check in served.measures.slo_checks if not check.holds}
    late, slow = "ttft" in missed, bool(missed & {"tpot", "itl"})
    if late != slow:
        return late
    return served.measures.busy_prefill > served.measures.busy


def prompt_share(of: Service) -> float:
    """Of a replica's time, the share that prompts take, at a usual number of sequences."""
    r, serve = of.replica, of.target.workload.serve
    prompt = seconds(r.coefficients, prompt_terms(r, 1.0, serve.input.mean, None))
    step = decode_terms(r, USUAL, serve.input.mean + serve.output.mean / 2)
    answer = serve.output.mean * seconds(r.coefficients, step) / USUAL
    return float(prompt / (prompt + answer))

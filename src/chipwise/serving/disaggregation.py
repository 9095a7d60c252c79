"""Replicas of their own for prompts: the largest load of so many beside so many that decode, or of the best number."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.errors import DoesNotFit, NoLayout, PrecisionMissing
from chipwise.layout.splits import domain
from chipwise.predict.site import slice_for
from chipwise.serving.capacity import (
    Capacity,
    CapacitySearch,
    Progress,
    RefusedSplit,
    by_load,
    capacity_of,
    confirmed,
    impossible,
    together,
    trial_requests,
)
from chipwise.serving.loads import decode_terms, prompt_terms, seconds
from chipwise.serving.service import USUAL, Service, ServingTarget, service
from chipwise.serving.split import Split
from chipwise.serving.splits import splits

APART = 3  # splits that are tried so, the best of those whose replicas do both


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
    best = confirmed(ranked[0], seed)
    return CapacitySearch(target, chips, (best, *ranked[1:]), tuple(refused))


def disaggregated(ranked: Sequence[Capacity], seed: int = 0, progress: Progress | None = None) -> list[Capacity]:
    """The best splits with some of their replicas for prompts alone: for each split the number that sustains most."""
    out: list[Capacity] = []
    splits = [c.service for c in ranked if c.load.value > 0 and c.service.replicas >= 2 and c.service.prefill is None]
    for done, of in enumerate(splits[:APART]):
        if progress:
            progress(done, min(len(splits), APART), f"{of.replica.split}, prefill apart")
        tried: dict[int, Capacity] = {}

        def at(prompts: int, of: Service = of, tried: dict[int, Capacity] = tried) -> float:
            if not 0 < prompts < of.replicas:
                return 0.0
            if prompts not in tried:
                pools = (prompts, of.replicas - prompts)
                candidate = service(of.target, of.replica.split, config=of.replica.config, disaggregate=pools)
                tried[prompts] = capacity_of(candidate, trial_requests(of.target, seed, together(candidate)))
            return tried[prompts].load.value

        here = min(max(1, round(of.replicas * prompt_share(of))), of.replicas - 1)
        while True:  # the load has one peak over the replicas for prompts
            best = max((here, here - 1, here + 1), key=at)
            if best == here:
                break
            here = best
        out.append(tried[here])
    return out


def prompt_share(of: Service) -> float:
    """Of a replica's time, the share that prompts take, at a usual number of sequences."""
    r, serve = of.replica, of.target.workload.serve
    prompt = seconds(r.coefficients, prompt_terms(r, 1.0, serve.input.mean, None))
    step = decode_terms(r, USUAL, serve.input.mean + serve.output.mean / 2)
    answer = serve.output.mean * seconds(r.coefficients, step) / USUAL
    return float(prompt / (prompt + answer))

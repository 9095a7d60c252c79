"""Ways to split a replica over chips, and which of them are worth simulating.

Splits within one host that use one axis are all simulated. Of the rest (pipelines, attention groups of several chips,
experts over several hosts) those that a steady stream says come near the best: its estimate takes milliseconds, the
search for the largest load of a split twenty times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log2
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog import Chip
from chipwise.serving.service import Service, inside
from chipwise.serving.split import Split
from chipwise.workload.model import Model

Array = NDArray[np.float64]
WIDEST = 64  # chips of one replica, at most
DEEPEST = 16  # stages of its pipeline
SMALL = 4  # chips up to which narrow groups have stages as well; of wider replicas the two widest groups do
# Of the best estimate that another's has to be. Of 6 models on 4 chips with all splits simulated (2026-11-18), the
# split with the largest load had at least 0.6 of the best estimate.
NEAR = 0.6
FEW = 2  # of one width: splits of as many chips are much alike, and so are their estimates
BATCHES = 40  # sequences at once that an estimate looks at


def splits(model: Model, chips: int, fast: int) -> list[Split]:
    """Ways to lay one replica over at most `chips`, `fast` of which share fast links; narrow ones first.

    >>> from chipwise.workload.presets import preset
    >>> [str(split) for split in splits(preset("llama-3.1-8b"), 4, 8)]
    ['tp=1', 'tp=2', 'tp=1 pp=2', 'tp=4', 'tp=2 pp=2', 'tp=1 pp=4']
    """
    if model.family == "cnn":
        return [Split()]
    most = min(chips, WIDEST)
    widths = [n for n in _powers(most) if model.heads % n == 0 and n <= max(fast, 1)]
    staged = model.family == "decoder" and model.encoder is None
    experts = model.experts.count if model.experts is not None else 0
    out = []
    for tp in widths:
        for pp in _sizes(most // tp, min(DEEPEST, model.layers)) if staged else (1,):
            if pp > 1 and tp not in widths[-2:] and tp * pp > SMALL:
                continue
            out.append(Split(tp, pp))
            if experts and tp > 1 and experts % tp == 0:
                out.append(Split(tp, pp, 1, tp))
        if experts:  # stages of several groups are left out: groups over all chips hold more
            groups = _sizes(most // tp, most)
            out += [Split(tp, 1, dp, tp * dp) for dp in groups if dp > 1 and experts % (tp * dp) == 0]
    return sorted(out, key=lambda split: (split.chips, split.pp, split.dp, split.ep))


def _powers(most: int) -> list[int]:
    return [1 << i for i in range(int(log2(most)) + 1)] if most >= 1 else []


def _sizes(most: int, limit: int) -> list[int]:
    """Powers of two and all there is, up to a limit."""
    return sorted({n for n in (*_powers(most), most) if n <= limit})


def by_reach(ways: Sequence[Split], chip: Chip) -> list[list[Split]]:
    """Splits in the order to try them: those over several hosts that only PCIe and the network join come last, alone.

    >>> from chipwise.catalog import load
    >>> by_reach([Split(tp=8), Split(tp=8, pp=2)], load().chips["l40s"])
    [[Split(tp=8, pp=1, dp=1, ep=1)], [Split(tp=8, pp=2, dp=1, ep=1)]]
    """
    if chip.fabric.kind != "pcie":
        return [list(ways)]
    near = [split for split in ways if split.chips <= chip.fabric.host_chips]
    far = [split for split in ways if split.chips > chip.fabric.host_chips]
    return [group for group in (near, far) if group]


def plain(split: Split, fast: int) -> bool:
    """Whether a split uses one axis on chips that share fast links."""
    return split.pp == 1 and 1 in (split.tp, split.dp) and split.chips <= fast


def steady(of: Service) -> float:
    """About the largest load of one replica: requests/s, or users, of a steady stream of requests of mean length.

    Every iteration decodes for some sequences and works on as many tokens of prompts as keep their number; it may take
    as long as the SLO allows between tokens. Prompts meet an answer by chance (Poisson), which its percentile counts.
    """
    r, serve = of.replica, of.target.workload.serve
    times, into, out = r.step_times(), serve.input.mean, max(serve.output.mean, 1.0)
    held = of.cache_sequences
    most = min(float(r.config.most_sequences), inf if held is None else held)
    batch = np.geomspace(1.0, max(most, 1.0), BATCHES)

    def iteration(tokens: Array) -> Array:
        largest = float(times.most_tokens)
        within = np.interp(np.minimum(tokens, largest), np.arange(largest + 1), times.tokens_s)
        return np.asarray(within * np.maximum(tokens / largest, 1.0))

    pairs, gained = times.pair_s * into * into / 2, times.per_pass
    step = iteration(batch * (1 + times.drafted + gained * into / out)) + batch * (
        (times.context_s + times.draft_context_s) * (into + out / 2)
        + gained * (pairs + times.draft_prompt_s * into) / out
        + times.sequence_s
    )
    if times.draft_s is not None:
        step = step + np.interp(batch, np.arange(len(times.draft_s)), times.draft_s)
    gap, step = step, step / gained  # between what an iteration shows, and a token
    prompt = float(iteration(np.asarray(into)) - times.tokens_s[1] + pairs)
    able = np.ones(len(batch), bool)
    for bound in serve.slo:
        if bound.metric in ("tpot", "itl"):
            more = NormalDist().inv_cdf(min(max(bound.percentile / 100, 0.5), 0.999))
            able &= (gap if bound.metric == "itl" else step) + prompt * more * np.sqrt(batch) / out <= inside(
                bound, of
            ).seconds
    rate = np.where(able, batch / out / step, 0.0)
    if serve.arrival.kind == "closed" and serve.slo:
        first = min((inside(bound, of).seconds for bound in serve.slo if bound.metric == "ttft"), default=0.0)
        return float(np.max(np.where(able, batch + rate * first, 0.0)))  # those that wait: Little's law
    return float(rate.max())


def worthwhile(services: Mapping[Split, Service], fast: int, chips: int = 0) -> list[Split]:
    """The splits to simulate: plain ones, and of the others a few of each width whose steady load comes near the best.

    Near that of all replicas on so many chips; with 0, for each chip of a replica near that of any replica as narrow.
    """
    if chips:
        loads = {split: steady(of) * (chips // split.chips) for split, of in services.items()}
    else:
        loads = {split: steady(of) / split.chips for split, of in services.items()}
    kept, best = [], max(loads.values(), default=0.0) if chips else 0.0
    for width in sorted({split.chips for split in loads}):
        group = sorted((split for split in loads if split.chips == width), key=lambda split: -loads[split])
        best = max(best, loads[group[0]])
        others = [split for split in group if not plain(split, fast) and loads[split] >= NEAR * best]
        kept += [split for split in group if plain(split, fast)] + [split for split in others if loads[split] > 0][:FEW]
    return kept

"""Layouts timed per second on one core, and how that compares with llm-analysis.

    OMP_NUM_THREADS=1 python benchmarks/layouts.py [--json]

chipwise: each search covers the whole legal space of Llama 3.1 70B on 4,096 chips: kernel times, collectives,
schedule, memory, the best of each split and the Pareto front; the second figure adds enumeration and set-up.
Searches over several global batches repeat until a million layouts have been timed.

llm-analysis takes one layout a call: step time and memory of every layout of the 4,096 H100 that both tools can
express (all global batches), called one after the other as its users do, with its log switched off.

Two ratios compare the rates, CPU time both, medians of several turns. On the same layouts: chipwise times just those
llm-analysis timed, given as arrays, its set-up included. Over the whole space: what a search for the best layout gains.
Both have a bar.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import logging
import random
import sys
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from itertools import cycle
from statistics import median

import numpy as np

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.layout import RESERVE, enumerate_layouts, search_in
from chipwise.predict.model.layouts import Layout, Layouts
from chipwise.predict.setup import set_up
from chipwise.workload.model import Model, Train, Workload
from chipwise.workload.presets import preset

MODEL, SEQUENCE = "llama-3.1-70b", 8192
PLACES = ("h100:4096", "v5p:4096")
BATCHES = (1024, 1536, 2048, 2560, 3072, 4096)
MORE_BATCHES = (512, 768, 1024, 1280, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192)  # for the peer
ENOUGH = 1_000_000
BAR, RATIO_BAR = 1_000_000, 300
ROUNDS = 4
CALIBRATION = load_calibration(bench=False)


@dataclass
class Rate:
    """Layouts timed, and CPU seconds of the searches alone and with enumeration and set-up."""

    layouts: int = 0
    search: float = 0.0
    whole: float = 0.0

    def run(self, place: str, enough: int) -> None:
        """Search one batch after the other until `enough` more layouts have been timed."""
        acc, model = parse(place), preset(MODEL)
        goal = self.layouts + enough
        for batch in cycle(BATCHES):
            work = Workload(MODEL, model, Train(batch, SEQUENCE))
            start = time.process_time()
            legal = enumerate_layouts(model, work.train, acc)
            here = set_up(work, acc, CALIBRATION)
            ready = time.process_time()
            search_in(here, legal, acc.chip.usable_bytes * (1 - RESERVE))
            end = time.process_time()
            self.layouts, self.search, self.whole = (
                self.layouts + len(legal),
                self.search + end - ready,
                self.whole + end - start,
            )
            if self.layouts >= goal:
                return


def comparable(place: str) -> list[tuple[Layout, int]]:
    """Every layout, with its global batch, that llm-analysis can express too, in a random order."""
    out = []
    for batch in MORE_BATCHES:
        legal = enumerate_layouts(preset(MODEL), Train(batch, SEQUENCE), parse(place)).layouts
        both = (legal.cp == 1) & (legal.vpp == 1) & (legal.tp <= 8) & (legal.recompute != 3) & ~legal.pipe_inner
        both &= (legal.zero == 0) | (legal.shard == legal.dp)
        out += [(legal.at(int(i)), batch) for i in both.nonzero()[0]]
    random.Random(0).shuffle(out)
    return out


def peer_seconds(layouts: list[tuple[Layout, int]], model: Model) -> float:
    """CPU seconds of llm-analysis on one layout, its log switched off."""
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import DtypeConfig, ModelConfig, ParallelismConfig, get_gpu_config_by_name

    logging.disable(logging.CRITICAL)
    described = ModelConfig(
        MODEL,
        model.layers,
        model.heads,
        model.d_model,
        model.vocab,
        SEQUENCE,
        model.kv_heads,
        ffn_embed_dim=model.d_ff,
        expansion_ratio=model.d_ff / model.d_model,
    )
    # memory without end: nothing ends early, all is timed
    gpu = replace(get_gpu_config_by_name("h100-sxm-80gb"), mem_per_GPU_in_GB=1e6)
    redo = {
        "none": ActivationRecomputation.NONE,
        "selective": ActivationRecomputation.SELECTIVE,
        "full": ActivationRecomputation.FULL,
    }
    start = time.process_time()
    for x, batch in layouts:
        LLMAnalysis(
            described,
            gpu,
            DtypeConfig(),
            ParallelismConfig(x.tp, x.pp, x.dp),
            flops_efficiency=0.5,
            hbm_memory_efficiency=0.8,
        ).training(
            int(x.micro_batch),
            batch // (x.dp * int(x.micro_batch)),
            batch,
            SEQUENCE,
            activation_recomputation=redo[x.recompute],
            ds_zero=DSZeRO(x.zero),
            mlp_gated_linear_units=True,
        )
    return (time.process_time() - start) / len(layouts)


def sample_seconds(layouts: list[tuple[Layout, int]], model: Model) -> float:
    """CPU seconds of chipwise on one of these layouts, all of them timed at once, set-up included."""
    acc, flat = parse(PLACES[0]), Layouts.of([x for x, _ in layouts])
    batches = np.array([batch for _, batch in layouts], float)
    start = time.process_time()
    work = replace(set_up(Workload(MODEL, model, Train(BATCHES[0], SEQUENCE)), acc, CALIBRATION), global_batch=batches)
    work.schedule(work.components(flat))
    work.memory(flat)
    return (time.process_time() - start) / len(layouts)


def main() -> int:
    """Print the figures; exit with 1 when a bar is missed."""
    if find_spec("llm_analysis") is None:
        print("layouts: not measured: llm-analysis is not installed (make benchmarks does that, on Python 3.11 alone)")
        return 0
    model = preset(MODEL)
    sample = comparable(PLACES[0])
    for place in PLACES:
        Rate().run(place, 1)  # imports and caches
    peer_seconds(sample[:2], model)
    sample_seconds(sample[:2], model)
    rates = {place: Rate() for place in PLACES}
    peers: list[float] = []
    mine: list[float] = []
    for turn in range(ROUNDS):  # in turns, so that a busy machine slows all alike
        for place, rate in rates.items():
            rate.run(place, ENOUGH // ROUNDS)
        peers.append(peer_seconds(sample[turn::ROUNDS], model))
        mine += [sample_seconds(sample, model) for _ in range(5)]
    peer, ours = median(peers), median(mine)
    speed = {place: rate.layouts / rate.search for place, rate in rates.items()}
    ratio, same = speed[PLACES[0]] * peer, peer / ours
    if "--json" in sys.argv:
        print(
            json.dumps(
                {
                    "layouts_per_second": speed,
                    "with_enumeration": {place: r.layouts / r.whole for place, r in rates.items()},
                    "llm_analysis": version("llm-analysis"),
                    "llm_analysis_per_second": 1 / peer,
                    "ratio_whole_space": ratio,
                    "layouts_compared": len(sample),
                    "ratio_same_layouts": same,
                },
                indent=2,
            )
        )
    else:
        for place, rate in rates.items():
            print(
                f"{MODEL} on {place}: {rate.layouts:,} layouts, {speed[place]:,.0f} per second and core"
                f" ({rate.layouts / rate.whole:,.0f} with enumeration)"
            )
        print(
            f"llm-analysis {version('llm-analysis')}: {1 / peer:,.0f} per second and core, one call each, on the"
            f" {len(sample):,} layouts of {PLACES[0]} it can express"
        )
        print(f"ratio on the same {len(sample):,} layouts (chipwise set-up included): {same:,.0f}x")
        print(f"ratio over the whole space (chipwise searching all layouts): {ratio:,.0f}x")
    return 0 if min(speed.values()) >= BAR and min(ratio, same) >= RATIO_BAR else 1


if __name__ == "__main__":
    sys.exit(main())

"""Work by the recipe of Gavel's trace generator, for any seed; seed 0 is the trace under examples."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

import numpy as np

from chipwise.route.simulate.gavel_trace import GavelTrace, read_gavel_trace

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "traces" / "gavel-seed0"
SIZES = {"ResNet-18": (16, 32, 64, 128, 256), "ResNet-50": (16, 32, 64, 128), "Transformer": (16, 32, 64, 128, 256),
         "LM": (5, 10, 20, 40, 80), "Recommendation": (512, 1024, 2048, 4096, 8192)}  # fmt: skip
WORKLOADS = [f"{name} (batch size {size})" for name, sizes in SIZES.items() for size in sizes] + ["A3C", "CycleGAN"]


def made(seed: int, jobs: int = 300, gap_s: float = 600.0) -> GavelTrace:
    """Jobs drawn as `generate_trace.py --seed SEED -l 600 -m -a 0.2 -b 5 -n 20` draws them."""
    real = read_gavel_trace(FOLDER)
    with (FOLDER / "throughput.csv").open() as file:
        rates = {
            (r["workload"], r["accelerator"], int(r["scale_factor"])): float(r["steps_per_s"])
            for r in csv.DictReader(file)
        }
    kinds, gaps, hours, gangs = (random.Random(seed + k) for k in range(4))
    durations, now, rows = np.linspace(0.2, 5, 20), 0.0, []
    for number in range(jobs):
        workload, chips = kinds.choice(WORKLOADS), 1
        if (workload, "v100", 2) in rates:
            draw = gangs.uniform(0, 1)
            chips = 1 if draw < 0.7 else 2 if draw <= 0.8 else 4
        steps = max(1, int(rates[workload, "v100", chips] * hours.choice(durations) * 3600))
        now += -math.log(1.0 - gaps.random()) * gap_s if number else 0.0
        rows.append((int(now), workload, chips, steps))
    arrival, workload_of, chips_of, steps_of = zip(*rows, strict=True)
    rate = np.array([[rates.get((w, pool, c), 0.0) for pool in real.pools] for _, w, c, _ in rows])
    return GavelTrace(
        f"seed {seed}",
        tuple(map(str, range(jobs))),
        np.array(arrival, float),
        workload_of,
        np.array(chips_of),
        np.array(steps_of, float),
        np.ones(jobs),
        np.full(jobs, np.inf),
        real.pools,
        real.count,
        real.usd_per_chip_hour,
        rate,
    )

"""What watching the device costs: the same step with and without the sampler, in turn, in one run.

    python benchmarks/bench_sampling.py [--device cpu|cuda|tpu|rocm] [--framework torch|jax] [--rounds 60] [--json]

Prints the ratio of the medians and exits with 1 where it is over 1.01. The sampler runs as in `chipwise bench`: ten
times a second, in a thread of the process that runs the step. A busy machine shows its own noise: the ratio without
any sampler at all (every second plain round against the others) is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from statistics import median

from chipwise.bench.session import OPENERS
from chipwise.bench.telemetry import HZ, Sampler, open_source
from chipwise.ops.point import Point

BAR = 1.01
ROUND_SECONDS = 0.25  # long enough for two readings
SIZE = {"cpu": 384}  # of the product; others 8192


def step(framework, point):
    """Seconds of one call, over a round of them."""
    case = framework.build(point)
    framework.sample(case.call, 2, 0)
    calls = max(1, round(0.02 / framework.sample(case.call, 1, 2)))

    def once() -> float:
        seconds, start = [], time.perf_counter()
        while time.perf_counter() - start < ROUND_SECONDS:
            seconds.append(framework.sample(case.call, calls, 3) / calls)
        return median(seconds)

    return once


def reading_seconds(device) -> float:
    """Seconds of one reading: the most that a step can lose to each."""
    source, seconds = open_source(device), []
    for _ in range(50):
        start = time.perf_counter()
        source.read()
        seconds.append(time.perf_counter() - start)
    source.close()
    return median(seconds)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--device", default="cpu")
    words.add_argument("--framework", default="torch", choices=list(OPENERS))
    words.add_argument("--rounds", type=int, default=60)
    words.add_argument("--json", action="store_true")
    asked = words.parse_args()
    module, _, function = OPENERS[asked.framework].partition(":")
    framework = getattr(import_module(module), function)(asked.device)
    size = SIZE.get(asked.device, 8192)
    dtype = "fp32" if asked.device == "cpu" else "bf16"
    once = step(framework, Point("kernels", "gemm", dtype, {"m": size, "n": size, "k": size}))
    once()
    plain, watched, readings, reason = [], [], 0, ""
    for i in range(asked.rounds):
        for sampled in (True, False) if i % 2 else (False, True):
            if not sampled:
                plain.append(once())
                continue
            with Sampler(open_source(framework.device)) as sampler, sampler.window() as window:
                watched.append(once())
            readings, reason = readings + len(window.readings), sampler.reason
    reading = reading_seconds(framework.device)
    ratio, noise = median(watched) / median(plain), median(plain[::2]) / median(plain[1::2])
    found = {
        "device": framework.device.name,
        "framework": asked.framework,
        "hz": HZ,
        "rounds": asked.rounds,
        "readings": readings,
        "reading_s": reading,
        "unread": reason,
        "plain_s": median(plain),
        "watched_s": median(watched),
        "ratio": ratio,
        "ratio_of_plain_rounds": noise,
        "bar": BAR,
    }
    if asked.json:
        print(json.dumps(found))
    else:
        print(f"{found['device']}, {asked.framework}: a step of {median(plain) * 1e3:.3f} ms, {asked.rounds} rounds")
        print(f"one reading takes {reading * 1e6:.0f} us: {reading * HZ:.3%} of the time at {HZ:g} Hz")
        print(
            f"with the sampler over without: {ratio:.4f} (bar {BAR}); without over without: {noise:.4f}; "
            f"{readings} readings{', none read: ' + reason if reason else ''}"
        )
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())

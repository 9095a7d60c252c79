"""A stand-in for a trainer: prints steps as Megatron-LM does, and trains nothing."""

import sys
import time
from datetime import UTC, datetime

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
SECONDS = 0.02  # of a step

for step in range(1, STEPS + 1):
    began = time.perf_counter()
    time.sleep(SECONDS * (20 if step == 1 else 1))  # the first compiles
    ms = (time.perf_counter() - began) * 1e3
    print(
        f" [{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/{STEPS:8d} | "
        f"elapsed time per iteration (ms): {ms:.1f} | lm loss: {9.0 - 0.01 * step:.6E} |",
        flush=True,
    )

"""Seconds of `chipwise check` with an empty cache, and of the same check again."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = (
    ("examples/programs/jax_mlp.py:train", "v5e:2x2"),
    ("examples/programs/jax_mlp.py:train", "v7x:2x2x1"),
    ("examples/programs/torch_transformer.py:train", "v6e:1"),
)


def seconds(program: str, on: str, cache: str) -> float:
    start = time.perf_counter()
    line = [sys.executable, "-m", "chipwise", "check", program, "--on", on, "-o", "json"]
    subprocess.run(line, cwd=ROOT, env={**os.environ, "CHIPWISE_CACHE": cache}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    print(f"{'program':48} {'target':10} {'cold s':>8} {'cached s':>8}")
    for program, on in CASES:
        with tempfile.TemporaryDirectory() as cache:
            cold, cached = seconds(program, on, cache), seconds(program, on, cache)
        print(f"{program:48} {on:10} {cold:8.2f} {cached:8.2f}")


if __name__ == "__main__":
    main()

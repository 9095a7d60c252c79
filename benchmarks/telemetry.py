"""What keeping telemetry takes: CPU of a round, size of a value, and the time of a day's query.

    python benchmarks/telemetry.py [--nodes 1000] [--rounds 60]

Every node has 8 devices of 20 series, kept every 10 s.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from chipwise.observe.exporters import Sample
from chipwise.observe.store.store import open_store

DEVICES, SERIES, EVERY_S = 8, 20, 10
START = 1_800_000_000


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    rng = random.Random(0)
    names = [
        (f"series_{s}", f"node-{n}", f"GPU-{d}")
        for n in range(given.nodes)
        for d in range(DEVICES)
        for s in range(SERIES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "telemetry.db"
        with open_store(str(path)) as store:
            spent = []
            for number in range(given.rounds):
                samples = [Sample(series, host, device, (), rng.random()) for series, host, device in names]
                began = time.process_time()
                store.write(samples, START + EVERY_S * number)
                store.roll_up(START + EVERY_S * number)
                spent.append(time.process_time() - began)
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
            began = time.perf_counter()
            values = store.values(*names[7], START, START + 86400)
            query = time.perf_counter() - began
        mean = sum(spent[1:]) / len(spent[1:])  # the first makes the series
        print(
            f"{len(names):,} series: {mean:.2f} CPU seconds a round ({mean / EVERY_S:.0%} of a core at {EVERY_S} s), "
            f"{size / len(names) / given.rounds:.0f} bytes a sample, "
            f"{len(values)} values of a device in {query * 1e3:.1f} ms"
        )


if __name__ == "__main__":
    main()

"""What keeping telemetry takes: the processor's share, bytes of thirty days, and the time of a day's query.

    python benchmarks/telemetry.py [--nodes 1000]

Every node has 8 devices of 20 series, kept every 10 s. Rounds of all nodes are read from pages of metrics and written
for half an hour, which is then packed beside more rounds. What is packed of a month is written for some nodes, a day
of samples each, and what they take is extrapolated to all nodes and to 30 days. The series are as
instruments tell them of a busy GPU: level, noise and grain.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from chipwise.observe.exporters import Sample, mapping, samples_of
from chipwise.observe.store.schema import DAY, FIVE_MINUTES, HOURS, LATE_S, RESOLUTIONS, SAMPLES, SEAL_S
from chipwise.observe.store.store import TelemetryStore, open_store

DEVICES, EVERY_S, DAYS = 8, 10, 30
START = 1_800_000_000 // DAY * DAY
MOST_SHARE, MOST_BYTES, MOST_QUERY_S = 0.5, 5e9, 0.1  # the bars
PACKED_NODES = 1
QUERIES = 21
Draw = Callable[[random.Random, int], float]


def _constant(value: float) -> Draw:
    return lambda rng, number: value


# As NVML tells them of a GPU in training: level, noise and grain; counters rise
SERIES: dict[str, Draw] = {
    "chipwise_device_power_watts": lambda rng, number: round(650 + 20 * rng.gauss(0, 1), 3),
    "chipwise_device_energy_joules_total": lambda rng, number: round(1.2e9 + 6500 * number + 60 * rng.gauss(0, 1), 3),
    "chipwise_device_busy_ratio": lambda rng, number: min(100, max(0, round(96 + 3 * rng.gauss(0, 1)))) / 100,
    "chipwise_device_tensor_active_ratio": lambda rng, number: round(0.45 + 0.05 * rng.gauss(0, 1), 4),
    "chipwise_device_memory_used_bytes": lambda rng, number: 7.2e10 + 2**21 * round(20 * rng.gauss(0, 1)),
    "chipwise_device_memory_total_bytes": _constant(85_899_345_920.0),
    "chipwise_device_temperature_celsius": lambda rng, number: round(62 + 2 * rng.gauss(0, 1)),
    "chipwise_device_clock_hertz": lambda rng, number: 15e6 * round((1700 + 60 * rng.gauss(0, 1)) / 15),
    "chipwise_device_throttled_by_heat": _constant(0.0),
    "chipwise_device_throttle_ratio": _constant(0.0),
    "chipwise_device_uncorrected_errors_total": _constant(0.0),
    "chipwise_device_remap_failed": _constant(0.0),
    "chipwise_device_pcie_replays_total": lambda rng, number: number // 900,
    "chipwise_device_lost": _constant(0.0),
    "chipwise_device_link_health": _constant(0.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": lambda rng, number: round(0.35 + 0.05 * rng.gauss(0, 1), 6),
    "DCGM_FI_DEV_MEMORY_TEMP": lambda rng, number: round(75 + 2 * rng.gauss(0, 1)),
    "DCGM_FI_DEV_FB_FREE": lambda rng, number: 9000 + round(20 * rng.gauss(0, 1)),
    "DCGM_FI_DEV_XID_ERRORS": _constant(0.0),
    "gpu_umc_activity": lambda rng, number: min(100, max(0, round(40 + 10 * rng.gauss(0, 1)))),
}


def page(rng: random.Random, host: str, number: int) -> list[str]:
    """A page of metrics of a node."""
    lines = []
    for device in range(DEVICES):
        hosts = "".join(f'{label}="{host}",' for label in ("node", "Hostname", "hostname"))
        labels = f'{{{hosts}device="GPU-{device}",UUID="GPU-{device}",gpu_uuid="GPU-{device}"}}'
        for name, draw in SERIES.items():
            lines.append(f"{name}{labels} {draw(rng, number)!r}")
    return lines


def ingest(path: str, nodes: int) -> tuple[float, float, float, int]:
    """CPU seconds of a round: pages read, rounds written, and packing; and how many series there are."""
    rng = random.Random(0)
    hosts = [f"node-{number}" for number in range(nodes)]
    pages = [page(rng, host, 0) for host in hosts]
    reading, writing, packing = 0.0, 0.0, 0.0
    rounds = SEAL_S // EVERY_S
    with open_store(path) as store:
        for number in range(rounds + 1):
            began = time.process_time()
            samples = [sample for lines, host in zip(pages, hosts, strict=True) for sample in samples_of(lines, host)]
            read = time.process_time()
            store.write(samples, START + EVERY_S * number)
            if number:  # the first makes the series
                reading, writing = reading + read - began, writing + time.process_time() - read
            _progress(f"round {number} of {rounds}")
        began = time.process_time()
        store.roll_up(START + SEAL_S + LATE_S)
        packing = time.process_time() - began
        return reading / rounds, writing / rounds, packing / rounds, len(samples)


def month(path: str) -> dict[str, float]:
    """Bytes of a day of a node by table."""
    rng = random.Random(1)
    with open_store(path) as store:
        hosts = [f"node-{number}" for number in range(PACKED_NODES)]
        for number in range(DAY // EVERY_S):
            samples = [s for host in hosts for s in _samples(rng, host, number)]
            store.write(samples, START + EVERY_S * number)
            store.roll_up(START + EVERY_S * number)
            _progress(f"packed: round {number} of {DAY // EVERY_S}")
        store.roll_up(START + DAY + LATE_S)
        return {one.table: _bytes(store, one.table) / PACKED_NODES for one in RESOLUTIONS}


def queries(path: str) -> dict[str, float]:
    """The median time of a day of a job: of what, in which resolution."""
    with open_store(path) as store:
        queries_by_name = {
            "8 devices, 20 series, 5 min": lambda: store.points("node-0", START, START + DAY, resolution=FIVE_MINUTES),
            "8 devices, 20 series, 1 h": lambda: store.points("node-0", START, START + DAY, resolution=HOURS),
            "1 device, 1 series, 10 s": lambda: store.values("device_power", "node-0", "GPU-1", START, START + DAY),
        }
        out = {}
        for name, query in queries_by_name.items():
            times = []
            for _ in range(QUERIES):
                began = time.perf_counter()
                query()
                times.append(time.perf_counter() - began)
            out[name] = sorted(times)[QUERIES // 2]
        return out


def _samples(rng: random.Random, host: str, number: int) -> list[Sample]:
    out = []
    for device in range(DEVICES):
        for name, draw in SERIES.items():
            value = draw(rng, number)
            out.append(
                Sample(
                    mapping()[name].series, host, f"GPU-{device}", (("metric", name),), value * mapping()[name].scale
                )
            )
    return out


def _bytes(store: TelemetryStore, table: str) -> float:
    """What a table takes in the file, pages that are not full and indexes included."""
    db = store._db
    try:
        pages = "SELECT sum(pgsize) FROM dbstat WHERE name = ? OR name LIKE ?"
        return float(db.all(pages, table, f"%{table}_%")[0][0])
    except Exception:  # this SQLite was built without
        rows = f"SELECT sum(length(block) + length(device) * 2 + 60) FROM {table}"
        return float(db.all(rows)[0][0])


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{words}   ", end="", file=sys.stderr)


def main() -> None:
    """Print what was measured, each beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reading, writing, packing, series = ingest(str(Path(folder) / "ingest.db"), options.nodes)
        path = str(Path(folder) / "packed.db")
        sizes = month(path)
        share = (reading + writing + packing) / EVERY_S
        print(
            f"{series:,} series every {EVERY_S} s: {share:.1%} of a core (bar {MOST_SHARE:.0%}): "
            f"pages read {reading / EVERY_S:.1%}, kept {writing / EVERY_S:.1%}, packed {packing / EVERY_S:.1%}"
        )
        rolled = options.nodes * DAYS * (sizes[FIVE_MINUTES.table] + sizes[HOURS.table])
        buckets = DEVICES * len(SERIES) * options.nodes * DAYS * (DAY / FIVE_MINUTES.seconds + 24)
        samples = options.nodes * sizes[SAMPLES.table] * SAMPLES.keep_s / DAY
        print(
            f"roll-ups of {DAYS} days: {rolled / 1e9:.2f} GB (bar {MOST_BYTES / 1e9:.0f} GB), "
            f"{rolled / buckets:.2f} bytes a bucket; samples of 2 days: {samples / 1e9:.2f} GB"
        )
        for name, seconds in queries(path).items():
            print(f"a day of a job, {name}: {seconds * 1e3:.1f} ms (bar {MOST_QUERY_S * 1e3:.0f} ms)")


if __name__ == "__main__":
    main()

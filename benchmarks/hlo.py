"""Megabytes of HLO text parsed per second of CPU time, on the committed samples or on files named.

    python benchmarks/hlo.py [--json] [FILE...]

Every module is parsed five times; the middle one counts. `all` also decodes every attribute.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from chipwise.compiled import hlo

SAMPLES = Path(__file__).resolve().parent.parent / "tests/unit/compiled/hlo/samples"
ROUNDS = 5


def read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def seconds(work: Callable[[], object]) -> float:
    """Middle CPU time of five runs."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times)


def decode_all(text: str) -> None:
    for computation in hlo.parse(text).computations.values():
        for instruction in computation:
            _ = instruction.attributes, instruction.metadata


def main() -> None:
    """Print the speed over each file and over all of them."""
    paths = [Path(a) for a in sys.argv[1:] if a != "--json"] or sorted(SAMPLES.glob("*.hlo.gz"))
    texts = {path.name: read(path) for path in paths}
    whole = sum(map(len, texts.values())) / 1e6
    parsing = {name: seconds(lambda text=text: hlo.parse(text)) for name, text in texts.items()}
    decoding = sum(seconds(lambda text=text: decode_all(text)) for text in texts.values())
    found = {
        "megabytes": whole,
        "megabytes_per_second": whole / sum(parsing.values()),
        "megabytes_per_second_all": whole / decoding,
    }
    if "--json" in sys.argv:
        print(json.dumps(found, indent=2))
        return
    for name, text in texts.items():
        print(f"{name:28} {len(text) / 1e6:8.3f} MB {len(text) / 1e6 / parsing[name]:6.1f} MB/s")
    print(f"{'together':28} {whole:8.3f} MB {found['megabytes_per_second']:6.1f} MB/s", end="")
    print(f", with every attribute decoded {found['megabytes_per_second_all']:.1f} MB/s")


if __name__ == "__main__":
    main()

"""CPU seconds of commands people wait for, children included; exit with 1 when a bar is missed.

    python benchmarks/cli.py [--json]

Each command runs three times after one run that fills the caches of the disk; the middle one counts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = "examples/llama-3.1-8b-pretrain.yaml"
BARS = {  # command -> CPU seconds
    "--help": 0.3,
    f"compare {EXAMPLE}": 3.0,
}
ROUNDS = 3


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "chipwise", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Print the seconds of each command beside its bar."""
    found = {}
    for command in BARS:
        cpu_seconds(command.split())
        found[command] = median(cpu_seconds(command.split()) for _ in range(ROUNDS))
    if "--json" in sys.argv:
        print(json.dumps({command: {"cpu_s": s, "bar_s": BARS[command]} for command, s in found.items()}))
    else:
        for command, seconds in found.items():
            print(f"chipwise {command}: {seconds:.2f} s of CPU (bar: {BARS[command]} s)")
    return int(any(seconds > BARS[command] for command, seconds in found.items()))


if __name__ == "__main__":
    sys.exit(main())

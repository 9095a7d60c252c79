"""Fuzz every target, or those named, and print a table: python tests/fuzz/run.py [SECONDS A TARGET] [TARGET ...]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness import fuzz, report
from targets import TARGETS


def main() -> int:
    seconds, names = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0, sys.argv[2:]
    keep, failed = Path(tempfile.mkdtemp(prefix="findings-")), []
    print(f"{'loader':18} {'cases':>7} {'taken':>7} {'findings':>8}")
    for target in TARGETS:
        if names and target.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = fuzz(target, Path(folder), seconds, "run")
        print(f"{target.name:18} {outcome.cases:7,} {outcome.taken:7,} {len(outcome.findings):8}", flush=True)
        failed += [report(outcome, keep)] if outcome.findings else []
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Draw docs/img/simulate.svg: a day of mixed jobs under two policies. Run by `make picture`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Replay the example and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "chipwise",
                "simulate",
                "examples/traces/mixed-day.yaml",
                "--pools",
                "examples/traces/mixed-pools.yaml",
                "--policy",
                "fastest,cheapest-within-deadline",
                "--plot",
                "docs/img/simulate.svg",
            ],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "CHIPWISE_DATA": folder},
        )


if __name__ == "__main__":
    main()

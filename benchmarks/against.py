"""CPU seconds of commands here and at another revision, in turns in one run, and their ratio.

    python benchmarks/against.py REVISION [ROUNDS]

Commands are run by the same interpreter from both trees, so that what is installed beside chipwise is the same. One
that the other revision doesn't know is left out, and said.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    "--help",
    "compare examples/llama-3.1-8b-pretrain.yaml",
    "compare examples/llama-3.1-70b-serve.yaml --on h100,v6e",
    "layouts examples/llama-3.1-8b-pretrain.yaml --on h100:512",
    "serving capacity examples/llama-3.1-70b-serve.yaml --on h200:8",
    "cost examples/llama-3.1-8b-pretrain.yaml --on h100:64",
    "fleet plan examples/fleet/mixed.yaml",
    "simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml",
    "validate",
)


def cpu_seconds(tree: Path, command: str) -> float | None:
    """User and system time of one run, children included; None where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "chipwise", *command.split()],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return None if done.returncode else after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print a line for each command."""
    revision, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(other), revision], cwd=ROOT, check=True)
        try:
            print(f"{'CPU seconds':72} {'there':>7} {'here':>7} {'ratio':>6}")
            for command in COMMANDS:
                pairs = [(cpu_seconds(other, command), cpu_seconds(ROOT, command)) for _ in range(rounds + 1)][1:]
                timed = [(a, b) for a, b in pairs if a is not None and b is not None]
                if not timed:
                    print(f"{command:72} fails in one of the two")
                    continue
                there, here = (median(column) for column in zip(*timed, strict=True))
                print(f"{command:72} {there:7.2f} {here:7.2f} {here / there:6.2f}")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()

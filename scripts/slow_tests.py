"""Run the slow tests that a change calls for, by the table tests/slow_lane.toml; `make test-changed`, part of .ci/run.

What changed is what differs from $BASE, or from the newest commit that is a day older than the last: CI sees a clone
without the branch that it will be merged into. Arguments go to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = "tests/slow_lane.toml"
DAY_S = 24 * 3600


def git(*words: str) -> str:
    """What git says."""
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()


def base() -> str:
    """The commit that changes are counted from; "" where there is none."""
    last = int(git("log", "-1", "--format=%ct"))
    return os.environ.get("BASE") or git("rev-list", "-1", f"--before={last - DAY_S}", "HEAD")


def changed_files() -> list[str]:
    """Files that differ from the base; all where there is none."""
    return git("diff", "--name-only", start).splitlines() if (start := base()) else git("ls-files").splitlines()


def new_lines(paths: Iterable[Path]) -> set[str]:
    """Lines that are not in these files at the base; all of today's where there is none, or no git."""
    try:
        if start := base():
            changes = git("diff", "-U0", start, "--", *map(str, paths)).splitlines()
            return {line[1:] for line in changes if line.startswith("+")}
    except (FileNotFoundError, subprocess.CalledProcessError):
        pass  # an unpacked archive: all of it is new
    return {line for path in paths for line in path.read_text(encoding="utf-8").splitlines()}


def called_for(table: dict[str, Any], files: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows that run, and those that a change calls for beyond the budget."""
    left, run, beyond = float(table["budget_minutes"]), [], []
    for row in table["row"]:
        if TABLE in files or any(file.startswith(tuple(row["changed"])) for file in files):
            fits = row["minutes"] <= left
            (run if fits else beyond).append(row)
            left -= row["minutes"] if fits else 0
    return run, beyond


def main(options: list[str]) -> int:
    """Choose, say what was chosen, and run it."""
    table = tomllib.loads((ROOT / TABLE).read_text(encoding="utf-8"))
    run, beyond = called_for(table, changed_files())
    for row in run:
        print(f"slow tests of what changed, about {row['minutes']} min: {', '.join(row['tests'])}")
    for row in beyond:
        print(f"left out, beyond {table['budget_minutes']} min (`make test-slow` has them): {', '.join(row['tests'])}")
    if not run:
        print("no slow tests are called for by what changed")
        return 0
    sys.stdout.flush()
    paths = list(dict.fromkeys(path for row in run for path in row["tests"]))
    return subprocess.run([sys.executable, "-m", "pytest", "-m", "slow", *options, *paths], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

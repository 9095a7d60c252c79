"""Print what every extra resolves to on every platform and Python that chipwise runs on. Run by `make platforms`.

Nothing is installed: uv asks the registry which wheels there are, and takes no sources but those of fire, which has no
wheel. Leaves with 1 if some extra can't be had somewhere.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("x86_64", "aarch64")
PYTHONS = ("3.11", "3.12", "3.13")
GLIBC = "manylinux_2_31"  # of Debian 11 and Ubuntu 20.04; libtpu's wheels need as much
SHOWN = ("torch", "jax", "libtpu", "ray", "numba")


def resolved(extra: str, machine: str, python: str) -> dict[str, str] | str:
    """Versions by package, or why there are none."""
    line = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "-q",
        "pyproject.toml",
        "--no-header",
        "--no-annotate",
        "--only-binary",
        ":all:",
        "--no-binary",
        "fire",
        "--python-version",
        python,
        "--python-platform",
        f"{machine}-{GLIBC}",
        "-c",
        "requirements/dev.txt",
        *(("--extra", extra) if extra else ()),
    ]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return " ".join(done.stderr.split())
    return dict(row.split("==") for row in done.stdout.split())


def main() -> int:
    """Every extra, machine and Python, a line each."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = ["", *tomllib.load(file)["project"]["optional-dependencies"]]
    every = [(extra, machine, python) for extra in extras for machine in MACHINES for python in PYTHONS]
    failed = 0
    with ThreadPoolExecutor(4) as pool:
        for (extra, machine, python), found in zip(every, pool.map(lambda each: resolved(*each), every), strict=True):
            failed += isinstance(found, str)
            told = (
                found
                if isinstance(found, str)
                else f"{len(found):3d} packages; "
                + ", ".join(f"{name} {found[name]}" for name in SHOWN if name in found)
            )
            name = f"chipwise[{extra}]" if extra else "chipwise"
            print(f"{name:24s} {machine:8s} Python {python}: {told}", flush=True)
    print("every extra resolves everywhere" if not failed else f"{failed} do not resolve")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

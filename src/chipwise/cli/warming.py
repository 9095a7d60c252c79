"""Code that Numba compiles, made ready in the background: once after an install or an update, by the first command.

A child of its own, at the lowest priority, that says nothing: it goes through what a router and a simulation compute
with, on a ledger that is gone afterwards, and what is compiled is kept where Numba keeps it. One runs at a time.
CHIPWISE_WARM=0 starts none; nor does a machine of CI (its CI variable), which is thrown away.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from chipwise.io.paths import cache_folder
from chipwise.version import __version__

VARIABLE = "CHIPWISE_WARM"
POOLS = "backends: {local: {}}\npools:\n  - {name: h100, backend: local, chip: h100, count: 8, price: 3.0}\n"
SERVED = "serving simulate llama-3.2-1b --rate 2 --input-len 500 --output-len 100 --tp 1 --requests 200 --on h100:4"
COMMANDS = (
    "router run --pools POOLS --until-idle",
    SERVED,
    f"{SERVED} --disaggregate 2:2",
    "serving capacity llama-3.2-1b --input-len 500 --output-len 100 --users 4 --tp 1 --on h100:1",
)


def begin() -> None:
    """Start the child where this install was not made ready; it never stops a command, or adds to its time."""
    if os.environ.get(VARIABLE) == "0" or os.environ.get("CI"):
        return
    try:
        mark = _ready()
        if mark.exists():
            return
        mark.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return  # nowhere to say that it was done: it would begin after every command
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    line = [sys.executable, "-P", "-m", "chipwise.cli.warming"]
    try:
        subprocess.Popen(line, cwd="/", start_new_session=True, close_fds=True, **quiet)  # type: ignore[call-overload]
    except OSError:
        return  # no process to be had: commands compile for themselves, and say so


def _ready() -> Path:
    """The file that says that this version was made ready for this Python."""
    return cache_folder() / f"warm-{__version__}-{sys.implementation.cache_tag}"


def warm() -> int:
    """Compile, alone and at the lowest priority; the exit status of the first command that fails."""
    mark = _ready()
    with mark.with_name(f"{mark.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        os.nice(19)
        status = 0 if mark.exists() else _compile()
        mark.touch()  # what failed once would fail after every command
    return status


def _compile() -> int:
    from chipwise.cli.main import run

    with tempfile.TemporaryDirectory(prefix="chipwise-warm-") as folder, Path(os.devnull).open("w") as nothing:
        os.environ |= {VARIABLE: "0", "CHIPWISE_DATA": folder, "CHIPWISE_LEDGER": str(Path(folder, "ledger.db"))}
        pools = Path(folder, "pools.yaml")
        pools.write_text(POOLS, encoding="utf-8")
        with redirect_stdout(nothing), redirect_stderr(nothing):
            for command in COMMANDS:
                if status := run(command.replace("POOLS", str(pools)).split()):
                    return status
    return 0


if __name__ == "__main__":
    sys.exit(warm())

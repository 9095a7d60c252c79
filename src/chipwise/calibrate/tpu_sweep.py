"""Asks the TPU compilers about every product of the design that no row answers yet, one process a chip.

libtpu belongs to a whole process, so that each chip has its own; a process that dies loses the product it was at.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chipwise.calibrate.tpu_rows import read_rows
from chipwise.calibrate.tpu_shapes import design, swept
from chipwise.catalog import load
from chipwise.compiled.worker.process import worker_environment
from chipwise.compiled.worker.versions import package_version
from chipwise.io.install import install_line

Say = Callable[[str], None]


def missing(path: Path) -> dict[str, int]:
    """How many products of the design have no row yet, by chip."""
    rows = read_rows(path)
    compiled = {(row.chip, *row.key) for row in rows}
    requests = {chip: [(chip, *request.key) for request in design(load().chips[chip])] for chip in swept()}
    counts = {chip: sum(key not in compiled for key in keys) for chip, keys in requests.items()}
    return {chip: count for chip, count in counts.items() if count}


def complete(path: Path, say: Say = print) -> None:
    """Compile what is missing, where libtpu is installed; without it the rows there are have to do."""
    todo = missing(path)
    if not todo:
        return
    if not package_version("libtpu"):
        say(f"TPU compiler: {sum(todo.values())} products not swept ({install_line('tpu-compiler')} sweeps them)")
        return
    for chip, count in todo.items():
        say(f"TPU compiler: {count} products for {chip}")
        command = [sys.executable, "-m", "chipwise.calibrate.tpu_compile", chip, str(path)]
        ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=worker_environment(os.environ))
        if ended.returncode:
            say(f"TPU compiler: the sweep of {chip} ended with status {ended.returncode}; run it again to go on")

"""Compile what Numba compiles, once, before many processes want it at the same time. Run by `make test`.

Compiled code is kept on disk beside its sources; each command here reaches a part of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    "serving simulate examples/llama-3.1-70b-serve.yaml --on h200:8 --rate 4 --tp 4 --requests 500",
    "serving simulate examples/llama-3.1-70b-serve.yaml --on h200:8 --rate 4 --tp 2 --disaggregate 2:2 --requests 500",
    "simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --policy {policies}",
    "simulate --gavel-trace examples/traces/gavel-seed0 --policy max-throughput-per-dollar,finish-time-fair",
    "jobs submit examples/jobs/llama-lora.yaml --pools examples/pools/local.yaml",
    "router run --pools examples/pools/local.yaml --policy cheapest-within-deadline --until-idle",
)


def main() -> int:
    """Run the commands, silently; the first that fails tells."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"CHIPWISE_DATA": folder, "CHIPWISE_LEDGER": str(Path(folder, "ledger.db"))}
        from chipwise.cli.main import run
        from chipwise.route.policies import POLICIES

        for command in (each.format(policies=",".join(POLICIES)) for each in COMMANDS):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = run(command.split())
            if status:
                print(f"chipwise {command}: exit status {status}: {err.getvalue()}", file=sys.stderr)
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every file of benchmarks/ is found whole: it is imported, and what is small enough runs, in a small size."""

import os
import subprocess
import sys

import pytest
from command import ROOT

from patience import PATIENCE_S

FILES = sorted((ROOT / "benchmarks").glob("*.py"))
# in a small size, whose figures are of no interest; the status is that of bars, which a small size may miss
SMALL = {
    "against.py": None,  # another revision's commands beside this one's
    "agent.py": "--seconds 1 --blocks 1",
    "bench_sampling.py": "--rounds 2",
    "check.py": None,  # compiles for minutes
    "cli.py": None,  # every command twelve times
    "estimates.py": "",
    "fleet.py": "--seeds 1 --limit 2",
    "drift.py": "--histories 3",
    "health.py": "--runs 5 --days 1",
    "hlo.py": "",
    "layouts.py": None,  # a million layouts
    "loop.py": "1 3",
    "router.py": "--jobs 300 --pools 4 --events 4 --lp-jobs 20",
    "router_ledger.py": None,  # a section of router.py
    "router_scale.py": "--open 300 --ended 50 --pools 4 --starts 4 --passes 1 --memory-passes 20",
    "router_submit.py": "--clients 2 --seconds 0.2",
    "serving.py": None,  # a fleet's hours
    "telemetry.py": "--nodes 2 --rounds 2",
}


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}  # tests have more on their path
ALONE = """
import runpy, sys
first = list(sys.path[1:])
for file in sys.argv[1:]:
    sys.path[:] = [file.rpartition("/")[0], *first]  # as Python has it for a script
    for name, module in list(sys.modules.items()):
        if "/tests/" in (getattr(module, "__file__", None) or ""):
            del sys.modules[name]  # what one benchmark finds is no help to another
    try:
        runpy.run_path(file, run_name="benchmark")
    except Exception as error:
        raise SystemExit(f"{file}: {type(error).__name__}: {error}")
"""


def test_every_benchmark_can_be_imported():
    assert {path.name for path in FILES} == set(SMALL)
    line = [sys.executable, "-c", ALONE, *map(str, FILES)]
    done = subprocess.run(line, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.parametrize("name", [name for name, words in SMALL.items() if words is not None])
def test_a_benchmark_runs_in_a_small_size(name):
    line = [sys.executable, str(ROOT / "benchmarks" / name), *SMALL[name].split()]
    done = subprocess.run(line, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode in (0, 1) and done.stdout and "Traceback" not in done.stderr, done.stderr[-2000:]

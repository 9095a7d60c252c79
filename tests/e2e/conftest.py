"""The package and what tests share must be found from any folder, installed or not; compiles and calibrations go to the
tests' own folder, and nobody's own prices are read."""

import os
import sys
from pathlib import Path

import pytest

from scratch import ROOT, VARIABLE

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH")])
)

# programs of users: imported by worker processes only, since some need jax or torch and some end the process
collect_ignore_glob = ["compiled/programs/*", "compiled/cases/*", "parsers/*"]  # run by tests, not tests

MINE = Path(os.environ[VARIABLE], "home", os.environ.get("PYTEST_XDIST_WORKER", "alone"))
os.environ["CHIPWISE_CACHE"] = str(MINE.parent / "cache")  # one for all processes: a program is compiled once
os.environ["CHIPWISE_DATA"] = str(MINE / "data")
for mine in ("CHIPWISE_PRICES", "CHIPWISE_FX"):  # tests see list prices unless they say otherwise
    os.environ.pop(mine, None)


def pytest_sessionfinish():
    if "command" in sys.modules:
        sys.modules["command"].ZYGOTE.end()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL for tests that don't stop it; each makes a database of its own."""
    from postgres_server import postgres_server

    with postgres_server() as server:
        yield server

"""The package must be found from any folder, installed or not; compiles and calibrations go to the tests' own folder,
and nobody's own prices are read."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).resolve().parents[2] / "src"), os.environ.get("PYTHONPATH")]))

# programs of users: imported by worker processes only, since some need jax or torch and some end the process
collect_ignore_glob = ["compiled/programs/*", "compiled/cases/*"]

CACHE = Path(tempfile.mkdtemp(prefix="chipwise-tests-"))
os.environ["CHIPWISE_CACHE"] = str(CACHE)
os.environ["CHIPWISE_DATA"] = str(CACHE / "data")
for mine in ("CHIPWISE_PRICES", "CHIPWISE_FX"):  # tests see list prices unless they say otherwise
    os.environ.pop(mine, None)


def pytest_unconfigure():
    shutil.rmtree(CACHE, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL for tests that don't stop it; each makes a database of its own."""
    from postgres_server import postgres_server

    with postgres_server() as server:
        yield server

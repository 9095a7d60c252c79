"""The jobs and pools of examples/: all load, and run somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.errors import Refusal
from chipwise.route.backends.kubernetes.render import KEYS as KUBERNETES_KEYS
from chipwise.route.backends.ray.backend import KEYS as RAY_KEYS
from chipwise.route.backends.slurm.request import ADDRESS
from chipwise.route.estimates import admit, estimator
from chipwise.route.load import load_jobs, load_pools

ROOT = Path(__file__).parents[2]
JOBS = sorted((ROOT / "examples/jobs").glob("*.yaml"))
POOLS = sorted((ROOT / "examples/pools").glob("*.yaml"))
NOW = 1_800_000_000.0


def test_there_is_an_example_for_every_backend() -> None:
    assert {pool.backend for file in POOLS for pool in load_pools(file).pools} == {
        "local",
        "slurm",
        "ray",
        "kubernetes",
    }


@pytest.mark.parametrize("file", POOLS, ids=lambda p: p.stem)
def test_pools_load_and_say_what_they_assume(file: Path) -> None:
    pools = load_pools(file)
    assert pools.pools and all(pool.price_source for pool in pools.pools)
    for pool in pools.pools:
        assert pool.watts_chip > 0 or any(text.startswith(f"{pool.name}: no power") for text in pools.assumptions)


@pytest.mark.parametrize("file", [file for file in JOBS if file.stem != "too-large"], ids=lambda p: p.stem)
def test_jobs_load_and_run_in_pools_of_the_examples(file: Path) -> None:
    backend = (
        "kubernetes" if file.stem == "images" else "local"
    )  # it asks for a secret, which local.yaml hands to nobody
    pools, using = load_pools(ROOT / f"examples/pools/{backend}.yaml"), estimator()
    for job in load_jobs(file, NOW):
        admitted = admit(job, *using.options(job, pools.pools), NOW)
        assert admitted.options and not admitted.warnings


def test_the_job_that_is_too_large_is_refused() -> None:
    pools = load_pools(ROOT / "examples/pools/local.yaml")
    [job] = load_jobs(ROOT / "examples/jobs/too-large.yaml", NOW)
    with pytest.raises(Refusal, match="does not fit"):
        admit(job, *estimator().options(job, pools.pools), NOW)


def test_the_schema_named_at_the_top_of_each_is_there() -> None:
    for file in (*JOBS, *POOLS):
        first = file.read_text(encoding="utf-8").splitlines()[0]
        assert (file.parent / first.partition("$schema=")[2]).is_file()


def test_the_stand_in_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    program = ROOT / "examples/jobs/tiny_train.py"
    told = {**os.environ, "CHIPWISE_CHECKPOINT": str(tmp_path), "CHIPWISE_JOB": "a/b"}
    (tmp_path / "a_b.json").write_text('{"step": 3}')
    done = subprocess.run([sys.executable, str(program), "5"], env=told, capture_output=True, text=True, check=True)
    assert "step 3 of 5" in done.stdout and "done: 5 steps" in done.stdout and not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", POOLS, ids=lambda p: p.stem)
def test_addresses_hold_what_their_backends_read(file: Path) -> None:
    keys = {"local": {"cwd"}, "slurm": ADDRESS, "ray": RAY_KEYS, "kubernetes": KUBERNETES_KEYS}
    for pool in load_pools(file).pools:
        assert {key for key, _ in pool.address} <= keys[pool.backend]

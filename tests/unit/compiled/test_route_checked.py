"""What `chipwise check` found out decides where a job may run: really compiled, then found in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.compiled.worker import versions
from chipwise.errors import InputError
from chipwise.route.estimates import estimator
from chipwise.route.job import Job
from chipwise.route.load.jobs import jobs_of
from chipwise.route.pool import Pool

ROOT = Path(__file__).parents[3]
V5E = Pool("v5e", "slurm", "v5e", "tpu", 8, shapes=((4, "2x2"), (8, "2x4")), usd_per_chip_hour=1.2)
H100 = Pool("h100", "slurm", "h100", "gpu", 8, usd_per_chip_hour=3.0)
BOTH = [pytest.param(V5E, marks=pytest.mark.compiler("tpu")), pytest.param(H100, marks=pytest.mark.compiler("cuda"))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_CACHE", str(tmp_path / "cache"))


def job(program: str) -> Job:
    variant = {"chips": 4, "program": f"examples/programs/{program}"}
    [made] = jobs_of(
        {
            "name": "x",
            "workload": "examples/bert-large-pretrain.yaml",
            "command": ["a"],
            "checkpoint": {"every": "1h"},
            "variants": {"tpu": variant, "gpu": variant},
        },
        ROOT,
        0.0,
    )
    return made


@pytest.mark.parametrize("pool", BOTH)
def test_what_the_compiler_refuses_runs_nowhere_and_that_is_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pool: Pool
) -> None:
    dynamic = job("jax_dynamic.py:masked")
    [option], _ = estimator().options(dynamic, [pool])
    assert "was not checked" in option.note
    options, [infeasible] = estimator(check=True).options(dynamic, [pool])
    assert not options and "the compiler refuses jax_dynamic.py:masked" in infeasible.reason and infeasible.unlock
    monkeypatch.chdir(tmp_path)  # wherever the command runs
    assert estimator().options(dynamic, [pool]) == ([], [infeasible])


@pytest.mark.compiler("cuda")
def test_a_pool_whose_compiler_is_missing_is_not_checked_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real = versions.package_version
    monkeypatch.setattr(versions, "package_version", lambda name: "" if name == "libtpu" else real(name))
    options, [infeasible] = estimator(check=True).options(job("jax_dynamic.py:masked"), [V5E, H100])
    [unchecked] = options
    assert unchecked.pool == "v5e" and "not checked: XLA for TPU can't be used: libtpu" in unchecked.note
    assert infeasible.pool == "h100" and "the compiler refuses" in infeasible.reason


@pytest.mark.compiler("tpu")
def test_what_was_compiled_is_timed_by_its_schedule() -> None:
    fits = job("jax_oom.py:under")
    told: list[str] = []
    [checked], _ = estimator(True, lambda chips, stage, seconds: told.append(chips)).options(fits, [V5E])
    assert checked.seconds.evidence == "compiled" and "one call is one step" in checked.note and "v5e:2x2" in told
    assert estimator().options(fits, [V5E])[0] == [checked]


@pytest.mark.parametrize("pool", BOTH)
def test_a_program_that_cannot_be_imported_is_bad_input(pool: Pool) -> None:
    with pytest.raises(InputError, match="nothing_there"):
        estimator(check=True).options(job("jax_oom.py:nothing_there"), [pool])
    with pytest.raises(InputError, match="no such file"):
        estimator().options(job("none.py:step"), [pool])

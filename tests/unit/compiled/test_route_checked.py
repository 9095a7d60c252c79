"""What `chipwise check` found out decides where a job may run: really compiled, then found in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.errors import InputError
from chipwise.route.estimates import estimator
from chipwise.route.job import Job
from chipwise.route.load.jobs import jobs_of
from chipwise.route.pool import Pool

ROOT = Path(__file__).parents[3]
V5E = Pool("v5e", "slurm", "v5e", "tpu", 8, shapes=((4, "2x2"), (8, "2x4")), usd_chip_hour=1.2)
H100 = Pool("h100", "slurm", "h100", "gpu", 8, usd_chip_hour=3.0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_CACHE", str(tmp_path / "cache"))


def job(program: str) -> Job:
    variant = {"chips": 4, "program": f"examples/programs/{program}"}
    [made] = jobs_of({"name": "x", "workload": "examples/bert-large-pretrain.yaml", "command": ["a"],
                      "checkpoint": {"every": "1h"}, "variants": {"tpu": variant, "gpu": variant}}, ROOT, 0.0)
    return made


def test_what_the_compiler_refuses_runs_nowhere_and_that_is_remembered(monkeypatch: pytest.MonkeyPatch,
                                                                      tmp_path: Path) -> None:
    dynamic = job("jax_dynamic.py:masked")
    options, _ = estimator().options(dynamic, [V5E, H100])
    assert len(options) == 2 and all("was not checked" in option.note for option in options)
    options, unable = estimator(check=True).options(dynamic, [V5E, H100])
    assert not options and all("the compiler refuses jax_dynamic.py:masked" in u.reason and u.unlock for u in unable)
    monkeypatch.chdir(tmp_path)  # wherever the command runs
    assert estimator().options(dynamic, [V5E, H100]) == ([], unable)


def test_what_was_compiled_is_timed_by_its_schedule() -> None:
    fits = job("jax_oom.py:under")
    told: list[str] = []
    [checked], _ = estimator(True, lambda chips, stage, seconds: told.append(chips)).options(fits, [V5E])
    assert checked.seconds.evidence == "compiled" and "one call is one step" in checked.note and "v5e:2x2" in told
    assert estimator().options(fits, [V5E])[0] == [checked]


def test_a_program_that_cannot_be_imported_is_bad_input() -> None:
    with pytest.raises(InputError, match="nothing_there"):
        estimator(check=True).options(job("jax_oom.py:nothing_there"), [V5E])
    with pytest.raises(InputError, match="a file that exists"):
        estimator().options(job("none.py:step"), [V5E])

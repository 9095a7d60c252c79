"""docs/routing.md says what the code does: its policies, its files, its example of a policy, its bounds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from chipwise.io.files import parse_yaml
from chipwise.route.allocate import PATIENCE
from chipwise.route.job import Job
from chipwise.route.load.jobs import jobs_of
from chipwise.route.load.pools import pools_of
from chipwise.route.policies import POLICIES, describe
from chipwise.route.router.fallback import FIRST_WAIT_S, LONGEST_WAIT_S, MOST_BLAMELESS
from chipwise.route.router.health import FIRST_S, LONGEST_S
from chipwise.route.router.submitter import DOWN_S
from chipwise.route.spec.job import CheckpointSpec, ConstraintSpec, JobSpec, VariantSpec
from chipwise.route.spec.pools import PoolSpec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/routing.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_table_of_policies_is_that_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", PAGE[PAGE.index("## Policies") :], re.MULTILINE))
    assert rows == {name: describe(name) for name in POLICIES}


def test_the_files_that_are_shown_can_be_read() -> None:
    job, pools = blocks("yaml")
    [made] = jobs_of(parse_yaml(job), ROOT / "examples/jobs", 0.0)
    assert isinstance(made, Job) and made.variants[1].secrets == ("HF_TOKEN",)
    found = pools_of(parse_yaml(pools), ROOT)
    assert found.pool("h200").setting("conf") == "/etc/slurm/slurm.conf" and found.pool("v5e-spot").spot


def test_every_key_of_the_files_is_named() -> None:
    for spec in (JobSpec, VariantSpec, CheckpointSpec, ConstraintSpec, PoolSpec):
        for key in spec.model_fields:
            assert re.search(rf"\b{key}\b", PAGE), f"{spec.__name__}.{key}"


def test_the_policy_that_is_shown_works() -> None:
    from chipwise.route.cluster_state import ClusterState

    space: dict[str, object] = {}
    exec(blocks("python")[0], space)
    ones, few = np.ones((2, 2)), np.zeros(2)
    state = ClusterState(
        now=0.0,
        jobs=("a", "b"),
        pools=("h100", "v5e"),
        arrival=few,
        weight=few + 1,
        deadline=few + np.inf,
        confidence=few + 0.9,
        budget=few + np.inf,
        restartable=few > 1,
        restart_cost_s=few,
        current_pool=np.full(2, -1),
        since=few + np.nan,
        seconds=ones,
        low=ones,
        high=ones,
        usd=np.array([[1.0, 2.0], [3.0, 4.0]]),
        joules=ones,
        chips=ones.astype(np.int64),
        variant_order=np.zeros((2, 2), np.int64),
        last_failed=ones > 2,
        start=ones * 0,
        served=ones * 0,
        free=np.array([8, 8]),
        total=np.array([8, 8]),
        pool_facts={"usd_per_chip_hour": few, "interruptions": few},
    )
    decision = space["tpus_first"](state)  # type: ignore[operator]
    assert (decision.score.argmin(axis=1) == 1).all()


def test_bounds_are_those_of_the_code() -> None:
    assert (FIRST_WAIT_S, LONGEST_WAIT_S) == (1, 300) and "1 s, doubled each time up to 5 min" in PAGE
    assert MOST_BLAMELESS == 20 and "after 20 in a row that kept no work the job fails" in PAGE
    assert (FIRST_S, LONGEST_S) == (1, 120) and "after 1 s, doubled up to 2 min" in PAGE
    assert DOWN_S == 120 and "go elsewhere after 2 min" in PAGE
    assert PATIENCE == 86_400 and "has waited for a day" in PAGE

"""Secrets that jobs are handed: those that the pools file lists, by each backend, and no other."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from route_cases import launch, option, pool

from chipwise.route.backend import BackendRefused, Launch
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.backends.ray.backend import RayBackend
from chipwise.route.backends.secret_values import secret_values
from chipwise.route.backends.slurm.backend import SlurmBackend
from chipwise.route.job import Job, Variant
from chipwise.route.secret import BEGINNINGS, RESERVED

ROUTER = {
    "HF_TOKEN": "hush-1",
    "WANDB_API_KEY": "hush-2",
    "PGPASSWORD": "hush-3",
    "AWS_SECRET_ACCESS_KEY": "hush-4",
    "PATH": "/bin",
    "LD_PRELOAD": "/x.so",
    "SLURM_JWT": "hush-5",
    "CHIPWISE_METRICS_TOKEN": "hush-6",
    "HF_TOKEN2": "hush-7",
}
WITH_SECRETS = ("local", "slurm", "ray")
HOSTILE = [
    "",
    " ",
    "HF_TOKEN ",
    "hf_token",
    "HF_TOKEN,WANDB_API_KEY",
    "HF_TOKEN\n",
    "HF_",
    "HF_*",
    ".*",
    "*",
    "HF_TOKEN2",
    "HF_TOKEN=x",
    "PATH",
    "LD_PRELOAD",
    "SLURM_JWT",
    "BASH_ENV",
    "IFS",
    "ENV",
    "CHIPWISE_METRICS_TOKEN",
    "PGPASSWORD",
    "AWS_SECRET_ACCESS_KEY",
    "ＨＦ_TOKEN",
    "A\0B",
]


def made(folder, backend, secrets, may=None):
    at = pool(backend=backend, address=() if may is None else (("secrets", may),))
    return launch(folder, "true", secrets=secrets, at=at)


def rendered(one, folder):
    backend = {
        "local": lambda: LocalBackend(folder),
        "slurm": lambda: SlurmBackend("u", lambda a: folder / a, {"conf": "/x"}),
        "ray": lambda: RayBackend([one.pool], "u"),
    }[one.pool.backend]()
    return backend.render(one)


@pytest.mark.parametrize("backend", WITH_SECRETS)
@pytest.mark.parametrize("may", [None, "", "WANDB_API_KEY", "HF_TOKENS,HF_TOKE"])
def test_what_the_pool_does_not_list_is_refused_with_the_key_that_would_allow_it(backend, may, tmp_path):
    one = made(tmp_path, backend, ["HF_TOKEN"], may)
    words = f"near: the pool may not hand HF_TOKEN to jobs; expected secrets: [HF_TOKEN] in its address, or under backends.{backend}, of the pools file"
    with pytest.raises(BackendRefused) as refused:
        rendered(one, tmp_path)
    assert str(refused.value) == words
    with pytest.raises(BackendRefused) as refused:
        secret_values(one, ROUTER)
    assert str(refused.value) == words


@pytest.mark.parametrize("backend", WITH_SECRETS)
def test_what_is_listed_and_asked_for_is_handed_over_alone(backend, tmp_path):
    one = made(tmp_path, backend, ["HF_TOKEN"], "WANDB_API_KEY,HF_TOKEN")
    assert (
        secret_values(one, ROUTER) == {"HF_TOKEN": "hush-1"}
        and secret_values(made(tmp_path, backend, [], "HF_TOKEN"), ROUTER) == {}
    )
    text = rendered(one, tmp_path)
    assert "HF_TOKEN" in text and "WANDB_API_KEY" not in text and "hush" not in text


@pytest.mark.parametrize("backend", WITH_SECRETS)
def test_a_job_that_asks_for_none_needs_no_list(backend, tmp_path):
    assert rendered(made(tmp_path, backend, []), tmp_path)


@pytest.mark.parametrize("backend", WITH_SECRETS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_in_one_line_without_a_value(backend, name, tmp_path):
    one = made(tmp_path, backend, ["HF_TOKEN", name], "HF_TOKEN,WANDB_API_KEY")
    with pytest.raises(BackendRefused) as refused:
        secret_values(one, {**ROUTER, name: "hush-0"})
    assert "\n" not in str(refused.value) and "hush" not in str(refused.value)


def asking(name, may):
    """A launch that is written nowhere."""
    variant, at = Variant("cpu", "cpu", 1, secrets=(name,)), pool(address=(("secrets", may),))
    return Launch("u-1-1", 1, "1", Job("job", (variant,)), variant, at, option(), Path("/nowhere"), {})


@given(
    st.text(max_size=20) | st.sampled_from(sorted({*HOSTILE, *ROUTER})),
    st.lists(st.sampled_from(sorted(ROUTER)) | st.text(max_size=8)),
)
def test_whatever_is_listed_and_asked_for_no_reserved_or_unlisted_variable_is_handed_over(name, may):
    one = asking(name, ",".join(may))
    try:
        got = secret_values(one, {**ROUTER, name: "hush-0"})
    except BackendRefused:
        return
    assert set(got) == {name} and name in ",".join(may).split(",")
    assert name.isidentifier() and name.isascii() and name not in RESERVED and not name.startswith(BEGINNINGS)


def test_what_ray_sends_to_its_nodes_needs_no_chipwise_there():
    """The actor withholds secrets by a function of chipwise's, which travels with it."""
    send = """
import sys
from ray import cloudpickle
from chipwise.route.backends.ray import actors, driver
for module in driver.CARRIED:
    cloudpickle.register_pickle_by_value(module)
sys.stdout.buffer.write(cloudpickle.dumps(actors.Program))
"""
    take = """
import os, sys
sys.modules["chipwise"] = None
from ray import cloudpickle
program = cloudpickle.loads(sys.stdin.buffer.read())
made = program.__new__(program)
made.spec = {"secrets": ["A_TOKEN"], "withheld": ["LISTED"]}
os.environ.update(A_TOKEN="x", B_TOKEN="x", PGPASSWORD="x", LISTED="x", PLAIN="x", TOKENIZERS_PARALLELISM="x")
print(*sorted({"A_TOKEN", "B_TOKEN", "PGPASSWORD", "LISTED", "PLAIN", "TOKENIZERS_PARALLELISM", "PATH"} & set(made._inherited())))
"""
    sent = subprocess.run([sys.executable, "-c", send], capture_output=True, check=True).stdout
    done = subprocess.run([sys.executable, "-c", take], input=sent, capture_output=True, check=True)
    assert done.stdout.split() == [b"A_TOKEN", b"PATH", b"PLAIN", b"TOKENIZERS_PARALLELISM"]

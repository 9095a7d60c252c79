"""The page on Kubernetes shows what is really rendered."""

from pathlib import Path

import pytest
import yaml
from kubernetes_cases import a_launch, checked, valid

from chipwise.route.backends.named import backends_of
from chipwise.route.load import load_pools

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"


def test_the_manifest_on_the_page_is_valid_and_one_for_kubectl():
    (shown,) = (block.split("```")[0] for block in PAGE.read_text(encoding="utf-8").split("jobs render ")[1:2])
    made = yaml.safe_load(shown.partition("\n")[2])  # the first line is the command
    valid(made)
    assert made["kind"] == "JobSet" and made["spec"]["suspend"] is True


def test_the_pools_on_the_page_are_accepted(tmp_path):
    file = tmp_path / "pools.yaml"
    file.write_text(PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0])
    pools = load_pools(file).pools
    assert backends_of(pools, {"kubernetes": tmp_path}, "cw1")["kubernetes"]


@pytest.mark.parametrize("name", ["kubernetes", "ray", "mixed"])
def test_backends_take_the_pools_of_the_examples(name, tmp_path):
    pools = load_pools(PAGE.parents[1] / "examples" / "pools" / f"{name}.yaml").pools
    backends = backends_of(
        [p for p in pools if p.backend != "slurm"], dict.fromkeys(("ray", "kubernetes"), tmp_path), "cw1"
    )
    assert set(backends) == {p.backend for p in pools} - {"slurm"}
    for pool in pools:
        if pool.backend == "kubernetes":
            checked(
                a_launch(
                    pool,
                    16,
                    "4x4" if pool.chip == "v5e" else "2x2x4" if pool.family == "tpu" else "",
                    secrets=["X"] if pool.setting("secret") else [],
                )
            )

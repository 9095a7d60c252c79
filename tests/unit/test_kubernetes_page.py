"""The page on Kubernetes shows what is really rendered."""

from dataclasses import replace
from pathlib import Path

import yaml
from kubernetes_cases import a_launch, checked

from chipwise.route.engines.kubernetes import KubernetesEngine
from chipwise.route.load import load_pools

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes.md"


def test_the_manifest_on_the_page_is_rendered_from_the_pools_on_the_page(tmp_path):
    pools, shown = (block.split("```")[0] for block in PAGE.read_text(encoding="utf-8").split("```yaml\n")[1:])
    file = tmp_path / "pools.yaml"
    file.write_text(pools)
    pool = next(p for p in load_pools(file).pools if p.name == "v5e")
    launch = a_launch(pool, 16, "4x4", command=("python", "train.py", "--run=$(date)"), attempt="qvuq0jmkhn-17-1", name="llama", owner="ada",
                      image="example.com/train:tpu", secrets=["HF_TOKEN"], variant="tpu", environment={"JAX_PLATFORMS": "tpu"})
    launch = replace(launch, time_limit=86_400.0)
    rendered = KubernetesEngine([pool], "qvuq0jmkhn").render(launch)
    assert shown == rendered, rendered
    assert yaml.safe_load(shown) == checked(launch, "qvuq0jmkhn")

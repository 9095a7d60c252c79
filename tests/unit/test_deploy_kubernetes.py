"""The manifests of `deploy write`: valid by Kubernetes' own schemas, and of one piece with the machines."""

import json
from pathlib import Path

import pytest
import yaml
from kubernetes_cases import own, valid
from kubernetes_validate import validate

import chipwise as cw
from chipwise.cli.main import run

POOLS = "examples/pools/kubernetes.yaml"
CORE = ("v1", "apps/v1", "autoscaling/v2", "networking.k8s.io/v1", "policy/v1", "scheduling.k8s.io/v1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deploy") / "tree"
    cw.deploy_write(POOLS, folder, term={"v5e": "flex-start"}, only=["h100", "v5e", "v5e-spot"])
    return folder


def serving() -> dict:
    """A comparison of a service, as `compare -o json` has it."""
    row = {
        "accelerators": {"name": "v6e:4*2x4", "chip": "v6e", "count": 32, "shape": [2, 4], "slices": 4},
        "replicas": 4,
        "chips_per_replica": 8,
        "batch": 28.15,
        "ondemand": {"cloud": "gcp", "region": "us-east1", "usd_per_chip_hour": 2.7, "date": "2026-09-17"},
    }
    return {"command": "compare", "pick": "v6e:4*2x4", "workload": {"name": "chat"}, "rows": [row]}


def documents(path: Path) -> list[dict]:
    return list(yaml.safe_load_all(path.read_text()))


def by_kind(path: Path) -> dict[tuple[str, str], dict]:
    return {(document["kind"], document["metadata"]["name"]): document for document in documents(path)}


def test_core_objects_are_what_kubernetes_takes(folder, tmp_path):
    cw.deploy_write(serving(), tmp_path / "serving")
    files = [*folder.glob("kubernetes/**/*.yaml"), *(tmp_path / "serving").glob("kubernetes/**/*.yaml")]
    core = [document for path in files for document in documents(path) if document["apiVersion"] in CORE]
    assert {"Namespace", "HorizontalPodAutoscaler", "PodDisruptionBudget"} <= {document["kind"] for document in core}
    for document in core:
        validate(document, "1.31", strict=True)


def test_the_pods_of_a_jobset_are_what_kubernetes_takes(folder):
    for name in ("h100", "v5e"):
        (jobset,) = documents(folder / "kubernetes" / "work" / f"{name}.yaml")
        valid(jobset)


def test_queues_are_what_kueue_takes(folder):
    objects = by_kind(folder / "kubernetes" / "queues.yaml")
    queues = [document for (kind, _), document in objects.items() if kind in ("ClusterQueue", "LocalQueue")]
    assert len(queues) == 6
    for queue in queues:
        own("kueue").validate(queue)


def test_a_job_a_slice_and_a_pod_a_host_are_all_chips_of_the_pool(folder):
    pools = {pool["name"]: pool for pool in json.loads((folder / "chipwise.json").read_text())["pools"]}
    for name, pool in pools.items():
        (jobset,) = documents(folder / "kubernetes" / "work" / f"{name}.yaml")
        (part,) = jobset["spec"]["replicatedJobs"]
        job = part["template"]["spec"]
        (container,) = job["template"]["spec"]["containers"]
        (chips,) = container["resources"]["limits"].values()
        assert part["replicas"] * job["completions"] * int(chips) == pool["hosts"] * pool["host_chips"]
        exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology" in jobset["metadata"].get("annotations", {})
        assert exclusive == (name != "h100")


def test_a_queue_covers_all_that_the_pods_ask_for(folder):
    objects = by_kind(folder / "kubernetes" / "queues.yaml")
    for name in ("h100", "v5e", "v5e-spot"):
        (jobset,) = documents(folder / "kubernetes" / "work" / f"{name}.yaml")
        pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        (group,) = objects["ClusterQueue", name]["spec"]["resourceGroups"]
        assert set(pod["containers"][0]["resources"]["requests"]) <= set(group["coveredResources"])
        assert jobset["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == name
        assert objects["LocalQueue", name]["spec"]["clusterQueue"] == name
        assert objects["ResourceFlavor", name]["spec"]["nodeLabels"] == pod["nodeSelector"]


def test_only_flex_start_waits_for_queued_provisioning(folder):
    objects = by_kind(folder / "kubernetes" / "queues.yaml")
    assert [name for kind, name in objects if kind == "AdmissionCheck"] == ["v5e"]
    strategy = objects["ClusterQueue", "v5e"]["spec"]["admissionChecksStrategy"]
    assert strategy == {"admissionChecks": [{"name": "v5e"}]}  # `admissionChecks` itself is gone from v1beta2
    assert "admissionChecksStrategy" not in objects["ClusterQueue", "h100"]["spec"]


def test_a_service_follows_the_requests_that_its_decision_was_sized_by(tmp_path):
    written = cw.deploy_write(serving(), tmp_path / "tree")
    objects = by_kind(tmp_path / "tree" / "kubernetes" / "work" / "v6e.yaml")
    scaler = objects["HorizontalPodAutoscaler", "v6e"]["spec"]
    assert (scaler["maxReplicas"], scaler["metrics"][0]["pods"]["target"]["averageValue"]) == (4, "28150m")
    assert written.deployment.pools[0].replica_chips == 8


def test_the_router_submits_to_the_queue_and_the_account_that_were_written(folder):
    from chipwise.route.load import read_pools

    rules = by_kind(folder / "kubernetes" / "namespace.yaml")
    for pool in read_pools(folder / "pools.yaml").pools:
        assert ("LocalQueue", pool.setting("queue")) in by_kind(folder / "kubernetes" / "queues.yaml")
        assert ("Namespace", pool.setting("namespace")) in rules
        assert ("ServiceAccount", pool.setting("service_account")) in rules
        assert ("PriorityClass", pool.setting("priority")) in rules


def test_the_router_renders_a_job_for_what_was_written(folder, tmp_path, capsys):
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: run\nvariants:\n  tpu: {chips: 32, image: 'img:1', command: [python]}\nestimates: {v5e: 2h}\n"
    )
    run(["jobs", "render", str(job), "--pools", str(folder / "pools.yaml"), "--pool", "v5e"])
    rendered = yaml.safe_load(capsys.readouterr().out)
    assert rendered["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "v5e"

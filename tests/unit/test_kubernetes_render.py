"""Objects for Kubernetes: right by the schemas, with the chips, selectors and queues that were asked for."""

import json
import re
from dataclasses import replace

import pytest
from kubernetes_cases import a_launch, a_pool, checked, containers

from chipwise.route.backend import BackendRefused
from chipwise.route.backends.kubernetes.backend import KubernetesBackend
from chipwise.route.job import Checkpoint

V5E = {"accelerator": "tpu-v5-lite-podslice"}


def test_a_job_on_gpus_tries_once_and_tells_disruption_from_failure():
    made = checked(
        a_launch(a_pool(accelerator="nvidia-h100-80gb", namespace="team-a"), 8, environment={"A": "b"}, time_limit=90.2)
    )
    assert (made["kind"], made["metadata"]["name"], made["metadata"]["namespace"]) == ("Job", "cw1-7-1", "team-a")
    spec = made["spec"]
    assert (spec["backoffLimit"], spec["completions"]) == (0, 1)
    assert (
        "activeDeadlineSeconds" not in spec and spec["template"]["spec"]["activeDeadlineSeconds"] == 91
    )  # waiting does not count
    assert spec["ttlSecondsAfterFinished"] > 0 and "suspend" not in spec
    assert spec["podFailurePolicy"]["rules"][0]["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    pod = spec["template"]["spec"]
    assert (
        pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
        and pod["restartPolicy"] == "Never"
    )
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"} and container["command"] == [
        "python",
        "train.py",
    ]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert spec["template"]["metadata"]["labels"]["chipwise-attempt"] == "cw1-7-1"


@pytest.mark.parametrize(
    ("chip", "label", "topology", "chips", "hosts", "each"),
    [
        ("v5e", "tpu-v5-lite-podslice", "1x1", 1, 1, 1),
        ("v5e", "tpu-v5-lite-podslice", "2x2", 4, 1, 4),
        ("v5e", "tpu-v5-lite-podslice", "2x4", 8, 1, 8),
        ("v5e", "tpu-v5-lite-podslice", "4x4", 16, 4, 4),
        ("v6e", "tpu-v6e-slice", "16x16", 256, 64, 4),
        ("v5p", "tpu-v5p-slice", "2x2x1", 4, 1, 4),
        ("v7x", "tpu7x", "2x2x2", 8, 2, 4),
    ],
)
def test_a_slice_becomes_hosts_with_chips(chip, label, topology, chips, hosts, each):
    made = checked(a_launch(a_pool(chip, "tpu", 256), chips, topology))
    job = made["spec"] if hosts == 1 else made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert made["kind"] == ("Job" if hosts == 1 else "JobSet")
    assert (job["parallelism"], job["completions"], job["completionMode"]) == (hosts, hosts, "Indexed")
    pod = job["template"]["spec"]
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": label,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    assert pod["containers"][0]["resources"]["requests"] == {"google.com/tpu": str(each)}


def test_chips_of_another_vendor_are_its_device_plugins_resource():
    (container,) = containers(checked(a_launch(a_pool("mi300x"), 8)))
    assert container["resources"]["limits"] == {"amd.com/gpu": "8"}


def test_hosts_of_a_jobset_know_their_place_and_share_one_node_pool():
    made = checked(a_launch(a_pool("v5e", "tpu", 16, **V5E), 16, "4x4"))
    assert (
        made["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/exclusive-topology"]
        == "cloud.google.com/gke-nodepool"
    )
    assert made["spec"]["network"] == {"enableDNSHostnames": True, "subdomain": "cw1-7-1"}
    assert made["spec"]["failurePolicy"]["maxRestarts"] == 0
    assert [(r["action"], r["onJobFailureReasons"]) for r in made["spec"]["failurePolicy"]["rules"]] == [
        ("FailJobSet", ["PodFailurePolicy"])
    ]
    (container,) = containers(made)
    told = {each["name"]: each for each in container["env"]}
    assert (
        told["TPU_WORKER_HOSTNAMES"]["value"]
        == ",".join(f"cw1-7-1-w-0-{i}.cw1-7-1" for i in range(4))
        == told["CHIPWISE_HOSTS"]["value"]
    )
    for name in ("TPU_WORKER_ID", "CHIPWISE_RANK"):
        assert (
            told[name]["valueFrom"]["fieldRef"]["fieldPath"]
            == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        )
    gpus = checked(a_launch(a_pool(unit=8), 16))
    told = {each["name"]: each.get("value") for each in next(containers(gpus))["env"]}
    assert {k: told[k] for k in ("MASTER_ADDR", "PET_NNODES", "PET_NPROC_PER_NODE")} == {
        "MASTER_ADDR": "cw1-7-1-w-0-0.cw1-7-1",
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "8",
    }
    own = next(containers(checked(a_launch(a_pool(unit=8), 16, environment={"PET_NPROC_PER_NODE": "1"}))))["env"]
    assert [e["value"] for e in own if e["name"] == "PET_NPROC_PER_NODE"] == ["1"]  # a job's own word counts
    assert (
        gpus["kind"] == "JobSet"
        and "exclusive-topology" not in json.dumps(gpus)
        and "TPU_WORKER_ID" not in json.dumps(gpus)
    )


@pytest.mark.parametrize(
    ("at", "chips", "topology"),
    [(a_pool(unit=8), 16, ""), (a_pool("v5e", "tpu", 16, **V5E), 16, "4x4"), (a_pool(), 8, "")],
)
def test_pods_keep_off_nodes_that_are_drained(at, chips, topology):
    text = json.dumps(checked(a_launch(replace(at, avoid=("n-1", "n-2")), chips, topology)))
    (term,) = re.findall(r'"nodeSelectorTerms": (\[.*?\}\]\}\])', text)
    assert json.loads(term) == [
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in ("n-1", "n-2")]}
    ]
    assert "affinity" not in json.dumps(checked(a_launch(at, chips, topology)))


def test_a_queue_holds_the_job_back_until_it_admits_it():
    for kind, chips in (("job", 8), ("jobset", 8), ("rayjob", 8)):
        made = checked(a_launch(a_pool(kind=kind, queue="team"), chips))
        assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team" and made["spec"]["suspend"] is True


def test_spot_pools_ask_for_spot_nodes():
    made = checked(a_launch(a_pool(terms="spot", accelerator="nvidia-l4", selector="zone=a", tolerations="team=ml"), 1))
    pod = made["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {
        "zone": "a",
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-spot": "true",
    }
    assert {t["key"] for t in pod["tolerations"]} == {"nvidia.com/gpu", "cloud.google.com/gke-spot", "team"}


def test_secrets_are_references_and_nothing_else():
    made = checked(
        a_launch(
            a_pool(
                secret="vault", volume="data:/data", cpu="8", memory="64Gi", service_account="runner", priority="high"
            ),
            secrets=["HF_TOKEN"],
            environment={"HF_TOKEN": "must not be here", "CHIPWISE_FOLDER": "/data/x"},
        )
    )
    assert "must not" not in json.dumps(made)
    (container,) = containers(made)
    assert {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "vault", "key": "HF_TOKEN"}}} in container["env"]
    assert container["volumeMounts"] == [
        {"name": "shared", "mountPath": "/data"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    assert {"name": "CHIPWISE_FOLDER", "value": "/data/x"} in container["env"]
    assert made["spec"]["template"]["spec"]["serviceAccountName"] == "runner"


def test_shared_memory_is_as_the_pool_says_and_folders_that_no_pod_sees_are_not_named():
    sized, none = (
        checked(a_launch(a_pool(shm=size, volume="data:/data"), environment={"CHIPWISE_FOLDER": "/data2/x"}))
        for size in ("16Gi", "none")
    )
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}} in sized["spec"]["template"]["spec"][
        "volumes"
    ]
    assert [v["name"] for v in none["spec"]["template"]["spec"]["volumes"]] == ["shared"]
    assert "CHIPWISE_FOLDER" not in json.dumps(sized)
    for folder, fine in (("gs://b/x", True), ("/data/kept", True), ("/elsewhere/kept", False)):
        one = a_launch(a_pool(volume="data:/data"))
        one = replace(one, job=replace(one.job, checkpoint=Checkpoint(True, 60.0, folder)))
        if fine:
            checked(one)
        else:
            with pytest.raises(BackendRefused, match="ends with the pod"):
                checked(one)


def test_a_rayjob_gives_no_string_of_ours_to_a_shell():
    command = ("python", "x.py", "; rm -rf / #", "$(HOME)", "'\"")
    made = checked(
        a_launch(a_pool("v5e", "tpu", 16, kind="rayjob", ray_version="2.60.0", **V5E), 16, "4x4", command=command)
    )
    assert made["spec"]["entrypoint"] == checked(a_launch(a_pool(kind="rayjob"), 1))["spec"]["entrypoint"]
    assert made["spec"]["submissionMode"] == "HTTPMode" and made["spec"]["backoffLimit"] == 0
    (workers,) = made["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert (workers["numOfHosts"], workers["replicas"], workers["maxReplicas"]) == (4, 1, 1)
    head, worker = containers(made)
    argv = next(e["value"] for e in head["env"] if e["name"] == "CHIPWISE_ARGV")
    assert json.loads(argv.replace("$$", "$")) == list(command)
    made = checked(a_launch(a_pool(kind="rayjob", cpu="180", memory="900Gi"), 8))
    small, large = containers(made)
    assert "resources" not in small and large["resources"]["limits"]["cpu"] == "180"  # the head is no host of chips
    assert "resources" not in head and worker["resources"]["limits"] == {"google.com/tpu": "4"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": ""}, "has no image"),
        ({"secrets": ["X"]}, "names no Secret"),
        ({"environment": {"a b": "c"}}, "variable 'a b'"),
        ({"command": ("a\0b",)}, "NUL"),
        ({"command": ("\udcff",)}, "UTF-8"),
        ({"chips": 12, "pool": a_pool(unit=8)}, "whole number of hosts"),
        ({"pool": a_pool(kind="pod")}, "kind 'pod'"),
        ({"pool": a_pool(kind="job", unit=4)}, "headless service"),
        ({"pool": a_pool(selector="zone")}, "KEY=VALUE"),
        ({"pool": a_pool(volume="x")}, "CLAIM:/PATH"),
        ({"pool": a_pool(keep="soon")}, "seconds"),
        ({"pool": a_pool(host="many")}, "chips of a host"),
        ({"pool": a_pool("v5e", "tpu", **V5E), "topology": "2x2"}, "is not 8 chips"),
        ({"pool": a_pool(kind="rayjob"), "command": ()}, "needs one"),
        ({"pool": a_pool("v2", "tpu")}, "GKE's name of v2"),
    ],
)
def test_what_kubernetes_could_not_take_is_refused_in_words(change, words):
    settings = {"pool": a_pool(), "chips": 8} | change
    with pytest.raises(BackendRefused, match=words):
        checked(a_launch(**settings))


def test_what_is_rendered_is_yaml_for_kubectl():
    import yaml

    launch = a_launch(a_pool(queue="team"), owner="ann")
    backend = KubernetesBackend([launch.pool], "cw1")
    assert yaml.safe_load(backend.render(launch)) == checked(launch)
    assert backend.predicted_start(launch) is None
    assert checked(replace(launch, attempt="X" * 90))["metadata"]["annotations"]["chipwise-attempt"] == "X" * 90

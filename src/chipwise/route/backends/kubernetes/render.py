"""From an attempt to the object that Kubernetes gets: a Job, a JobSet for several hosts, or a RayJob.

What the keys of a pool's address say is in docs/kubernetes.md.
"""

from __future__ import annotations

import json
from math import ceil, prod
from pathlib import PurePosixPath
from typing import Any

from chipwise.catalog import Chip, load
from chipwise.catalog.slices import Gke
from chipwise.catalog.vendors import vendors
from chipwise.route.backend import BackendRefused, Launch
from chipwise.route.backends.kubernetes.names import (
    annotation,
    label_value,
    literal,
    object_name,
    pairs,
    secret_key,
    variable,
)
from chipwise.route.backends.secret_values import allowed_secrets
from chipwise.route.backends.torchrun import torchrun_variables
from chipwise.route.pool import Pool

Manifest = dict[str, Any]

KEYS = frozenset(
    {
        "accelerator",
        "cluster",
        "context",
        "cpu",
        "flavor",
        "host",
        "insecure",
        "keep",
        "kind",
        "kubeconfig",
        "memory",
        "namespace",
        "priority",
        "queue",
        "ray_version",
        "secret",
        "selector",
        "service",
        "service_account",
        "shm",
        "tolerations",
        "volume",
    }
)  # of a pool's address

# JobSet: api/jobset/v1alpha2 of kubernetes-sigs/jobset; RayJob: ray-operator/apis/ray/v1 of ray-project/kuberay; both
# read on 2026-11-15
KINDS = {
    "job": ("batch", "v1", "jobs", "Job"),
    "jobset": ("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),
    "rayjob": ("ray.io", "v1", "rayjobs", "RayJob"),
}
# https://kueue.sigs.k8s.io/docs/tasks/run/jobs, 2026-11-15
ATTEMPT, LEDGER, QUEUE = "chipwise-attempt", "chipwise-ledger", "kueue.x-k8s.io/queue-name"
# https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode, 2026-11-15
INDEX = "batch.kubernetes.io/job-completion-index"
KEEP_S = 7 * 86_400  # ended objects stay a week for a router that is away, unless the pool says otherwise
WORKERS = "w"  # the replicated job of a JobSet
TPU_LABEL, TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"
NODEPOOL_LABEL = "cloud.google.com/gke-nodepool"  # a slice over several hosts is a node pool of its own
# KubeRay gives the entry point to a shell. This text is always the same; the program and its arguments are data.
RAY_ENTRY = "python -c 'import json, os; a = json.loads(os.environ[\"CHIPWISE_ARGV\"]); os.execvp(a[0], a)'"


def manifest(launch: Launch, uid: str) -> Manifest:
    """The object of an attempt."""
    if not launch.variant.image:
        raise BackendRefused(f"kubernetes: variant {launch.variant.name} has no image")
    kind = kind_of(launch)
    document = {"job": _job, "jobset": _jobset, "rayjob": _rayjob}[kind](launch, uid)
    group, version, _, name = KINDS[kind]
    return {"apiVersion": f"{group}/{version}", "kind": name, **document}


def kind_of(launch: Launch) -> str:
    """Which kind of object an attempt is."""
    kind = launch.pool.setting("kind")
    if kind and kind not in KINDS:
        raise BackendRefused(f"kubernetes: kind {kind!r} is not accepted; expected {', '.join(KINDS)}")
    if kind == "job" and hosts_of(launch) > 1 and not launch.pool.setting("service"):
        raise BackendRefused(
            "kubernetes: a Job over several hosts needs a headless service (service: NAME); kind jobset brings its own"
        )
    return kind or ("job" if hosts_of(launch) == 1 else "jobset")


def kinds_of(pool: Pool) -> tuple[str, ...]:
    """Kinds of objects that a pool's attempts may be."""
    return (pool.setting("kind"),) if pool.setting("kind") in KINDS else ("job", "jobset")


def namespace_of(pool: Pool) -> str:
    """The namespace of a pool's attempts."""
    return pool.setting("namespace", "default")


def host_chips(pool: Pool, chips: int, topology: str) -> int:
    """Chips of one host: as the pool says, else as GKE's machines for a TPU slice have, else all on one.

    >>> tpu = Pool("v5e", "kubernetes", "v5e", "tpu", 256)
    >>> host_chips(tpu, 8, "2x4"), host_chips(tpu, 16, "4x4")
    (8, 4)
    >>> host_chips(Pool("v5p", "kubernetes", "v5p", "tpu", 256), 8, "2x2x2")
    4
    """
    if pool.setting("host"):
        if not pool.setting("host").isdigit() or not int(pool.setting("host")):
            raise BackendRefused(f"kubernetes: host {pool.setting('host')!r} is not accepted; expected chips of a host")
        return min(int(pool.setting("host")), chips)
    if topology:
        largest, gke = chip_of(pool).fabric.host_chips, gke_of(pool)
        return chips if chips <= largest else gke.host_chips if gke else largest
    return min(pool.unit, chips) if pool.unit > 1 else chips


def hosts_of(launch: Launch) -> int:
    """Hosts of an attempt; refused where they would not be alike."""
    chips = launch.option.chips
    host = host_chips(launch.pool, chips, launch.option.topology)
    if chips % host:
        raise BackendRefused(f"kubernetes: {chips} chips are no whole number of hosts of {host}")
    if launch.option.topology and prod(map(int, launch.option.topology.split("x"))) != chips:
        raise BackendRefused(f"kubernetes: topology {launch.option.topology} is not {chips} chips")
    return ceil(chips / host)


def chip_of(pool: Pool) -> Chip:
    """The catalog's chip of a pool."""
    chip = load().chips.get(pool.chip)
    if chip is None:
        raise BackendRefused(f"kubernetes: the catalog has no chip {pool.chip!r} of pool {pool.name}")
    return chip


def resource_of(pool: Pool) -> str:
    """What Kubernetes counts a pool's chips as: the resource of their vendor's device plugin."""
    if pool.family == "cpu":
        return "cpu"
    chip = chip_of(pool)
    vendor = vendors().get(chip.vendor)
    if vendor is None:
        raise BackendRefused(f"kubernetes: no device plugin is known for {chip.id} of pool {pool.name}")
    return vendor.kubernetes_resource


def gke_of(pool: Pool) -> Gke | None:
    """A pool's TPU on GKE; None for other chips, and where GKE has none."""
    slices = load().slices.get(pool.chip)
    return slices.gke if slices else None


def accelerator_of(pool: Pool) -> str:
    """GKE's name of a pool's chip: as the pool says, else by the chip where it is a TPU; empty: not asked for."""
    gke = gke_of(pool)
    name = pool.setting("accelerator") or (gke.accelerator if gke else "")
    if pool.family == "tpu" and not name and not pool.setting("selector"):
        raise BackendRefused(f"kubernetes: pool {pool.name} must say GKE's name of {pool.chip} (accelerator: NAME)")
    return name


def selector_of(pool: Pool, topology: str = "") -> dict[str, str]:
    """Labels of the nodes that a pool's pods go to."""
    labels = pairs(pool.setting("selector"), "selector")
    accelerator = accelerator_of(pool)
    if accelerator and pool.family == "tpu":
        labels[TPU_LABEL] = accelerator
        if topology:
            labels[TOPOLOGY_LABEL] = topology
    elif accelerator:
        labels["cloud.google.com/gke-accelerator"] = accelerator
    if accelerator and pool.spot:
        labels["cloud.google.com/gke-spot"] = "true"
    return labels


def tolerations_of(pool: Pool) -> list[dict[str, str]]:
    """Taints of nodes that a pool's pods put up with."""
    tolerations = []
    if pool.family != "cpu":
        tolerations.append({"key": resource_of(pool), "operator": "Exists", "effect": "NoSchedule"})
    if accelerator_of(pool) and pool.spot:
        tolerations.append(
            {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
        )
    for key, value in pairs(pool.setting("tolerations"), "tolerations").items():
        tolerations.append({"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"})
    return tolerations


def _labels(launch: Launch, uid: str) -> dict[str, str]:
    return {ATTEMPT: label_value(launch.attempt), LEDGER: label_value(uid), "app.kubernetes.io/managed-by": "chipwise"}


def _metadata(launch: Launch, uid: str, extra: dict[str, str] | None = None) -> Manifest:
    labels = _labels(launch, uid)
    if launch.pool.setting("queue"):
        labels[QUEUE] = label_value(launch.pool.setting("queue"))
    annotations = {
        "attempt": launch.attempt,
        "job": launch.job.name,
        "owner": launch.job.owner,
        "pool": launch.pool.name,
        "variant": launch.variant.name,
    }
    return {
        "name": object_name(launch.attempt),
        "namespace": namespace_of(launch.pool),
        "labels": labels,
        "annotations": {f"chipwise-{k}": annotation(v) for k, v in annotations.items() if v} | (extra or {}),
    }


def _environment(launch: Launch, hosts: list[str]) -> list[Manifest]:
    """Variables: the launch's, its secrets by reference, and a pod's rank among several."""
    variables = dict(launch.environment)
    _, mount = _volume(launch.pool)
    if not _inside(variables.get("CHIPWISE_FOLDER", ""), mount):
        variables.pop("CHIPWISE_FOLDER", None)  # a folder of the router's machine, which no pod sees
    checkpoints = launch.job.checkpoint.folder
    if checkpoints and "://" not in checkpoints and not _inside(checkpoints, mount):
        raise BackendRefused(
            f"kubernetes: checkpoints would go to {checkpoints}, which ends with the pod; expected a bucket "
            "(gs://...) or a folder of the pool's volume (volume: CLAIM:/PATH)"
        )
    placement = {"CHIPWISE_RANK", "CHIPWISE_WORLD", "CHIPWISE_HOSTS", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"}
    ours = {*launch.variant.secrets, *(placement if len(hosts) > 1 else ())}
    environment: list[Manifest] = [
        {"name": variable(k), "value": literal(v, f"variable {k}")} for k, v in variables.items() if k not in ours
    ]
    for name in allowed_secrets(launch):
        source = {"name": launch.pool.setting("secret"), "key": secret_key(name)}
        environment.append({"name": name, "valueFrom": {"secretKeyRef": source}})
    if len(hosts) > 1:
        rank = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
        names = ",".join(hosts)
        environment += [
            {"name": "CHIPWISE_RANK", "valueFrom": rank},
            {"name": "CHIPWISE_WORLD", "value": str(len(hosts))},
            {"name": "CHIPWISE_HOSTS", "value": names},
        ]
        if launch.pool.family == "tpu":
            environment += [
                {"name": "TPU_WORKER_ID", "valueFrom": rank},
                {"name": "TPU_WORKER_HOSTNAMES", "value": names},
            ]
        else:
            environment += [entry for entry in _torchrun(launch, hosts, rank) if entry["name"] not in variables]
    return environment


def _torchrun(launch: Launch, hosts: list[str], rank: Manifest) -> list[Manifest]:
    """What torchrun and torch.distributed read, so that they need no arguments; a job's own values come first."""
    processes = launch.option.chips // len(hosts) if launch.pool.family == "gpu" else 1
    variables = [{"name": k, "value": v} for k, v in torchrun_variables(hosts, processes).items()]
    return [*variables, {"name": "PET_NODE_RANK", "valueFrom": rank}]


def _pod(launch: Launch, uid: str, chips: int, environment: list[Manifest], command: bool = True) -> Manifest:
    """The template of a host's pod."""
    pool = launch.pool
    amounts = {k: pool.setting(k) for k in ("cpu", "memory") if pool.setting(k) and chips}
    if chips:
        amounts[resource_of(pool)] = str(chips)
    container: Manifest = {"name": "program", "image": launch.variant.image, "env": environment}
    if command and launch.variant.command:
        container["command"] = [literal(word, "an argument") for word in launch.variant.command]
    if amounts:
        container["resources"] = {"limits": amounts, "requests": amounts}
    spec: Manifest = {"restartPolicy": "Never", "containers": [container]}
    if chips:
        spec |= {"nodeSelector": selector_of(pool, launch.option.topology), "tolerations": tolerations_of(pool)}
    if pool.avoid:  # an entry each: the name of a node may be compared with one value only
        names = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in pool.avoid]
        required = {"nodeSelectorTerms": [{"matchFields": names}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if pool.setting("service_account"):
        spec["serviceAccountName"] = pool.setting("service_account")
    if pool.setting("priority"):
        spec["priorityClassName"] = pool.setting("priority")
    claim, path = _volume(pool)
    if claim:
        spec["volumes"] = [{"name": "shared", "persistentVolumeClaim": {"claimName": claim}}]
        container["volumeMounts"] = [{"name": "shared", "mountPath": path}]
    if chips and pool.family != "cpu" and pool.setting("shm") != "none":
        # a container has 64 MiB of /dev/shm, too little for NCCL and for loaders of data in processes of their own
        memory = {"medium": "Memory"} | ({"sizeLimit": pool.setting("shm")} if pool.setting("shm") else {})
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "shm", "emptyDir": memory}]
        container["volumeMounts"] = [*container.get("volumeMounts", ()), {"name": "shm", "mountPath": "/dev/shm"}]
    return {"metadata": {"labels": _labels(launch, uid)}, "spec": {k: v for k, v in spec.items() if v}}


def _volume(pool: Pool) -> tuple[str, str]:
    """A pool's volume claim, and where it is mounted; empty ones where it has none."""
    claim, _, path = pool.setting("volume").partition(":")
    if pool.setting("volume") and not (claim and path.startswith("/")):
        raise BackendRefused(f"kubernetes: volume {pool.setting('volume')!r} is not accepted; expected CLAIM:/PATH")
    return claim, path


def _inside(folder: str, mount: str) -> bool:
    return bool(mount) and PurePosixPath(folder).is_relative_to(mount)


def _keep(pool: Pool) -> int:
    if not pool.setting("keep", "0").isdigit():
        raise BackendRefused(f"kubernetes: keep {pool.setting('keep')!r} is not accepted; expected seconds")
    return int(pool.setting("keep") or KEEP_S)


def _job_spec(launch: Launch, uid: str, hosts: list[str]) -> Manifest:
    """The Job itself. It tries once: what is next is the router's to decide."""
    host = host_chips(launch.pool, launch.option.chips, launch.option.topology)
    template = _pod(launch, uid, host, _environment(launch, hosts))
    spec: Manifest = {
        "backoffLimit": 0,
        "completions": len(hosts),
        "parallelism": len(hosts),
        "completionMode": "Indexed",
        # a pod that its node took away: the attempt is lost, not failed
        "podFailurePolicy": {
            "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "template": template,
    }
    if launch.time_limit is not None:  # of the pods: a Job's own would count the wait for nodes too
        template["spec"]["activeDeadlineSeconds"] = max(ceil(launch.time_limit), 1)
    return spec


def _job(launch: Launch, uid: str) -> Manifest:
    count, name, service = hosts_of(launch), object_name(launch.attempt), launch.pool.setting("service")
    spec = _job_spec(launch, uid, [f"{name}-{i}.{service}" for i in range(count)])
    if service:
        spec["template"]["spec"]["subdomain"] = service
    spec["ttlSecondsAfterFinished"] = _keep(launch.pool)
    if launch.pool.setting("queue"):
        spec["suspend"] = True  # until Kueue admits it
    return {"metadata": _metadata(launch, uid), "spec": spec}


def _jobset(launch: Launch, uid: str) -> Manifest:
    count, name = hosts_of(launch), object_name(launch.attempt)
    hosts = [f"{name}-{WORKERS}-0-{i}.{name}" for i in range(count)]
    # hosts of a slice are the nodes of one node pool
    exclusive = {"alpha.jobset.sigs.k8s.io/exclusive-topology": NODEPOOL_LABEL}
    apart = launch.pool.family == "tpu" and bool(accelerator_of(launch.pool)) and count > 1
    spec: Manifest = {
        # the rule is there for its reason, by which disruption is told from failure after the pods are gone
        "failurePolicy": {
            "maxRestarts": 0,
            "rules": [{"name": "disrupted", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
        },
        "network": {"enableDNSHostnames": True, "subdomain": name},
        "replicatedJobs": [{"name": WORKERS, "replicas": 1, "template": {"spec": _job_spec(launch, uid, hosts)}}],
        "ttlSecondsAfterFinished": _keep(launch.pool),
    }
    if launch.pool.setting("queue"):
        spec["suspend"] = True
    return {"metadata": _metadata(launch, uid, exclusive if apart else None), "spec": spec}


def _rayjob(launch: Launch, uid: str) -> Manifest:
    count = hosts_of(launch)
    environment = _environment(launch, [""])
    if not launch.variant.command:
        raise BackendRefused(f"kubernetes: variant {launch.variant.name} has no command, and a RayJob needs one")
    for word in launch.variant.command:
        literal(word, "an argument")
    argv = json.dumps(list(launch.variant.command))
    head_environment = [*environment, {"name": "CHIPWISE_ARGV", "value": literal(argv, "an argument")}]
    host = host_chips(launch.pool, launch.option.chips, launch.option.topology)
    workers = {
        "groupName": "chips",
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "numOfHosts": count,
        "rayStartParams": {},
        "template": _pod(launch, uid, host, environment, command=False),
    }
    head = {"rayStartParams": {"num-cpus": "0"}, "template": _pod(launch, uid, 0, head_environment, command=False)}
    for template in (workers["template"], head["template"]):
        template["spec"].pop("restartPolicy")  # type: ignore[index]  # KubeRay's own
    cluster: Manifest = {"headGroupSpec": head, "workerGroupSpecs": [workers]}
    if launch.pool.setting("ray_version"):
        cluster["rayVersion"] = launch.pool.setting("ray_version")
    spec: Manifest = {
        "entrypoint": RAY_ENTRY,
        "submissionMode": "HTTPMode",
        "backoffLimit": 0,
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": cluster,
    }  # which frees the chips at once
    _keep(launch.pool)  # said in the pools file; the backend deletes RayJobs itself
    if launch.time_limit is not None:
        spec["activeDeadlineSeconds"] = max(ceil(launch.time_limit), 1)
    if launch.pool.setting("queue"):
        spec["suspend"] = True
    return {"metadata": _metadata(launch, uid), "spec": spec}

"""Templates of work: a JobSet for runs on a pool, a Deployment that follows its own load for a service."""

from __future__ import annotations

from typing import Any

from chipwise.deploy.deployment import NodePool, Role, Term
from chipwise.deploy.kubernetes.manifests import (
    ACCOUNT,
    NAMESPACE,
    QUEUE_LABEL,
    SAFE_TO_EVICT,
    SERVE_PRIORITY,
    TRAIN_PRIORITY,
    Manifest,
    node_selector,
    resource_of,
    text_of,
    tolerations,
)

# to be replaced: by digest, so that what was tested is what runs
IMAGE = "example.com/work@sha256:" + "0" * 64
# what the host keeps for itself and its daemons: the pod asks for the rest, so that it fits. GKE reserves 6 % of the
# first core and less of others, and 2 to 25 % of memory by size; https://cloud.google.com/kubernetes-engine/docs/
# concepts/plan-node-sizes, 2026-11-15; assumed: a tenth is enough for both on machines of this size
HOST_SHARE = 0.9
# vLLM's metric, as Managed Prometheus names it: https://cloud.google.com/stackdriver/docs/managed-prometheus/hpa,
# 2026-11-15
RUNNING = "prometheus.googleapis.com|vllm:num_requests_running|gauge"
MANAGED = {"app.kubernetes.io/managed-by": "chipwise"}


def jobset(pool: NodePool) -> str:
    """A run on the whole pool: a job a slice (of GPUs: one job), a pod a host."""
    replicas, pods = (pool.slices, pool.slice_hosts) if pool.topology else (1, pool.hosts)
    annotations = {}
    if pool.multi_host:
        # a slice is a node pool of its own: one job has it whole
        annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] = "cloud.google.com/gke-nodepool"
    job = {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"metadata": _pod_metadata(), "spec": {**_pod(pool, TRAIN_PRIORITY), "restartPolicy": "Never"}},
    }
    manifest: Manifest = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": pool.name,
            "namespace": NAMESPACE,
            "labels": {QUEUE_LABEL: pool.name, **MANAGED},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "suspend": True,
            # spot machines are taken away as a matter of course: the run starts again at its checkpoint
            "failurePolicy": {"maxRestarts": 10 if pool.term is Term.SPOT else 2},
            "network": {"enableDNSHostnames": True, "subdomain": pool.name},
            "replicatedJobs": [{"name": "workers", "replicas": replicas, "template": {"spec": job}}],
        },
    }
    why = (
        f"A run on the whole of {pool.name}; put your image (by digest) and command. Not applied by kustomize.\n"
        f"{replicas} x {pods} pods of {pool.host_chips} chips are the {pool.chips} chips of the pool."
    )
    return text_of([(why, manifest)])


def service(pool: NodePool) -> str:
    """A service whose replicas follow the requests that each has under way."""
    replica_chips = pool.replica_chips or pool.host_chips
    replicas = pool.chips // replica_chips
    labels = {"app": pool.name}
    pod = _pod(pool, SERVE_PRIORITY, replica_chips)
    pod["containers"][0]["ports"] = [{"name": "http", "containerPort": 8000}]
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": pool.name, "namespace": NAMESPACE, "labels": {**labels, QUEUE_LABEL: pool.name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": pool.name}},
            "template": {"metadata": {"labels": labels, "annotations": {SAFE_TO_EVICT: "false"}}, "spec": pod},
        },
    }
    rows: list[tuple[str, Manifest]] = [
        ("Put your image (by digest) and command. Not applied by kustomize.", deployment),
        (
            "Where the replicas are reached from inside the namespace.",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": pool.name, "namespace": NAMESPACE},
                "spec": {"selector": {"app": pool.name}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
            },
        ),
        (
            "One replica at a time may go for an upgrade of nodes.",
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": pool.name, "namespace": NAMESPACE},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": pool.name}}},
            },
        ),
    ]
    if pool.replica_requests:
        rows.append(_follow(pool, replicas))
    return text_of(rows)


def _follow(pool: NodePool, replicas: int) -> tuple[str, Manifest]:
    why = (
        f"A replica keeps the SLO with {pool.replica_requests:.3g} requests under way: the decision's figure.\n"
        "Needs the metrics adapter of the README; processors are no measure of a server of models."
    )
    metric = {"metric": {"name": RUNNING}, "target": {"type": "AverageValue", "averageValue": _quantity(pool)}}
    manifest: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": pool.name, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": pool.name},
            "minReplicas": max(1, pool.min_hosts * pool.host_chips // (pool.replica_chips or pool.host_chips)),
            "maxReplicas": replicas,
            "metrics": [{"type": "Pods", "pods": metric}],
        },
    }
    return why, manifest


def _quantity(pool: NodePool) -> str:
    return f"{round(pool.replica_requests * 1000)}m"


def _pod_metadata() -> Manifest:
    # the autoscaler doesn't move pods of a run to save a node: all of its hosts would start again
    return {"labels": dict(MANAGED), "annotations": {SAFE_TO_EVICT: "false"}}


def _pod(pool: NodePool, priority: str, chips: int | None = None) -> dict[str, Any]:
    """A pod on a pool's hosts; it takes its share of the host beside its chips."""
    taken = pool.host_chips if chips is None else chips
    share = HOST_SHARE * taken / pool.host_chips
    resources = {
        "cpu": str(max(1, int(pool.host_cpus * share))),
        "memory": f"{max(1, int(pool.host_memory_gib * share))}Gi",
        resource_of(pool): str(taken),
    }
    return {
        "serviceAccountName": ACCOUNT,
        "priorityClassName": priority,
        "nodeSelector": node_selector(pool),
        "tolerations": tolerations(pool),
        "containers": [
            {
                "name": "work",
                "image": IMAGE,
                "resources": {"requests": resources, "limits": {resource_of(pool): str(taken)}},
                "securityContext": {"allowPrivilegeEscalation": False},
            }
        ],
    }


def template(pool: NodePool) -> str:
    """The template that suits the pool's role."""
    return service(pool) if pool.role is Role.SERVE and not pool.multi_host else jobset(pool)

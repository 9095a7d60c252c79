"""Kueue: what of each pool may be used at once, and who waits."""

from __future__ import annotations

from chipwise.deploy.deployment import Deployment, NodePool, Term
from chipwise.deploy.kubernetes.manifests import (
    NAMESPACE,
    Manifest,
    node_selector,
    resource_of,
    text_of,
    tolerations,
)

API = "kueue.x-k8s.io/v1beta2"  # stored since Kueue 0.15; v1beta1 is deprecated. kubernetes-sigs/kueue, 2026-11-15
# https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest, 2026-11-15
QUEUED = "queued-provisioning.gke.io"


def queues(deployment: Deployment) -> str:
    """A flavor, a cluster queue and a local queue of each pool, in one cohort; checks of queued provisioning."""
    rows: list[tuple[str, Manifest]] = [
        (
            "All queues of this deployment: they may lend each other what none of them uses.",
            {"apiVersion": API, "kind": "Cohort", "metadata": {"name": deployment.name}},
        )
    ]
    for pool in deployment.pools:
        rows += _of_pool(pool, deployment.name)
    return text_of(rows)


def _of_pool(pool: NodePool, cohort: str) -> list[tuple[str, Manifest]]:
    flavor: Manifest = {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": {"name": pool.name},
        "spec": {"nodeLabels": node_selector(pool), "tolerations": tolerations(pool)},
    }
    rows = [(f"Nodes of the pool {pool.name}.", flavor)]
    spec: Manifest = {
        "cohortName": cohort,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [_group(pool)],
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    if pool.term is Term.FLEX_START:
        rows += _queued_provisioning(pool)
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": pool.name}]}
    cluster_queue: Manifest = {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": pool.name},
        "spec": spec,
    }
    why = (
        "Every resource that pods ask for is covered: a queue of chips alone refuses a job that says cpu or memory.\n"
        f"At most {pool.chips} chips: {pool.hosts} hosts of {pool.host_chips}."
    )
    local: Manifest = {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": pool.name, "namespace": NAMESPACE},
        "spec": {"clusterQueue": pool.name},
    }
    return [*rows, (why, cluster_queue), (f"What jobs of {pool.name} name.", local)]


def _group(pool: NodePool) -> Manifest:
    quotas = {
        "cpu": pool.hosts * pool.host_cpus,
        "memory": f"{pool.hosts * pool.host_memory_gib:g}Gi",
        resource_of(pool): pool.chips,
    }
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    return {"coveredResources": list(quotas), "flavors": [{"name": pool.name, "resources": resources}]}


def _queued_provisioning(pool: NodePool) -> list[tuple[str, Manifest]]:
    """Machines of flex-start come all at once or not at all: the job is admitted when they are there."""
    config: Manifest = {
        "apiVersion": API,
        "kind": "ProvisioningRequestConfig",
        "metadata": {"name": pool.name},
        "spec": {
            "provisioningClassName": QUEUED,
            "managedResources": [resource_of(pool)],
            "podSetUpdates": {
                "nodeSelector": [
                    {
                        "key": "autoscaling.gke.io/provisioning-request",
                        "valueFromProvisioningClassDetail": "ResizeRequestName",
                    }
                ]
            },
        },
    }
    check: Manifest = {
        "apiVersion": API,
        "kind": "AdmissionCheck",
        "metadata": {"name": pool.name},
        "spec": {
            "controllerName": "kueue.x-k8s.io/provisioning-request",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": pool.name},
        },
    }
    return [
        ("Capacity of flex-start is asked for as a whole.", config),
        ("A job of the queue is admitted once the machines are there.", check),
    ]

"""Manifests as text, and the names that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.deploy.deployment import NodePool

NAMESPACE = "jobs"  # of what the router submits
ACCOUNT = "jobs"  # the service account of the pods
POOL_LABEL = "chipwise-pool"  # of nodes: the node pools of Terraform have it
# https://kueue.sigs.k8s.io/docs/tasks/run/jobs, 2026-11-15
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"  # "false": the autoscaler leaves the pod's node alone
RESOURCES = {"tpu": "google.com/tpu", "gpu": "nvidia.com/gpu"}
TRAIN_PRIORITY, SERVE_PRIORITY = "train", "serve"
Manifest = dict[str, Any]


def text_of(manifests: Sequence[tuple[str, Manifest]]) -> str:
    """A file of several manifests, each beneath the lines that say why it is there."""
    import yaml

    documents = []
    for reason, manifest in manifests:
        comment = "".join(f"# {line}\n" for line in reason.splitlines())
        documents.append(comment + yaml.safe_dump(manifest, sort_keys=False, width=120))
    return "---\n".join(documents)


def resource_of(pool: NodePool) -> str:
    """What Kubernetes calls the chips of a pool."""
    return RESOURCES[pool.family]


def node_selector(pool: NodePool) -> dict[str, str]:
    """Labels of a pool's nodes."""
    labels = {POOL_LABEL: pool.name}
    if pool.family == "tpu":
        labels["cloud.google.com/gke-tpu-accelerator"] = pool.accelerator
        labels["cloud.google.com/gke-tpu-topology"] = pool.topology
    else:
        labels["cloud.google.com/gke-accelerator"] = pool.accelerator
    return labels


def tolerations(pool: NodePool) -> list[dict[str, str]]:
    """The taint of nodes with chips, which keeps everything else away from them."""
    return [{"key": resource_of(pool), "operator": "Equal", "value": "present", "effect": "NoSchedule"}]

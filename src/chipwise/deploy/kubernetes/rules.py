"""The namespace of the jobs: who acts there, who reaches whom, who goes first, what may not be disrupted."""

from __future__ import annotations

from chipwise.deploy.deployment import Deployment, Role
from chipwise.deploy.kubernetes.manifests import (
    ACCOUNT,
    NAMESPACE,
    SERVE_PRIORITY,
    TRAIN_PRIORITY,
    Manifest,
    text_of,
)

# classes of one's own may have at most 1,000,000,000; https://kubernetes.io/docs/concepts/scheduling-eviction/
# pod-priority-preemption, 2026-11-15. The values only order: people who wait come before runs, runs before the rest.
PRIORITIES = {TRAIN_PRIORITY: 1_000, SERVE_PRIORITY: 10_000}
PART = "app.kubernetes.io/part-of"


def namespace(deployment: Deployment) -> str:
    """The namespace, its account, priorities, network and disruption."""
    rows: list[tuple[str, Manifest]] = [
        (
            "Pods here may not take the host's network, its folders or more rights than a container has.",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": NAMESPACE,
                    "labels": {PART: deployment.name, "pod-security.kubernetes.io/enforce": "baseline"},
                },
            },
        ),
        (
            "The account of the pods: Terraform lets it read and write the bucket, and nothing else.",
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
                "automountServiceAccountToken": False,
            },
        ),
        *(_priority(name, value) for name, value in PRIORITIES.items()),
        (
            "Only pods of this namespace reach its pods: hosts of a slice talk to each other, nobody else to them.",
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "jobs-only", "namespace": NAMESPACE},
                "spec": {
                    "podSelector": {},
                    "policyTypes": ["Ingress"],
                    "ingress": [{"from": [{"podSelector": {}}]}],
                },
            },
        ),
    ]
    if any(pool.role is not Role.SERVE for pool in deployment.pools):
        rows.append(
            (
                "An upgrade of nodes waits for runs as long as it can (an hour on GKE): one evicted host ends a run.",
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": "runs", "namespace": NAMESPACE},
                    "spec": {
                        "maxUnavailable": 0,
                        "selector": {"matchLabels": {"app.kubernetes.io/managed-by": "chipwise"}},
                    },
                },
            )
        )
    return text_of(rows)


def _priority(name: str, value: int) -> tuple[str, Manifest]:
    return (
        f"{name}: {'people wait for its answers' if name == SERVE_PRIORITY else 'runs, after what people wait for'}.",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority",
            "description": f"Pods that {name}.",
        },
    )

"""The target: what GKE can't hold, every file of the tree, how to apply it, where the router reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.deploy.deployment import Deployment, Engine, NodePool, Problem, Provider, Role, Term, Undeployable
from chipwise.deploy.kubernetes.manifests import (
    ACCOUNT,
    NAMESPACE,
    POOL_LABEL,
    SERVE_PRIORITY,
    TRAIN_PRIORITY,
    text_of,
)
from chipwise.deploy.kubernetes.queues import queues
from chipwise.deploy.kubernetes.rules import namespace
from chipwise.deploy.kubernetes.work import template
from chipwise.deploy.targets.gke.terraform import terraform
from chipwise.deploy.targets.target import RouterSettings, Target
from chipwise.deploy.tree import TreeFile

LONGEST_CLUSTER = 40  # characters of a cluster's name, https://cloud.google.com/kubernetes-engine/quotas, 2026-11-15
# the release whose resources are written, 2026-11-15
KUEUE = "https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.0/manifests.yaml"


def check(deployment: Deployment) -> None:
    """Refuse what GKE can't hold."""
    for pool in deployment.pools:
        if pool.term is Term.OWNED:
            raise Undeployable(
                Problem.TERM, pool.name, "chips of one's own are not Google's to run", "write them for slurm, apart"
            )
        if pool.term is Term.RESERVED and not pool.reservation:
            raise Undeployable(
                Problem.NO_RESERVATION,
                pool.name,
                "reserved machines are taken of a reservation by its name, and none is given",
                f"--reservation {pool.name}=NAME, or --term {pool.name}=ondemand",
            )
    if len(deployment.name) > LONGEST_CLUSTER:
        raise Undeployable(
            Problem.NAME,
            "",
            f"the name {deployment.name} is too long",
            f"--name of at most {LONGEST_CLUSTER} characters",
        )


def tree(deployment: Deployment) -> list[TreeFile]:
    """Terraform, and the manifests of what runs in the cluster."""
    applied = {"namespace.yaml": namespace(deployment), "queues.yaml": queues(deployment)}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(applied),
    }
    return [
        *terraform(deployment),
        TreeFile(path="kubernetes/kustomization.yaml", text=text_of([("kubectl apply -k .", kustomization)])),
        *(TreeFile(path=f"kubernetes/{name}", text=text) for name, text in applied.items()),
        *(TreeFile(path=f"kubernetes/work/{pool.name}.yaml", text=template(pool)) for pool in deployment.pools),
    ]


def steps(deployment: Deployment) -> list[str]:
    """How to apply it."""
    zone = "" if deployment.zone else f" -var zone={deployment.region}-a"
    return [
        f"1. `terraform init`, then `terraform plan -var project=MY-PROJECT{zone}`: read it.",
        "   State stays in this folder until you add a backend (a bucket with versions) in a file of your own; files",
        "   that are not of deploy are never touched.",
        f"2. `terraform apply -var project=MY-PROJECT{zone}`, and the command of `terraform output -raw credentials`.",
        "3. Kueue and [JobSet](https://jobset.sigs.k8s.io/docs/installation), once a cluster:",
        f"   `kubectl apply --server-side -f {KUEUE}`.",
        "4. `kubectl apply -k kubernetes`: the namespace and the queues. `kubernetes/work` has a template a pool.",
        *_adapter(deployment),
        "5. `chipwise pools --pools pools.yaml` lists the pools, `chipwise router run --pools pools.yaml` sends jobs.",
    ]


def _adapter(deployment: Deployment) -> list[str]:
    """Services that follow their load read its metrics through an adapter."""
    if not any(pool.replica_requests for pool in deployment.pools):
        return []
    return [
        "   Services follow their own metrics through the",
        "   [adapter](https://cloud.google.com/stackdriver/docs/managed-prometheus/hpa) of Managed Prometheus.",
    ]


def router(deployment: Deployment) -> RouterSettings:
    """Where the router reaches the pools: the current context of the kubeconfig."""
    return RouterSettings(
        backend={"namespace": NAMESPACE},
        addresses={pool.name: _address(pool) for pool in deployment.pools},
    )


def _address(pool: NodePool) -> Mapping[str, Any]:
    address: dict[str, Any] = {
        "accelerator": pool.accelerator,
        "selector": {POOL_LABEL: pool.name},
        "queue": pool.name,
        "service_account": ACCOUNT,
        "priority": SERVE_PRIORITY if pool.role is Role.SERVE else TRAIN_PRIORITY,
    }
    if pool.family == "tpu":
        address["host"] = pool.host_chips
    return address


TARGET = Target(
    name="gke",
    title="a cluster of Google Kubernetes Engine, by Terraform",
    engine=Engine.KUBERNETES,
    provider=Provider.GCP,
    files=tree,
    steps=steps,
    router=router,
    check=check,
)

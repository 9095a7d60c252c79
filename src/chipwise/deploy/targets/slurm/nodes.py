"""Names of nodes and machines, and how long one may take: a slice is one machine with a node for each of its hosts."""

from __future__ import annotations

from chipwise.deploy.deployment import Deployment, NodePool, Provider, Term

# seconds that a machine may take from the request to a slurmd that registers: slurm-gcp's own defaults are 300 s for
# virtual machines, 600 s for TPUs (github.com/GoogleCloudPlatform/slurm-gcp, read 2026-11-19)
RESUME_TIMEOUT_S = {"gpu": 600, "tpu": 900}


def cloud_pool(pool: NodePool, deployment: Deployment) -> bool:
    """Whether its machines are made when jobs need them."""
    return deployment.provider is not Provider.ON_PREMISES and pool.term is not Term.OWNED


def machines_of(pool: NodePool, deployment: Deployment) -> dict[str, list[str]]:
    """Nodes of each machine of a pool."""
    if not pool.multi_host:
        return {name: [name] for name in node_names(pool, deployment)}
    machines = [f"{_stem(pool, deployment)}-{number}" for number in range(pool.slices)]
    return {machine: [f"{machine}-{host}" for host in range(pool.slice_hosts)] for machine in machines}


def node_names(pool: NodePool, deployment: Deployment) -> list[str]:
    """Every node of a pool."""
    if pool.multi_host:
        return [node for nodes in machines_of(pool, deployment).values() for node in nodes]
    return [f"{_stem(pool, deployment)}-{number}" for number in range(pool.hosts)]


def node_range(pool: NodePool, deployment: Deployment) -> str:
    """The nodes of a pool in Slurm's notation."""
    stem = _stem(pool, deployment)
    if not pool.multi_host:
        return f"{stem}-{_span(pool.hosts)}"
    return f"{stem}-{_span(pool.slices)}-{_span(pool.slice_hosts)}"


def _stem(pool: NodePool, deployment: Deployment) -> str:
    return f"{deployment.name}-{pool.name}"


def _span(count: int) -> str:
    return f"[0-{count - 1}]" if count > 1 else "0"

"""Google's commands for machines: Cloud TPU VMs and instances with GPUs."""

from __future__ import annotations

from math import prod
from typing import Any

from chipwise.deploy.deployment import Deployment, NodePool, Term

# software of Cloud TPU VMs by chip: https://docs.cloud.google.com/tpu/docs/runtimes, 2026-11-19. TPU7x is to be had by
# GKE alone (https://docs.cloud.google.com/tpu/docs/queued-resources, 2026-11-19)
TPU_RUNTIMES = {
    "v4": "tpu-ubuntu2204-base",
    "v5e": "v2-alpha-tpuv5-lite",
    "v5p": "v2-alpha-tpuv5",
    "v6e": "v2-alpha-tpuv6e",
}
# accelerator types by the number of chips; the others are named by topology
BY_CHIPS = {"v5e": "v5litepod", "v6e": "v6e"}
# what only the site knows, and is never written into the tree
SITE = {
    "project": "the Google Cloud project",
    "network": "the VPC network",
    "subnetwork": "the subnetwork of the region, with Private Google Access: machines have no address of their own",
    "service_account": "the account of the machines: it needs to read the munge key, and nothing else",
    "controller": "host name of slurmctld",
    "munge_secret": "the secret of Secret Manager with the munge key",
}
SITE_GPU = {"image": "an image with slurmd and the GPU's driver, projects/PROJECT/global/images/NAME"}
ENVIRONMENT = {"CLOUDSDK_CONFIG": "/var/spool/slurm/gcloud"}  # its user may have no home


def site(pool: NodePool) -> dict[str, str]:
    """What only the site knows of a pool's machines."""
    return SITE | (SITE_GPU if pool.family == "gpu" else {})


def placement(pool: NodePool, deployment: Deployment) -> dict[str, Any]:
    """A zone and terms with the commands of Google's there."""
    group = ["gcloud", "compute", *(["tpus", "tpu-vm"] if pool.family == "tpu" else ["instances"])]
    where = ["--project={project}", f"--zone={deployment.zone}", "--quiet"]
    labels = f"chipwise-cluster={deployment.name},chipwise-pool={pool.name}"
    metadata = "chipwise-nodes={nodes};chipwise-controller={controller};chipwise-munge-secret={munge_secret}"
    common = [
        *where,
        f"--labels={labels}",
        f"--metadata=^;^{metadata}",
        "--metadata-from-file=startup-script={folder}/node.sh",
        "--network={network}",
        "--service-account={service_account}",
        "--scopes=https://www.googleapis.com/auth/cloud-platform",
    ]
    create = [*group, "create", "{machine}", *common, *(_tpu(pool) if pool.family == "tpu" else _gpu(pool))]
    listing = [*group, "list", *where[:1], f"--{'zone' if pool.family == 'tpu' else 'zones'}={deployment.zone}"]
    filters = f"labels.chipwise-cluster={deployment.name} AND labels.chipwise-pool={pool.name}"
    alive = (
        " AND (state=READY OR state=CREATING)"
        if pool.family == "tpu"
        else " AND -status=TERMINATED AND -status=STOPPING"
    )
    return {
        "name": f"{deployment.zone} {pool.term}",
        "create": create,
        "remove": [*group, "delete", "{machine}", *where],
        "list": [*listing, f"--filter={filters}{alive}", "--format=value(name.basename())"],
    }


def _tpu(pool: NodePool) -> list[str]:
    if pool.chip in BY_CHIPS:
        chips = prod(int(axis) for axis in pool.topology.split("x"))
        kind = [f"--accelerator-type={BY_CHIPS[pool.chip]}-{chips}"]
    else:
        kind = [f"--type={pool.chip}", f"--topology={pool.topology}"]
    terms = {Term.SPOT: ["--spot"], Term.RESERVED: ["--reserved"]}.get(pool.term, [])
    return ["--subnetwork={subnetwork}", "--internal-ips", f"--version={TPU_RUNTIMES[pool.chip]}", *kind, *terms]


def _gpu(pool: NodePool) -> list[str]:
    terms = {
        Term.SPOT: ["--provisioning-model=SPOT", "--instance-termination-action=DELETE"],
        Term.RESERVED: ["--reservation-affinity=specific", f"--reservation={pool.reservation}"],
    }.get(pool.term, [])
    return [
        "--subnet={subnetwork}",
        "--no-address",
        f"--machine-type={pool.machine}",
        "--maintenance-policy=TERMINATE",
        "--image={image}",
        "--shielded-secure-boot",
        *terms,
    ]

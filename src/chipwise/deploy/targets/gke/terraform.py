"""Terraform of a private cluster, its pools of TPUs and GPUs, and a bucket."""

from __future__ import annotations

from chipwise.deploy.data_files import data_names, data_text
from chipwise.deploy.deployment import Deployment, NodePool, Role, Term
from chipwise.deploy.hcl import Raw, Value, block
from chipwise.deploy.kubernetes.manifests import ACCOUNT, NAMESPACE
from chipwise.deploy.tree import TreeFile

HEAD = "# Written by chipwise deploy write. A new decision: write again, and read the difference before you apply.\n\n"
LONGEST_CLUSTER = 40  # characters of a cluster's name, https://cloud.google.com/kubernetes-engine/quotas, 2026-11-15


def terraform(deployment: Deployment) -> list[TreeFile]:
    """The files of Terraform."""
    families = {pool.family for pool in deployment.pools}
    modules = ["network", "cluster", "bucket", *(f"{family}-pool" for family in sorted(families))]
    return [
        TreeFile(path="main.tf", text=HEAD + main(deployment)),
        TreeFile(path="variables.tf", text=variables(deployment)),
        TreeFile(path="outputs.tf", text=OUTPUTS),
        TreeFile(path="versions.tf", text=data_text("gke", "versions.tf")),
        *(file for name in modules for file in _module(name)),
    ]


def _module(name: str) -> list[TreeFile]:
    folder = ("gke", "modules", name)
    named = [file for file in data_names(*folder) if file.endswith(".tf")]
    return [TreeFile(path=f"modules/{name}/{file}", text=data_text(*folder, file)) for file in named]


def main(deployment: Deployment) -> str:
    """The root module: a network, a cluster, and a module a pool."""
    common: dict[str, Value] = {"project": Raw("var.project")}
    network = block(
        "module",
        ["network"],
        {"source": "./modules/network", **common, "name": Raw("var.name"), "region": Raw("var.region")},
    )
    cluster = block(
        "module",
        ["cluster"],
        {
            "source": "./modules/cluster",
            **common,
            "name": Raw("var.name"),
            "node_account": Raw("var.node_account"),
            "region": Raw("var.region"),
            "network": Raw("module.network.network"),
            "subnetwork": Raw("module.network.subnetwork"),
            "authorized_networks": Raw("var.authorized_networks"),
            "deletion_protection": Raw("var.deletion_protection"),
            "labels": Raw("var.labels"),
        },
    )
    bucket = block(
        "module",
        ["bucket"],
        {
            "source": "./modules/bucket",
            **common,
            "name": Raw("var.name"),
            "region": Raw("var.region"),
            "namespace": NAMESPACE,
            "account": ACCOUNT,
            "labels": Raw("var.labels"),
        },
    )
    provider = block("provider", ["google"], {**common, "region": Raw("var.region")})
    return "\n".join([provider, network, cluster, bucket, *(_pool(pool) for pool in deployment.pools)])


def _pool(pool: NodePool) -> str:
    body: dict[str, Value] = {
        "source": f"./modules/{pool.family}-pool",
        "project": Raw("var.project"),
        "name": pool.name,
        "cluster": Raw("module.cluster.id"),
        "region": Raw("var.region"),
        "zone": Raw("var.zone"),
        "node_account": Raw("module.cluster.node_account"),
        "machine_type": pool.machine,
    }
    if pool.family == "tpu":
        body |= {
            "topology": pool.topology,
            "slices": pool.slices,
            "min_slices": pool.min_hosts // pool.slice_hosts,
            "hosts_per_slice": pool.slice_hosts,
            "workload_policy": pool.chip == "v7x",
        }
    else:
        body |= {
            "accelerator": pool.accelerator,
            "gpus_per_node": pool.host_chips,
            "nodes": pool.hosts,
            "min_nodes": pool.min_hosts,
            "compact": pool.hosts > 1 and pool.role is not Role.SERVE,
        }
    body["term"] = str(pool.term)
    if pool.reservation:
        body["reservation"] = pool.reservation
    if pool.max_seconds is not None and pool.term is Term.FLEX_START:
        body["max_run_duration"] = f"{pool.max_seconds:.0f}s"
    labels: dict[str, Value] = {"chip": pool.chip, "terms": str(pool.term), **dict(pool.labels)}
    body["labels"] = Raw("merge(var.labels, { " + ", ".join(f'{k} = "{v}"' for k, v in labels.items()) + " })")
    return block("module", [f"pool_{pool.name.replace('-', '_')}"], body)


def variables(deployment: Deployment) -> str:
    """The variables of the root module; only the project, and the zone where none was named, have no default."""
    region, zone, name = deployment.region, deployment.zone, deployment.name
    default_zone = f'  default     = "{zone}"\n' if zone else ""
    account = (f"{name}-nodes" if len(name) <= 24 else f"{name[:24].rstrip('-')}-nodes")[:30]
    return f"""variable "project" {{
  type        = string
  description = "The project's ID."

  validation {{
    condition     = can(regex("^[a-z][a-z0-9-]{{4,28}}[a-z0-9]$", var.project))
    error_message = "A project ID: 6 to 30 lower case letters, digits and dashes."
  }}
}}

variable "name" {{
  type        = string
  description = "What the cluster and its network are called."
  default     = "{name}"

  validation {{
    condition     = can(regex("^[a-z][a-z0-9-]{{0,38}}[a-z0-9]$", var.name))
    error_message = "At most 40 lower case letters, digits and dashes."
  }}
}}

variable "node_account" {{
  type        = string
  description = "The ID of the service account that the nodes act as."
  default     = "{account}"
}}

variable "region" {{
  type        = string
  description = "Where the cluster lies; its prices are those of the decision."
  default     = "{region}"

  validation {{
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region such as us-central1."
  }}
}}

variable "zone" {{
  type        = string
  description = "The zone of the machines with chips: ask where your quota or reservation is."
{default_zone}
  validation {{
    condition     = startswith(var.zone, "${{var.region}}-")
    error_message = "A zone of the region."
  }}
}}

variable "authorized_networks" {{
  type        = map(string)
  description = "Networks that reach the API server: {{ office = \\"192.0.2.0/24\\" }}."
  default     = {{}}
}}

variable "deletion_protection" {{
  type        = bool
  description = "Whether the cluster can't be destroyed."
  default     = true
}}

variable "labels" {{
  type        = map(string)
  description = "Labels of everything, by which the bill is split."
  default = {{
    deployment = "{name}"
  }}
}}
"""


OUTPUTS = """locals {
  get_credentials = "gcloud container clusters get-credentials ${module.cluster.name}"
}

output "cluster" {
  value       = module.cluster.name
  description = "The cluster's name."
}

output "bucket" {
  value       = module.bucket.url
  description = "Where checkpoints and data lie."
}

output "credentials" {
  value       = "${local.get_credentials} --region ${var.region} --project ${var.project}"
  description = "The command that writes the kubeconfig."
}
"""

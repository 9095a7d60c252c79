"""Google Kubernetes Engine: Terraform of a private cluster and its pools, and what Kubernetes is told of them."""

from chipwise.deploy.targets.gke.cluster import TARGET

__all__ = ["TARGET"]

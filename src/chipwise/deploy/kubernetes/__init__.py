"""Kubernetes manifests that any cluster takes: queues of Kueue, templates of work, rules of the namespace."""

"""Names that option lists, files and tables show. Importing this module imports nothing heavy."""

from __future__ import annotations

DEFAULT_POLICY = (
    "cheapest-within-deadline"  # of `router run` and `simulate`, and of `jobs submit` before a router has one
)
JOB_STATES = ("pending", "running", "succeeded", "failed", "cancelled")  # as Slurm and Kubernetes call them
BACKENDS = ("local", "slurm", "ray", "kubernetes")  # ours, each a package of `route.backends`
BACKEND_GROUP = "chipwise.backends"  # entry points of other packages: the function that makes a backend


def backend_names() -> tuple[str, ...]:
    """Every backend that a pools file may name: ours, and those of installed packages."""
    from importlib.metadata import entry_points

    return (*BACKENDS, *sorted({point.name for point in entry_points(group=BACKEND_GROUP)} - set(BACKENDS)))

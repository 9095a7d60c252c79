"""Names that option lists, files and tables show. Importing this module imports nothing else."""

DEFAULT_POLICY = "cheapest-within-deadline"  # of `simulate`, and of `jobs submit` before a router has said its own
JOB_STATES = ("pending", "running", "succeeded", "failed", "cancelled")  # as Slurm and Kubernetes call them

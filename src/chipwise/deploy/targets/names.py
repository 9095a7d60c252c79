"""Targets by name. Importing this module imports nothing heavy."""

from __future__ import annotations

# name and the module that has it as `TARGET`, imported when the target is used
TARGETS = {
    "gke": "chipwise.deploy.targets.gke",
    "slurm": "chipwise.deploy.targets.slurm.target",
}

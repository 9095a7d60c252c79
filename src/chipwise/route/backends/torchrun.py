"""The environment of torchrun and torch.distributed: a program over several hosts needs no arguments.

Standard library alone: Ray's actors carry it to nodes that have no chipwise.
"""

from __future__ import annotations

from collections.abc import Sequence

MASTER_PORT = "29500"  # torchrun's own: https://docs.pytorch.org/docs/stable/elastic/run.html, 2026-11-15


def torchrun_variables(hosts: Sequence[str], processes: int) -> dict[str, str]:
    """The variables that all hosts of a job share; which of them one is (PET_NODE_RANK), its backend adds.

    >>> torchrun_variables(["a", "b"], 8)["PET_NPROC_PER_NODE"]
    '8'
    """
    return {
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": MASTER_PORT,
        "PET_MASTER_ADDR": hosts[0],
        "PET_MASTER_PORT": MASTER_PORT,
        "PET_NNODES": str(len(hosts)),
        "PET_NPROC_PER_NODE": str(processes),
    }

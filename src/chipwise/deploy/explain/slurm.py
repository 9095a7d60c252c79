"""Jobs of Slurm that wait, by its own reason codes (https://slurm.schedmd.com/job_reason_codes.html, 2026-11-19)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chipwise.deploy.explain.records import Wait, WaitingJob
from chipwise.route.backend import PENDING
from chipwise.route.backends.slurm.read import STATES, SlurmJob

REASONS = {
    "Resources": Wait.CHIPS_TAKEN,
    "Priority": Wait.PRIORITY,
    "Dependency": Wait.DEPENDENCY,
    "DependencyNeverSatisfied": Wait.NEVER,
    "BeginTime": Wait.NOT_YET,
    "JobHeldUser": Wait.HELD,
    "JobHeldAdmin": Wait.HELD,
    "Licenses": Wait.LIMIT,
    "NodeDown": Wait.NODES_AWAY,
    "Reservation": Wait.NODES_AWAY,
    "ReservationDeleted": Wait.NEVER,
    "BadConstraints": Wait.NEVER,
    "PartitionConfig": Wait.NEVER,
    "PartitionNodeLimit": Wait.NEVER,
    "PartitionTimeLimit": Wait.NEVER,
    "PartitionDown": Wait.QUEUE_STOPPED,
    "PartitionInactive": Wait.QUEUE_STOPPED,
    "ReqNodeNotAvail": Wait.NODES_AWAY,
    "InvalidAccount": Wait.NO_QUEUE,
    "InvalidQOS": Wait.NO_QUEUE,
}
LIMITS = re.compile(r"(Assoc|QOS)(Grp|Max)|QOS\w*Limit|Association\w*Limit|AssocMax")


def waiting(jobs: Sequence[SlurmJob]) -> list[WaitingJob]:
    """Every job that waits."""
    return [
        WaitingJob(kind="Slurm job", name=f"{job.id} {job.name}".strip(), wait=wait_of(job.reason), because=job.reason)
        for job in jobs
        if STATES[job.state][0] == PENDING
    ]


def wait_of(reason: str) -> Wait:
    """The reason code as ours.

    >>> str(wait_of("QOSMaxGRESPerUser")), str(wait_of("ReqNodeNotAvail: UnavailableNodes:n1"))
    ('limit of its account', 'nodes away')
    """
    code = re.split(r"[^A-Za-z]", reason, maxsplit=1)[0]
    if LIMITS.match(code):
        return Wait.LIMIT
    return REASONS.get(code, Wait.HELD if "held" in reason.lower() else Wait.OTHER)

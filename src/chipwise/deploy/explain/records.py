"""What waits and for what. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Wait(StrEnum):
    """What a job waits for."""

    NO_QUEUE = "no queue"
    QUEUE_STOPPED = "queue stopped"
    NOT_QUEUED = "not queued"
    RESOURCE_NOT_COVERED = "resource not covered"
    OVER_QUOTA = "over quota"
    QUOTA_USED = "quota used"
    TOPOLOGY = "topology"
    FLAVOR = "no flavor"
    CHECK = "admission check"
    CHECK_REJECTED = "admission check rejected"
    STOCKOUT = "stockout"
    CLOUD_QUOTA = "cloud quota"
    CAPACITY_REVOKED = "capacity revoked"
    STUCK_REQUEST = "stuck request"
    PROVISIONING = "machines being made"
    POOL_AT_LIMIT = "pool at its limit"
    TAINT = "taint"
    SELECTOR = "selector"
    CHIPS_TAKEN = "chips taken"
    HOST_TAKEN = "host resources taken"
    IMAGE = "image"
    CONFIGURATION = "configuration"
    VOLUME = "volume"
    GATED = "gated"
    SUSPENDED = "suspended"
    DEACTIVATED = "deactivated"
    PREEMPTED = "preempted"
    DEPENDENCY = "dependency"
    PRIORITY = "priority"
    HELD = "held"
    NOT_YET = "not yet"
    LIMIT = "limit of its account"
    NODES_AWAY = "nodes away"
    NEVER = "never"
    OTHER = "other"


# what to do about it
REMEDIES = {
    Wait.NO_QUEUE: "create the queue, or name one that is there: kubectl get localqueues -A",
    Wait.QUEUE_STOPPED: "kubectl get clusterqueue -o yaml: its stopPolicy, or flavors and checks that nobody has",
    Wait.NOT_QUEUED: "label it kueue.x-k8s.io/queue-name, or set suspend to false where no queue is meant",
    Wait.RESOURCE_NOT_COVERED: "add the resource to coveredResources of the cluster queue: others are refused",
    Wait.OVER_QUOTA: "it never fits: ask for less, or raise nominalQuota or the borrowing limit",
    Wait.QUOTA_USED: "wait, raise nominalQuota, or let it borrow or preempt",
    Wait.TOPOLOGY: "free hosts that belong together, or ask for a topology level further up",
    Wait.FLAVOR: "its selector and tolerations match no flavor: kubectl get resourceflavors -o yaml",
    Wait.CHECK: "wait for the check, or ask what runs it: kubectl get admissionchecks -o yaml",
    Wait.CHECK_REJECTED: "what runs the check has refused it: it will not start as it is",
    Wait.STOCKOUT: "the cloud has none there: another zone, other terms, or a reservation",
    Wait.CLOUD_QUOTA: "the project's quota at the cloud is used up: ask for more, or another region",
    Wait.CAPACITY_REVOKED: "the cloud took the machines back: it is queued again, or submit it again",
    Wait.STUCK_REQUEST: "nobody retries it (kubernetes/autoscaler#9490): delete it, and Kueue makes another",
    Wait.PROVISIONING: "wait: machines are being made",
    Wait.POOL_AT_LIMIT: "the node pool may not grow: raise its maximum, or wait for other jobs",
    Wait.TAINT: "tolerate the taint that is named, or ask for other nodes",
    Wait.SELECTOR: "no node has its labels: compare accelerator and topology with kubectl get nodes --show-labels",
    Wait.CHIPS_TAKEN: "all chips of such nodes are in use: wait, or add nodes",
    Wait.HOST_TAKEN: "chips are free, processors or memory of their hosts are not: ask for less of them",
    Wait.IMAGE: "the image can't be pulled: its name, and the node's right to read it",
    Wait.CONFIGURATION: "a config map or a secret that it names is not there",
    Wait.VOLUME: "a volume is not bound, or lies in another zone",
    Wait.GATED: "a queue holds it: kubectl get workloads -A -o json says why",
    Wait.SUSPENDED: "a queue or a person has suspended it",
    Wait.DEACTIVATED: "set spec.active of its workload to true",
    Wait.PREEMPTED: "it was stopped for another job and waits again",
    Wait.DEPENDENCY: "it waits for another job",
    Wait.PRIORITY: "jobs of higher priority are first",
    Wait.HELD: "scontrol release lets it go",
    Wait.NOT_YET: "it starts later: its begin time, or the pause after it was put back into the queue",
    Wait.LIMIT: "its user, account or QOS may not have more at once: sacctmgr show assoc",
    Wait.NODES_AWAY: "the nodes it asks for are down, drained or reserved: sinfo -R says why",
    Wait.NEVER: "no node of the partition can ever hold it: ask for less on each, or another partition",
    Wait.OTHER: "",
}
# of several reasons of one job the first is told: what has to change before it can ever start, then what to wait for
ORDER = tuple(Wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that waits, and why."""

    kind: str  # as its engine calls it: Workload, Pod, Job of Slurm's
    name: str
    namespace: str = ""
    wait: Wait
    because: str  # in the engine's words
    pods: int = 1  # how many of its parts wait so
    since: datetime | None = None  # when it was made

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.wait]

"""Objects of Kubernetes and Kueue as reasons: conditions first, then what the scheduler and the autoscaler wrote.

Conditions have typed reasons where their makers have them; what only stands in a message is found there by the words
that kube-scheduler, cluster-autoscaler and Kueue write (1.29 to 1.37, Kueue 0.9 to 0.19; read 2026-11-19).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from chipwise.deploy.explain.records import ORDER, Wait, WaitingJob

CHIP = re.compile(r"Insufficient (google\.com/tpu|nvidia\.com/gpu|amd\.com/gpu|aws\.amazon\.com/neuron\w*)")
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
STUCK_S = 2 * 3600.0  # that a request for machines is accepted and neither made nor refused: kubernetes/autoscaler#9490
# words of messages, first match wins
KUEUE_WORDS = (
    (Wait.NO_QUEUE, re.compile(r"(Local|Cluster)Queue \S+ (doesn't|does not) exist", re.IGNORECASE)),
    (Wait.QUEUE_STOPPED, re.compile(r"(Local|Cluster)Queue \S+ is (inactive|stopped)|is inactive", re.IGNORECASE)),
    (Wait.RESOURCE_NOT_COVERED, re.compile(r"resource \S+ unavailable in ClusterQueue")),
    (Wait.OVER_QUOTA, re.compile(r"request > maximum capacity|insufficient quota for")),
    (Wait.TOPOLOGY, re.compile(r"topology .*(allow|fit)")),
    (Wait.FLAVOR, re.compile(r"flavor \S+ doesn't match|untolerated taint .* in flavor|doesn't match node affinity")),
    (Wait.QUOTA_USED, re.compile(r"insufficient unused quota|couldn't assign flavors")),
)
SCHEDULER_WORDS = (
    (Wait.VOLUME, re.compile(r"unbound immediate PersistentVolumeClaims|volume node affinity|persistentvolumeclaim")),
    (Wait.CHIPS_TAKEN, CHIP),
    (Wait.HOST_TAKEN, re.compile(r"Insufficient (cpu|memory|ephemeral-storage)")),
    (Wait.TAINT, re.compile(r"untolerated taint")),
    (Wait.SELECTOR, re.compile(r"didn't match Pod's node affinity/selector")),
)
AUTOSCALER_WORDS = (
    (Wait.CLOUD_QUOTA, re.compile(r"quota", re.IGNORECASE)),
    (Wait.STOCKOUT, re.compile(r"out of resources|OUT_OF_RESOURCES|stockout|exhausted", re.IGNORECASE)),
    (Wait.POOL_AT_LIMIT, re.compile(r"max node group size reached|max cluster .* limit reached")),
)
WAITING = {
    "ImagePullBackOff": Wait.IMAGE,
    "ErrImagePull": Wait.IMAGE,
    "InvalidImageName": Wait.IMAGE,
    "CreateContainerConfigError": Wait.CONFIGURATION,
    "CreateContainerError": Wait.CONFIGURATION,
}
SCALE_UP = frozenset({"NotTriggerScaleUp", "FailedScaleUp"})


def waiting(items: Sequence[Mapping[str, Any]], now: datetime) -> list[WaitingJob]:
    """Every object that waits. Pods of one owner with one reason are one line; those that a workload tells of, none."""
    events = _events(items)
    jobs: list[WaitingJob] = []
    for item in items:
        reader = READERS.get(str(item.get("kind")))
        job = reader(item, events, now) if reader else None
        if job is not None:
            jobs.append(job)
    owners = {_owner(item) for item in items if item.get("kind") == "Workload"}
    return _grouped([job for job in jobs if job.wait not in (Wait.GATED, Wait.SUSPENDED) or job.name not in owners])


def _grouped(jobs: Iterable[WaitingJob]) -> list[WaitingJob]:
    groups: dict[tuple[str, str, str, Wait], list[WaitingJob]] = {}
    for job in jobs:
        groups.setdefault((job.kind, job.namespace, job.name, job.wait), []).append(job)
    return [
        WaitingJob(
            kind=kind,
            name=name,
            namespace=namespace,
            wait=wait,
            because=group[0].because,
            pods=len(group),
            since=min((job.since for job in group if job.since is not None), default=None),
        )
        for (kind, namespace, name, wait), group in groups.items()
    ]


def _events(items: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Events by the namespace and name of what they are of, the last first."""
    events: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for item in items:
        if item.get("kind") == "Event":
            about = item.get("involvedObject") or item.get("regarding") or {}
            events.setdefault((str(about.get("namespace", "")), str(about.get("name", ""))), []).append(item)
    for group in events.values():
        group.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), reverse=True)
    return events


def _meta(item: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = item.get("metadata")
    return meta if isinstance(meta, Mapping) else {}


def _conditions(item: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    rows = (item.get("status") or {}).get("conditions") or []
    return {str(row.get("type")): row for row in rows if isinstance(row, Mapping)}


def _owner(item: Mapping[str, Any]) -> str:
    """What it belongs to: its job set, its job, or itself."""
    meta = _meta(item)
    labels = meta.get("labels") or {}
    owners = meta.get("ownerReferences") or []
    by_reference = str(owners[0].get("name", "")) if owners else ""
    return str(labels.get("jobset.sigs.k8s.io/jobset-name") or by_reference or meta.get("name", ""))


def _since(item: Mapping[str, Any]) -> datetime | None:
    """When it was made."""
    try:
        return datetime.fromisoformat(str(_meta(item).get("creationTimestamp")).replace("Z", "+00:00")).astimezone(UTC)
    except ValueError:
        return None


def _job(item: Mapping[str, Any], name: str, wait: Wait, because: str) -> WaitingJob:
    meta = _meta(item)
    return WaitingJob(
        kind=str(item.get("kind")),
        name=name,
        namespace=str(meta.get("namespace", "")),
        wait=wait,
        because=" ".join(because.split()),
        since=_since(item),
    )


def _first(words: Iterable[tuple[Wait, re.Pattern[str]]], message: str, default: Wait) -> Wait:
    return next((wait for wait, pattern in words if pattern.search(message)), default)


Events = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]


def _workload(item: Mapping[str, Any], events: Events, now: datetime) -> WaitingJob | None:
    """A workload of Kueue: it has no quota yet, or a check that is not ready."""
    conditions = _conditions(item)
    if any(_is(conditions, kind) for kind in ("Finished", "Admitted")):
        return None
    name = _owner(item)
    if (item.get("spec") or {}).get("active") is False:
        why = str(conditions.get("Evicted", {}).get("message") or "spec.active is false")
        return _job(item, name, Wait.DEACTIVATED, why)
    if _is(conditions, "QuotaReserved"):
        checks = (item.get("status") or {}).get("admissionChecks") or []
        late = [check for check in checks if check.get("state") != "Ready"]
        if not late:
            return _job(item, name, Wait.CHECK, "it has its quota and is not admitted yet")
        check = min(late, key=lambda check: check.get("state") != "Rejected")
        wait = Wait.CHECK_REJECTED if check.get("state") == "Rejected" else Wait.CHECK
        message = str(check.get("message") or f"state {check.get('state')}")
        wait = _first(AUTOSCALER_WORDS, message, wait)
        return _job(item, name, wait, f"{check.get('name')}: {message}")
    quota = conditions.get("QuotaReserved", {})
    message = str(quota.get("message") or "")
    if not message:
        evicted = conditions.get("Evicted", {})
        if _is(conditions, "Evicted") and evicted.get("reason") == "Preempted":
            return _job(item, name, Wait.PREEMPTED, str(evicted.get("message") or "preempted"))
        return _job(item, name, Wait.OTHER, "Kueue has not said why")
    return _job(item, name, _first(KUEUE_WORDS, message, Wait.OTHER), message)


def _is(conditions: Mapping[str, Mapping[str, Any]], kind: str) -> bool:
    return str(conditions.get(kind, {}).get("status")) == "True"


def _provisioning(item: Mapping[str, Any], events: Events, now: datetime) -> WaitingJob | None:
    """A request for machines, by what cluster-autoscaler says of it."""
    conditions, name = _conditions(item), _owner(item)
    for kind, wait in (("Failed", Wait.STOCKOUT), ("CapacityRevoked", Wait.CAPACITY_REVOKED)):
        if _is(conditions, kind):
            message = str(conditions[kind].get("message") or conditions[kind].get("reason") or kind)
            return _job(item, name, _first(AUTOSCALER_WORDS, message, wait), message)
    if _is(conditions, "Provisioned"):
        return None
    made = conditions.get("Provisioned", {})
    message = str(made.get("message") or made.get("reason") or "accepted, and no word of machines since")
    since = _since(item)
    late = since is not None and (now - since).total_seconds() > STUCK_S
    if not made and _is(conditions, "Accepted") and late:
        return _job(item, name, Wait.STUCK_REQUEST, message)
    if made.get("reason") in ("CapacityIsNotFound", "OutOfResources"):
        return _job(item, name, Wait.STOCKOUT, message)
    return _job(item, name, _first(AUTOSCALER_WORDS, message, Wait.PROVISIONING), message)


def _pod(item: Mapping[str, Any], events: Events, now: datetime) -> WaitingJob | None:
    """A pod that is not scheduled, or whose containers can't start."""
    status = item.get("status") or {}
    if status.get("phase") != "Pending":
        return None
    name = _owner(item)
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = (container.get("state") or {}).get("waiting") or {}
        if state.get("reason") in WAITING:
            return _job(item, name, WAITING[state["reason"]], str(state.get("message") or state["reason"]))
    scheduled = _conditions(item).get("PodScheduled", {})
    if str(scheduled.get("status")) == "True":
        return None
    if scheduled.get("reason") == "SchedulingGated":
        gates = ", ".join(str(gate.get("name")) for gate in (item.get("spec") or {}).get("schedulingGates") or [])
        return _job(item, name, Wait.GATED, f"held by {gates or 'a scheduling gate'}")
    meta = _meta(item)
    mine = events.get((str(meta.get("namespace", "")), str(meta.get("name", ""))), [])
    reasons = [_unschedulable(str(scheduled.get("message") or ""))]
    for event in mine:
        message = str(event.get("message") or event.get("note") or "")
        if event.get("reason") in SCALE_UP:
            reasons.append((_first(AUTOSCALER_WORDS, message, Wait.OTHER), message))
        elif event.get("reason") == "FailedScheduling":
            reasons.append(_unschedulable(message))
        elif event.get("reason") == "TriggeredScaleUp":
            reasons.append((Wait.PROVISIONING, message))
    named = [(wait, message) for wait, message in reasons if wait is not Wait.OTHER]
    if not named:
        message = next((message for _, message in reasons if message), "the scheduler has not said why")
        return _job(item, name, Wait.OTHER, message)
    wait, message = min(named, key=lambda reason: ORDER.index(reason[0]))
    return _job(item, name, wait, message)


def _unschedulable(message: str) -> tuple[Wait, str]:
    """What the scheduler says of nodes: where some lack chips alone, chips are what is missing."""
    return _first(SCHEDULER_WORDS, message, Wait.OTHER), message


def _job_set(item: Mapping[str, Any], events: Events, now: datetime) -> WaitingJob | None:
    """A job or job set that is suspended: by a queue, or by nobody who would start it."""
    if not (item.get("spec") or {}).get("suspend"):
        return None
    name = _owner(item)
    queue = (_meta(item).get("labels") or {}).get(QUEUE_LABEL)
    if not queue:
        return _job(item, name, Wait.NOT_QUEUED, f"it is suspended and has no label {QUEUE_LABEL}: nobody starts it")
    return _job(item, name, Wait.SUSPENDED, f"suspended; queue {queue}")


READERS = {
    "Workload": _workload,
    "ProvisioningRequest": _provisioning,
    "Pod": _pod,
    "Job": _job_set,
    "JobSet": _job_set,
}

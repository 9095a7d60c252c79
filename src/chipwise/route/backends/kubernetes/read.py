"""Attempt states and free capacity, read from Kubernetes objects, pods, nodes and queues. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from math import prod
from typing import Any

from chipwise.route.backend import FAILED, LOST, PENDING, RUNNING, SUCCEEDED, AttemptStatus, BackendDown, Capacity
from chipwise.route.backends.answers import readable, sound
from chipwise.route.backends.kubernetes.render import (
    ATTEMPT,
    NODEPOOL_LABEL,
    TOPOLOGY_LABEL,
    resource_of,
    tolerations_of,
)
from chipwise.route.pool import Pool

Object = Mapping[str, Any]

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
_SUFFIX: dict[str, int | Decimal] = {
    "": 1,
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
# what a pod says when its node went away under it, where the pod itself has no condition for it
GONE = frozenset({"NodeLost", "Evicted", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "NodeAffinity"})
# the reason of a JobSet that failed by the rule for disruptions (pkg/constants of kubernetes-sigs/jobset, 2026-11-15)
DISRUPTED = "FailJobSetFailurePolicyAction"


def quantity(text: object) -> int:
    """Whole units of a quantity, rounded down.

    >>> quantity("8"), quantity("2k"), quantity("1500m"), quantity(4)
    (8, 2000, 1, 4)
    """
    match = _QUANTITY.fullmatch(str(text))
    try:
        return int(Decimal(match[1]) * _SUFFIX[match[2] or ""]) if match else 0
    except InvalidOperation:
        return 0


def moment(text: object) -> float | None:
    """Seconds since 1970 of a time as Kubernetes writes it."""
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp() if text else None
    except ValueError:
        return None


def attempt_of(item: Object) -> str:
    """The attempt that an object carries."""
    metadata = item.get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(ATTEMPT) or (metadata.get("labels") or {}).get(ATTEMPT) or "")


def label_of(item: Object) -> str:
    """The attempt's label, which its pods carry too."""
    return str(((item.get("metadata") or {}).get("labels") or {}).get(ATTEMPT) or "")


@readable("kubernetes")
def attempt_status(kind: str, item: Object, backend_id: str, pods: Sequence[Object]) -> AttemptStatus:
    """An attempt as its object and its pods show it."""
    status = item.get("status") or {}
    if kind == "rayjob":
        state, reason = _ray_state(status)
    else:
        state, reason = _job_state(status, "Completed" if kind == "jobset" else "Complete")
    if state == FAILED and (disrupted := _disruption(reason, pods)):
        state, reason = LOST, disrupted
    elif state == FAILED:
        reason = "; ".join(filter(None, (_fault(pods), reason)))
    if state in ("", PENDING):
        state, reason = _by_pods(item, status, pods, reason)
    if (item.get("metadata") or {}).get("deletionTimestamp"):
        reason = "it is being deleted"
    info = status.get("rayJobInfo") or {}
    begun = [t for pod in pods for t in _times(pod, "startedAt")]
    ended = [t for pod in pods for t in _times(pod, "finishedAt")]
    over = state in (SUCCEEDED, FAILED, LOST)
    started = min(begun, default=None) or moment(info.get("startTime"))
    if over or state == RUNNING:
        started = started or moment(status.get("startTime"))
    last = moment(status.get("completionTime") or status.get("endTime") or info.get("endTime"))
    status_now = AttemptStatus(
        attempt_of(item),
        backend_id,
        state,
        _exit_code(state, pods),
        started,
        (last or max(ended, default=None) or _changed(status)) if over else None,
        ",".join(sorted({str(n) for p in pods if (n := (p.get("spec") or {}).get("nodeName"))})),
        reason,
    )
    return sound(status_now)


def ended_at(kind: str, item: Object) -> float | None:
    """When an object ended; None while it has not."""
    status = attempt_status(kind, item, "", ())
    return status.ended if status.state in (SUCCEEDED, FAILED, LOST) else None


def _words(item: Object) -> str:
    """The reason and the message of a status or a condition."""
    return ": ".join(str(part) for part in (item.get("reason"), item.get("message")) if part)


def _changed(status: Object) -> float | None:
    """When a condition last became what it is."""
    return max((t for c in status.get("conditions") or () if (t := moment(c.get("lastTransitionTime")))), default=None)


def _job_state(status: Object, complete: str) -> tuple[str, str]:
    """The state of a Job or JobSet by its conditions, and its words."""
    for condition in status.get("conditions") or ():
        if condition.get("status") != "True":
            continue
        if condition.get("type") == complete:
            return SUCCEEDED, ""
        if condition.get("type") == "Failed":
            return FAILED, _words(condition)
    return "", ""


def _ray_state(status: Object) -> tuple[str, str]:
    job, deployment = status.get("jobStatus") or "", status.get("jobDeploymentStatus") or ""
    words = _words(status)
    if job == "SUCCEEDED" or (deployment == "Complete" and job not in ("FAILED", "STOPPED")):
        return SUCCEEDED, ""
    if job in ("FAILED", "STOPPED") or deployment == "Failed":
        return FAILED, words or job
    return (RUNNING, "") if job == "RUNNING" else (PENDING, words or deployment)


def _disruption(reason: str, pods: Sequence[Object]) -> str:
    """Why the failure is not the program's: its node took a pod away."""
    for pod in pods:
        status = pod.get("status") or {}
        for condition in status.get("conditions") or ():
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
                return _words({"reason": "DisruptionTarget", **condition})
        if status.get("reason") in GONE:
            return _words(status)
    by_rule = reason.startswith(DISRUPTED) or ("PodFailurePolicy" in reason and "DisruptionTarget" in reason)
    return reason if by_rule else ""


def _fault(pods: Sequence[Object]) -> str:
    """What a failed pod says of itself, such as DeadlineExceeded; and why its container ended, such as OOMKilled."""
    for pod in pods:
        status = pod.get("status") or {}
        if status.get("phase") != "Failed":
            continue
        if status.get("reason"):
            return _words(status)
        for container in status.get("containerStatuses") or ():
            ended = (container.get("state") or {}).get("terminated") or {}
            if ended.get("reason") not in (None, "Error", "Completed"):
                return _words(ended)
    return ""


def _by_pods(item: Object, status: Object, pods: Sequence[Object], reason: str) -> tuple[str, str]:
    """Whether an attempt that has not ended runs; what it waits for otherwise."""
    phases = [(pod.get("status") or {}).get("phase") for pod in pods]
    wanted = _wanted_pods(item.get("spec") or {})
    if (item.get("spec") or {}).get("suspend") and "Running" not in phases:
        return PENDING, "its queue has not admitted it"
    if phases and all(phase in ("Running", "Succeeded", "Failed") for phase in phases) and len(phases) >= wanted:
        return RUNNING, ""
    for pod in pods:
        if obstacle := _obstacle(pod):
            return PENDING, obstacle
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Suspended" and condition.get("status") == "True":
            return PENDING, "its queue has not admitted it"
    return PENDING, reason


def _wanted_pods(spec: Object) -> int:
    """Pods of a Job, of a JobSet, or of the cluster of a RayJob."""
    sets = [
        (int(r.get("replicas") or 1), ((r.get("template") or {}).get("spec") or {}).get("parallelism") or 1)
        for r in spec.get("replicatedJobs") or ()
    ]
    if sets:
        return sum(replicas * int(pods) for replicas, pods in sets)
    groups = (spec.get("rayClusterSpec") or {}).get("workerGroupSpecs")
    if groups:
        return 1 + sum(int(g.get("replicas") or 0) * int(g.get("numOfHosts") or 1) for g in groups)
    return int(spec.get("parallelism") or 1)


def _obstacle(pod: Object) -> str:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _words(condition)
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return _words(waiting)
    return ""


def _times(pod: Object, key: str) -> Iterable[float]:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            if isinstance(state, Mapping) and (time := moment(state.get(key))):
                yield time


def _exit_code(state: str, pods: Sequence[Object]) -> int | None:
    """0 of one that is done; of one that failed, the first code that is not 0."""
    if state == SUCCEEDED:
        return 0
    codes = [
        ended.get("exitCode")
        for pod in pods
        for c in (pod.get("status") or {}).get("containerStatuses") or ()
        if (ended := (c.get("state") or {}).get("terminated"))
    ]
    return next((int(code) for code in codes if code), None) if state == FAILED else None


@readable("kubernetes")
def node_capacity(pool: Pool, nodes: Sequence[Object], pods: Sequence[Object]) -> Capacity:
    """Chips of nodes that are ready and take pods, less what pods hold; in whole units of a host, or whole slices."""
    resource = resource_of(pool)
    held: dict[str, int] = {}
    for pod in pods:  # those that are being ended hold theirs until they have
        spec = pod.get("spec") or {}
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed") and spec.get("nodeName"):
            name = str(spec["nodeName"])
            held[name] = held.get(name, 0) + sum(_wanted(c, resource) for c in spec.get("containers") or ())
    tolerated = tolerations_of(pool)
    total = free = down = 0
    for size, group in _slices(pool, nodes, resource):
        chips = [quantity(((node.get("status") or {}).get("allocatable") or {}).get(resource, 0)) for node in group]
        taken = [held.get(str((node.get("metadata") or {}).get("name")), 0) for node in group]
        if sum(chips) < size or not all(_works(node, tolerated) and name_of(node) not in pool.avoid for node in group):
            down += max(sum(chips), size)
        elif size:
            total, free = total + size, free + (0 if any(taken) else size)
        else:
            unit = max(min(pool.unit, chips[0]), 1)
            total += chips[0] // unit * unit
            free += max(chips[0] - taken[0], 0) // unit * unit
    return Capacity(min(total, pool.count), min(free, pool.count), down, f"{len(nodes)} nodes")


def _slices(pool: Pool, nodes: Sequence[Object], resource: str) -> Iterable[tuple[int, Sequence[Object]]]:
    """Nodes that are taken together, with their chips; 0 and one node where it may be taken in part.

    The hosts of a TPU slice go to one job, and a slice of a topology that the pool does not have is not the pool's.
    """
    wanted = {topology for _, topology in pool.shapes}
    slices: dict[str, tuple[int, list[Object]]] = {}
    for node in nodes:
        metadata = node.get("metadata") or {}
        labels = metadata.get("labels") or {}
        topology = str(labels.get(TOPOLOGY_LABEL) or "")
        if not re.fullmatch(r"[0-9]{1,6}(x[0-9]{1,6})*", topology):
            yield 0, [node]
        elif not wanted or topology in wanted:
            size = prod(map(int, topology.split("x")))
            status = node.get("status") or {}
            own = any(quantity((status.get(key) or {}).get(resource, 0)) >= size for key in ("capacity", "allocatable"))
            name = str(metadata.get("name") if own else labels.get(NODEPOOL_LABEL) or metadata.get("name"))
            slices.setdefault(name, (size, []))[1].append(node)
    yield from slices.values()


def name_of(item: Object) -> str:
    """The name of an object."""
    return str((item.get("metadata") or {}).get("name") or "")


def _wanted(container: Object, resource: str) -> int:
    amounts = container.get("resources") or {}
    return quantity((amounts.get("requests") or {}).get(resource, (amounts.get("limits") or {}).get(resource, 0)))


def _works(node: Object, tolerated: Sequence[Mapping[str, str]] = ()) -> bool:
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in (node.get("status") or {}).get("conditions") or ()
    )
    spec = node.get("spec") or {}
    return (
        ready
        and not spec.get("unschedulable")
        and all(
            any(_tolerates(toleration, taint) for toleration in tolerated)
            for taint in spec.get("taints") or ()
            if taint.get("effect") in ("NoSchedule", "NoExecute")
        )
    )


def _tolerates(toleration: Mapping[str, str], taint: Object) -> bool:
    return (
        toleration["key"] == taint.get("key")
        and toleration["effect"] == taint.get("effect")
        and (toleration["operator"] == "Exists" or toleration.get("value", "") == (taint.get("value") or ""))
    )


# fields of ClusterQueue in v1beta1, with what v1beta2 has in their place: kubernetes-sigs/kueue, apis, 2026-11-17
DROPPED = {"cohort": "cohortName", "admissionChecks": "admissionChecksStrategy.admissionChecks"}


@readable("kubernetes")
def queue_capacity(pool: Pool, queue: Object, local: Object) -> Capacity:
    """The quota of a cluster queue, less what workloads have reserved. What could be borrowed is not counted.

    Fields: apis/kueue/v1beta2 of kubernetes-sigs/kueue, 2026-11-15.
    """
    resource, flavor = resource_of(pool), pool.setting("flavor")

    def chosen(flavors: Iterable[Object], key: str) -> int:
        return sum(
            quantity(r.get(key, 0))
            for f in flavors
            if not flavor or f.get("name") == flavor
            for r in f.get("resources") or ()
            if r.get("name") == resource
        )

    _refuse_dropped(queue)
    groups = (queue.get("spec") or {}).get("resourceGroups")
    if not isinstance(groups, Sequence):
        raise BackendDown(f"kubernetes: the queue of pool {pool.name} has no quotas that can be read")
    total = sum(chosen(group.get("flavors") or (), "nominalQuota") for group in groups)
    used = chosen((queue.get("status") or {}).get("flavorsReservation") or (), "total")
    if held := _held_back(queue) or _held_back(local):
        return Capacity(0, 0, min(total, pool.count), f"its queue takes nothing: {held}")
    pending = (queue.get("status") or {}).get("pendingWorkloads") or 0
    return Capacity(
        min(total, pool.count),
        min(max(total - used, 0), pool.count),
        0,
        f"quota of Kueue, {pending} workloads wait; what could be borrowed is not counted",
    )


def _refuse_dropped(queue: Object) -> None:
    """Say that a queue was written for an older API: Kueue passes over such a field, and the queue is not as meant."""
    for field, instead in DROPPED.items():
        if field in (queue.get("spec") or {}):
            name = (queue.get("metadata") or {}).get("name", "")
            raise BackendDown(
                f"kubernetes: ClusterQueue {name}: spec.{field} is no field of kueue.x-k8s.io/v1beta2; "
                f"expected spec.{instead}"
            )


def _held_back(queue: Object) -> str:
    """Why a queue admits nothing; empty where it does."""
    policy = (queue.get("spec") or {}).get("stopPolicy") or "None"
    if policy != "None":
        return f"stopPolicy {policy}"
    for condition in (queue.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Active" and condition.get("status") == "False":
            return _words(condition) or "it is not active"
    return ""

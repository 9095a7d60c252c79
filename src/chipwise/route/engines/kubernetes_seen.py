"""What objects, pods, nodes and queues of Kubernetes say about attempts and room. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from chipwise.route.engine import DONE, FAILED, LOST, PENDING, RUNNING, EngineDown, Room, Seen
from chipwise.route.engines.kubernetes_render import ATTEMPT, RESOURCES
from chipwise.route.pool import Pool

Object = Mapping[str, Any]

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
_SUFFIX: dict[str, int | Decimal] = {
    "": 1, "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
# what a pod says when its node went away under it, where the pod itself has no condition for it
GONE = frozenset({"NodeLost", "Evicted", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "NodeAffinity"})


def quantity(text: object) -> int:
    """Whole units of a quantity, rounded down.

    >>> quantity("8"), quantity("2k"), quantity("1500m"), quantity(4)
    (8, 2000, 1, 4)
    """
    found = _QUANTITY.fullmatch(str(text))
    try:
        return int(Decimal(found[1]) * _SUFFIX[found[2] or ""]) if found else 0
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


def seen(kind: str, item: Object, engine_id: str, pods: Sequence[Object]) -> Seen:
    """An attempt as its object and its pods show it."""
    status = item.get("status") or {}
    if kind == "rayjob":
        state, reason = _ray_state(status)
    else:
        state, reason = _job_state(status, "Completed" if kind == "jobset" else "Complete")
    if state == FAILED and (disrupted := _disruption(reason, pods)):
        state, reason = LOST, disrupted
    if state in ("", PENDING):
        state, reason = _by_pods(item, status, pods, reason)
    if (item.get("metadata") or {}).get("deletionTimestamp"):
        reason = "it is being deleted"
    info = status.get("rayJobInfo") or {}
    begun = [t for pod in pods for t in _times(pod, "startedAt")]
    ended = [t for pod in pods for t in _times(pod, "finishedAt")]
    over = state in (DONE, FAILED, LOST)
    started = min(begun, default=None) or moment(info.get("startTime"))
    if over or state == RUNNING:
        started = started or moment(status.get("startTime"))
    last = moment(status.get("completionTime") or status.get("endTime") or info.get("endTime"))
    return Seen(attempt_of(item), engine_id, state, _exit_code(state, pods), started,
                (last or max(ended, default=None) or _changed(status)) if over else None,
                ",".join(sorted({str(n) for p in pods if (n := (p.get("spec") or {}).get("nodeName"))})), reason)


def ended_at(kind: str, item: Object) -> float | None:
    """When an object ended; None while it has not."""
    found = seen(kind, item, "", ())
    return found.ended if found.state in (DONE, FAILED, LOST) else None


def _changed(status: Object) -> float | None:
    """When a condition last became what it is."""
    return max((t for c in status.get("conditions") or () if (t := moment(c.get("lastTransitionTime")))), default=None)


def _job_state(status: Object, complete: str) -> tuple[str, str]:
    """The state of a Job or JobSet by its conditions, and its words."""
    for condition in status.get("conditions") or ():
        if condition.get("status") != "True":
            continue
        words = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
        if condition.get("type") == complete:
            return DONE, ""
        if condition.get("type") == "Failed":
            return FAILED, words
    return "", ""


def _ray_state(status: Object) -> tuple[str, str]:
    job, deployment = status.get("jobStatus") or "", status.get("jobDeploymentStatus") or ""
    words = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    if job == "SUCCEEDED" or (deployment == "Complete" and job not in ("FAILED", "STOPPED")):
        return DONE, ""
    if job in ("FAILED", "STOPPED") or deployment == "Failed":
        return FAILED, words or job
    return (RUNNING, "") if job == "RUNNING" else (PENDING, words or deployment)


def _disruption(reason: str, pods: Sequence[Object]) -> str:
    """Why the failure is not the program's: its node took a pod away."""
    for pod in pods:
        status = pod.get("status") or {}
        for condition in status.get("conditions") or ():
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
                return f"{condition.get('reason', 'DisruptionTarget')}: {condition.get('message', '')}".rstrip(": ")
        if status.get("reason") in GONE:
            return f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
    return reason if "PodFailurePolicy" in reason and "DisruptionTarget" in reason else ""


def _by_pods(item: Object, status: Object, pods: Sequence[Object], reason: str) -> tuple[str, str]:
    """Whether an attempt that has not ended runs; what it waits for otherwise."""
    phases = [(pod.get("status") or {}).get("phase") for pod in pods]
    wanted = _wanted_pods(item.get("spec") or {})
    if phases and all(phase in ("Running", "Succeeded", "Failed") for phase in phases) and len(phases) >= wanted:
        return RUNNING, ""
    for pod in pods:
        if found := _waits(pod):
            return PENDING, found
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Suspended" and condition.get("status") == "True":
            return PENDING, "its queue has not admitted it"
    if (item.get("spec") or {}).get("suspend"):
        return PENDING, "its queue has not admitted it"
    return PENDING, reason


def _wanted_pods(spec: Object) -> int:
    """Pods of a Job, of a JobSet, or of the cluster of a RayJob."""
    sets = [(int(r.get("replicas") or 1), ((r.get("template") or {}).get("spec") or {}).get("parallelism") or 1)
            for r in spec.get("replicatedJobs") or ()]
    if sets:
        return sum(replicas * int(pods) for replicas, pods in sets)
    groups = (spec.get("rayClusterSpec") or {}).get("workerGroupSpecs")
    if groups:
        return 1 + sum(int(g.get("replicas") or 0) * int(g.get("numOfHosts") or 1) for g in groups)
    return int(spec.get("parallelism") or 1)


def _waits(pod: Object) -> str:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    return ""


def _times(pod: Object, key: str) -> Iterable[float]:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            if isinstance(state, Mapping) and (found := moment(state.get(key))):
                yield found


def _exit_code(state: str, pods: Sequence[Object]) -> int | None:
    """0 of one that is done; of one that failed, the first code that is not 0."""
    if state == DONE:
        return 0
    codes = [ended.get("exitCode") for pod in pods for c in (pod.get("status") or {}).get("containerStatuses") or ()
             if (ended := (c.get("state") or {}).get("terminated"))]
    return next((int(code) for code in codes if code), None) if state == FAILED else None


def room_of_nodes(pool: Pool, nodes: Sequence[Object], pods: Sequence[Object]) -> Room:
    """Chips of nodes that are ready and take pods, less what pods hold; in whole units of a host."""
    resource = RESOURCES[pool.family]
    held: dict[str, int] = {}
    for pod in pods:
        spec = pod.get("spec") or {}
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed") and spec.get("nodeName"):
            name = str(spec["nodeName"])
            held[name] = held.get(name, 0) + sum(_wanted(c, resource) for c in spec.get("containers") or ())
    total = free = down = 0
    for node in nodes:
        chips = quantity(((node.get("status") or {}).get("allocatable") or {}).get(resource, 0))
        unit = max(min(pool.unit, chips), 1)
        if _works(node):
            total += chips // unit * unit
            free += max(chips - held.get(str((node.get("metadata") or {}).get("name")), 0), 0) // unit * unit
        else:
            down += chips
    return Room(min(total, pool.count), min(free, pool.count), down, f"{len(nodes)} nodes")


def _wanted(container: Object, resource: str) -> int:
    amounts = container.get("resources") or {}
    return quantity((amounts.get("requests") or {}).get(resource, (amounts.get("limits") or {}).get(resource, 0)))


def _works(node: Object) -> bool:
    ready = any(c.get("type") == "Ready" and c.get("status") == "True"
                for c in (node.get("status") or {}).get("conditions") or ())
    return ready and not (node.get("spec") or {}).get("unschedulable")


def room_of_queue(pool: Pool, queue: Object) -> Room:
    """The quota of a cluster queue, less what workloads have reserved. What could be borrowed is not counted."""
    resource, flavor = RESOURCES[pool.family], pool.at("flavor")

    def chosen(flavors: Iterable[Object], key: str) -> int:
        return sum(quantity(r.get(key, 0)) for f in flavors if not flavor or f.get("name") == flavor
                   for r in f.get("resources") or () if r.get("name") == resource)

    groups = (queue.get("spec") or {}).get("resourceGroups")
    if not isinstance(groups, Sequence):
        raise EngineDown(f"kubernetes: the queue of pool {pool.name} has no quotas that can be read")
    total = sum(chosen(group.get("flavors") or (), "nominalQuota") for group in groups)
    used = chosen((queue.get("status") or {}).get("flavorsReservation") or (), "total")
    waiting = (queue.get("status") or {}).get("pendingWorkloads") or 0
    return Room(min(total, pool.count), min(max(total - used, 0), pool.count), 0,
                f"quota of Kueue, {waiting} workloads wait; what could be borrowed is not counted")

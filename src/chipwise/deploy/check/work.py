"""The chain from a pod to its chips: queue, quota, selector, toleration, priority, account, and pods that divide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.check.findings import Defect, Finding
from chipwise.deploy.check.machine_pools import WrittenPool
from chipwise.deploy.check.objects import KubeObject
from chipwise.deploy.check.schema import nearest
from chipwise.deploy.kubernetes.manifests import POOL_LABEL, QUEUE_LABEL, RESOURCES, SAFE_TO_EVICT

TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
# these are there without being written; https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption,
# 2026-11-19
BUILT_IN = {"system-cluster-critical", "system-node-critical", "default"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Pods of one kind that an object starts."""

    owner: KubeObject
    where: str  # of the pods in it
    pod: Mapping[str, Any]  # the pod's spec
    metadata: Mapping[str, Any]  # the pod's
    pods: int  # of each job, or replicas
    jobs: int = 1


def check_work(objects: list[KubeObject], pools: Mapping[str, WrittenPool]) -> Iterator[Finding]:
    """Everything that would keep a pod pending without a word."""
    cluster = _Cluster(objects, pools)
    for item in objects:
        if item.kind == "ClusterQueue":
            yield from cluster.check_queue(item)
        elif item.kind == "LocalQueue" and item.spec.get("clusterQueue") not in cluster.names("ClusterQueue"):
            queue = str(item.spec.get("clusterQueue"))
            fix = nearest(queue, cluster.names("ClusterQueue"))
            yield item.finding(Defect.QUEUE, "spec.clusterQueue", f"there is no queue {queue}", fix)
        for group in pod_groups(item):
            yield from cluster.check_pods(group)


def pod_groups(item: KubeObject) -> Iterator[PodGroup]:
    """The pods of a JobSet, a Job or a Deployment."""
    if item.kind == "JobSet":
        for index, job in enumerate(_list(item.spec.get("replicatedJobs"))):
            spec = _map(_map(job.get("template")).get("spec"))
            where = f"spec.replicatedJobs[{index}].template.spec"
            yield _group(item, where, spec, _count(spec.get("completions")), _count(job.get("replicas")))
    elif item.kind == "Job":
        yield _group(item, "spec", item.spec, _count(item.spec.get("completions")), 1)
    elif item.kind == "Deployment":
        yield _group(item, "spec", item.spec, _count(item.spec.get("replicas")), 1)


def _group(item: KubeObject, where: str, spec: Mapping[str, Any], pods: int, jobs: int) -> PodGroup:
    template = _map(spec.get("template"))
    return PodGroup(
        owner=item,
        where=f"{where}.template",
        pod=_map(template.get("spec")),
        metadata=_map(template.get("metadata")),
        pods=pods,
        jobs=jobs,
    )


class _Cluster:
    """The objects by kind and name."""

    def __init__(self, objects: list[KubeObject], pools: Mapping[str, WrittenPool]) -> None:
        self.pools = pools
        self.objects = {(item.kind, item.name): item for item in objects}

    def names(self, kind: str) -> set[str]:
        """Names of the objects of a kind."""
        return {name for of, name in self.objects if of == kind}

    def check_queue(self, item: KubeObject) -> Iterator[Finding]:
        """A queue's flavors and checks are there, and its quota is what the pool has."""
        for group in _list(item.spec.get("resourceGroups")):
            for flavor in _list(group.get("flavors")):
                name = str(flavor.get("name"))
                if name not in self.names("ResourceFlavor"):
                    fix = nearest(name, self.names("ResourceFlavor"))
                    yield item.finding(Defect.QUEUE, "spec.resourceGroups.flavors", f"there is no flavor {name}", fix)
                    continue
                labels = _map(self.objects["ResourceFlavor", name].spec.get("nodeLabels"))
                pool = self.pools.get(str(labels.get(POOL_LABEL)))
                if pool is None:
                    what = f"no pool has the label {POOL_LABEL}={labels.get(POOL_LABEL)}"
                    flavor_object = self.objects["ResourceFlavor", name]
                    yield flavor_object.finding(
                        Defect.SELECTOR, "spec.nodeLabels", what, nearest(str(labels.get(POOL_LABEL)), self.pools)
                    )
                    continue
                yield from self.check_quota(item, flavor, pool)
                yield from self.check_provisioning(item, pool)

    def check_quota(self, item: KubeObject, flavor: Mapping[str, Any], pool: WrittenPool) -> Iterator[Finding]:
        """The queue admits no more chips than there are, and all that are paid for."""
        for resource in _list(flavor.get("resources")):
            quota = _count(resource.get("nominalQuota"))
            if resource.get("name") in RESOURCES.values() and pool.machine and quota != pool.chips:
                what = f"the queue has {quota} {resource['name']}, the pool {pool.name} has {pool.chips} chips"
                yield item.finding(Defect.QUOTA, "spec.resourceGroups", what, f"nominalQuota: {pool.chips}")

    def check_provisioning(self, item: KubeObject, pool: WrittenPool) -> Iterator[Finding]:
        """Checks that are named are there, and flex-start has one."""
        strategy = _map(item.spec.get("admissionChecksStrategy"))
        checks = [str(check.get("name")) for check in _list(strategy.get("admissionChecks"))]
        for name in checks:
            check = self.objects.get(("AdmissionCheck", name))
            if check is None:
                fix = nearest(name, self.names("AdmissionCheck"))
                yield item.finding(Defect.QUEUE, "spec.admissionChecksStrategy", f"there is no check {name}", fix)
                continue
            config = str(_map(check.spec.get("parameters")).get("name"))
            if config not in self.names("ProvisioningRequestConfig"):
                fix = nearest(config, self.names("ProvisioningRequestConfig"))
                yield check.finding(Defect.QUEUE, "spec.parameters.name", f"there is no config {config}", fix)
        if pool.term == "flex-start" and not checks:
            what = (
                f"{pool.name} is flex-start, and no check asks for its machines: jobs are admitted before there are any"
            )
            yield item.finding(
                Defect.QUEUE, "spec.admissionChecksStrategy", what, "an AdmissionCheck of queued provisioning"
            )

    def check_pods(self, group: PodGroup) -> Iterator[Finding]:
        """All that pods need to be started on the pool they name."""
        item, where = group.owner, group.where
        chips = {name: _asked(group.pod, name) for name in RESOURCES.values()}
        resource = next((name for name, count in chips.items() if count), "")
        if not resource:
            return
        yield from self.check_place(group)
        yield from self.check_queued(group)
        selector = _map(group.pod.get("nodeSelector"))
        pool = self.pools.get(str(selector.get(POOL_LABEL)))
        if pool is None:
            what = f"no pool has the label {POOL_LABEL}={selector.get(POOL_LABEL)}"
            fix = nearest(str(selector.get(POOL_LABEL)), self.pools)
            yield item.finding(Defect.SELECTOR, f"{where}.spec.nodeSelector", what, fix)
        else:
            yield from self.check_division(group, pool, chips[resource])
        tolerated = {str(toleration.get("key")) for toleration in _list(group.pod.get("tolerations"))}
        if resource not in tolerated:
            what = f"nodes with {resource} have a taint of that name, which the pods don't tolerate"
            yield item.finding(
                Defect.TOLERATION, f"{where}.spec.tolerations", what, f"key: {resource}, operator: Exists"
            )

    def check_place(self, group: PodGroup) -> Iterator[Finding]:
        """Namespace, account and priority are there, the autoscaler leaves them alone, images are what was tested."""
        item, where, pod = group.owner, group.where, group.pod
        space = str(item.metadata.get("namespace", "default"))
        if space not in self.names("Namespace") | {"default"}:
            fix = nearest(space, self.names("Namespace"))
            yield item.finding(Defect.NAMESPACE, "metadata.namespace", f"there is no namespace {space}", fix)
        account = pod.get("serviceAccountName")
        if account is not None and account not in self.names("ServiceAccount") | {"default"}:
            fix = nearest(str(account), self.names("ServiceAccount"))
            yield item.finding(
                Defect.ACCOUNT, f"{where}.spec.serviceAccountName", f"there is no account {account}", fix
            )
        priority = pod.get("priorityClassName")
        if priority not in self.names("PriorityClass") | BUILT_IN:
            what = f"there is no priority class {priority}" if priority else "no priority class"
            fix = nearest(str(priority), self.names("PriorityClass"))
            yield item.finding(Defect.PRIORITY, f"{where}.spec.priorityClassName", what, fix)
        if _map(group.metadata.get("annotations")).get(SAFE_TO_EVICT) != "false":
            what = "the autoscaler may evict a pod to save a node, and a run ends with it"
            yield item.finding(Defect.EVICTABLE, f"{where}.metadata.annotations", what, f"{SAFE_TO_EVICT}: 'false'")
        for container in _list(pod.get("containers")):
            if "@sha256:" not in str(container.get("image")):
                what = f"{container.get('image')} may be another image tomorrow"
                yield item.finding(Defect.IMAGE, f"{where}.spec.containers.image", what, "its digest: NAME@sha256:...")

    def check_queued(self, group: PodGroup) -> Iterator[Finding]:
        """The queue is there and covers every resource that the pods ask for."""
        item = group.owner
        name = str(_map(item.metadata.get("labels")).get(QUEUE_LABEL, ""))
        local = self.objects.get(("LocalQueue", name))
        if local is None:
            what = f"there is no local queue {name}" if name else f"no label {QUEUE_LABEL}: Kueue doesn't see it"
            fix = nearest(name, self.names("LocalQueue"))
            yield item.finding(Defect.QUEUE, "metadata.labels", what, fix)
            return
        if local.metadata.get("namespace") != item.metadata.get("namespace"):
            what = f"the queue {name} is of the namespace {local.metadata.get('namespace')}"
            fix = f"namespace: {local.metadata.get('namespace')}"
            yield item.finding(Defect.NAMESPACE, "metadata.namespace", what, fix)
        queue = self.objects.get(("ClusterQueue", str(local.spec.get("clusterQueue"))))
        if queue is None:
            return  # said of the local queue
        groups = _list(queue.spec.get("resourceGroups"))
        covered = {str(name) for part in groups for name in part.get("coveredResources") or ()}
        for resource in sorted(_requests(group.pod) - covered):
            what = f"pods of {item.name} ask for {resource}, which the queue does not cover: they are never admitted"
            yield queue.finding(Defect.NOT_COVERED, "spec.resourceGroups", what, f"a quota of {resource}")

    def check_division(self, group: PodGroup, pool: WrittenPool, chips: int) -> Iterator[Finding]:
        """Chips a pod, pods a job and jobs are the hosts, the slices and the chips of the pool."""
        item, where, machine = group.owner, group.where, pool.machine
        if machine is None:
            return
        if pool.topology:
            label = _map(group.pod.get("nodeSelector")).get(TOPOLOGY_LABEL)
            if label not in (None, pool.topology):
                what = f"the pool {pool.name} has slices of {pool.topology}, the pods want {label}"
                yield item.finding(
                    Defect.TOPOLOGY, f"{where}.spec.nodeSelector", what, f"{TOPOLOGY_LABEL}: {pool.topology}"
                )
            if chips != machine.chips:
                what = (
                    f"a pod has {chips} chips, a host of {pool.name} has {machine.chips}: a slice's host is taken whole"
                )
                yield item.finding(
                    Defect.COUNT, f"{where}.spec.containers.resources", what, f"google.com/tpu: {machine.chips}"
                )
            if group.pods != pool.slice_hosts and item.kind != "Deployment":
                what = f"a job has {group.pods} pods, a slice of {pool.name} has {pool.slice_hosts} hosts"
                yield item.finding(
                    Defect.COUNT, where.removesuffix(".template"), what, f"completions: {pool.slice_hosts}"
                )
        elif machine.chips % chips and chips % machine.chips:
            what = f"a pod has {chips} chips, a host of {pool.name} has {machine.chips}"
            yield item.finding(
                Defect.COUNT, f"{where}.spec.containers.resources", what, f"a divisor of {machine.chips}"
            )
        total = group.jobs * group.pods * chips
        if total > pool.chips:
            what = (
                f"{group.jobs} x {group.pods} pods of {chips} chips are {total}, the pool {pool.name} has {pool.chips}"
            )
            yield item.finding(Defect.COUNT, where.removesuffix(".template"), what, f"at most {pool.chips} chips")


def _asked(pod: Mapping[str, Any], resource: str) -> int:
    """Chips that the containers of a pod ask for."""
    total = 0
    for container in _list(pod.get("containers")):
        resources = _map(container.get("resources"))
        limits, requests = _map(resources.get("limits")), _map(resources.get("requests"))
        total += _count(limits.get(resource, requests.get(resource)))
    return total


def _requests(pod: Mapping[str, Any]) -> set[str]:
    """Resources that the containers of a pod ask for."""
    parts = [_map(container.get("resources")) for container in _list(pod.get("containers"))]
    return {str(name) for part in parts for kind in ("requests", "limits") for name in _map(part.get(kind))}


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 0
    return int(value) if str(value).isdecimal() else 0

"""Kubernetes: attempts as Jobs, JobSets or RayJobs that carry the attempt's id in their name.

The name is what makes a second submission find the first. What the keys of a pool's address say is in
docs/kubernetes.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from chipwise.route.backend import AttemptStatus, BackendDown, BackendRefused, Capacity, Launch
from chipwise.route.backends.kubernetes.api import Answered, Cluster, needs_client
from chipwise.route.backends.kubernetes.names import label_value, object_name
from chipwise.route.backends.kubernetes.read import (
    attempt_of,
    attempt_status,
    ended_at,
    label_of,
    name_of,
    node_capacity,
    queue_capacity,
)
from chipwise.route.backends.kubernetes.render import (
    KEEP_S,
    KEYS,
    KINDS,
    LEDGER,
    kind_of,
    kinds_of,
    manifest,
    namespace_of,
    selector_of,
)
from chipwise.route.backends.named import check_keys
from chipwise.route.launch import claim_of
from chipwise.route.pool import Pool

KUEUE = ("kueue.x-k8s.io", "v1beta2")
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def make(name: str, pools: Sequence[Pool], folder: Path, uid: str) -> KubernetesBackend:
    """The backend of these pools. Pods don't see the attempts' folders; `folder` is not needed."""
    needs_client()
    check_keys(pools, KEYS)
    backend = KubernetesBackend(pools, uid, name=name)
    backend.check_links()
    return backend


class KubernetesBackend:
    """All clusters that the pools name."""

    def __init__(
        self,
        pools: Sequence[Pool],
        uid: str,
        cluster: Callable[..., Cluster] = Cluster,
        name: str = "kubernetes",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.uid, self.name, self._clock = uid, name, clock
        self._pools = tuple(pool for pool in pools if pool.backend == "kubernetes")
        pools_of = {server: [p for p in self._pools if _server(p) == server] for server in map(_server, self._pools)}
        self._clusters = {
            server: cluster(*server, insecure=all(p.setting("insecure") == "true" for p in pools_of[server]))
            for server in sorted(pools_of)
        }

    def check_links(self) -> None:
        """Refuse servers that need not prove who they are, unless their pools allow it."""
        for pool in self._pools:
            self._cluster(pool).check_link(f"pools.{pool.name}.address.kubeconfig")

    def render(self, launch: Launch) -> str:
        """The object that would be made, as YAML for kubectl."""
        document = manifest(launch, self.uid)
        return yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=False, width=110)

    def submit(self, launch: Launch) -> str:
        """Make the attempt's object; the one that is there already, if it is."""
        claim = claim_of(launch.folder)
        if claim is not None and claim.revoked:
            return claim.by
        body, kind = manifest(launch, self.uid), kind_of(launch)
        group, version, plural, _ = KINDS[kind]
        path, name = (group, version, namespace_of(launch.pool), plural), object_name(launch.attempt)
        cluster = self._cluster(launch.pool)
        try:
            cluster.create(path, body)
        except Answered as answer:
            if answer.status != 409:
                raise BackendRefused(str(answer)) from None
            self._adopt(cluster, path, name, launch.attempt)
        return _backend_id(_server(launch.pool)[1], path, name)

    def list(self) -> Sequence[AttemptStatus]:
        """Every attempt of this ledger; ended ones until their time is over (`keep`)."""
        statuses = []
        for server, namespace, kinds in self._namespaces():
            cluster, label = self._clusters[server], f"{LEDGER}={label_value(self.uid)}"
            objects = [(kind, item) for kind in kinds for item in cluster.objects(_path(kind, namespace), label)]
            pods = cluster.pods(namespace, label) if objects else []
            for kind, item in objects:
                if not attempt_of(item):
                    continue
                own_pods = [pod for pod in pods if label_of(pod) == label_of(item)]
                name = str((item.get("metadata") or {}).get("name"))
                backend_id = _backend_id(server[1], _path(kind, namespace), name)
                statuses.append(attempt_status(kind, item, backend_id, own_pods))
                if kind == "rayjob":
                    self._tidy(cluster, namespace, name, ended_at(kind, item))
        return statuses

    def status(self, attempts: Sequence[tuple[str, str]]) -> Sequence[AttemptStatus]:
        """Those of `list` that are asked for. What it lacks is asked for by name: it is gone where the server says so.

        A list may lack objects that are there: of a kind that the pools no longer name, or whose kind the server does
        not serve at the moment. Nothing is taken for lost on such grounds.
        """
        wanted = dict(attempts)
        statuses = [status for status in self.list() if status.attempt in wanted]
        for attempt in wanted.keys() - {status.attempt for status in statuses}:
            statuses += self._by_name(attempt, wanted[attempt])
        return statuses

    def _by_name(self, attempt: str, backend_id: str) -> Sequence[AttemptStatus]:
        context, path, name = _parsed(backend_id)
        kind = next((kind for kind, (*_, plural, _k) in KINDS.items() if plural == path[3]), "")
        for server, cluster in self._clusters.items():
            if server[1] != context or not kind:
                continue
            try:
                item = cluster.get(path, name)
            except Answered as answer:
                if answer.status != 404 or not answer.named:
                    raise BackendDown(f"{answer}; {name} may be there all the same") from None
                continue
            if attempt_of(item) == attempt:
                pods = [
                    pod
                    for pod in cluster.pods(path[2], f"{LEDGER}={label_value(self.uid)}")
                    if label_of(pod) == label_of(item)
                ]
                return [attempt_status(kind, item, backend_id, pods)]
        return []

    def cancel(self, backend_id: str) -> None:
        """Delete its object, once its pods are gone; they get their grace."""
        context, path, name = _parsed(backend_id)
        if not name:
            raise BackendRefused(f"kubernetes: {backend_id!r} is no id of this backend")
        for server, cluster in self._clusters.items():
            if server[1] == context:
                try:
                    cluster.delete(path, name)
                except Answered as answer:
                    if answer.status != 404:  # it has ended, or is in another cluster
                        raise BackendDown(str(answer)) from None

    def capacity(self, pools: Sequence[Pool]) -> Mapping[str, Capacity]:
        """Chips of each pool: the quota of its queue, or what the pods on its nodes leave."""
        pods: dict[tuple[str, str], Sequence[dict[str, Any]]] = {}  # read once for all pools of a cluster
        return {pool.name: self._queue(pool) if pool.setting("queue") else self._nodes(pool, pods) for pool in pools}

    def predicted_start(self, launch: Launch) -> float | None:
        """None: neither Kubernetes nor Kueue says when a waiting job will start."""
        return None

    def close(self) -> None:
        """Close the connections."""
        for cluster in self._clusters.values():
            cluster.close()

    def _cluster(self, pool: Pool) -> Cluster:
        if _server(pool) not in self._clusters:
            raise BackendRefused(f"kubernetes: pool {pool.name} is not among the pools of this backend")
        return self._clusters[_server(pool)]

    def _namespaces(self) -> Sequence[tuple[tuple[str, str], str, Sequence[str]]]:
        """Every server and namespace with the kinds of objects that may be there."""
        kinds_by_namespace: dict[tuple[tuple[str, str], str], set[str]] = {}
        for pool in self._pools:
            kinds_by_namespace.setdefault((_server(pool), namespace_of(pool)), set()).update(kinds_of(pool))
        return [(server, namespace, sorted(kinds)) for (server, namespace), kinds in kinds_by_namespace.items()]

    @staticmethod
    def _adopt(cluster: Cluster, path: tuple[str, str, str, str], name: str, attempt: str) -> None:
        """See that what has the name is this attempt."""
        try:
            existing = cluster.get(path, name)
        except Answered as answer:
            raise BackendDown(f"kubernetes: {name} is there and is not: {answer}") from None
        if attempt_of(existing) != attempt:
            raise BackendRefused(f"kubernetes: {path[3]} {name} is there already and is not of this attempt")

    def _tidy(self, cluster: Cluster, namespace: str, name: str, ended: float | None) -> None:
        """RayJobs stay until somebody deletes them."""
        keep = max((int(p.setting("keep")) for p in self._pools if p.setting("keep").isdigit()), default=KEEP_S)
        if ended is not None and self._clock() - ended > keep:
            try:
                cluster.delete(_path("rayjob", namespace), name)
            except Answered as answer:
                if answer.status != 404:
                    raise BackendDown(str(answer)) from None

    def node_names(self, pool: Pool) -> Sequence[str]:
        """The nodes that a pool's pods may run on."""
        return [name_of(node) for node in self._nodes_of(pool)]

    def _nodes_of(self, pool: Pool) -> Sequence[dict[str, Any]]:
        return self._cluster(pool).nodes(",".join(f"{k}={v}" for k, v in selector_of(pool).items()))

    def _nodes(self, pool: Pool, pods: dict[tuple[str, str], Sequence[dict[str, Any]]]) -> Capacity:
        cluster, server = self._cluster(pool), _server(pool)
        nodes = self._nodes_of(pool)
        if nodes and server not in pods:
            pods[server] = cluster.pods("", "", UNFINISHED)
        return node_capacity(pool, nodes, pods.get(server, ()))

    def _queue(self, pool: Pool) -> Capacity:
        cluster, name = self._cluster(pool), pool.setting("queue")
        try:
            local = cluster.get((*KUEUE, namespace_of(pool), "localqueues"), name)
            queue = str((local.get("spec") or {}).get("clusterQueue") or "")
            if not queue:
                raise BackendDown(f"kubernetes: local queue {name} names no cluster queue")
            return queue_capacity(pool, cluster.get((*KUEUE, "", "clusterqueues"), queue), local)
        except Answered as answer:
            raise BackendDown(str(answer)) from None


class _Plain(yaml.SafeDumper):
    """YAML without anchors: what is the same is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _server(pool: Pool) -> tuple[str, str]:
    return pool.setting("kubeconfig"), pool.setting("context")


def _path(kind: str, namespace: str) -> tuple[str, str, str, str]:
    group, version, plural, _ = KINDS[kind]
    return group, version, namespace, plural


def _parsed(backend_id: str) -> tuple[str, tuple[str, str, str, str], str]:
    """The context, the path and the name in an id of ours; empty ones where it is none."""
    context, _, rest = backend_id.rpartition(":")
    parts = rest.split("/")
    if len(parts) != 5:
        return "", ("", "", "", ""), ""
    return context, (parts[0], parts[1], parts[2], parts[3]), parts[4]


def _backend_id(context: str, path: tuple[str, str, str, str], name: str) -> str:
    return f"{context}:{'/'.join((*path, name))}"

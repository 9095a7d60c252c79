"""Ray: attempts as detached, named actors on a cluster that is already there.

What the keys of a pool's address say is in docs/ray.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from chipwise.errors import InputError
from chipwise.io.install import install_line
from chipwise.route.backend import (
    CANCELLED,
    FAILED,
    LOST,
    PENDING,
    RUNNING,
    SUCCEEDED,
    AttemptStatus,
    BackendRefused,
    Capacity,
    Launch,
)
from chipwise.route.backends import shim
from chipwise.route.backends.answers import readable, sound
from chipwise.route.backends.named import check_keys
from chipwise.route.backends.ray.link import RayLink
from chipwise.route.backends.secret_values import allowed_secrets
from chipwise.route.launch import claim_of
from chipwise.route.pool import Pool
from chipwise.route.secret import listed

# of a pool's address
KEYS = frozenset({"address", "cluster", "container", "cwd", "host", "label", "resource", "secrets"})
RESOURCES = {"gpu": "GPU", "tpu": "TPU", "cpu": "CPU"}  # Ray's own names
TOPOLOGY, SLICE = "ray.io/tpu-topology", "ray.io/tpu-slice-name"  # labels that Ray gives to hosts of TPU slices
_SHIM = Path(shim.__file__)
_ENDS = {"succeeded": SUCCEEDED, "failed": FAILED, "lost": LOST, "cancelled": CANCELLED}


def make(name: str, pools: Sequence[Pool], folder: Path, uid: str) -> RayBackend:
    """The backend of these pools. The attempts' folders are in each launch; `folder` is not needed."""
    check_keys(pools, KEYS)
    if find_spec("ray") is None:
        raise InputError("backend", "ray", f"a machine with its client: {install_line('ray')}")
    return RayBackend(pools, uid, name=name)


class RayBackend:
    """All clusters that the pools name. Every call is bounded by the links' time-outs."""

    def __init__(
        self, pools: Sequence[Pool], uid: str, link: Callable[[str], RayLink] = RayLink, name: str = "ray"
    ) -> None:
        self.uid, self.name = uid, name
        self._pools = {pool.name: pool for pool in pools if pool.backend == "ray"}
        self._links = {cluster: link(cluster) for cluster in sorted({address(pool) for pool in self._pools.values()})}

    def render(self, launch: Launch) -> str:
        """The actor that would be made, as YAML, without the program that runs on the node."""
        spec = self._spec(launch)
        resources = {k: spec[k] for k in ("resource", "chips", "labels")}
        program = {k: spec[k] for k in ("argv", "environment", "secrets", "time_limit", "folder")}
        document = {
            "address": address(launch.pool),
            "actor": {
                "name": launch.attempt,
                "namespace": f"chipwise-{self.uid}",
                "lifetime": "detached",
                "max_restarts": 0,
                **resources,
            },
            "program": program,
        }
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=False)

    def submit(self, launch: Launch) -> str:
        """Make the attempt's actor; the id of the one that is there already, if it is."""
        claim = claim_of(launch.folder)
        if claim is not None and claim.revoked:
            return claim.by
        link, spec = self._link(launch.pool), self._spec(launch)
        nodes = matching(link.ask("nodes"), spec["labels"])
        alive = [node for node in nodes if node["alive"]]
        if launch.option.topology and any(TOPOLOGY in node["labels"] for node in alive):
            spec["labels"] |= {TOPOLOGY: launch.option.topology}
            nodes = matching(nodes, spec["labels"])
        spec["together"] = SLICE if any(SLICE in node["labels"] for node in nodes) else ""
        spec["shim"] = _SHIM.read_text(encoding="utf-8")
        return str(link.ask("submit", spec=spec | {"nodes": nodes})["id"])

    def list(self) -> Sequence[AttemptStatus]:
        """Every attempt of this ledger on every cluster; ended ones for two weeks."""
        answers = (link.ask("census", uid=self.uid) for link in self._links.values())
        return [status for census in answers for status in attempt_statuses(census)]

    def status(self, attempts: Sequence[tuple[str, str]]) -> Sequence[AttemptStatus]:
        """Those of `list` that are asked for: it forgets nothing that Ray still knows."""
        wanted = {attempt for attempt, _ in attempts}
        return [status for status in self.list() if status.attempt in wanted]

    def cancel(self, backend_id: str) -> None:
        """Ask one to stop, with its grace; kill it if it waits, or is still there when asked again later."""
        for link in self._links.values():
            if link.ask("cancel", uid=self.uid, id=backend_id)["found"]:
                return

    def capacity(self, pools: Sequence[Pool]) -> Mapping[str, Capacity]:
        """Chips of the nodes with each pool's labels, in whole units of a host."""
        nodes: dict[str, list[dict[str, Any]]] = {}
        capacities = {}
        for pool in pools:
            cluster = address(pool)
            if cluster not in nodes:
                nodes[cluster] = self._link(pool).ask("nodes")
            capacities[pool.name] = pool_capacity(pool, nodes[cluster])
        return capacities

    def predicted_start(self, launch: Launch) -> float | None:
        """None: Ray keeps no times of waiting actors, so nobody can tell."""
        return None

    def close(self) -> None:
        """End the processes that hold the connections. Attempts go on."""
        for link in self._links.values():
            link.close()

    def _link(self, pool: Pool) -> RayLink:
        cluster = address(pool)
        if cluster not in self._links:
            raise BackendRefused(f"ray: pool {pool.name} is not among the pools of this backend")
        return self._links[cluster]

    def _spec(self, launch: Launch) -> dict[str, Any]:
        if not launch.variant.command:
            raise BackendRefused(f"ray: variant {launch.variant.name} has no command")
        if launch.variant.image and launch.pool.setting("container") != "none":
            raise BackendRefused(
                f"ray: variant {launch.variant.name} has an image, and programs run in what Ray's "
                "nodes have; container: none in the pool's address passes it over"
            )
        secrets = allowed_secrets(launch)
        return {
            "attempt": launch.attempt,
            "uid": self.uid,
            "family": launch.pool.family,
            "resource": resource(launch.pool),
            "chips": launch.option.chips,
            "host": launch.pool.setting("host", "0"),
            "labels": selectors(launch.pool.setting("label")),
            "together": "",
            "cwd": launch.pool.setting("cwd"),
            "argv": list(launch.variant.command),
            "digest": launch.digest,
            "environment": dict(launch.environment),
            "secrets": list(secrets),
            "withheld": sorted(listed(launch.pool) - set(secrets)),
            "time_limit": launch.time_limit,
            "folder": str(launch.folder),
        }


def address(pool: Pool) -> str:
    """The cluster of a pool."""
    return pool.setting("address", "auto")


def resource(pool: Pool) -> str:
    """What Ray calls the pool's chips."""
    return pool.setting("resource") or RESOURCES[pool.family]


def selectors(text: str) -> dict[str, str]:
    """Label selectors from the pools file; values are Ray's: v, !v, in(a,b) or !in(a,b).

    >>> selectors("pool=h200, zone=in(a,b)")
    {'pool': 'h200', 'zone': 'in(a,b)'}
    """
    labels = {}
    for part in re.split(r",(?![^(]*\))", text):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise BackendRefused(f"ray: label {part.strip()!r} is not accepted; expected KEY=VALUE")
        labels[key.strip()] = value.strip()
    return labels


def accepts(selector: str, value: str | None) -> bool:
    """Whether a label's value is one that the selector wants.

    >>> accepts("in(a, b)", "b"), accepts("!a", "b"), accepts("a", None), accepts("!in(a)", None)
    (True, True, False, True)
    """
    wanted = selector.removeprefix("!")
    several = re.fullmatch(r"in\((.*)\)", wanted)
    accepted = {v.strip() for v in several[1].split(",")} if several else {wanted}
    return (value in accepted) != selector.startswith("!")


def matching(nodes: Sequence[dict[str, Any]], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Nodes with all of these labels, dead ones included."""
    return [node for node in nodes if all(accepts(v, node["labels"].get(k)) for k, v in labels.items())]


@readable("ray")
def pool_capacity(pool: Pool, nodes: Sequence[dict[str, Any]]) -> Capacity:
    """Chips of a pool. Parts of a host smaller than the pool's unit are nobody's to take."""
    name = resource(pool)
    matched = matching(nodes, selectors(pool.setting("label")))
    alive = [node for node in matched if node["alive"] and node["total"].get(name, 0) >= 1]
    # slices larger than a host are taken host by host; what is free is then counted in whole hosts
    sizes = [int(node["total"][name]) for node in alive]
    unit = min(pool.unit, max(sizes, default=1))
    total = sum(size // unit * unit for size in sizes)
    free = sum(int(node["free"].get(name, 0)) // unit * unit for node in alive)
    dead = len({node["id"] for node in matched if not node["alive"]})
    note = f"{len(alive)} nodes alive" + (f", {dead} dead" if dead else "")
    return Capacity(
        total=min(total, pool.count), free=min(free, pool.count), down=max(pool.count - total, 0), note=note
    )


@readable("ray")
def attempt_statuses(census: Mapping[str, Any]) -> list[AttemptStatus]:
    """Attempts as a cluster's actors and records show them."""
    live = {a["attempt"]: a for a in census["actors"] if a["state"] != "DEAD"}
    dead = {a["attempt"]: a for a in census["actors"] if a["state"] == "DEAD"}
    records, stopping = census["records"], census["asked"]
    return [
        sound(_status(attempt, live.get(attempt), dead.get(attempt), records.get(attempt, {}), attempt in stopping))
        for attempt in sorted({*live, *dead, *records})
    ]


def _status(
    attempt: str,
    live: Mapping[str, Any] | None,
    dead: Mapping[str, Any] | None,
    record: Mapping[str, Any],
    stopping: bool,
) -> AttemptStatus:
    backend_id = (live or dead or record)["id"]
    where, reason = ",".join(record.get("where", ())), record.get("reason") or record.get("note") or ""
    state = str(record.get("state", ""))
    if state in _ENDS:
        return AttemptStatus(
            attempt,
            backend_id,
            _ENDS[state],
            record.get("exit_code"),
            record.get("started"),
            record.get("ended"),
            where,
            reason,
        )
    if live:
        if state == "running":
            return AttemptStatus(attempt, backend_id, RUNNING, started=record["started"], where=where, reason=reason)
        obstacle = "its hosts are not all free" if live["state"] == "ALIVE" else "no node has its chips free"
        return AttemptStatus(attempt, backend_id, PENDING, reason=obstacle)
    died = dead["died"] if dead else "the cluster has forgotten its actor"
    killed = stopping and "ray.kill" in died
    return AttemptStatus(
        attempt,
        backend_id,
        CANCELLED if killed else LOST,
        started=record.get("started"),
        ended=(dead or {}).get("ended") or None,
        where=where,
        reason=died,
    )

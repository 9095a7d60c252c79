"""The process that talks to one Ray cluster for a router: one JSON request a line, one answer a line.

Started by `chipwise.route.backends.ray.link` as ``python -m chipwise.route.backends.ray.driver ADDRESS``. Ray keeps its
connection in the state of a process, blocks for long when a cluster is gone, and ends the process when it gives up:
hence one of its own. It holds nothing that can't be lost: attempts are detached actors.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from importlib import import_module
from typing import Any

from chipwise.route import secret
from chipwise.route.backends import shim, torchrun
from chipwise.route.backends.ray import actors

ray: Any = import_module("ray")  # typed in part alone
cloudpickle: Any = import_module("ray.cloudpickle")
internal_kv: Any = import_module("ray.experimental.internal_kv")
state: Any = import_module("ray._private.state")  # has no public counterpart without Ray's dashboard

Request = dict[str, Any]

CARRIED = (actors, secret, shim, torchrun)  # sent by value: the nodes have no chipwise
KEEP_S = 14 * 86_400.0  # how long an attempt's end is kept for a router that is away: two weeks
KILL_AFTER_S = 120.0  # after it was asked to stop, an actor that is still there is killed: four times the shim's grace
TAKEN_S = 10.0  # for the cluster to take an actor over; a fraction of a second as a rule
# arguments up to here travel with the actor itself; larger ones would lie in this process and die with it
# (max_direct_call_object_size of Ray is 100 KiB)
SPEC_LIMIT = 90_000


class Refused(Exception):
    """The cluster can't run this, ever, as it is now."""


def nodes() -> list[dict[str, Any]]:
    """Every node with its labels, and what it has and has left."""
    left = state.available_resources_per_node()
    return [
        {
            "id": node["NodeID"],
            "alive": bool(node["Alive"]),
            "address": node["NodeManagerAddress"],
            "labels": dict(node.get("Labels") or {}),
            "total": dict(node.get("Resources") or {}),
            "free": dict(left.get(node["NodeID"], {})) if node["Alive"] else {},
        }
        for node in ray.nodes()
    ]


def death(cause: Any) -> str:
    """Why an actor died, in Ray's words."""
    for context in ("actor_died_error_context", "creation_task_failure_context", "runtime_env_failed_context"):
        details = getattr(cause, context, None)
        words = getattr(details, "error_message", "") or getattr(details, "formatted_exception_string", "")
        if words:
            return " ".join(str(words).split())[:300]
    return " ".join(str(cause).split())[:300]


def unborn(actor: Any) -> bool:
    """Whether whoever asked for an actor died before the cluster had all it needed: it never ran, and may be made."""
    return (
        actor["State"] == "DEAD"
        and not actor["Address"]["NodeID"].strip("f")
        and "its owner has died" in death(actor["DeathCause"])
    )


def listed_actors(prefix: str) -> list[dict[str, Any]]:
    """Actors of attempts whose names begin so, dead ones included for as long as the cluster remembers."""
    born = [a for a in state.actors().values() if not unborn(a)]
    return [
        {
            "attempt": a["Name"],
            "id": a["ActorID"],
            "state": a["State"],
            "node": a["Address"]["NodeID"],
            "died": death(a["DeathCause"]) if a["State"] == "DEAD" else "",
            "ended": a["EndTime"] / 1000,
        }
        for a in born
        if a["ActorClassName"] == "Attempt" and a["Name"].startswith(prefix)
    ]


def census(uid: str) -> dict[str, Any]:
    """All attempts of a ledger. Actors are read before records: one found dead has written its record."""
    listed = listed_actors(f"{uid}-")
    records, stops, now = {}, {}, time.time()
    for key in internal_kv._internal_kv_list(actors.record_key(f"{uid}-"), namespace=actors.STORE):
        attempt = key.decode().partition("/")[2]
        record = actors.kept(key.decode())
        if record is None:
            continue
        if record.get("state") != "running" and now - float(record.get("ended") or now) > KEEP_S:
            forget(attempt)
        else:
            records[attempt] = record
    for key in internal_kv._internal_kv_list(actors.stop_key(f"{uid}-"), namespace=actors.STORE):
        stops[key.decode().partition("/")[2]] = (actors.kept(key.decode()) or {}).get("at")
    sweep(listed)
    return {"actors": listed, "records": records, "asked": stops}


def forget(attempt: str) -> None:
    """Drop what is kept of an attempt."""
    for key in (actors.record_key(attempt), actors.stop_key(attempt)):
        internal_kv._internal_kv_del(key, namespace=actors.STORE)


def sweep(listed: list[dict[str, Any]]) -> None:
    """Give back the chips of gangs whose actor is dead: Ray keeps their group while the process that asked lives."""
    live = {a["attempt"] for a in listed if a["state"] != "DEAD"}
    dead = {a["attempt"] for a in listed} - live
    if not dead:
        return
    for key, group in ray.util.placement_group_table().items():
        if group["name"] in dead and group["state"] != "REMOVED":
            ray.util.remove_placement_group(ray.util.placement_group.PlacementGroup(ray.PlacementGroupID.from_hex(key)))


def bundles(spec: Request, nodes: list[dict[str, Any]]) -> list[int]:
    """Chips by host. One that no set of nodes could ever hold is refused: Ray would let it wait without a word."""
    resource, chips = spec["resource"], int(spec["chips"])
    sizes = sorted((int(node["total"].get(resource, 0)) for node in nodes if node["alive"]), reverse=True)
    labels = ", ".join(f"{k}={v}" for k, v in spec["labels"].items()) or "any"
    if not sizes or not sizes[0]:
        raise Refused(f"no node with labels {labels} has {resource}")
    host = int(spec["host"]) or sizes[0]
    if chips <= host:
        chips_by_host = [chips]
    else:
        chips_by_host = [host] * (chips // host) + ([chips % host] if chips % host else [])
    if len(chips_by_host) > len(sizes) or any(
        n > size for n, size in zip(sorted(chips_by_host, reverse=True), sizes, strict=False)
    ):
        raise Refused(
            f"{chips} {resource} are {' + '.join(map(str, chips_by_host))} on hosts of their own; nodes with labels "
            f"{labels} have {', '.join(map(str, sizes))}"
        )
    return chips_by_host


def submit(spec: Request) -> dict[str, Any]:
    """Make the attempt's actor, unless it has been made: its id either way."""
    attempt, uid = spec["attempt"], spec["uid"]
    record = actors.kept(actors.record_key(attempt))
    existing = [a for a in listed_actors(attempt) if a["attempt"] == attempt]
    if existing or record:
        return {"id": existing[0]["id"] if existing else record["id"], "adopted": True}  # type: ignore[index]
    chips_by_host = spec["bundles"] = bundles(spec, spec.pop("nodes"))
    if len(json.dumps(spec)) > SPEC_LIMIT:
        raise Refused(f"its arguments and variables take {len(json.dumps(spec))} bytes; {SPEC_LIMIT} can be sent")
    options = actors.share(spec["resource"], chips_by_host[0]) if len(chips_by_host) == 1 else {"num_cpus": 0}
    actor_class = ray.remote(actors.Attempt).options(
        name=attempt,
        namespace=f"chipwise-{uid}",
        lifetime="detached",
        max_restarts=0,
        max_concurrency=4,
        label_selector=spec["labels"],
        **options,
    )
    try:
        actor_id = actor_class.remote(spec)._actor_id.hex()
        until = time.time() + TAKEN_S
        while state.actors(actor_id=actor_id).get("State") == "DEPENDENCIES_UNREADY" and time.time() < until:
            time.sleep(0.01)  # until then it would die with this process
        return {"id": actor_id, "adopted": False}
    except ValueError as error:  # made by another since we listed them
        if "already taken" not in str(error):
            raise
    return {"id": next(a["id"] for a in listed_actors(attempt) if a["attempt"] == attempt), "adopted": True}


def cancel(uid: str, identity: str) -> dict[str, Any]:
    """Ask an attempt to stop; kill what does not, or has not begun."""
    actor_record = next((a for a in listed_actors(f"{uid}-") if a["id"] == identity), None)
    if actor_record is None or actor_record["state"] == "DEAD":
        return {"found": actor_record is not None}
    attempt = actor_record["attempt"]
    asked_before = actors.kept(actors.stop_key(attempt))
    actors.keep(actors.stop_key(attempt), asked_before or {"at": time.time()})
    try:
        actor = ray.get_actor(attempt, namespace=f"chipwise-{uid}")
    except ValueError:  # it has ended meanwhile
        return {"found": True}
    if actor_record["state"] == "ALIVE" and (asked_before is None or time.time() - asked_before["at"] < KILL_AFTER_S):
        actor.stop.remote()
    else:
        ray.kill(actor, no_restart=True)
    return {"found": True}


def operate(request: Request) -> Any:
    """Carry out one request."""
    operation = request["op"]
    if operation == "nodes":
        return nodes()
    if operation == "census":
        return census(request["uid"])
    if operation == "submit":
        return submit(request["spec"])
    return cancel(request["uid"], request["id"])


class Inside:
    """Answers from inside the cluster. One for as long as we are connected: a task apiece would wait for a process."""

    def operate(self, request: Request) -> Any:
        """Carry out one request."""
        return operate(request)


def answer(request: Request, inside: Any) -> dict[str, Any]:
    """The answer to one request: what was asked for, a refusal, or that the cluster can't be reached."""
    try:
        if inside is not None:
            return {"ok": ray.get(inside.operate.remote(request), timeout=request["timeout"])}
        return {"ok": operate(request)}
    except Refused as refusal:
        return {"refused": str(refusal)}
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Refused):
            return {"refused": str(error.cause)}
        return {"down": f"{type(error.cause).__name__}: {error.cause}"}
    except Exception as error:
        return {"down": f"{type(error).__name__}: {' '.join(str(error).split())[-300:]}"}


def listen(requests: queue.Queue[str]) -> None:
    """Requests as they come. When the router is gone, so is this process, whatever Ray is doing."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def main() -> None:
    """Connect, then answer until the router is gone."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what Ray prints is no answer
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=listen, args=(requests,), daemon=True).start()
    for module in CARRIED:
        cloudpickle.register_pickle_by_value(module)
    inside = None
    if sys.argv[1].startswith("ray://"):
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        ray.init(address=sys.argv[1], namespace="chipwise", log_to_driver=False, logging_level="ERROR")
        if sys.argv[1].startswith("ray://"):  # through Ray's client the cluster's tables can't be seen
            inside = ray.remote(Inside).options(num_cpus=0, max_restarts=0).remote()
        reply: dict[str, Any] = {"ok": ray.__version__}
    except Exception as error:
        reply = {"down": f"{type(error).__name__}: {' '.join(str(error).split())[-300:]}"}
    while True:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
        reply = answer(json.loads(requests.get()), inside)


if __name__ == "__main__":
    main()

"""What runs on the nodes of a Ray cluster: one actor per attempt, and one per host of an attempt that spans several.

Sent to the cluster by value, as `named_secret` and `torchrun_variables` are: nodes need Ray and the standard library,
not chipwise. The actor of an attempt is detached and named after it, so that it outlives whoever made it and can be
made once. The program is a child of the actor, run by the shim (see `chipwise.route.backends.shim`); it ends when the
actor does. The state of an attempt is written to the cluster's own key-value store, which outlives the actor: chips are
free again as soon as the program has ended.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.route.backends.shim import DIGEST, TAKEN, read
from chipwise.route.backends.torchrun import torchrun_variables
from chipwise.route.secret import named_secret

ray: Any = import_module("ray")  # typed in part alone
internal_kv: Any = import_module("ray.experimental.internal_kv")
MOST_OUTPUT = 2**20  # bytes of what a program printed that go to the log of Ray's worker, where no folder is shared

Spec = dict[str, Any]

STORE = "chipwise"  # our namespace in the cluster's key-value store
STORE_PATIENCE_S = 600.0  # the end of a program is worth waiting for a head that restarts; Ray gives up after 60 s
# The program must end with the worker, however that ends: the kernel sends SIGTERM (15) to the shim when the thread
# that started it is gone, and SIGKILL (9) to the program when the shim is (PR_SET_PDEATHSIG is 1 in <linux/prctl.h>).
# Ray itself kills the shim of a worker that has died, and knows nothing of the program.
DIES_WITH_WORKER = """import ctypes, os, sys
control = ctypes.CDLL(None).prctl
control(1, 15)
if os.getppid() != int(sys.argv.pop(1)):
    raise SystemExit(143)
shim = os.getpid()
def bind():
    control(1, 9)
    if os.getppid() != shim:
        os._exit(137)
os.register_at_fork(after_in_child=bind)
exec(compile(sys.stdin.read(), "shim.py", "exec"), {"__name__": "__main__"})
"""


def record_key(attempt: str) -> str:
    """Where an attempt's state is kept."""
    return f"attempt/{attempt}"


def stop_key(attempt: str) -> str:
    """Where it is kept that an attempt was asked to stop."""
    return f"stop/{attempt}"


def keep(key: str, value: dict[str, Any]) -> None:
    """Write to the cluster's store, waiting for a head that restarts."""
    until = time.time() + STORE_PATIENCE_S
    while True:
        try:
            internal_kv._internal_kv_put(key, json.dumps(value), namespace=STORE)
            return
        except Exception:
            if time.time() > until:
                raise
            time.sleep(1.0)


def kept(key: str) -> dict[str, Any] | None:
    """What was written there."""
    value = internal_kv._internal_kv_get(key, namespace=STORE)
    return None if value is None else dict(json.loads(value))


def share(resource: str, amount: float) -> dict[str, Any]:
    """Ray's options that hold so much of a resource."""
    option = {"GPU": "num_gpus", "CPU": "num_cpus"}.get(resource)
    if option:
        return {"num_cpus": 0} | {option: amount}
    return {"num_cpus": 0, "resources": {resource: amount}}


def _show(output: Path) -> None:
    """Hand the end of what a program printed to the worker's log; nothing, where the program put no file there."""
    with suppress(OSError):
        handle = os.open(output, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)
            if stat.S_ISREG(info.st_mode):
                file.seek(max(0, info.st_size - MOST_OUTPUT))
                sys.stdout.write(file.read(MOST_OUTPUT).decode("utf-8", "replace"))
                sys.stdout.flush()


class Program:
    """The program of an attempt on this host, under the shim."""

    def __init__(self, spec: Spec, by: str, rank: int, hosts: list[str]) -> None:
        self.spec, self.by, self.rank, self.hosts = spec, by, rank, hosts
        self.child: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.scratch: tempfile.TemporaryDirectory[str] | None = None
        shared = Path(spec["folder"])
        self.shared = os.access(shared / "launch.json", os.R_OK)  # not where another user runs Ray's workers
        if self.shared and rank == 0:
            self.folder = shared
        elif self.shared:
            self.folder = shared / f"rank-{rank}"
            self._lay_out(shared)
        else:
            self.scratch = tempfile.TemporaryDirectory(prefix="chipwise-")
            self.folder = Path(self.scratch.name)
            self._lay_out(self.folder)

    def _lay_out(self, cwd: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        document = {k: self.spec[k] for k in ("attempt", "argv", "environment", "time_limit")} | {
            "cwd": self.spec["cwd"] or str(cwd)
        }
        (self.folder / "launch.json").write_text(json.dumps(document), encoding="ascii")

    def start(self) -> None:
        """Start it. Call from a thread that waits for it: the kernel ends it with that thread."""
        missing = [name for name in self.spec["secrets"] if name not in os.environ]
        if missing:
            raise LookupError(f"secret {missing[0]} is not a variable of Ray's workers on this node")
        placement = {
            "CHIPWISE_RANK": str(self.rank),
            "CHIPWISE_WORLD": str(len(self.hosts)),
            "CHIPWISE_HOSTS": ",".join(self.hosts),
        }
        if self.spec["family"] == "tpu" and len(self.hosts) > 1:
            placement |= {"TPU_WORKER_ID": str(self.rank), "TPU_WORKER_HOSTNAMES": ",".join(self.hosts)}
        elif len(self.hosts) > 1:  # what torchrun and torch.distributed read; the job's own values come after these
            processes = self.spec["bundles"][0] if self.spec["family"] == "gpu" else 1
            placement |= {**torchrun_variables(self.hosts, processes), "PET_NODE_RANK": str(self.rank)}
        # what the program prints goes to the folder's file, or, where that is not shared, to the log of Ray's worker
        self.child = subprocess.Popen(
            [sys.executable, "-c", DIES_WITH_WORKER, str(os.getpid()), str(self.folder), self.by],
            env={**self._inherited(), **placement, **self._digest()},
            stdin=subprocess.PIPE,
        )
        assert self.child.stdin is not None
        with suppress(BrokenPipeError), self.child.stdin as source:
            source.write(str(self.spec["shim"]).encode("utf-8"))
        if self.stopped:
            self.child.terminate()

    def _digest(self) -> dict[str, str]:
        """What the shim compares: of the launch file that the router wrote, not of one that was laid out here."""
        return {DIGEST: self.spec["digest"]} if self.shared and self.rank == 0 and self.spec["digest"] else {}

    def _inherited(self) -> dict[str, str]:
        """What the program gets of this worker's variables: no secret that the pool does not allow."""
        allowed, withheld = set(self.spec["secrets"]), set(self.spec["withheld"])
        return {
            name: value
            for name, value in os.environ.items()
            if name in allowed or not (name in withheld or named_secret(name))
        }

    def claimed(self) -> bool:
        """Whether the program runs, or has run, for us."""
        return (read(str(self.folder / "claim")) or {}).get("by") == self.by

    def wait(self) -> dict[str, Any]:
        """How it ended: the shim's own words."""
        assert self.child is not None
        status = self.child.wait()
        end = read(str(self.folder / "end"))
        if not end:  # killed, the shim can't say how the program ended: as when a node goes down
            end = {"exit_code": status, "ended": time.time(), "killed": status < 0}
        if status == TAKEN and end.get("by") != self.by:
            end = {"exit_code": None, "ended": time.time(), "taken": True}
        if self.scratch:
            _show(self.folder / "output")
            self.scratch.cleanup()
        return dict(end)

    def stop(self) -> None:
        """Ask it to stop; the shim ends it after its grace."""
        self.stopped = True
        if self.child is not None and self.child.poll() is None:
            self.child.terminate()


class Member:
    """One host of an attempt that spans several. Dies with the attempt's own actor, its owner."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self.stopped = False

    def where(self) -> tuple[str, str]:
        """Its address and the id of its node."""
        return ray.util.get_node_ip_address(), ray.get_runtime_context().get_node_id()

    def run(self, spec: Spec, by: str, rank: int, hosts: list[str]) -> dict[str, Any]:
        """Run this host's part to its end."""
        self.program = Program(spec, by, rank, hosts)
        if self.stopped:
            return {"exit_code": 143, "told": 15, "ended": time.time()}
        self.program.start()
        return self.program.wait()

    def claimed(self) -> bool:
        """Whether its program has begun."""
        return self.program is not None and self.program.claimed()

    def stop(self) -> None:
        """Ask its program to stop."""
        self.stopped = True
        if self.program is not None:
            self.program.stop()


class Attempt:
    """The actor of one attempt. It starts itself: nobody has to live long enough to tell it."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.stopped = False
        self.stoppers: list[Callable[[], Any]] = []
        self.record: dict[str, Any] = {"id": ray.get_runtime_context().get_actor_id(), "chips": spec["chips"]}
        ray.get_runtime_context().current_actor.work.remote()

    def work(self) -> None:
        """Run the program, keep how it ended, and leave, which frees the chips."""
        try:
            end = self._gang() if len(self.spec["bundles"]) > 1 else self._alone()
        except Exception as error:
            # what a part of the program did is the attempt's fault; that a host or its actor is gone is the cluster's
            ours = isinstance(error, ray.exceptions.RayError) and not isinstance(error, ray.exceptions.RayTaskError)
            cause = getattr(error, "cause", None) or error
            words = str(cause).splitlines()[0][:300] if str(cause) else repr(cause)
            end = {"state": "lost" if ours else "failed", "reason": words}
        keep(record_key(self.spec["attempt"]), self.record | {"ended": time.time()} | end)
        ray.actor.exit_actor()

    def stop(self) -> None:
        """Ask the program to stop."""
        self.stopped = True
        for stop in self.stoppers:
            stop()

    def _running(self, hosts: list[str], shared: bool) -> None:
        note = "" if shared else f"{self.spec['folder']} is not seen from the node: its output is in Ray's own logs"
        self.record |= {"state": "running", "started": time.time(), "where": hosts, "note": note}
        keep(record_key(self.spec["attempt"]), self.record)

    def _alone(self) -> dict[str, Any]:
        host = ray.util.get_node_ip_address()
        program = Program(self.spec, self.record["id"], 0, [host])
        self.stoppers.append(program.stop)
        if self.stopped:
            return {"state": "cancelled", "reason": "stopped before it began"}
        self._running([host], program.shared)
        program.start()
        return self._outcome(program.wait())

    def _outcome(self, end: dict[str, Any]) -> dict[str, Any]:
        """A state from the shim's end."""
        if end.get("taken"):
            return {"state": "lost", "reason": "another run of this attempt has the claim"}
        if end.get("killed") and not self.stopped:
            return {"state": "lost", "reason": f"signal {-end['exit_code']} ended what watches over the program"}
        code, reason = end.get("exit_code"), str(end.get("reason") or "")
        state = "succeeded" if code == 0 else "cancelled" if self.stopped else "failed"
        return {"state": state, "exit_code": code, "reason": reason, "ended": end.get("ended") or time.time()}

    def _gang(self) -> dict[str, Any]:
        group = self._placed()
        if group is None:
            return {"state": "cancelled", "reason": "stopped while it waited for chips"}
        try:
            members, hosts = self._members(group)
            self._running(hosts, True)
            return self._together(members, hosts)
        finally:
            ray.util.remove_placement_group(group)

    def _placed(self) -> Any:
        """All bundles at once, each on a host of its own; None when stopped before."""
        spec = self.spec
        strategy: dict[str, Any] = {"strategy": "STRICT_SPREAD"}
        if spec["together"]:  # hosts of one slice
            strategy = {"topology_strategy": {"ray.io/node-id": "STRICT_SPREAD", spec["together"]: "STRICT_PACK"}}
        group = ray.util.placement_group(
            [{spec["resource"]: n} for n in spec["bundles"]],
            name=spec["attempt"],
            bundle_label_selector=[spec["labels"]] * len(spec["bundles"]),
            **strategy,
        )
        while not group.wait(2):
            if self.stopped:
                ray.util.remove_placement_group(group)
                return None
        return group

    def _members(self, group: Any) -> tuple[list[Any], list[str]]:
        """An actor on each host, in the order of the slice's workers where nodes know it, and their addresses."""
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        members = [
            ray.remote(Member)
            .options(
                max_concurrency=3,
                max_restarts=0,
                scheduling_strategy=strategy(group, i),
                **share(self.spec["resource"], n),
            )
            .remote()
            for i, n in enumerate(self.spec["bundles"])
        ]
        addresses = ray.get([member.where.remote() for member in members])
        ids = {node["NodeID"]: node["Labels"].get("ray.io/tpu-worker-id", "") for node in ray.nodes()}
        order = sorted(range(len(members)), key=lambda i: (int(ids.get(addresses[i][1]) or i), i))
        return [members[i] for i in order], [addresses[i][0] for i in order]

    def _together(self, members: list[Any], hosts: list[str]) -> dict[str, Any]:
        """Run all parts. The first that fails ends the others; a host that is lost loses the attempt."""
        by = self.record["id"]
        self.stoppers += [member.stop.remote for member in members]
        if self.stopped:
            return {"state": "cancelled", "reason": "stopped before it began"}
        runs = [members[0].run.remote(self.spec, by, 0, hosts)]
        while not ray.get(members[0].claimed.remote()):  # the claim is the first host's: others wait for it
            if ray.wait(runs, timeout=0.1)[0]:
                first = ray.get(runs[0])
                if first.get("exit_code") != 0:
                    return self._outcome(first)
                break  # it had the claim, and its part is done already
        runs += [member.run.remote(self.spec, by, rank, hosts) for rank, member in enumerate(members) if rank]
        unfinished = list(runs)
        worst: dict[str, Any] = {}
        while unfinished:
            over, unfinished = ray.wait(unfinished, num_returns=1)
            try:
                end = ray.get(over[0])
            except ray.exceptions.RayActorError as error:
                lost = {"state": "lost", "reason": f"host {runs.index(over[0])}: {str(error).splitlines()[0][:250]}"}
                for member in members:
                    ray.kill(member)
                return lost
            if end.get("exit_code") != 0 and not worst:
                worst = end | {"reason": f"host {runs.index(over[0])}: {end.get('reason') or 'failed'}"}
                for member in members:
                    member.stop.remote()
        return self._outcome(worst or end)

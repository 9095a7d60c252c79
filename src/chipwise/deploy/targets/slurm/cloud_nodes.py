"""Slurm's cloud nodes: makes machines for nodes that get work, removes those of idle ones, and gives back what failed.

    cloud_nodes.py resume NODES | suspend NODES | resume_fail NODES | sync | check

slurmctld calls the first three (ResumeProgram, SuspendProgram, ResumeFailProgram), a timer calls sync every minute.
What to run is in cloud_nodes.json beside this file: for each pool its machines with their nodes (a TPU slice is one
machine with a node for each of its hosts), and placements, which are tried in order: a zone or a term with the commands
that create, remove and list machines there. What only the site knows (project, network) is in site.json beside it,
which may also replace settings; check says what is missing there.

A machine that can't be had leaves no node down. Its nodes are powered down, so that Slurm puts their jobs back into the
queue, and the idle nodes of the pool are drained until a moment that is written into the state: schedulers see at
once that nothing is to be had, and send the work elsewhere. `sync` takes them back then; each time that the pool fails
again the wait doubles. `sync` also gives back nodes whose machine is gone (preempted) and removes machines that no node
wants. Standard library alone, Python 3.8 or newer: the controller needs no chipwise.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SETTINGS, SITE = "cloud_nodes.json", "site.json"
# of the settings, those that site.json may replace; `values` fills in what commands have in braces
REPLACEABLE = ("state", "commands", "environment", "wait_s", "orphan_s", "command_timeout_s")
STATE, LOCK, LOG = "state.json", "lock", "cloud_nodes.log"
FIRST_WAIT_S, LONGEST_WAIT_S = 60.0, 1800.0  # of a pool that failed, doubled each time
ORPHAN_S = 300.0  # after which a machine that no node wants is removed: its nodes may only be registering
PARALLEL = 16  # machines created at once
LOG_BYTES = 2**20  # after which the log begins again, with the one before kept
REASON_CHARACTERS = 100  # of it that `sinfo -R` shows
ANSWER_BYTES = 2000  # of a cloud's error that are kept


class Failure(Enum):
    """Why a machine could not be had."""

    STOCKOUT = "stockout"
    QUOTA = "quota"
    DENIED = "denied"
    TIMEOUT = "timeout"
    OTHER = "error"


# codes of errors in the answers of gcloud and aws (read 2026-11-19):
# https://docs.cloud.google.com/compute/docs/troubleshooting/troubleshooting-vm-creation
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
CODES: tuple[tuple[Failure, re.Pattern[str]], ...] = (
    (
        Failure.QUOTA,
        re.compile(
            r"quota_?exceeded|quota limit|quota '|VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded",
            re.IGNORECASE,
        ),
    ),
    (
        Failure.STOCKOUT,
        re.compile(
            r"RESOURCE_(POOL_)?EXHAUSTED|stockout|no more capacity|does not have enough resources|SpotMaxPriceTooLow"
            r"|Insufficient(Instance|Host|ReservedInstance)?Capacity|ReservationCapacityExceeded|UnfulfillableCapacity"
        ),
    ),
    (Failure.DENIED, re.compile(r"PERMISSION_DENIED|UnauthorizedOperation|AuthFailure|forbidden", re.IGNORECASE)),
)
BRACES = re.compile(r"\{([a-z_]+)\}")
DRAINED = frozenset({"drain", "drained", "draining"})
BUSY = DRAINED | {"down", "powering_down", "powering_up", "power_down", "power_up"}
GONE = re.compile(r"NOT_FOUND|was not found|InvalidInstanceID\.NotFound|notFound")


def failure_of(text: str) -> Failure:
    """What a cloud's error means.

    >>> failure_of("ERROR: code: ZONE_RESOURCE_POOL_EXHAUSTED").value, failure_of("what?").value
    ('stockout', 'error')
    """
    return next((failure for failure, pattern in CODES if pattern.search(text)), Failure.OTHER)


class NotReady(Exception):
    """The settings lack something: what, and where."""


class Controller:
    """The settings, the state on disk, and Slurm's own commands."""

    def __init__(self, folder: Path) -> None:
        self.settings: dict[str, Any] = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        path = folder / SITE
        site = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        strange = sorted(set(site) - {"values", *REPLACEABLE})
        if strange:
            raise NotReady(f"{path}: {strange[0]} is no setting; expected values, {', '.join(REPLACEABLE)}")
        self.values: dict[str, str] = {"folder": str(folder), **site.pop("values", {})}
        missing = [f"{name} ({what})" for name, what in self.settings["site"].items() if not self.values.get(name)]
        if missing:
            raise NotReady(f"{path}: values lacks {'; '.join(missing)}")
        self.settings.update(site)
        os.environ.update(self.settings["environment"])
        self.pools: dict[str, Any] = self.settings["pools"]
        self.folder = Path(self.settings["state"])
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.machine_of = {
            node: (pool, machine)
            for pool, record in self.pools.items()
            for machine, nodes in record["machines"].items()
            for node in nodes
        }

    # what is known

    @contextmanager
    def state(self) -> Iterator[dict[str, Any]]:
        """The state, locked; what is changed in it is on disk before the lock is gone."""
        with (self.folder / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = self.folder / STATE
            state = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            for part in ("machines", "waits"):
                state.setdefault(part, {})
            before = json.dumps(state, sort_keys=True)
            yield state
            after = json.dumps(state, sort_keys=True)
            if after != before:
                draft = path.with_suffix(".draft")
                draft.write_text(after, encoding="utf-8")
                draft.replace(path)

    @contextmanager
    def machine_lock(self, machine: str, wait: bool = True) -> Iterator[bool]:
        """Held while a machine is made or removed; whether it is, where nobody waits for it."""
        with (self.folder / f"{machine}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def log(self, words: str) -> None:
        """A line for people, in the log and on stderr."""
        line = time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + words.replace("\n", " ")[:ANSWER_BYTES]
        path = self.folder / LOG
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        with path.open("a", encoding="utf-8") as log:
            log.write(line + "\n")
        print(line, file=sys.stderr)

    def nodes_of(self, machine: str) -> list[str]:
        """The nodes of a machine."""
        return next(
            (record["machines"][machine] for record in self.pools.values() if machine in record["machines"]), []
        )

    # Slurm

    def slurm(self, *words: str, check: bool = True) -> str:
        """Run one of Slurm's commands; what it printed."""
        program = str(self.settings["commands"].get(words[0], words[0]))
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=60)
        if done.returncode and check:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def update(self, nodes: Sequence[str], state: str, reason: str = "") -> None:
        """Change the state of nodes; one that refuses does not stop the others."""
        for node in nodes:
            words = ["scontrol", "update", f"nodename={node}", f"state={state}"] + (
                [f"reason={reason}"] if reason else []
            )
            try:
                self.slurm(*words)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                self.log(f"{node}: {state} refused: {error}")

    def expand(self, hostlist: str) -> list[str]:
        """The nodes of a hostlist; those that no pool has are told and left out."""
        names = self.slurm("scontrol", "show", "hostnames", hostlist).split()
        for name in names:
            if name not in self.machine_of:
                self.log(f"{name}: no pool of {SETTINGS} has this node")
        return [name for name in names if name in self.machine_of]

    def node_states(self) -> dict[str, frozenset[str]]:
        """The states of our nodes, in Slurm's own words."""
        states = {}
        for line in self.slurm("sinfo", "--noheader", "--Node", "--Format=NodeList:128,StateComplete:128").splitlines():
            words = line.split()
            if len(words) == 2 and words[0] in self.machine_of:
                states[words[0]] = frozenset(words[1].lower().rstrip("*").split("+"))
        return states

    # the cloud

    def call(self, argv: Sequence[str], machine: str = "", limit_s: float = 0.0) -> tuple[Failure | None, str]:
        """Run a command of the cloud's: how it failed, if it did, and what it printed."""
        values = {**self.values, "machine": machine, "nodes": ",".join(self.nodes_of(machine))}
        words = [BRACES.sub(lambda match: str(values[match.group(1)]), word) for word in argv]
        limit = limit_s or float(self.settings["command_timeout_s"])
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return Failure.TIMEOUT, f"{words[0]} did not answer within {limit:g} s"
        except OSError as error:
            return Failure.OTHER, f"{words[0]}: {error.strerror}"
        if done.returncode:
            text = (done.stderr.strip() or done.stdout.strip())[-ANSWER_BYTES:]
            return failure_of(text), text
        return None, done.stdout

    def create(self, pool: str, machine: str) -> tuple[Failure | None, str, int]:
        """Make a machine in the first placement that has one; how the last failed, and which took it."""
        failure, words = Failure.OTHER, "the pool has no placement"
        for number, placement in enumerate(self.pools[pool]["placements"]):
            outcome, words = self.call(placement["create"], machine, float(self.pools[pool]["create_timeout_s"]))
            if outcome is None:
                self.log(f"{machine}: created in {placement['name']}")
                return None, "", number
            failure = outcome
            self.log(f"{machine}: {placement['name']}: {failure.value}: {words}")
        return failure, words, -1

    def remove(self, pool: str, machine: str, number: int) -> bool:
        """Remove a machine from its placement; whether it is gone."""
        placement = self.pools[pool]["placements"][number]
        failure, words = self.call(placement["remove"], machine)
        gone = failure is None or GONE.search(words) is not None
        self.log(f"{machine}: {placement['name']}: {'removed' if gone else 'NOT removed: ' + words}")
        return gone


def resume(control: Controller, nodes: Sequence[str]) -> None:
    """Make the machines of nodes that got work."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        wanted.setdefault(control.machine_of[node], []).append(node)
    with ThreadPoolExecutor(PARALLEL) as executor:
        list(executor.map(lambda key: _resume_one(control, key[0], key[1], wanted[key]), wanted))


def _resume_one(control: Controller, pool: str, machine: str, nodes: Sequence[str]) -> None:
    all_nodes = control.pools[pool]["machines"][machine]
    with control.machine_lock(machine):
        with control.state() as state:
            exists = machine in state["machines"]
            wait = state["waits"].get(pool)
            waits = wait is not None and wait["until"] > time.time()
            if exists:
                state["machines"][machine]["idle"] = []
        if exists:
            return
        if waits:
            _give_back(control, pool, nodes, str(wait["failure"]))
            return
        failure, words, number = control.create(pool, machine)
        if failure is None:
            with control.state() as state:
                state["machines"][machine] = {"placement": number, "created": time.time(), "idle": []}
                state["waits"].pop(pool, None)
        else:
            _hold(control, pool, failure, words)
            _give_back(control, pool, nodes, failure.value)
            return
    siblings = [node for node in all_nodes if node not in nodes]
    states = control.node_states() if siblings else {}
    control.update([node for node in siblings if "powered_down" in states.get(node, ())], "POWER_UP")


def _hold(control: Controller, pool: str, failure: Failure, words: str) -> None:
    """Write down until when a pool that failed is left alone."""
    with control.state() as state:
        wait = state["waits"].get(pool)
        now = time.time()
        if wait is not None and wait["until"] > now:
            return  # several machines failed at once: that is one failure
        tries = 1 if wait is None else int(wait["tries"]) + 1
        first, longest = control.settings["wait_s"]
        seconds = min(float(longest), float(first) * 2.0 ** min(tries - 1, 30))
        state["waits"][pool] = {"until": now + seconds, "tries": tries, "failure": failure.value, "nodes": []}
        state["waits"][pool]["words"] = " ".join(words.split())[:REASON_CHARACTERS]
    control.log(f"{pool}: {failure.value}: left alone for {seconds:g} s")


def _give_back(control: Controller, pool: str, nodes: Sequence[str], why: str) -> None:
    """Power nodes down, which puts their jobs back into the queue, and drain what is idle of the pool."""
    control.update(nodes, "POWER_DOWN_FORCE", f"chipwise: {why}")
    _drain_waiting(control, pool)


def _drain_waiting(control: Controller, pool: str) -> None:
    """Drain the powered-down nodes of a pool that waits: nothing can be had for them."""
    states = control.node_states()
    with control.state() as state:
        wait = state["waits"].get(pool)
        if wait is None or wait["until"] <= time.time():
            return
        nodes = [node for nodes in control.pools[pool]["machines"].values() for node in nodes]
        idle = [
            node
            for node in nodes
            if states.get(node, frozenset()) & {"powered_down", "powering_down"} and not states[node] & DRAINED
        ]
        wait["nodes"] = sorted({*wait["nodes"], *idle})
        until = time.strftime("%H:%M:%SZ", time.gmtime(wait["until"]))
    control.update(idle, "DRAIN", f"chipwise: {wait['failure']}, tried again at {until}: {wait['words']}")


def suspend(control: Controller, nodes: Sequence[str]) -> None:
    """Remove the machines all of whose nodes are idle."""
    idle: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        idle.setdefault(control.machine_of[node], []).append(node)
    with ThreadPoolExecutor(PARALLEL) as executor:
        list(executor.map(lambda key: _suspend_one(control, key[0], key[1], idle[key]), idle))
    for pool in sorted({pool for pool, _ in idle}):
        _drain_waiting(control, pool)


def _suspend_one(control: Controller, pool: str, machine: str, nodes: Sequence[str]) -> None:
    with control.machine_lock(machine):
        with control.state() as state:
            record = state["machines"].get(machine)
            if record is None:
                return
            record["idle"] = sorted({*record["idle"], *nodes})
            if set(record["idle"]) < set(control.pools[pool]["machines"][machine]):
                return  # a slice goes as a whole
            number = int(record["placement"])
        if control.remove(pool, machine, number):
            with control.state() as state:
                state["machines"].pop(machine, None)


def resume_fail(control: Controller, nodes: Sequence[str]) -> None:
    """Nodes that did not come up in time: remove their machines, and give them back instead of leaving them down."""
    for pool, machine in sorted({control.machine_of[node] for node in nodes}):
        ours = [node for node in nodes if control.machine_of[node] == (pool, machine)]
        with control.machine_lock(machine):
            with control.state() as state:
                record = state["machines"].get(machine)
            if record is not None and control.remove(pool, machine, int(record["placement"])):
                with control.state() as state:
                    state["machines"].pop(machine, None)
        _hold(control, pool, Failure.TIMEOUT, "")
        _give_back(control, pool, ours, Failure.TIMEOUT.value)


def sync(control: Controller) -> None:
    """Bring Slurm and the cloud together: nodes that may be tried again, machines that are gone or not wanted."""
    _end_waits(control)
    states = control.node_states()
    with control.state() as state:
        machines = dict(state["machines"])
    for pool, record in control.pools.items():
        always = [
            node for node in record["always"] if "powered_down" in states.get(node, ()) and not states[node] & BUSY
        ]
        control.update(always, "POWER_UP")
        for number, placement in enumerate(record["placements"]):
            failure, text = control.call(placement["list"])
            if failure is not None:
                control.log(f"{pool}: {placement['name']}: its machines can't be listed: {text}")
                continue
            _sync_placement(control, pool, number, set(text.split()), states, machines)


def _end_waits(control: Controller) -> None:
    """Take back nodes of pools whose wait is over. How often a pool has failed is kept until it works."""
    with control.state() as state:
        over = {pool: wait for pool, wait in state["waits"].items() if wait["until"] <= time.time() and wait["nodes"]}
        back = {pool: list(wait["nodes"]) for pool, wait in over.items()}
        for wait in over.values():
            wait["nodes"] = []
    for pool, nodes in back.items():
        control.log(f"{pool}: to be tried again")
        control.update(nodes, "UNDRAIN")
    for pool in control.pools:
        _drain_waiting(control, pool)


def _sync_placement(
    control: Controller,
    pool: str,
    number: int,
    there: set[str],
    states: dict[str, frozenset[str]],
    machines: dict[str, Any],
) -> None:
    for machine, nodes in control.pools[pool]["machines"].items():
        record = machines.get(machine)
        if record is None:
            if machine in there:
                _orphan(control, pool, machine, number)
        elif int(record["placement"]) == number and machine in there:
            if set(record["idle"]) >= set(nodes):  # it could not be removed when it went idle
                _suspend_one(control, pool, machine, nodes)
        elif int(record["placement"]) == number:
            control.log(f"{machine}: gone (preempted or removed by someone else)")
            with control.state() as state:
                state["machines"].pop(machine, None)
            control.update(
                [node for node in nodes if "powered_down" not in states.get(node, ())],
                "POWER_DOWN_FORCE",
                "chipwise: gone",
            )


def _orphan(control: Controller, pool: str, machine: str, number: int) -> None:
    """Remove a machine that the state does not have, once it has been there for long."""
    with control.machine_lock(machine, wait=False) as held:
        if not held:
            return  # it is being made, for minutes: other machines are not to wait for that
        with control.state() as state:
            orphans = state.setdefault("orphans", {})
            since = orphans.setdefault(machine, time.time())
            wanted = machine in state["machines"]
        if not wanted and time.time() - since < float(control.settings["orphan_s"]):
            return
        if wanted or control.remove(pool, machine, number):
            with control.state() as state:
                state["orphans"].pop(machine, None)


def main(arguments: Sequence[str]) -> int:
    """Do what slurmctld or the timer asks."""
    actions = {"resume": resume, "suspend": suspend, "resume_fail": resume_fail}
    try:
        control = Controller(Path(__file__).resolve().parent)
    except (NotReady, OSError, ValueError, KeyError) as error:
        print(f"{type(error).__name__}: {error}" if not isinstance(error, NotReady) else error, file=sys.stderr)
        return 2
    try:
        if list(arguments) == ["check"]:
            return check(control)
        if list(arguments) == ["sync"]:
            sync(control)
        elif len(arguments) == 2 and arguments[0] in actions:
            actions[arguments[0]](control, control.expand(arguments[1]))
        else:
            print(f"usage: {__file__} resume|suspend|resume_fail NODES, sync, or check", file=sys.stderr)
            return 2
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        control.log(f"{' '.join(arguments)}: {type(error).__name__}: {error}")
        return 1
    return 0


def check(control: Controller) -> int:
    """Whether Slurm has our nodes, and the cloud lists our machines."""
    states, problems = control.node_states(), 0
    for node in sorted(set(control.machine_of) - set(states)):
        print(f"{node}: Slurm does not show this node: is nodes.conf included, and PrivateData=cloud set?")
        problems += 1
    for pool, record in control.pools.items():
        for placement in record["placements"]:
            failure, text = control.call(placement["list"])
            if failure is not None:
                problems += 1
            answer = f"{len(text.split())} machines" if failure is None else f"{failure.value}: {text}"
            print(f"{pool}: {placement['name']}: {answer}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Processes on this machine. Chips are slots: each attempt gets ids that no other has.

A process is known by its pid, its start time and the boot, so that a pid that is used again is not taken for it. Ids
are handed out under a lock that the shim inherits and lets go of once its claim, which holds the ids, is on disk:
whatever is killed in between, no id is given twice and none leaks. Memory holds nothing that the folders don't.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from chipwise.errors import InputError
from chipwise.route.backend import (
    CANCELLED,
    LOST,
    RUNNING,
    AttemptStatus,
    BackendDown,
    BackendRefused,
    Capacity,
    Launch,
)
from chipwise.route.backends import shim
from chipwise.route.backends.local import processes
from chipwise.route.backends.secret_values import allowed_secrets, secret_values
from chipwise.route.launch import Claim, claim_of, end_of, launch_file
from chipwise.route.pool import Pool

VISIBLE = {"gpu": "CUDA_VISIBLE_DEVICES", "tpu": "TPU_VISIBLE_CHIPS"}  # where CUDA and libtpu look for the chips to use
# of the router's own environment, a job gets these alone: the rest may hold what is none of its business
INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
)
ADDRESS = frozenset({"cluster", "cwd", "ids", "secrets"})  # what a pool's address may say here
TIMEOUT_S = 10.0  # for the lock and for a shim to make its claim; a Python starts in well under a second
MARGIN_S = 5.0  # over the grace that the shim gives, before the backend kills both


def make(name: str, pools: Sequence[Pool], folder: Path, uid: str) -> LocalBackend:
    """The backend of these pools. `folder` is the ledger's own; `uid` is not needed: its folders are."""
    for pool in pools:
        check_address(pool)
    return LocalBackend(folder, name.replace("/", "-"))


class LocalBackend:
    """Runs attempts as processes of this machine that outlive the router."""

    def __init__(self, folder: Path, name: str = "local") -> None:
        """`folder` is the ledger's own; attempts lie in its folder `attempts`."""
        self.name, self.folder, self.attempts = name, folder, folder / "attempts"
        self._over: dict[str, AttemptStatus] = {}  # what has ended doesn't change
        self._children: set[int] = set()

    def render(self, launch: Launch) -> str:
        """The launch file, and what is added to it."""
        document = json.loads(launch_file(launch))
        return json.dumps(
            {**document, "chips": launch.option.chips, "secrets": list(allowed_secrets(launch))}, indent=1
        )

    def submit(self, launch: Launch) -> str:
        """Start the shim of an attempt, unless one has the claim already; the id in the claim."""
        with self._locked() as lock:
            claim = claim_of(launch.folder)
            if claim is not None:
                return claim.by
            environment = self._environment(launch, self._free_ids(launch.pool))
            by = f"{self.name}-{uuid.uuid4().hex}"
            return self._start_shim(launch.folder, by, environment, lock)

    def list(self) -> Sequence[AttemptStatus]:
        """Every attempt that has been claimed here."""
        self._reap()
        try:
            names = sorted(entry.name for entry in os.scandir(self.attempts) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BackendDown(f"{self.attempts}: {error.strerror or error}") from None
        for gone in self._over.keys() - set(names):  # old folders are removed
            del self._over[gone]
        return [status for name in names if (status := self._status(name)) is not None]

    def status(self, attempts: Sequence[tuple[str, str]]) -> Sequence[AttemptStatus]:
        """Some attempts."""
        self._reap()
        return [status for name, _ in attempts if (status := self._status(name)) is not None]

    def cancel(self, backend_id: str) -> None:
        """Tell one to stop; kill it when it has had its grace."""
        for status in self.list():
            if status.backend_id == backend_id and status.state == RUNNING:
                self._stop(self.attempts / status.attempt, status.attempt)

    def capacity(self, pools: Sequence[Pool]) -> Mapping[str, Capacity]:
        """Chips that no live claim holds."""
        held = self._held()
        return {pool.name: Capacity(pool.count, max(0, pool.count - len(held.get(pool.name, ())))) for pool in pools}

    def predicted_start(self, launch: Launch) -> float | None:
        """Now where enough chips are free; it can't tell otherwise."""
        capacity = self.capacity([launch.pool])[launch.pool.name]
        return time.time() if capacity.free >= launch.option.chips else None

    def _status(self, attempt: str) -> AttemptStatus | None:
        if attempt in self._over:
            return self._over[attempt]
        folder = self.attempts / attempt
        claim = claim_of(folder)
        if claim is None or not claim.by.startswith(f"{self.name}-"):
            return None
        end = end_of(folder)
        if end is None and self._alive(attempt, claim):
            return AttemptStatus(
                attempt, claim.by, RUNNING, started=claim.at, where=claim.host, restarts=claim.restarts
            )
        end = end or end_of(folder)  # it may have ended between the two checks
        if end is None:
            status = AttemptStatus(
                attempt,
                claim.by,
                LOST,
                started=claim.at,
                where=claim.host,
                reason="its process is gone and wrote no end",
            )
        else:
            status = AttemptStatus(
                attempt, claim.by, end.state, end.exit_code, end.started, end.ended, claim.host, end.reason
            )
            if status.state == CANCELLED and claim.boot != processes.boot() and not (folder / "stop").exists():
                status = replace(status, state=LOST, reason="the machine went down")  # which tells all to stop
        self._over[attempt] = status
        return status

    def _alive(self, attempt: str, claim: Claim) -> bool:
        """Whether it runs. A program that has outlived its shim is killed: nobody would learn how it ended."""
        if claim.boot == processes.boot() and claim.space not in ("", processes.space()):
            # in another container of this machine; just claimed, it may not have the lock yet
            return abs(time.time() - claim.at) < TIMEOUT_S or processes.locked(self.attempts / attempt / shim.ALIVE)
        if claim.host and claim.host != processes.host() and claim.boot != processes.boot():
            return True  # of another machine: not ours to judge
        if processes.alive(claim.pid, claim.start, claim.boot):
            return True
        left = processes.left_behind(attempt, claim.pid, claim.start, claim.boot)
        for pid, start in left:
            processes.send(pid, start, signal.SIGKILL)
        return bool(left)

    def _stop(self, folder: Path, attempt: str) -> None:
        claim = claim_of(folder)
        if claim is None:
            return
        stop_file, now = folder / "stop", time.time()
        try:
            stop_file.touch(exist_ok=False)
        except FileExistsError:
            if now < stop_file.stat().st_mtime + _grace(folder) + MARGIN_S:
                return
            for pid, start in processes.left_behind(attempt, claim.pid, claim.start, claim.boot):
                processes.send(pid, start, signal.SIGKILL)
            processes.send(claim.pid, claim.start, signal.SIGKILL)
            return
        except OSError as error:
            raise BackendDown(f"{stop_file}: {error.strerror or error}") from None
        processes.send(claim.pid, claim.start, signal.SIGTERM)

    def _held(self) -> dict[str, set[int]]:
        """Ids of each pool that attempts hold."""
        held: dict[str, set[int]] = {}
        for status in self.list():
            if status.state == RUNNING and (claim := claim_of(self.attempts / status.attempt)) is not None:
                held.setdefault(claim.pool, set()).update(claim.chips)
        return held

    def _free_ids(self, pool: Pool) -> Sequence[int]:
        held = self._held().get(pool.name, set())
        return [id for id in ids(pool) if id not in held]

    def _environment(self, launch: Launch, free: Sequence[int]) -> dict[str, str]:
        if len(free) < launch.option.chips:
            raise BackendRefused(f"{launch.pool.name} has {len(free)} free chips, not {launch.option.chips}")
        secrets = secret_values(launch, os.environ)
        chips = ",".join(map(str, free[: launch.option.chips]))
        placement = {"CHIPWISE_POOL": launch.pool.name, "CHIPWISE_CHIP_IDS": chips}
        if launch.pool.family in VISIBLE:
            placement[VISIBLE[launch.pool.family]] = chips
        return {name: os.environ[name] for name in INHERITED if name in os.environ} | secrets | placement

    def _start_shim(self, folder: Path, by: str, environment: Mapping[str, str], lock: int) -> str:
        log = str(folder / "shim")
        file_actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        argv = [sys.executable, "-I", "-S", shim.__file__, str(folder), by]
        try:
            pid = os.posix_spawn(
                sys.executable, argv, {**environment, shim.LOCK: str(lock)}, file_actions=file_actions, setsid=True
            )
        except OSError as error:
            raise BackendDown(f"no process could be started: {error.strerror or error}") from None
        self._children.add(pid)
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            claim = claim_of(folder)
            if claim is not None:
                return claim.by
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                words = Path(log).read_text("utf-8", "replace").strip().rpartition("\n")[2]
                raise BackendRefused(words or "the shim ended before its claim")
            time.sleep(0.002)
        raise BackendDown(f"the shim of {folder.name} made no claim within {TIMEOUT_S:g} s")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The lock on the chips of this machine; of all routers of a ledger, one hands out at a time."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / f"{self.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise BackendDown(f"{self.folder}: {error.strerror or error}") from None
        try:
            until = time.monotonic() + TIMEOUT_S
            while not _try_lock(lock):
                if time.monotonic() > until:
                    raise BackendDown(f"{self.folder / self.name}.lock is held by another for over {TIMEOUT_S:g} s")
                time.sleep(0.005)
            os.set_inheritable(lock, True)
            yield lock
        finally:
            os.close(lock)

    def _reap(self) -> None:
        for pid in list(self._children):
            try:
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                ended = pid
            if ended:
                self._children.discard(pid)


def ids(pool: Pool) -> tuple[int, ...]:
    """The ids of a pool's chips on this machine: its address's `ids`, or from 0 on.

    >>> ids(Pool("a", "local", "h100", "gpu", 2, address=(("ids", "4,5"),)))
    (4, 5)
    """
    listed = tuple(int(word) for word in pool.setting("ids").split(",") if word.strip())
    return listed or tuple(range(pool.count))


def check_address(pool: Pool) -> None:
    """Refuse what this backend would pass over or could not use."""
    where = f"pools.{pool.name}.address"
    for key, _ in pool.address:
        if key not in ADDRESS:
            raise InputError(where, key, f"one of {', '.join(sorted(ADDRESS))}")
    if pool.setting("ids"):
        words = [word.strip() for word in pool.setting("ids").split(",")]
        numeric = all(re.fullmatch(r"[0-9]{1,6}", word) for word in words)
        if not numeric or len({int(word) for word in words}) != len(words):
            raise InputError(f"{where}.ids", pool.setting("ids"), "whole numbers by commas, each once, such as 0,1")
        if len(words) != pool.count:
            raise InputError(f"{where}.ids", pool.setting("ids"), f"{pool.count} ids, one for each chip of the pool")
    if pool.setting("cwd") and not Path(pool.setting("cwd")).is_dir():
        raise InputError(f"{where}.cwd", pool.setting("cwd"), "a folder of this machine")


def _grace(folder: Path) -> float:
    try:
        return float(json.loads((folder / "launch.json").read_bytes()).get("grace") or shim.GRACE_S)
    except (OSError, ValueError):
        return shim.GRACE_S


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Processes on this machine. Chips are slots: each attempt gets ids that no other has.

A process is known by its pid, its start time and the boot, so that a pid that is used again is not taken for it. Ids
are handed out under a lock that the shim inherits and lets go of once its claim, which holds the ids, is on disk:
whatever is killed in between, no id is given twice and none leaks. Memory holds nothing that the folders don't. Which
attempts may have a process is kept apart (`underway`): the others are looked at when the ledger asks for them.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from chipwise.route.attempt_files import last_line, locked
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
from chipwise.route.backends.local.address import check_address, ids
from chipwise.route.backends.local.underway import Record, Underway
from chipwise.route.backends.secret_values import allowed_secrets, secret_values
from chipwise.route.launch import NOBODY, Claim, claim_of, end_of, launch_file
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
TIMEOUT_S = 10.0  # for the lock and for a shim to make its claim; a Python starts in well under a second
LOG = "shim"  # in an attempt's folder: what its shim has to say
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
        self.underway = Underway(folder, name)
        self._chips: dict[str, tuple[str, tuple[int, ...]]] = {}  # pool and ids in the claims of what is under way
        self._named: dict[str, str] = {}  # attempts by backend id, as last listed
        self._listed: Sequence[AttemptStatus] | None = None  # until it has said what is free, or something starts
        self._children: set[int] = set()
        self._told: dict[str, float] = {}  # when attempts were told to stop, by time.monotonic

    def render(self, launch: Launch) -> str:
        """The launch file, and what is added to it."""
        document = json.loads(launch_file(launch))
        return json.dumps(
            {**document, "chips": launch.option.chips, "secrets": list(allowed_secrets(launch))}, indent=1
        )

    def submit(self, launch: Launch) -> str:
        """Start the shim of an attempt, unless one has the claim already; the id in the claim."""
        answer = self.submit_all([launch])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def submit_all(self, launches: Sequence[Launch]) -> Sequence[str | BackendDown | BackendRefused]:
        """Start the shims of several attempts, then wait for their claims; the id in each claim, or what went wrong.

        None waits for another: all of them hold the lock on the chips until each has made its claim or is gone.
        """
        answers: dict[str, str | BackendDown | BackendRefused] = {}
        started: dict[str, tuple[Path, int]] = {}
        if self.underway.missing:
            self._adopt()
        with self._locked() as lock:
            self._listed = None
            chips = _Handout(self)
            for launch in launches:
                try:
                    claim = self._claim(launch.attempt)
                    if claim is not None:
                        answers[launch.attempt] = claim.by
                        continue
                    environment = self._environment(launch, chips.take(launch))
                    self.underway.add(launch.attempt)
                    started[launch.attempt] = launch.folder, self._start_shim(launch.folder, environment, lock)
                except (BackendDown, BackendRefused) as error:
                    answers[launch.attempt] = error
        answers |= self._claimed(started)
        return [answers[launch.attempt] for launch in launches]

    def list(self) -> Sequence[AttemptStatus]:
        """Every attempt that may have a process here, and those whose process has gone since they were last listed."""
        self._reap()
        if self.underway.missing:
            self._adopt()
        names = self.underway.names()
        statuses = self._statuses(names)
        for name in names:
            if name not in self._chips and name not in statuses and self._never(name):
                self.underway.discard(name)
        listed = list(statuses.values())
        self._named = {status.backend_id: status.attempt for status in listed}
        self._chips = {name: self._chips[name] for name in names if name in self._chips}
        self._told = {name: at for name, at in self._told.items() if name in statuses}
        self._listed = listed
        return listed

    def status(self, attempts: Sequence[tuple[str, str]]) -> Sequence[AttemptStatus]:
        """Some attempts."""
        self._reap()
        own = {name: by for name, by in attempts if not by or self._ours(by)}
        statuses = self._statuses(list(own))
        found = (statuses.get(name) or self._spoilt(name, by) for name, by in own.items())
        return [status for status in found if status is not None]

    def cancel(self, backend_id: str) -> None:
        """Tell one to stop; kill it when it has had its grace."""
        if backend_id not in self._named:
            self.list()
        attempt = self._named.get(backend_id, "")
        status = self._statuses([attempt]).get(attempt) if attempt else None
        if status is not None and status.backend_id == backend_id and status.state == RUNNING:
            self._stop(attempt)

    def capacity(self, pools: Sequence[Pool]) -> Mapping[str, Capacity]:
        """Chips that no live claim holds."""
        listed, self._listed = self.list() if self._listed is None else self._listed, None
        held = self._held(s.attempt for s in listed if s.state == RUNNING and s.attempt in self._chips)
        return {pool.name: Capacity(pool.count, max(0, pool.count - len(held.get(pool.name, ())))) for pool in pools}

    def predicted_start(self, launch: Launch) -> float | None:
        """Now where enough chips are free; it can't tell otherwise."""
        capacity = self.capacity([launch.pool])[launch.pool.name]
        return time.time() if capacity.free >= launch.option.chips else None

    def _ours(self, backend_id: str) -> bool:
        return backend_id.rpartition("-")[0] == self.name

    def _record(self, attempt: str) -> Record | None:
        """What the shim of an attempt has recorded; of one that an older version started, the claim in its folder."""
        record = self.underway.record(attempt)
        if record is None:
            claim = claim_of(self.attempts / attempt)
            return None if claim is None else Record(claim)
        return record

    def _claim(self, attempt: str) -> Claim | None:
        record = self._record(attempt)
        return None if record is None else record.claim

    def _statuses(self, names: Sequence[str]) -> dict[str, AttemptStatus]:
        """Those of these attempts that have been claimed here. What has ended is under way no more.

        An end is believed only when the shim is gone and none of its processes is left: of all that are gone, one pass
        over the machine's processes tells.
        """
        statuses: dict[str, AttemptStatus] = {}
        records: dict[str, Record] = {}
        gone: list[str] = []
        for name in names:
            record = self._record(name)
            if record is None or not self._ours(record.claim.by):
                continue
            records[name], claim = record, record.claim
            self._chips[name] = claim.pool, claim.chips
            lives = self._lives(name, claim)
            if lives is None:
                gone.append(name)
            statuses[name] = _running(name, claim) if lives is not False else self._end(name, record)
        processes_left = processes.running() if gone else []
        for name in gone:
            # the end may have been written since: it is read once no process is left
            if not self._left(name, records[name], processes_left):
                statuses[name] = self._end(name, self._record(name) or records[name])
        for name, status in statuses.items():
            if status.state != RUNNING:
                self._over(name)
        return statuses

    def _left(self, attempt: str, record: Record, among: Sequence[processes.Process] | None = None) -> bool:
        """Whether processes are left of an attempt whose shim is gone. They are killed: nobody would learn how they
        ended."""
        claim = record.claim
        left = processes.left_behind(self.attempts / attempt, claim.pid, claim.start, claim.boot, among)
        for pid, start in left:
            processes.send(pid, start, signal.SIGKILL)
        return bool(left) | (claim.boot == processes.boot() and processes.end_scope(record.scope))

    def _over(self, attempt: str) -> None:
        """Nothing of an attempt runs any more: its folder tells the rest."""
        record = self.underway.record(attempt)
        self._chips.pop(attempt, None)
        if record is None or record.restore(self.attempts / attempt, record.claim.boot == processes.boot()):
            self.underway.discard(attempt)

    def _end(self, attempt: str, record: Record) -> AttemptStatus:
        """How an attempt ended, now that its shim is gone; by its record, unless the machine went down since."""
        folder, claim = self.attempts / attempt, record.claim
        recorded = record.document is not None and (record.end is not None or claim.boot == processes.boot())
        end = record.end if recorded else end_of(folder)
        if end is None:
            reason = "its process is gone and wrote no end"
            return AttemptStatus(attempt, claim.by, LOST, started=claim.at, where=claim.host, reason=reason)
        status = AttemptStatus(
            attempt, claim.by, end.state, end.exit_code, end.started, end.ended, claim.host, end.reason
        )
        if status.state == CANCELLED and claim.boot != processes.boot() and not (folder / "stop").exists():
            return replace(status, state=LOST, reason="the machine went down")  # which tells all to stop
        return status

    def _never(self, attempt: str) -> bool:
        """Whether an attempt without a claim of ours will never have one: a router has given it up, or it is gone."""
        folder = self.attempts / attempt
        claim = self._claim(attempt)
        return not folder.exists() if claim is None else claim.by != NOBODY and not self._ours(claim.by)

    def _adopt(self) -> None:
        """Find what an older version has started, once: it kept no list of what is under way."""

        def living(names: list[str]) -> list[str]:
            return [name for name, status in self._statuses(names).items() if status.state == RUNNING]

        with self._locked():
            if self.underway.missing:  # another router may have been faster
                self.underway.adopt(living)

    def _spoilt(self, attempt: str, backend_id: str) -> AttemptStatus | None:
        """One that was started here, and whose claim says so no more: its program has spoilt it, and is killed."""
        claim = self._claim(attempt)
        if not backend_id or claim is None or claim.by != NOBODY:
            return None
        left = self._left(attempt, Record(Claim(NOBODY, 0.0, boot=processes.boot())))
        if not left:
            self.underway.discard(attempt)
        reason = "its claim can't be read any more: its program must have written over it"
        return AttemptStatus(attempt, backend_id, RUNNING if left else LOST, reason=reason)

    def _lives(self, attempt: str, claim: Claim) -> bool | None:
        """Whether its shim runs; None: it is gone from this machine, and may have left processes."""
        if claim.boot == processes.boot() and claim.space not in ("", processes.space()):
            # in another container of this machine; just claimed, it may not have the lock yet
            new = abs(time.time() - claim.at) < TIMEOUT_S and end_of(self.attempts / attempt) is None
            return new or locked(self.attempts / attempt / shim.ALIVE) is not False
        if claim.host and claim.host != processes.host() and claim.boot != processes.boot():
            return end_of(self.attempts / attempt) is None  # of another machine: not ours to judge
        return True if processes.alive(claim.pid, claim.start, claim.boot) else None

    def _stop(self, attempt: str) -> None:
        record = self._record(attempt)
        if record is None:
            return
        folder, claim, limit = self.attempts / attempt, record.claim, record.grace + MARGIN_S
        if attempt not in self._told:
            self._told[attempt] = time.monotonic()
            if not _told_before(folder / "stop", limit):
                processes.send(claim.pid, claim.start, signal.SIGTERM)
        elif time.monotonic() > self._told[attempt] + limit:
            processes.send(claim.pid, claim.start, signal.SIGKILL)
            self._left(attempt, record)

    def _held(self, attempts: Iterable[str]) -> dict[str, set[int]]:
        """Ids of each pool that these attempts hold by their claims."""
        held: dict[str, set[int]] = {}
        for attempt in attempts:
            if attempt not in self._chips:
                claim = self._claim(attempt)
                if claim is None or not self._ours(claim.by):
                    continue
                self._chips[attempt] = claim.pool, claim.chips
            pool, chips = self._chips[attempt]
            held.setdefault(pool, set()).update(chips)
        return held

    def _environment(self, launch: Launch, ids: Sequence[int]) -> dict[str, str]:
        secrets = secret_values(launch, os.environ)
        chips = ",".join(map(str, ids))
        placement = {"CHIPWISE_POOL": launch.pool.name, "CHIPWISE_CHIP_IDS": chips, shim.DIGEST: launch.digest}
        placement[shim.RECORD] = str(self.underway.folder / launch.attempt)
        if launch.pool.family in VISIBLE:
            placement[VISIBLE[launch.pool.family]] = chips
        return {name: os.environ[name] for name in INHERITED if name in os.environ} | secrets | placement

    def _start_shim(self, folder: Path, environment: Mapping[str, str], lock: int) -> int:
        """Start a shim that lets go of the lock once it has made its claim; its pid."""
        by = f"{self.name}-{uuid.uuid4().hex}"
        file_actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder / LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
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
        return pid

    def _claimed(self, started: Mapping[str, tuple[Path, int]]) -> dict[str, str | BackendDown | BackendRefused]:
        """Wait until each shim has made its claim or is gone; the id in each claim, or what went wrong."""
        answers: dict[str, str | BackendDown | BackendRefused] = {}
        waiting, until, pause = dict(started), time.monotonic() + TIMEOUT_S, 0.002
        while waiting and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
            for attempt, (folder, pid) in list(waiting.items()):
                ended = _ended(pid)
                claim = self._claim(attempt)  # after: one that has ended may have made it
                if claim is not None:
                    answers[attempt] = claim.by
                elif ended:
                    self.underway.discard(attempt)
                    answers[attempt] = BackendRefused(last_line(folder / LOG) or "the shim ended before its claim")
                else:
                    continue
                del waiting[attempt]
                until = time.monotonic() + TIMEOUT_S  # a hundred of them take longer than one
        for attempt in waiting:
            answers[attempt] = BackendDown(f"the shim of {attempt} made no claim within {TIMEOUT_S:g} s")
        return answers

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


class _Handout:
    """The chips of this machine, handed out to several attempts under the backend's lock."""

    def __init__(self, backend: LocalBackend) -> None:
        self.backend, self.exact = backend, False
        self.held = backend._held(backend.underway.names())
        self.taken: dict[str, set[int]] = {}  # by those that have made no claim yet

    def take(self, launch: Launch) -> Sequence[int]:
        """Ids that nobody has; `BackendRefused` where they are too few."""
        pool, chips = launch.pool, launch.option.chips
        free = self._free(pool)
        if len(free) < chips and not self.exact:  # some may have ended since
            self.exact = True
            self.held = self.backend._held(s.attempt for s in self.backend.list() if s.state == RUNNING)
            free = self._free(pool)
        if len(free) < chips:
            raise BackendRefused(f"{pool.name} has {len(free)} free chips, not {chips}")
        self.taken.setdefault(pool.name, set()).update(free[:chips])
        return free[:chips]

    def _free(self, pool: Pool) -> list[int]:
        held = self.held.get(pool.name, set()) | self.taken.get(pool.name, set())
        return [id for id in ids(pool) if id not in held]


def _ended(child: int) -> bool:
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has been waited for
        return True


def _running(attempt: str, claim: Claim) -> AttemptStatus:
    return AttemptStatus(attempt, claim.by, RUNNING, started=claim.at, where=claim.host, restarts=claim.restarts)


def _told_before(path: Path, limit: float) -> bool:
    """Whether a router has told an attempt to stop not long ago; it is noted for those after this one.

    A program may say so too: then it is killed without having been told.
    """
    try:
        at = path.lstat()
    except OSError:
        with suppress(OSError):
            path.touch()
        return False
    return stat.S_ISREG(at.st_mode) and 0 <= time.time() - at.st_mtime < limit


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Slurm, through its commands or slurmrestd. The queue tells where a job is, its attempt's folder how it ended.

A job carries its attempt's id as its name. A job that Slurm starts again by itself (`--requeue`, of restartable jobs
alone) is the same attempt with one restart more. Two jobs of one attempt, left by a router that was killed while it
submitted, are both listed; `--dependency=singleton` holds the second back and the claim keeps it from running.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from chipwise.errors import InputError
from chipwise.io.atomic import atomic_write
from chipwise.route.attempt_files import last_line, locked
from chipwise.route.backend import (
    CANCELLED,
    ENDED,
    FAILED,
    LOST,
    PENDING,
    RUNNING,
    SUCCEEDED,
    AttemptStatus,
    BackendDown,
    BackendRefused,
    Capacity,
    Launch,
)
from chipwise.route.backends import shim
from chipwise.route.backends.named import attempt_folder
from chipwise.route.backends.slurm.commands import Commands
from chipwise.route.backends.slurm.read import STATES, SlurmJob, SlurmNode, line
from chipwise.route.backends.slurm.request import (
    BEFORE_NAME,
    LOG_NAME,
    SCRIPT,
    SETTINGS,
    SHIM_NAME,
    Request,
    check_address,
    gres_of,
    request_of,
    sbatch,
)
from chipwise.route.launch import REVOKED, claim_of, digest_of, end_of, launch_file, revoke_claim
from chipwise.route.load.links import check_links
from chipwise.route.pool import Pool

# of a job that its node could not start (a prolog that fails, a number that a killed controller had given before):
# Slurm puts it back into its queue and holds it until someone lets it go (squeue(1), 22.05 to 24.11)
HELD = re.compile(r"launch[ _]failed[ _]requeued[ _]held", re.IGNORECASE)
HELD_BY = "Slurm, which could not start it"
NOT_STARTED = "its node could not start it"
LAUNCH_FAILURE = "JobLaunchFailure"  # https://slurm.schedmd.com/job_reason_codes.html, 2026-11-18
TIMEOUT_S = 30.0  # for one command; Slurm's own MessageTimeout is 10 s and its commands try more than once
# A job on a node that is down is given up at once; a node that still works ends the program within this time (Slurm's
# KillWait and the shim's grace are 30 s each). Until then another attempt would run beside it.
ENDING_S = shim.GRACE_S + 5.0
# states of Slurm that say only what the program's status was
BY_STATUS = frozenset({"COMPLETED", "FAILED"})


UNSEEN = "it wrote nothing into its folder: do the nodes see that folder, and have they a Python 3.8?"


class Link(Protocol):
    """A way to talk to Slurm."""

    excludes: bool  # whether a job can be kept off nodes by their names

    def jobs(self) -> Sequence[SlurmJob]:
        """Every job that Slurm knows and that is ours to see."""

    def nodes(self) -> Sequence[SlurmNode]:
        """Every node."""

    def submit(self, request: Request) -> str:
        """Submit a job; its id."""

    def start(self, request: Request) -> float | None:
        """When it would start."""

    def cancel(self, job: str) -> None:
        """Stop a job."""


class SlurmBackend:
    """A Slurm cluster."""

    queues = True  # what waits there is started by Slurm

    def __init__(
        self,
        ledger: str,
        folder_of: Callable[[str], Path],
        settings: Mapping[str, str] | None = None,
        name: str = "slurm",
        link: Link | None = None,
    ) -> None:
        """`ledger` is its uid, with which its attempts' ids begin; `folder_of` gives the folder of an attempt."""
        self.name, self.ledger, self.folder_of = name, ledger, folder_of
        self.link = link_of(settings or {}) if link is None else link
        self._over: dict[SlurmJob, AttemptStatus] = {}  # what has ended and left its end doesn't change
        self._names: frozenset[str] | None = None  # of the nodes, as last listed
        self._orphans: set[str] = set()  # jobs that run though Slurm has forgotten them, as a killed controller may

    def render(self, launch: Launch) -> str:
        """The command with one word a line, the script that it reads, and what the shim is to run."""
        request = request_of(launch, {**dict.fromkeys(launch.variant.secrets, ""), **os.environ})
        command = " \\\n    ".join(shlex.quote(word) for word in sbatch(request))
        document = launch_file(launch).decode("ascii")
        before = f"# {BEFORE_NAME}\n{_before(request).decode()}\n\n" if request.before else ""
        secrets = "".join(f"# {name}: from the router's environment\n" for name in launch.variant.secrets)
        return f"# launch.json\n{document}\n\n{before}{secrets}{command} <<'SCRIPT'\n{SCRIPT}SCRIPT\n"

    def submit(self, launch: Launch) -> str:
        """Put the shim into the attempt's folder, and submit it."""
        request = self._placed(_with_digest(request_of(launch)))
        try:
            atomic_write(Path(shim.__file__).read_bytes(), launch.folder / SHIM_NAME, "the attempt's folder")
            if request.before:
                atomic_write(_before(request), launch.folder / BEFORE_NAME, "the attempt's folder")
        except (OSError, InputError) as error:
            raise BackendDown(f"slurm: {error}") from None
        return self.link.submit(request)

    def list(self) -> Sequence[AttemptStatus]:
        """Every job of this ledger; those of one attempt in the order in which they were submitted."""
        jobs = [job for job in self.link.jobs() if job.name.startswith(f"{self.ledger}-")]
        self._over = {job: self._over[job] for job in jobs if job in self._over}
        return [
            status for job in sorted(jobs, key=lambda job: int(job.id)) if (status := self._status(job)) is not None
        ]

    def status(self, attempts: Sequence[tuple[str, str]]) -> Sequence[AttemptStatus]:
        """What Slurm shows, and of what it has forgotten (MinJobAge after the end), what the folder holds."""
        wanted = dict(attempts)
        shown = [status for status in self.list() if status.attempt in wanted]
        names = {status.attempt for status in shown}
        self._orphans = set()
        forgotten = (self._forgotten(name, job) for name, job in wanted.items() if name not in names)
        return [*shown, *(status for status in forgotten if status is not None)]

    def cancel(self, backend_id: str) -> None:
        """Stop one job, restarts included. The number of one that Slurm has forgotten may be another's by now."""
        if not re.fullmatch(r"[0-9]+", backend_id):
            raise BackendRefused(f"slurm: {backend_id!r} is no id of a job")
        if backend_id not in self._orphans:
            self.link.cancel(backend_id)

    def capacity(self, pools: Sequence[Pool]) -> Mapping[str, Capacity]:
        """Chips of each pool that work and that are free, in multiples of its unit on each node."""
        nodes = self._nodes()
        return {pool.name: pool_capacity(pool, nodes) for pool in pools}

    def node_names(self, pool: Pool) -> Sequence[str]:
        """The nodes that have chips of the pool."""
        if not self.link.excludes:
            return ()
        return [node.name for node in nodes_of(pool, self._nodes())]

    def _nodes(self) -> Sequence[SlurmNode]:
        nodes = self.link.nodes()
        self._names = frozenset(node.name for node in nodes)
        return nodes

    def _placed(self, request: Request) -> Request:
        """A request that excludes no node which Slurm does not have: it would refuse every job for that."""
        if not request.exclude:
            return request
        if self._names is None:
            self._nodes()
        return replace(request, exclude=tuple(name for name in request.exclude if name in (self._names or ())))

    def predicted_start(self, launch: Launch) -> float | None:
        """What `sbatch --test-only` says."""
        return self.link.start(request_of(launch))

    def _status(self, job: SlurmJob) -> AttemptStatus | None:
        if job in self._over:
            return self._over[job]
        state, words = STATES[job.state]
        reason = "; ".join(filter(None, [words, job.reason]))
        if state in ENDED:
            return self._ended(job, state, reason)
        if state == PENDING and HELD.search(job.reason) and revoke_claim(self.folder_of(job.name), HELD_BY):
            with suppress(BackendDown, BackendRefused):  # it runs nothing, whoever lets it go
                self.link.cancel(job.id)
            return AttemptStatus(job.name, job.id, LOST, reason=f"{NOT_STARTED}; {reason}", restarts=job.restarts)
        if state == PENDING and job.restarts:
            times = f" for the {job.restarts + 1}. time" if job.restarts > 1 else " again"
            back = f"taken off its nodes and put back into the queue by Slurm, to start{times}"
            reason = f"{back}; {reason}" if reason else back
        return AttemptStatus(job.name, job.id, state, None, job.started, None, job.nodes, reason, job.restarts)

    def _ended(self, job: SlurmJob, state: str, reason: str) -> AttemptStatus | None:
        """How a job ended: the program's status is the folder's to say, what befell the job is Slurm's."""
        folder = self.folder_of(job.name)
        claim, end = claim_of(folder), end_of(folder)
        if claim is not None and claim.revoked:
            if state == CANCELLED and claim.by == REVOKED + HELD_BY:
                state, reason = LOST, NOT_STARTED
            claim = None  # a router has given it up: nothing ran, nothing will
        if (claim is not None and claim.by != job.id) or (end is None and job.exit_code == shim.TAKEN):
            return None  # it found the claim of another and left: the attempt is not this job's
        reason = "; ".join(filter(None, [reason, f"Slurm: {job.state}"])) if state != SUCCEEDED else reason
        code, started, ended = job.exit_code, job.started, job.ended
        if job.exit_code == shim.ONCE and (end is None or end.exit_code not in (0, shim.ONCE)):
            state, reason, code = LOST, "Slurm has started it again, and it is not restartable", None
        elif end is not None and end.by == job.id and end.exit_code is not None:
            code, started, ended = end.exit_code, end.started, end.ended
            if code == 0 or job.state in BY_STATUS:
                state, reason = SUCCEEDED if code == 0 else FAILED, end.reason
        elif claim is None:
            code = code if code == shim.UNREADABLE else None  # it never ran
            # one that may not be put back is cancelled, though nobody asked for it: who is told to stop has a signal
            unasked = job.state == "CANCELLED" and job.nodes and job.exit_code == 0
            if unasked or job.reason == LAUNCH_FAILURE:
                state, reason = LOST, NOT_STARTED
            if job.state in BY_STATUS and job.reason in ("", "NonZeroExitCode", "RaisedSignal"):
                state, reason = FAILED, f"{_log(folder) or UNSEEN}; Slurm: {job.state}"
        elif state == LOST and self._ending(job):
            words = f"{reason}; its program may still be ending"
            return AttemptStatus(job.name, job.id, RUNNING, None, started, None, job.nodes, words, job.restarts)
        elif state == SUCCEEDED:
            state, reason = LOST, "Slurm says that it has ended well, its folder has no end"
        status = AttemptStatus(job.name, job.id, state, code, started, ended, job.nodes, reason, job.restarts)
        if end is not None:
            self._over[job] = status
        return status

    def _ending(self, job: SlurmJob) -> bool:
        """Whether the program of a job that Slurm has given up may still run."""
        recent = job.ended is not None and time.time() - job.ended < ENDING_S
        return recent or locked(self.folder_of(job.name) / shim.ALIVE) is True

    def _forgotten(self, attempt: str, job: str) -> AttemptStatus | None:
        folder = self.folder_of(attempt)
        claim, end = claim_of(folder), end_of(folder)
        if end is not None:
            state = end.state if end.state != CANCELLED else LOST  # who told it to stop, nobody knows any more
            return AttemptStatus(
                attempt,
                end.by,
                state,
                end.exit_code,
                end.started,
                end.ended,
                claim.host if claim else "",
                end.reason,
                claim.restarts if claim else 0,
            )
        if claim is None or claim.revoked or not locked(folder / shim.ALIVE):
            return None  # the next passes may find its end: what was just written is not everywhere yet
        self._orphans.add(claim.by)
        words = f"Slurm no longer knows job {claim.by}, whose program still runs"
        return AttemptStatus(attempt, claim.by, RUNNING, None, claim.at, None, claim.host, words, claim.restarts)


def _log(folder: Path) -> str:
    """The last line of what Slurm and the shim had to say."""
    return line(last_line(folder / LOG_NAME))


def _with_digest(request: Request) -> Request:
    """The request with the digest of the words before the program's own, which the shim compares."""
    if not request.before:
        return request
    return replace(request, environment={**request.environment, shim.BEFORE_DIGEST: digest_of(_before(request))})


def _before(request: Request) -> bytes:
    return json.dumps({"argv": list(request.before)}, indent=1).encode("ascii")


def make(name: str, pools: Sequence[Pool], folder: Path, uid: str) -> SlurmBackend:
    """The backend of these pools, which are of one cluster. `folder` is the ledger's own, `uid` its name."""
    settings: dict[str, str] = {}
    for pool in pools:
        check_address(pool)
        check_links("slurm", dict(pool.address), f"pools.{pool.name}.address")
        for key, value in pool.address:
            if key in SETTINGS and settings.setdefault(key, value) != value:
                raise InputError(
                    f"pools.{pool.name}.address.{key}",
                    value,
                    f"{settings[key]!r}, as of another pool of {name}; two clusters differ in `cluster`",
                )
    return SlurmBackend(uid, partial(attempt_folder, folder), settings, name)


def link_of(settings: Mapping[str, str]) -> Link:
    """The way to talk that the pools' address asks for."""
    try:
        timeout = float(settings.get("timeout", TIMEOUT_S))
    except ValueError:
        timeout = 0.0
    if not 0 < timeout <= 3600:
        raise InputError("address.timeout", settings["timeout"], "seconds, above 0 and at most 3600")
    if settings.get("rest"):
        from chipwise.route.backends.slurm.rest import Rest

        return Rest(settings["rest"], timeout, settings.get("user", ""))
    return Commands(settings.get("conf", ""), timeout)


def nodes_of(pool: Pool, nodes: Sequence[SlurmNode]) -> list[SlurmNode]:
    """The nodes that have chips of a pool."""
    gres = gres_of(pool)
    partitions = set(filter(None, pool.setting("partition").split(",")))
    return [
        node
        for node in nodes
        if node.chips(gres)[0]
        and (not partitions or partitions & node.partitions)
        and has_features(node.features, pool.setting("constraint"))
    ]


def pool_capacity(pool: Pool, nodes: Sequence[SlurmNode]) -> Capacity:
    """Chips of a pool among its partition's nodes, of which jobs of the pool can have whole units."""
    gres, ours = gres_of(pool), nodes_of(pool, nodes)
    total = free = down = largest = 0
    for node in ours:
        chips, used = node.chips(gres)
        if not node.usable or node.name in pool.avoid:
            down += chips
            continue
        left = max(0, chips - used) // pool.unit * pool.unit
        total, free, largest = total + chips, free + left, max(largest, left)
    note = (
        ""
        if ours
        else f"no node of Slurm's has {gres or 'CPUs'}"
        + (f" in partition {pool.setting('partition')}" if pool.setting("partition") else "")
    )
    if free > largest:
        note = f"at most {largest} free on one node"
    return Capacity(
        min(total, pool.count), max(0, min(free, pool.count - used_by_others(ours, gres, pool))), down, note
    )


def used_by_others(nodes: Sequence[SlurmNode], gres: str, pool: Pool) -> int:
    """Chips in use that count against a pool which is smaller than its nodes: those beyond what is left over."""
    chips = [node.chips(gres) for node in nodes if node.usable]
    spare = max(0, sum(total for total, _ in chips) - pool.count)
    return max(0, sum(used for _, used in chips) - spare)


def has_features(features: frozenset[str], constraint: str) -> bool:
    """Whether a node fits a constraint of names, `&` and `|`; other forms are left to Slurm, and all nodes count.

    >>> has_features(frozenset({"gpu", "h200"}), "h100|gpu&h200"), has_features(frozenset({"gpu"}), "tpu")
    (True, False)
    """
    if not re.fullmatch(r"[\w.&|,-]*", constraint):
        return True
    wanted = [part.replace(",", "&").split("&") for part in constraint.split("|")]
    return any(features >= set(filter(None, part)) for part in wanted)

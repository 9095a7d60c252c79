"""From an attempt to what a backend gets: the program's environment and the files of its folder.

An attempt's folder holds, each written atomically:

    launch.json   what to run: attempt, argv, environment, cwd            written by the router before it submits
    claim         who runs it: {"by": BACKEND ID, "pid", "at", ...}       made once, by the first that comes
    alive         locked while the shim lives
    output        what the program printed
    end           how it ended: {"by", "exit_code", "started", "ended", "told", "reason"}; absent: it runs, or was lost
    progress      the share of the job's work that its checkpoints hold; a program may write it, from 0 to 1

The claim is what makes an attempt run once: whoever finds the claim of another leaves without running the program.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

from chipwise.route.attempt_files import MOST_LAUNCH, Unreadable, read_bounded, read_object
from chipwise.route.backend import CANCELLED, FAILED, LOST, SUCCEEDED, BackendDown, BackendRefused, Launch
from chipwise.route.job import Job, Variant
from chipwise.route.option import Option
from chipwise.route.pool import Pool

REVOKED = "ended by "  # begins the claim of a router that gave an attempt up
NOBODY = "?"  # in place of who made a claim or an end that can't be read
LEAST_STATUS, MOST_STATUS = -(2**31), 2**31 - 1
LATEST = 253_402_300_800.0  # the end of the year 9999
LONGEST_REASON = 4096
FLAGS = {"gpu": "XLA_FLAGS", "tpu": "LIBTPU_INIT_ARGS", "cpu": "XLA_FLAGS"}  # where compilers look for options


def environment(
    job: Job, variant: Variant, pool: Pool, option: Option, attempt: str, number: int, folder: Path
) -> dict[str, str]:
    """The variables that a program finds: the variant's own, its flags, and what tells it where it runs."""
    placement = {
        "CHIPWISE_ATTEMPT": attempt,
        "CHIPWISE_NUMBER": str(number),
        "CHIPWISE_JOB": job.name,
        "CHIPWISE_VARIANT": variant.name,
        "CHIPWISE_POOL": pool.name,
        "CHIPWISE_CHIP": pool.chip,
        "CHIPWISE_CHIPS": str(variant.chips),
        "CHIPWISE_TOPOLOGY": option.topology,
        "CHIPWISE_LAYOUT": variant.layout or option.layout,
        "CHIPWISE_BATCH": "" if variant.batch is None else str(variant.batch),
        "CHIPWISE_PRECISION": variant.precision,
        "CHIPWISE_CHECKPOINT": job.checkpoint.folder,
        "CHIPWISE_FOLDER": str(folder),
    }
    own = dict(variant.environment)
    if variant.flags:
        name = FLAGS[variant.family]
        own[name] = " ".join([*([own[name]] if own.get(name) else []), *variant.flags])
    return {k: v for k, v in placement.items() if v} | own


@dataclass(frozen=True, slots=True)
class Claim:
    """Who runs an attempt."""

    by: str  # the backend's id of the job
    at: float
    pid: int = 0
    start: int = 0  # of the process, in clock ticks since boot: a pid that is used again is another process
    boot: str = ""
    host: str = ""
    pool: str = ""
    chips: tuple[int, ...] = ()  # handed out by the backend, where it does so
    restarts: int = 0  # by the backend itself
    space: str = ""  # of names of processes: a pid means nothing in another

    @property
    def revoked(self) -> bool:
        """Whether a router has given the attempt up: nothing of it runs, nothing will."""
        return self.by.startswith(REVOKED)


@dataclass(frozen=True, slots=True)
class End:
    """How the program of an attempt ended."""

    by: str
    exit_code: int | None
    started: float | None
    ended: float | None
    stop_signal: int = 0  # the signal by which it was told to stop; 0: none
    reason: str = ""

    @property
    def state(self) -> str:
        """The backend's state for it: a program that leaves with 0 has finished, even if it was told to stop."""
        if self.exit_code is None:
            return LOST
        return SUCCEEDED if self.exit_code == 0 else CANCELLED if self.stop_signal else FAILED


def launch_file(launch: Launch, grace: float | None = None) -> bytes:
    """What the shim reads. Words that no program can be given are refused here."""
    environment = dict(launch.environment)
    for word in (*launch.variant.command, *environment, *environment.values()):
        try:
            data = word.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            data = b"\0"
        if b"\0" in data:
            raise BackendRefused(f"{word!r}: no program can be given this word")
    if any("=" in name or not name for name in environment):
        raise BackendRefused("the name of a variable is empty or has a '=' in it")
    if not launch.variant.command:
        raise BackendRefused(f"variant {launch.variant.name!r} has no command")
    return json.dumps(
        {
            "attempt": launch.attempt,
            "argv": list(launch.variant.command),
            "environment": environment,
            "cwd": launch.pool.setting("cwd") or str(launch.folder),
            "time_limit": launch.time_limit,
            "grace": grace,
        },
        indent=1,
    ).encode("ascii")


def planned_launch(launch: Launch, digest: str) -> tuple[bytes, str]:
    """The launch file of an attempt, and its digest. One that is there already stays: a shim may be reading it.

    `digest`: as the ledger has it. A file that is there and is not the one that a router wrote is somebody else's: the
    attempt is refused, and never run.
    """
    data = launch_file(launch)
    try:
        existing = read_bounded(launch.folder / "launch.json", MOST_LAUNCH)
    except Unreadable as error:
        raise BackendRefused(f"its launch file can't be read: {error}") from None
    if existing is None:
        return data, digest_of(data)
    if (digest_of(existing) != digest) if digest else (existing != data):
        raise BackendRefused(f"{launch.folder / 'launch.json'} is not what a router wrote: someone has put it there")
    return existing, digest_of(existing)


def write_launch(folder: Path, data: bytes) -> None:
    """Make an attempt's folder and its launch file, unless it is there."""
    try:
        private_folder(folder)
        if not (folder / "launch.json").exists():
            create_atomically(data, folder / "launch.json")
    except FileExistsError:
        pass  # by another router, just now: the shim compares it
    except OSError as error:
        raise BackendDown(f"{folder}: {error.strerror or error}") from None


def digest_of(data: bytes) -> str:
    """The digest of a launch file, as the ledger keeps it and the shim computes it."""
    return hashlib.sha256(data).hexdigest()


def revoke_claim(folder: Path, by: str) -> bool:
    """Claim an attempt so that no program of it runs, now or later; False where another has claimed it.

    Whoever ends an attempt that no backend is known to have ended does this first: a router that was only slow may
    still be about to submit it.
    """
    try:
        private_folder(folder)
        create_atomically(json.dumps({"by": f"{REVOKED}{by}", "at": time.time()}).encode(), folder / "claim")
    except FileExistsError:
        claim = claim_of(folder)
        return claim is not None and claim.revoked
    except OSError as error:
        raise BackendDown(f"{folder}: {error.strerror or error}") from None
    return True


def private_folder(folder: Path) -> None:
    """Make an attempt's folder, and those above it that are missing: its owner's alone, as environments lie there."""
    for part in (*reversed(folder.parents), folder):
        with suppress(FileExistsError):
            part.mkdir(mode=0o700)


def create_atomically(data: bytes, path: Path) -> None:
    """Make a file, whole and on the disk before it has its name; FileExistsError where it is there already."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(draft, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as out:  # a file system without hard links: its contents come after its name
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
    finally:
        draft.unlink(missing_ok=True)


def progress_of(folder: Path) -> float | None:
    """The share of the job's work that its checkpoints hold, if the program wrote it to the file `progress`."""
    try:
        data = read_bounded(folder / "progress", 64)
        share = float(data.decode("utf-8", "replace")) if data is not None else nan
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


def claim_of(folder: Path) -> Claim | None:
    """Who has claimed an attempt; None: nobody. A claim that can't be read is somebody's all the same."""
    try:
        document = read_object(folder / "claim")
        return None if document is None else claim_from(document)
    except ValueError:
        return Claim(NOBODY, 0.0)


def claim_from(document: Mapping[str, Any]) -> Claim:
    """The claim in a document; `Unreadable` where it is none."""
    try:
        restarts = _whole(document.get("restarts", 0))
        if not 0 <= restarts <= MOST_STATUS:
            raise Unreadable(f"{restarts} restarts")
        return Claim(
            str(document["by"]),
            _moment(document["at"]),
            _whole(document.get("pid", 0)),
            _whole(document.get("start", 0)),
            str(document.get("boot", "")),
            str(document.get("host", "")),
            str(document.get("pool", "")),
            tuple(_whole(word) for word in str(document.get("chips") or "").split(",") if word),
            restarts,
            str(document.get("space", "")),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"no claim: {error}") from None


def end_of(folder: Path) -> End | None:
    """How an attempt ended; None: it has not. An end that can't be read is one whose result is lost."""
    try:
        document = read_object(folder / "end")
        return None if document is None else end_from(document)
    except ValueError:
        return End(NOBODY, None, None, None, reason=f"{folder / 'end'} can't be read")


def end_from(document: Mapping[str, Any]) -> End:
    """The end in a document; `Unreadable` where it is none."""
    try:
        code = _whole(document["exit_code"])
        if not LEAST_STATUS <= code <= MOST_STATUS:
            raise Unreadable(f"status {code}")
        return End(
            str(document["by"]),
            code,
            _moment(document["started"]),
            _moment(document["ended"]),
            _whole(document.get("told", 0)),
            str(document.get("reason", ""))[:LONGEST_REASON],
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"no end: {error}") from None


def put_back(path: Path, document: Mapping[str, Any] | None) -> None:
    """Write a file of an attempt that has ended again, or with None see that there is none, whatever lies there."""
    private_folder(path.parent)
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f".{path.name}.{uuid.uuid4().hex}"))
    if document is None:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    create_atomically(json.dumps(dict(document)).encode("ascii"), draft)
    draft.replace(path)


def _whole(value: object) -> int:
    """A whole number that every database holds."""
    number = int(value)  # type: ignore[call-overload]
    if not -(2**63) <= number < 2**63:
        raise Unreadable("a number beyond 64 bits")
    return int(number)


def _moment(value: object) -> float:
    """Seconds since 1970, of some clock: finite, and of a year with four digits."""
    seconds = float(value)  # type: ignore[arg-type]
    if not 0 <= seconds < LATEST:
        raise Unreadable("no moment")
    return seconds

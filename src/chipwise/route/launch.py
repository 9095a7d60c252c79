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
import json
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.route.backend import CANCELLED, FAILED, LOST, SUCCEEDED, BackendDown, BackendRefused, Launch
from chipwise.route.job import Job, Variant
from chipwise.route.option import Option
from chipwise.route.pool import Pool

REVOKED = "ended by "  # begins the claim of a router that gave an attempt up
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


def write_launch(launch: Launch, grace: float | None = None) -> None:
    """Make the attempt's folder and its launch file. What is there already is left alone: a shim may be reading it."""
    data = launch_file(launch, grace)
    try:
        launch.folder.mkdir(parents=True, exist_ok=True)
        if not (launch.folder / "launch.json").exists():
            create_atomically(data, launch.folder / "launch.json")
    except FileExistsError:
        pass
    except OSError as error:
        raise BackendDown(f"{launch.folder}: {error.strerror or error}") from None


def revoke_claim(folder: Path, by: str) -> bool:
    """Claim an attempt so that no program of it runs, now or later; False where another has claimed it.

    Whoever ends an attempt that no backend is known to have ended does this first: a router that was only slow may
    still be about to submit it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        create_atomically(json.dumps({"by": f"{REVOKED}{by}", "at": time.time()}).encode(), folder / "claim")
    except FileExistsError:
        claim = claim_of(folder)
        return claim is not None and claim.revoked
    except OSError as error:
        raise BackendDown(f"{folder}: {error.strerror or error}") from None
    return True


def create_atomically(data: bytes, path: Path) -> None:
    """Make a file, whole and on the disk before it has its name; FileExistsError where it is there already."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with draft.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(draft, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            with path.open("xb") as out:  # a file system without hard links: its contents come after its name
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
    finally:
        draft.unlink(missing_ok=True)


def progress_of(folder: Path) -> float | None:
    """The share of the job's work that its checkpoints hold, if the program wrote it to the file `progress`."""
    try:
        share = float((folder / "progress").read_text("utf-8", "replace")[:40])
    except (OSError, ValueError):
        return None
    return share if 0 <= share <= 1 else None


def claim_of(folder: Path) -> Claim | None:
    """Who has claimed an attempt; None: nobody. A claim that can't be read is somebody's all the same."""
    document = _read(folder / "claim")
    if document is None:
        return None
    try:
        chips = tuple(int(word) for word in str(document.get("chips") or "").split(",") if word)
        return Claim(
            str(document["by"]),
            float(document["at"]),
            int(document.get("pid", 0)),
            int(document.get("start", 0)),
            str(document.get("boot", "")),
            str(document.get("host", "")),
            str(document.get("pool", "")),
            chips,
            int(document.get("restarts", 0)),
            str(document.get("space", "")),
        )
    except (KeyError, TypeError, ValueError):
        return Claim("?", 0.0)


def end_of(folder: Path) -> End | None:
    """How an attempt ended; None: it has not. An end that can't be read is one whose result is lost."""
    document = _read(folder / "end")
    if document is None:
        return None
    try:
        return End(
            str(document["by"]),
            int(document["exit_code"]),
            float(document["started"]),
            float(document["ended"]),
            int(document.get("told", 0)),
            str(document.get("reason", "")),
        )
    except (KeyError, TypeError, ValueError):
        return End("?", None, None, None, reason=f"{folder / 'end'} can't be read")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    except OSError as error:
        raise BackendDown(f"{path}: {error.strerror or error}") from None
    return document if isinstance(document, dict) else {}

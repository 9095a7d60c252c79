"""Which attempts may have a process here: one file each, beside the folders of all attempts that are kept.

A file is made before an attempt's shim is started, and removed once its process is seen to be gone: what is listed is
what may run, however many folders are kept. A file too many costs a look, and one is never missing while a process
runs: whatever is killed in between, the attempts of the ledger are asked for by their names. No file needs to reach the
disk: after a crash of the machine nothing runs.

Its shim writes the claim into the file before it starts the program, and the end after it: a record that counts for
more than what lies in the attempt's folder, which is the program's to remove and to write over.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from chipwise.route.attempt_files import Unreadable, read_object
from chipwise.route.backend import BackendDown
from chipwise.route.backends import shim
from chipwise.route.launch import Claim, End, claim_from, claim_of, end_from, end_of, put_back


@dataclass(frozen=True, slots=True)
class Record:
    """What a shim has recorded of its attempt."""

    claim: Claim
    grace: float = shim.GRACE_S  # seconds between SIGTERM and SIGKILL
    scope: str = ""  # the cgroup that its program runs in; empty: none
    end: End | None = None
    document: Mapping[str, Any] | None = None  # as it was written

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Record:
        """The record in a document; `Unreadable` where it is none."""
        end = document.get("end")
        try:
            grace = float(document.get("grace") or shim.GRACE_S)
        except (TypeError, ValueError) as error:
            raise Unreadable(str(error)) from None
        return cls(
            claim_from(document),
            grace if isfinite(grace) else shim.GRACE_S,
            str(document.get("scope") or ""),
            end_from(end) if isinstance(end, dict) else None,
            document,
        )

    def restore(self, folder: Path, ended: bool) -> bool:
        """Put the claim and the end into the attempt's folder where its program has changed them; whether that could
        be done. `ended`: without an end in the record there was none."""
        document = dict(self.document or {})
        end = document.pop("end", None)
        try:
            if claim_of(folder) != self.claim:
                put_back(folder / "claim", document)
            if end_of(folder) != self.end and (ended or self.end is not None):
                put_back(folder / "end", end if self.end is not None else None)
        except (OSError, BackendDown):
            return False
        return True


class Underway:
    """The files of one backend."""

    def __init__(self, folder: Path, name: str) -> None:
        """`folder` is the ledger's own, `name` the backend's."""
        self.folder, self.attempts = folder / f"{name}.underway", folder / "attempts"

    def names(self) -> list[str]:
        """The attempts that may have a process, in order."""
        try:
            return sorted(entry.name for entry in os.scandir(self.folder) if not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BackendDown(f"{self.folder}: {error.strerror or error}") from None

    def add(self, attempt: str) -> None:
        """An attempt is about to be started."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(self.folder / attempt, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise BackendDown(f"{self.folder / attempt}: {error.strerror or error}") from None

    def record(self, attempt: str) -> Record | None:
        """What its shim has recorded; None where it has not, or the attempt is under way no more."""
        try:
            document = read_object(self.folder / attempt)
            return None if document is None else Record.read(document)
        except Unreadable:  # empty: it is about to be started
            return None

    def discard(self, attempt: str) -> None:
        """Nothing of an attempt runs any more, and nothing ever will."""
        with suppress(OSError):  # another router was faster; one too many is looked at again
            (self.folder / attempt).unlink()

    @property
    def missing(self) -> bool:
        """Whether attempts may be kept that were started before there were such files."""
        return not self.folder.exists() and self.attempts.exists()

    def adopt(self, living: Callable[[list[str]], Iterable[str]]) -> None:
        """Make the files of attempts that an older version has started, all at once. The backend's lock is held."""
        draft = self.folder.with_name(f"{self.folder.name}.new")
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700)
            kept = [entry.name for entry in os.scandir(self.attempts) if entry.is_dir(follow_symlinks=False)]
            for name in living(kept):
                (draft / name).touch(mode=0o600)
            draft.rename(self.folder)
        except OSError as error:
            raise BackendDown(f"{self.folder}: {error.strerror or error}") from None

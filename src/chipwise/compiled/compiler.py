"""A job to its outcome: from the cache, or by the vendor's compiler in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from chipwise.compiled.cache import MODULE, Cache, default_cache
from chipwise.compiled.job import Compiled, Job, Refused, outcome_from_json
from chipwise.compiled.worker import diagnose
from chipwise.compiled.worker.keys import (
    Sources,
    entry_key,
    extractor_hash,
    listed_by_worker,
    listed_sources,
    request_key,
    words_hash,
)
from chipwise.compiled.worker.process import UNUSED_VARIABLES, Ended, Limits, Progress, run_worker
from chipwise.compiled.worker.versions import require
from chipwise.errors import BrokenFile, InputError

WAITING = "waiting for another check of the same program"
_WORK_PREFIX, _FRESH_SECONDS = "chipwise-work-", 60.0

__all__ = ["WAITING", "Limits", "Progress", "compile_job", "kept_job", "module_text"]


def compile_job(
    job: Job, limits: Limits | None = None, progress: Progress | None = None, cache: Cache | None = None
) -> Compiled | Refused:
    """What the compiler makes of a job, from the cache if it was asked before.

    `progress` is told the stage and the seconds since the start, at each change and about once a second.
    """
    versions = require(job.target.platform, job.spec.kind)
    cache = default_cache() if cache is None else cache
    lookup = _Lookup(job, versions, cache)
    outcome = lookup.stored()
    if outcome is None:
        with cache.lock(lookup.request, _Waiting(progress)):
            outcome = lookup.stored() or lookup.compiled(limits or Limits(), progress)
    return lookup.noted(outcome)


def kept_job(job: Job, cache: Cache | None = None) -> Compiled | Refused | None:
    """What the cache knows of a job, or None; never compiles."""
    cache = default_cache() if cache is None else cache
    lookup = _Lookup(job, require(job.target.platform, job.spec.kind), cache)
    outcome = lookup.stored()
    return lookup.noted(outcome) if outcome is not None else None


def module_text(job: Job, cache: Cache | None = None) -> str:
    """The optimized module of a job that was compiled; "" if the cache no longer has it."""
    cache = default_cache() if cache is None else cache
    lookup = _Lookup(job, require(job.target.platform, job.spec.kind), cache)
    key = lookup.key()
    stored, _ = cache.get(key) if key else (None, "")
    return cache.module_text(key) if key and stored and stored["module_bytes"] else ""


class _Waiting:
    """Tells progress that another process has the lock, once a second."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.calls = progress, 0

    def __call__(self) -> None:
        if self.progress is not None and self.calls % 10 == 0:
            self.progress(WAITING, self.calls / 10)
        self.calls += 1


class _Lookup:
    """One question to the cache and, failing that, to the compiler."""

    def __init__(self, job: Job, versions: Mapping[str, str], cache: Cache) -> None:
        self.job, self.cache = job, cache
        self.request = request_key(job, versions, os.environ)
        self.notes: list[str] = []

    def key(self) -> str:
        """The entry's key with the sources as they are now; "" if they are not known yet."""
        if listed_by_worker(self.job.spec.kind):
            sources = self.cache.sources(self.request)
            if sources is None:
                return ""
        else:
            sources = listed_sources(self.job)
        return entry_key(self.request, sources.stamp())

    def stored(self) -> Compiled | Refused | None:
        """The outcome the cache has, read again if our reader has changed since."""
        key = self.key()
        if not key:
            return None
        stored, note = self.cache.get(key)
        self.notes += [note] if note else []
        if stored is None:
            return None
        try:
            outcome = outcome_from_json(stored)
            made_by = stored["extractor"], stored["words"]
        except (TypeError, KeyError):
            self.notes.append("a broken cache entry was removed: its fields are not those of this version")
            self.cache.remove(key)
            return None
        if isinstance(outcome, Compiled):
            if made_by[0] != extractor_hash():
                return self._read_again(key, stored, outcome)
            return replace(outcome, cached=True)
        if made_by[1] != words_hash():
            self.cache.remove(key)
            return None
        return outcome

    def _read_again(self, key: str, stored: Mapping[str, Any], outcome: Compiled) -> Compiled | None:
        from chipwise.compiled.timing.reading import UNREAD, read_schedule

        try:
            text = self.cache.module_text(key)
        except BrokenFile as error:
            self.notes.append(f"a broken cache entry was removed: {error.accepted}")
            return None
        schedule, unread = read_schedule(text)
        notes = tuple(note for note in outcome.notes if not note.startswith(UNREAD))
        outcome = replace(outcome, schedule=schedule, notes=(*notes, *unread))
        renewed = {**stored, "compiled": outcome.as_json(), "extractor": extractor_hash()}
        note = self.cache.replace_result(key, renewed)
        self.notes += [note] if note else []
        return replace(outcome, cached=True)

    def compiled(self, limits: Limits, progress: Progress | None) -> Compiled | Refused:
        """The outcome of a worker process, stored if the same question always has the same answer."""
        with _work_folder() as folder:
            (folder / "job.json").write_text(json.dumps(self.job.as_json()))
            result = folder / "result.json"
            ended = run_worker([str(folder / "job.json"), str(result)], folder, limits, progress)
            if ended.over or ended.code or not result.is_file():
                return diagnose.ended(ended, limits)
            record = json.loads(result.read_text())
            outcome = outcome_from_json(record)
            if isinstance(outcome, Compiled) or outcome.repeatable:
                self._store(record, folder / MODULE if isinstance(outcome, Compiled) else None)
            self._say_unwatched(ended, limits)
            return outcome

    def _store(self, record: dict[str, Any], module: Path | None) -> None:
        hashes = record["files"]  # hashed as the worker read them: files may have changed meanwhile
        listed = listed_by_worker(self.job.spec.kind)
        sources = Sources(tuple(hashes), tuple(record["packages"])) if listed else listed_sources(self.job)
        stamp = {name: hashes.get(name, now) for name, now in sources.stamp().items()}
        kept: dict[str, Any] = {"program": self.job.spec.name, "target": str(self.job.target)}
        kept |= {"extractor": extractor_hash(), "words": words_hash()}
        kept |= {name: record[name] for name in ("compiled", "refused") if name in record}
        note = self.cache.put_sources(self.request, sources) if listed else ""
        if not note:
            note = self.cache.put(entry_key(self.request, stamp), kept, module)
        if note and listed:
            self.cache.forget_sources(self.request)
        self.notes += [note] if note else []

    def _say_unwatched(self, ended: Ended, limits: Limits) -> None:
        if limits.bytes is not None and not ended.peak_bytes and ended.seconds > 1.0:
            self.notes.append("memory was not watched: this system does not tell how much a process uses")

    def noted(self, outcome: Compiled | Refused) -> Compiled | Refused:
        """The outcome with what is to say about this answer alone."""
        for name in UNUSED_VARIABLES:
            if os.environ.get(name):
                self.notes.append(f"{name} in the environment is not used: give options of the compiler instead")
        return replace(outcome, notes=(*outcome.notes, *self.notes)) if self.notes else outcome


@contextmanager
def _work_folder() -> Iterator[Path]:
    """A folder for the worker's files. Folders of processes that died are removed on the way."""
    import fcntl  # not on Windows, where no compiler is published either

    base = Path(tempfile.gettempdir())
    _sweep(base)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=base))
    except OSError as error:
        raise InputError("TMPDIR", str(base), f"a folder that can be written ({error.strerror})") from error
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(base: Path) -> None:
    import fcntl

    for folder in base.glob(f"{_WORK_PREFIX}*"):
        with suppress(OSError):  # in use, or someone else's
            if time.time() - folder.stat().st_mtime < _FRESH_SECONDS:
                continue  # perhaps not locked yet
            with (folder / "lock").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)

"""A check from request to report: compile every target, search for faster options, write the modules where asked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from chipwise.compiled.cache import Cache, default_cache
from chipwise.compiled.check.check import CheckReport, Progress, Question, Row, answer, check
from chipwise.compiled.check.request import CheckRequest
from chipwise.compiled.check.tune import Tuning, choice_alternatives, option_alternatives, tune
from chipwise.compiled.compiler import module_text
from chipwise.compiled.job import Compiled, Job
from chipwise.compiled.worker.process import Limits
from chipwise.errors import InputError
from chipwise.io.atomic import atomic_write
from chipwise.units import parse_duration

GIB = ("gib", "gb", "g")


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How a check is run; `tune` is how many compiles a search may take on each target, 0 for none."""

    limits: Limits = field(default_factory=Limits)
    tune: int = 0
    dump: Path | None = None  # a folder for each target's optimized module
    cached: bool = True  # False: compile again, and keep nothing


def read_limits(seconds: str | float | None = None, memory: str | float | None = None) -> Limits:
    """Where a compile is stopped: after so long, or at so many GiB of this machine.

    >>> read_limits("20min", "8").seconds, read_limits(600, "8GiB").bytes == 8 * 2**30
    (1200.0, True)
    """
    limits = Limits()
    if seconds is not None:
        text = str(seconds)
        most = float(text) if text.isdecimal() else parse_duration(text, "limit_seconds")
        if not most > 0:
            raise InputError("limit_seconds", text, "more than 0")
        limits = replace(limits, seconds=most)
    if memory is not None:
        text = str(memory).lower()
        for unit in GIB:
            text = text.removesuffix(unit)
        try:
            gib = float(text)
        except ValueError:
            gib = 0.0
        if not 0 < gib < 1e6:
            raise InputError("limit_memory", memory, "GiB of this machine's memory, such as 8")
        limits = replace(limits, bytes=int(gib * 2**30))
    return limits


def run_check(
    request: CheckRequest, settings: CheckSettings | None = None, progress: Progress | None = None
) -> CheckReport:
    """Compile a program for every target, one after another, and read what the compilers made of it."""
    settings, calibration = settings or CheckSettings(), request.calibration
    with _cache(settings.cached) as cache:
        report = check(request.program, request.kind, request.questions, calibration, settings.limits, progress, cache)
        if settings.tune:

            def ask(question: Question) -> Row:
                return answer(question, calibration, settings.limits, progress, cache)

            report = replace(report, tunings=_tunings(request, report, ask, settings.tune))
        if settings.dump is not None:
            _dump(report, settings.dump, cache)
    return report


@contextmanager
def _cache(kept: bool) -> Iterator[Cache]:
    """The user's cache, or one that is gone afterwards."""
    if kept:
        yield default_cache()
        return
    with tempfile.TemporaryDirectory(prefix="chipwise-") as folder:
        yield Cache(Path(folder))


def _tunings(
    request: CheckRequest, report: CheckReport, ask: Callable[[Question], Row], limit: int
) -> tuple[Tuning, ...]:
    tunings = []
    for row in report.rows:
        job = row.question.job
        if not isinstance(job, Job) or not isinstance(row.outcome, Compiled):
            continue
        alternatives = [
            *choice_alternatives(row.outcome.choices, job.spec.data.get("choices", {})),
            *request.alternatives(row.question),
            *option_alternatives(job),
        ]
        tuning = tune(row.question, alternatives, ask, limit)
        tunings.append(replace(tuning, use=request.command(row.question, tuning.best.changes)))
    return tuple(tunings)


def _dump(report: CheckReport, folder: Path, cache: Cache) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("dump", str(folder), f"a folder that can be written ({error.strerror})") from None
    for row in report.rows:
        job = row.question.job
        if isinstance(job, Job) and isinstance(row.outcome, Compiled):
            name = str(row.question.accelerators).replace(":", "-").replace("*", "x")
            atomic_write(module_text(job, cache).encode("utf-8"), folder / f"{name}.hlo.txt", "dump")

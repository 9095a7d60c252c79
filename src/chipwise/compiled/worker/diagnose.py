"""From a tracer's exception or a compiler's message to plain words: what, which op, where, what to change."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from chipwise.compiled.job import Job, Refused
from chipwise.compiled.worker.case import Case, Progressed
from chipwise.compiled.worker.messages import RULES, suspect
from chipwise.compiled.worker.process import Ended, Limits
from chipwise.compiled.worker.source_tracker import is_package_file
from chipwise.errors import InputError, NoSuchFile
from chipwise.io.worker import signal_name
from chipwise.units import format_bytes

_DETAIL_LINES = 30
_X64 = re.compile(r"\b(f64|c128)\[")


def refusal(stage: str, error: BaseException, job: Job, progressed: Progressed) -> Refused:
    """Why a program was refused. Called in the worker, where the exception still has its traceback."""
    case = Case(stage, error, _users_source(error, job), job, progressed)
    for rule in RULES:
        refused = rule(case)
        if refused is not None:
            return _with_places(replace(refused, detail=_detail(case) + refused.detail), job)
    return replace(_unknown(case), detail=_detail(case))


def _with_places(refused: Refused, job: Job) -> Refused:
    """Sources as XLA prints them are absolute."""
    file, _, line = refused.source.rpartition(":")
    return replace(refused, source=location_in_words(file, int(line), job)) if file and line.isdecimal() else refused


def ended(end: Ended, limits: Limits) -> Refused:
    """Why a worker process gave no result: a limit, or the compiler's own death."""
    took = f"{end.seconds:.0f} s"
    if end.over == "seconds":
        reason = f"stopped after {took}, the time limit, while {end.stage}"
        change = "allow more time, or compile fewer layers: loop over equal layers with jax.lax.scan"
        return Refused("limit", reason, change=change, detail=end.log)
    if end.over == "bytes":
        limit = format_bytes(float(limits.bytes or 0))
        reason = f"stopped after {took}: more than {limit} of this machine's memory used while {end.stage}"
        change = "allow more memory, or compile fewer layers: loop over equal layers with jax.lax.scan"
        return Refused("limit", reason, change=change, detail=end.log)
    if "the result could not be written" in end.log:
        cause = end.log.rpartition("the result could not be written")[2]
        reason = f"the result could not be written{cause}".partition("\n")[0]
        return Refused("limit", reason, change="free some space, or point TMPDIR elsewhere", detail=end.log)
    if "MemoryError" in end.log.rpartition("\n")[2] or end.code == -signal.SIGKILL:
        reason = f"the worker was killed after {took} while {end.stage}: this machine most likely ran out of memory"
        change = "use a machine with more memory, or compile fewer layers"
        return Refused("limit", reason, change=change, detail=end.log)
    how = signal_name(-end.code) if end.code < 0 else f"exit status {end.code}"
    cause = _fatal_line(end.log)
    who = "chipwise" if end.stage == "reading" else "the compiler itself"
    reason = f"{who} failed while {end.stage} ({how})" + (f": {cause}" if cause else "")
    change = "this is a fault of the compiler or of what the program loads, not an answer about the program"
    return Refused("compile", reason, change=change, detail=end.log, passing=True)


def notes_of(warned: Iterable[tuple[str, str]], text: str, job: Job) -> Iterator[str]:
    """What a program that compiled should hear: narrowed types, donations in vain, float64 in software."""
    for message, source in warned:
        location = f" ({source})" if source else ""
        narrowed = re.search(r"requested dtype (\w+).*truncated to dtype (\w+)", message)
        if narrowed:
            yield f"{narrowed[1]} is computed as {narrowed[2]}: jax_enable_x64 is off{location}"
        elif "donated buffers were not usable" in message:
            yield f"a donated argument has no output of its shape, so its memory is not used again: {message}"[:300]
    if job.target.platform == "tpu" and _X64.search(text):
        yield "float64 is computed in software on TPUs, many times slower than float32; use float32 or bfloat16"


def warned_at(job: Job) -> str:
    """The innermost line of the user's own code that is running now."""
    for frame in reversed(traceback.extract_stack()):
        if not is_package_file(frame.filename):
            return location_in_words(frame.filename, frame.lineno or 0, job)
    return ""


def location_in_words(file: str, line: int, job: Job) -> str:
    """A file and line: relative to the current folder or the program's where it lies below, else as it is."""
    for folder in (Path.cwd(), Path(str(job.spec.data.get("folder") or ".")).resolve()):
        with suppress(ValueError):
            return f"{Path(file).resolve().relative_to(folder)}:{line}"
    return f"{file}:{line}"


def _users_source(error: BaseException, job: Job) -> str:
    """The innermost line of the user's own code that the exception passed through."""
    for link in _chain(error):
        for frame in reversed(traceback.extract_tb(link.__traceback__)):
            if not is_package_file(frame.filename):
                return location_in_words(frame.filename, frame.lineno or 0, job)
    if isinstance(error, SyntaxError) and error.filename:
        return location_in_words(error.filename, error.lineno or 0, job)
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in visited:
        visited.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _detail(case: Case) -> str:
    """The user's own frames and the message, shortened."""
    every = traceback.extract_tb(case.error.__traceback__)
    frames = [frame for frame in every if not is_package_file(frame.filename)]
    lines = []
    for frame in frames[-8:]:
        lines.append(f"{location_in_words(frame.filename, frame.lineno or 0, case.job)} in {frame.name}")
        if frame.line:
            lines.append(f"    {frame.line}")
    lines += [f"{type(case.error).__name__}: {case.text}"[:4000]]
    return "\n".join("\n".join(lines).splitlines()[: _DETAIL_LINES + 2 * len(frames)])


def _unknown(case: Case) -> Refused:
    """No rule knows it: the first line of the message, where it happened, and the rest as detail."""
    error, first = case.error, case.first_line[:300]
    if isinstance(error, InputError):
        # a module that was imported and then can't be used was imported all the same
        imported = case.stage == "import" and not isinstance(error, NoSuchFile) and error.__cause__ is None
        reason = str(error).rpartition("; expected ")[0] or str(error)
        return Refused("program" if imported else case.stage, reason, change=f"give {error.accepted}", passing=True)
    doing = {"import": "importing the program", "trace": "tracing the program", "export": "exporting the program"}
    what = doing.get(case.stage, f"compiling for {case.job.target}")
    message = f"{type(error).__name__}: {first}" if first else type(error).__name__
    if case.stage == "compile":
        options = ", ".join(case.job.options)
        change = f"see whether it compiles without the options given: {options}" if options else ""
        return Refused("compile", f"{what} failed: {message}", source=suspect(case), change=change)
    change = "see the line named" if case.source else ""
    if case.stage == "trace":
        change = "make the step run under jax.jit with the shapes given"
    return Refused(case.stage, f"{what} failed: {message}", source=case.source, change=change, passing=True)


def _fatal_line(log: str) -> str:
    """The line of a log that says why, if one does."""
    lines = log.splitlines()
    fatal = [line for line in lines if re.match(r"F\d{4}", line) or "Check failed" in line or "Fatal" in line]
    chosen = (fatal or lines)[-1:] if not fatal else fatal[:1]
    return re.sub(r"^F\d{4} [\d:.]+ +\d+ ", "", chosen[0])[:300] if chosen else ""

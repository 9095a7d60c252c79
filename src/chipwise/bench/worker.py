"""One framework in a process of its own: ``python -m chipwise.bench.worker JOBFILE PIPE PARENT``.

A framework holds memory until its process ends, and may end it. So each runs here, and tells the session through a
pipe what it finds, a line of JSON at a time: what was measured before a crash is not lost by it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.bench.file import measurement_as_json, point_from_json
from chipwise.bench.frameworks.interface import Framework
from chipwise.bench.method import budget_of, measure, one_line
from chipwise.bench.reading import Silent
from chipwise.bench.telemetry import HZ, Sampler, open_source
from chipwise.errors import ChipwiseError
from chipwise.io.worker import connect

RESTART = 75  # exit status: the device is in a state that only a new process leaves
# After these every later call of the process fails too.
_POISONED = ("CUDA error", "HIP error", "illegal memory access", "device-side assert", "cudaErrorLaunchFailure")


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is to do: with no `points`, tell what it would measure."""

    framework: str
    opener: str  # package.module:function
    planner: str
    platform: str
    size: str
    suites: tuple[str, ...] = ()
    points: tuple[Mapping[str, Any], ...] | None = None
    until: float | None = None  # time.monotonic after which no point is begun
    first: bool = True  # the run's first points: one at least is measured, whatever the time
    hz: float = HZ


def main(arguments: Sequence[str]) -> int:
    """Do the job of a file."""
    job_file, say = Path(arguments[0]), connect(*arguments[1:])
    raw = json.loads(job_file.read_text(encoding="utf-8"))
    points = None if raw["points"] is None else tuple(raw["points"])
    job = Job(**{**raw, "suites": tuple(raw["suites"]), "points": points})
    try:
        framework = _named(job.opener)(job.platform)
    except ChipwiseError as error:
        say(refused=one_line(error))
        return 0
    except Exception as error:
        say(refused=f"{job.framework}: {type(error).__name__}: {one_line(error)}")
        return 0
    return run(job, framework, say)


def run(job: Job, framework: Framework, say: Callable[..., None]) -> int:
    """Plan, or measure; returns the exit status."""
    say(opened={"device": asdict(framework.device), "versions": dict(framework.versions())})
    if job.points is None:
        plan = _named(job.planner)
        points = [point for suite in job.suites for point in plan(suite, framework.device, job.size, framework.name)]
        # what is compiled comes last: a compiler in the process slows the host down for all that follows
        say(plan=[point.as_json() for point in sorted(points, key=lambda point: point.compile)])
        return 0
    notes: set[str] = set()
    source = open_source(framework.device)
    settings = dict(source.settings())
    with Sampler(source, job.hz) as sampler:
        say(
            telemetry={
                "source": source.name,
                "reason": sampler.reason,
                "hz": job.hz if source.name else 0.0,
                "settings": settings,
            }
        )
        for i, raw in enumerate(job.points):
            if (i or not job.first) and job.until is not None and time.monotonic() > job.until:
                say(stopped=i)
                return 0
            say(begin=i)
            point = point_from_json(raw)
            measurement = measure(
                framework,
                point,
                budget_of(job.size, point.suite),
                sampler,
                lambda stage, i=i: say(stage=stage, index=i),  # type: ignore[misc]
            )
            say(measured=i, measurement=measurement_as_json(measurement))
            for words in [*getattr(framework, "notes", ()), *_silenced(sampler)]:
                if words not in notes:
                    notes.add(words)
                    say(note=words)
            if measurement.status == "failed" and any(word in measurement.reason for word in _POISONED):
                return RESTART
    say(end=True)
    return 0


def _silenced(sampler: Sampler) -> list[str]:
    """That a source stopped answering while points ran; one that was silent from the start is told of then."""
    return [sampler.reason] if sampler.reason and not isinstance(sampler.source, Silent) else []


def _named(where: str) -> Callable[..., Any]:
    module, _, function = where.partition(":")
    target: Callable[..., Any] = getattr(import_module(module), function)
    return target


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A run: which device and frameworks, what to measure on them, and what came of it, kept as it comes.

Each framework runs in a process of its own (`worker`), suite by suite. A process that ends over a point costs that
point: it is marked, and the next process begins after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from chipwise.bench import environment, process
from chipwise.bench.file import (
    BenchFile,
    Telemetry,
    chip_named,
    extended,
    measurement_from_json,
    point_from_json,
    write,
)
from chipwise.bench.frameworks.interface import Device
from chipwise.bench.measurement import Measurement
from chipwise.bench.worker import RESTART, Job
from chipwise.errors import ChipwiseError, InputError
from chipwise.ops.point import Point
from chipwise.present.blocks import Block
from chipwise.present.columns import padded
from chipwise.present.result import Result
from chipwise.version import __version__

PLATFORMS = ("cuda", "rocm", "tpu", "cpu")
OPENERS = {
    "torch": "chipwise.bench.frameworks.torch_device:open_torch",
    "jax": "chipwise.bench.frameworks.jax_device:open_jax",
}
PLANNER = "chipwise.bench.plan:points"
KEEP_SECONDS = 5.0  # between two writings of the file
CPU_ONLY = "this measures the CPU; its figures say nothing about a GPU or TPU"


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What is asked for."""

    suites: tuple[str, ...]
    platform: str = "auto"
    size: str = "full"
    frameworks: tuple[str, ...] = ()  # (): those installed
    seconds: float | None = None  # after which no point is begun
    command: tuple[str, ...] = ()
    host: bool = False
    openers: Mapping[str, str] = field(default_factory=lambda: OPENERS)
    planner: str = PLANNER


@dataclass(frozen=True, slots=True)
class Part:
    """One framework on the device: its points, not yet measured."""

    framework: str
    device: Device
    versions: Mapping[str, str]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, repr=False)
class BenchPlan(Result):
    """What would be measured, on which device."""

    VERB: ClassVar[str] = "bench"
    request: BenchRequest
    platform: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    @property
    def total(self) -> int:
        """Points, over all frameworks."""
        return sum(len(part.points) for part in self.parts)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        from chipwise.bench.view import plan_record

        return plan_record(self)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row a point."""
        from chipwise.bench.view import plan_rows

        return padded(plan_rows(self))

    def blocks(self) -> list[Block]:
        """For people."""
        from chipwise.bench.view import plan_blocks

        return plan_blocks(self)


@dataclass(frozen=True, slots=True)
class Event:
    """How far a run is: the point at work and its stage, or what was just measured."""

    done: int
    total: int
    framework: str
    point: Point
    stage: str
    measured: Measurement | None = None


Tell = Callable[[Event], None]


def plan(request: BenchRequest) -> BenchPlan:
    """Open the device through each framework, and ask what there is to measure."""
    names = request.frameworks or environment.installed()
    if not names:
        raise ChipwiseError(
            "nothing to measure with: neither PyTorch nor JAX is installed; install it with: "
            "pip install torch, or pip install jax"
        )
    for name in names:
        if name not in request.openers:
            raise InputError("frameworks", name, f"some of {', '.join(request.openers)}")
    if request.platform not in ("auto", *PLATFORMS):
        raise InputError("device", request.platform, f"one of auto, {', '.join(PLATFORMS)}")
    candidates = environment.platforms() if request.platform == "auto" else (request.platform,)
    refusals: list[str] = []
    for platform in candidates:
        parts, refused = _opened(request, platform, names)
        if refused and request.frameworks and request.platform != "auto":
            raise ChipwiseError(refused[0])
        refusals += refused
        if parts:
            cpu = (f"no accelerator found: {CPU_ONLY}" if request.platform == "auto" else CPU_ONLY,)
            return BenchPlan(request, platform, tuple(parts), (*(cpu if platform == "cpu" else ()), *refusals))
    raise ChipwiseError(refusals[0])


def _opened(request: BenchRequest, platform: str, names: tuple[str, ...]) -> tuple[list[Part], list[str]]:
    parts, refused = [], []
    for name in names:
        job = Job(name, request.openers[name], request.planner, platform, request.size, request.suites)
        answer: dict[str, Any] = {}
        try:
            for message in process.talk(job):
                answer |= message
        except process.Stopped as error:
            answer = {"refused": f"{name} can't be used: {error}"}
        if "refused" in answer:
            refused.append(answer["refused"])
        else:
            opened = answer["opened"]
            parts.append(
                Part(name, Device(**opened["device"]), opened["versions"], tuple(map(point_from_json, answer["plan"])))
            )
    return parts, refused


class Session:
    """One run. `file` is what is known so far, whatever happens."""

    def __init__(self, planned: BenchPlan, tell: Tell, out: Path | None = None) -> None:
        self.request, self.plan, self.tell, self.out = planned.request, planned, tell, out
        self.interrupted = False
        device = planned.parts[0].device
        self.file = BenchFile(
            created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            chipwise=__version__,
            command=self.request.command,
            device=device,
            chip=chip_named(device.platform, device.name),
            environment=environment.environment(self.request.host),
            frameworks={part.framework: dict(part.versions) for part in planned.parts},
            telemetry=Telemetry(),
            notes=planned.notes,
        )
        self._began = self._kept = time.monotonic()
        self._left_out = 0

    @property
    def draft(self) -> Path | None:
        """Where the file is kept while the run lasts; a file of an earlier run is replaced only at the end."""
        return None if self.out is None else self.out.with_name(self.out.name + ".part")

    def run(self) -> BenchFile:
        """Measure every point; an interrupt ends the run and keeps what is done."""
        self._set_aside()
        self._keep(now=True)  # a place that can't be written to is told before the work, not after it
        jobs = [
            (part, tuple(point for point in part.points if point.suite == suite))
            for suite in self.request.suites
            for part in self.plan.parts
        ]
        jobs = [(part, points) for part, points in jobs if points]
        end = None if self.request.seconds is None else time.monotonic() + self.request.seconds
        try:
            for i, (part, points) in enumerate(jobs):
                now = time.monotonic()
                until = None if end is None else now + max(0.0, end - now) / (len(jobs) - i)
                self._suite(part, points, until)
        except KeyboardInterrupt:
            self.interrupted = True
            self._note("interrupted: the points are those done till then")
        if self._left_out:
            self._note(f"{self._left_out} of {self.plan.total} points were not begun within the time given")
        whole = len(self.file.points) == self.plan.total
        self.file = replace(self.file, complete=whole, elapsed_s=round(time.monotonic() - self._began, 1))
        self._finish()
        return self.file

    def _suite(self, part: Part, points: tuple[Point, ...], until: float | None) -> None:
        """One framework's points of one suite, in as many processes as it takes."""
        while points:
            done = self._process(part, points, until)
            if done == 0:
                return
            points = points[done:]
            if points and until is not None and time.monotonic() > until:
                self._left_out += len(points)
                return

    def _process(self, part: Part, points: tuple[Point, ...], until: float | None) -> int:
        """Measure with one process; returns how many points are dealt with, 0 where it is of no use to go on."""
        job = Job(
            part.framework,
            self.request.openers[part.framework],
            self.request.planner,
            self.plan.platform,
            self.request.size,
            points=tuple(point.as_json() for point in points),
            until=until,
            first=not self.file.points,
        )
        current, done = -1, 0
        try:
            for message in process.talk(job):
                if "refused" in message:
                    self._note(f"{part.framework} was not opened again: {message['refused']}")
                    return 0
                if "telemetry" in message:
                    self._telemetry(message["telemetry"])
                if "note" in message:
                    self._note(f"{part.framework}: {message['note']}")
                if "stopped" in message:
                    self._left_out += len(points) - done
                    return 0
                if "begin" in message or "stage" in message:
                    current = message.get("begin", message.get("index", current))
                    self._say(part, points[current], message.get("stage", "beginning"))
                if "measured" in message:
                    done = message["measured"] + 1
                    self._add(part, measurement_from_json(message["measurement"]))
        except process.Stopped as error:
            if done == len(points) or f"status {RESTART}" in str(error):
                return done
            if current < done:  # it ended between two points, or before the first
                self._note(f"{part.framework} stopped: {error}")
                return done
            self._add(part, Measurement(points[current], part.framework, "failed", reason=str(error)))
            return current + 1
        return done

    def _add(self, part: Part, measurement: Measurement) -> None:
        self.file = extended(self.file, [measurement])
        self._say(part, measurement.point, measurement.status, measurement)
        self._keep()

    def _say(self, part: Part, point: Point, stage: str, measurement: Measurement | None = None) -> None:
        self.tell(Event(len(self.file.points), self.plan.total, part.framework, point, stage, measurement))

    def _telemetry(self, settings: Mapping[str, Any]) -> None:
        if not self.file.telemetry.source and not self.file.telemetry.reason:
            self.file = replace(self.file, telemetry=Telemetry(**settings))
            if settings["reason"]:
                self._note(f"power, clocks and temperature are not watched: {settings['reason']}")

    def _note(self, words: str) -> None:
        if words not in self.file.notes:
            self.file = replace(self.file, notes=(*self.file.notes, words))

    def _keep(self, now: bool = False) -> None:
        if self.draft is not None and (now or time.monotonic() - self._kept > KEEP_SECONDS):
            write(self.file, self.draft)
            self._kept = time.monotonic()

    def _set_aside(self) -> None:
        """What a run that was killed had kept gets another name."""
        if self.draft is None or not self.draft.is_file():
            return
        free = next(path for i in count(1) if not (path := self.draft.with_name(f"{self.draft.name}-{i}")).exists())
        self.draft.rename(free)
        self._note(f"an earlier run was cut off: what it had measured is in {free}")

    def _finish(self) -> None:
        """The draft becomes the file."""
        if self.out is None or self.draft is None:
            return
        write(self.file, self.out)
        self.draft.unlink(missing_ok=True)


def listing(planned: BenchPlan) -> Iterator[tuple[str, Point]]:
    """Every point of a plan with its framework."""
    for part in planned.parts:
        for point in part.points:
            yield part.framework, point

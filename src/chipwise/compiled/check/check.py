"""What a compiler makes of a program on each target: does it compile, does it fit, how long, what is wasted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Any, ClassVar

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.cache import Cache
from chipwise.compiled.compiler import Limits, compile_job, module_text
from chipwise.compiled.gpu import speed_of_light
from chipwise.compiled.job import Compiled, Job, Refused
from chipwise.compiled.targets import CUDA
from chipwise.compiled.timing.kernels import Kernels, timed
from chipwise.compiled.timing.padding import Waste, padding
from chipwise.compiled.timing.schedule import Schedule
from chipwise.compiled.timing.step import interval_of, loops_in_words, open_loops, slice_seconds
from chipwise.compiled.timing.timing import ClockRates, Timing, clock_rates, op_seconds, time_schedule
from chipwise.errors import ChipwiseError, MissingCompiler
from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Block
from chipwise.present.result import Result
from chipwise.units import format_seconds
from chipwise.workload.model import Workload

if TYPE_CHECKING:
    from chipwise.compiled.check.tune import Tuning

BREAKDOWN = 8  # lines in each breakdown
VARIES = "varies: "  # how the worker begins a note on shapes that vary

Progress = Callable[[str, str, float], None]  # the target, the stage, and seconds since it began


@dataclass(frozen=True, slots=True)
class Question:
    """One program for one set of chips; `layout` says how a workload is split.

    Where no job can be made for the chips, a refusal stands in its place.
    """

    accelerators: Accelerators
    job: Job | Refused
    layout: str = ""
    workload: Workload | None = None  # whose gradients slices exchange, where there are several


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one device, as the compiler laid them out."""

    arguments: float
    outputs: float  # without those that take the place of arguments
    temporaries: float
    code: float
    usable: float  # what programs may allocate
    host: float = 0.0  # in the host's memory

    @property
    def total(self) -> float:
        """All of the device's memory that the program takes."""
        return self.arguments + self.outputs + self.temporaries + self.code


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """XLA's own speed-of-light times of the products against ours, seconds of one step."""

    sol: float
    ours: float


@dataclass(frozen=True, slots=True)
class Row:
    """The answer for one target."""

    question: Question
    outcome: Compiled | Refused
    memory: Memory | None = None
    fits: bool = False
    step: Estimate | None = None
    timing: Timing | None = None
    padding: tuple[Waste, ...] = ()
    unknown: tuple[str, ...] = ()  # kernels of which only the shapes are known
    open_loops: int = 0  # loops whose trip count only running tells
    risks: tuple[str, ...] = ()  # why it may compile again while it runs
    notes: tuple[str, ...] = ()
    cross: CrossCheck | None = None

    @property
    def ok(self) -> bool:
        """Compiles and fits."""
        return isinstance(self.outcome, Compiled) and self.fits


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport(Result):
    """A program on every target: does it compile, does it fit, how long does it take, what would make it faster."""

    VERB: ClassVar[str] = "check"
    program: str
    kind: str
    rows: tuple[Row, ...]
    tunings: tuple[Tuning, ...] = ()  # searches for faster options, one a target

    @property
    def ok(self) -> bool:
        """Whether every target compiles and fits."""
        return all(row.ok for row in self.rows)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        from chipwise.compiled.check.view import report_record

        return report_record(self)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row a target."""
        from chipwise.compiled.check.view import flat_rows

        return flat_rows(self)

    def blocks(self, lines: int = BREAKDOWN) -> list[Block]:
        """For people, with at most so many lines in each breakdown."""
        from chipwise.compiled.check.view import blocks

        return blocks(self, lines)


def check(
    program: str,
    kind: str,
    questions: Sequence[Question],
    calibration: Calibration,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> CheckReport:
    """Compile each question, one after another, and read the answers.

    A target whose compiler can't be used here is refused by itself; where that is so of all, there is nothing to
    report and the missing compilers are raised.
    """
    rows, missing = [], []
    for i, question in enumerate(questions, 1):
        tell = _numbered(progress, i, len(questions)) if progress is not None and len(questions) > 1 else progress
        try:
            rows.append(answer(question, calibration, limits, tell, cache))
        except MissingCompiler as error:
            missing.append(error)
            rows.append(Row(question, Refused.without_compiler(error)))
    if missing and len(missing) == len(rows):
        raise (
            missing[0]
            if len({str(error) for error in missing}) == 1
            else ChipwiseError("; ".join(dict.fromkeys(map(str, missing))))
        )
    return CheckReport(program, kind, tuple(rows))


def answer(
    question: Question,
    calibration: Calibration,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Row:
    """Compile one question, or find its answer in the cache, and read it."""
    if isinstance(question.job, Refused):
        return Row(question, question.job)
    tell = None if progress is None else _named(progress, str(question.accelerators))
    outcome = compile_job(question.job, limits, tell, cache)
    return row_of(question, question.job, outcome, calibration, cache)


def _numbered(progress: Progress, number: int, total: int) -> Progress:
    return lambda name, stage, seconds: progress(f"{name} ({number}/{total})", stage, seconds)


def _named(progress: Progress, name: str) -> Callable[[str, float], None]:
    return lambda stage, seconds: progress(name, stage, seconds)


def row_of(
    question: Question, job: Job, outcome: Compiled | Refused, calibration: Calibration, cache: Cache | None = None
) -> Row:
    """What an outcome says about its target."""
    notes = tuple(note for note in outcome.notes if not note.startswith(VARIES))
    if isinstance(outcome, Refused):
        return Row(question, outcome, notes=notes)
    acc, gpu = question.accelerators, job.target.platform == CUDA
    memory = memory_of(outcome, acc)
    # The TPU compiler lays memory out and refuses what does not fit; the GPU compiler leaves that to us.
    fits = memory.total <= memory.usable if gpu else True
    risks = tuple(note.removeprefix(VARIES) for note in outcome.notes if note.startswith(VARIES))
    if not outcome.schedule:
        return Row(question, outcome, memory, fits, risks=risks, notes=notes)
    schedule = Schedule.from_json(outcome.schedule)
    rates = clock_rates(acc, calibration)
    timing, kernels = time_schedule(schedule, rates), Kernels()
    if schedule.unknown:
        timing, kernels = timed(schedule, timing, rates, module_text(job, cache))
    if question.workload is not None and acc.slices > 1:
        timing = _between(timing, slice_seconds(question.workload, acc, calibration))
    loops = open_loops(schedule)
    return Row(
        question,
        outcome,
        memory,
        fits,
        estimate(timing, kernels, calibration, acc, loops),
        timing,
        padding(schedule, rates),
        kernels.unknown,
        loops,
        risks,
        notes,
        _cross_check(job, schedule, rates, kernels, cache) if gpu else None,
    )


def memory_of(outcome: Compiled, acc: Accelerators) -> Memory:
    """The compiler's memory figures against what a device has."""
    m = outcome.memory
    host = sum(m.get(f"host_{name}", 0.0) for name in ("arguments", "outputs", "temporaries", "code"))
    return Memory(
        arguments=m.get("arguments", 0.0),
        outputs=max(m.get("outputs", 0.0) - m.get("aliased", 0.0), 0.0),
        temporaries=m.get("temporaries", 0.0),
        code=m.get("code", 0.0),
        usable=acc.chip.usable_bytes / acc.chip.devices,
        host=max(host - m.get("host_aliased", 0.0), 0.0),
    )


def estimate(timing: Timing, kernels: Kernels, calibration: Calibration, acc: Accelerators, loops: int) -> Estimate:
    """The time of one call with its interval; wider where kernels are unknown.

    Kernels have a range of their own, which is a point where memory binds one whatever share of the peak it reaches;
    they are never taken for surer than the rest of the schedule.
    """
    low, high, scored = interval_of(acc, calibration)
    why = [scored]
    if kernels.unknown:
        names = ", ".join(sorted(kernels.unknown)[:3])
        why.append(
            f"of {names} only the shapes are known: {format_seconds(kernels.low)} to "
            f"{format_seconds(kernels.high)} of the time"
        )
    if loops:
        why.append(loops_in_words(loops))
    modeled = timing.seconds - kernels.middle
    least = modeled * exp(low) + min(kernels.low, kernels.middle * exp(low))
    most = modeled * exp(high) + max(kernels.high, kernels.middle * exp(high))
    return Estimate(timing.seconds, least, most, "compiled", "; ".join(why))


def _between(timing: Timing, seconds: float) -> Timing:
    """The timing with what slices exchange over the data-center network, which no slice's program shows."""
    kinds = {**timing.by_kind, "collective": timing.by_kind.get("collective", 0.0) + seconds}
    return replace(timing, seconds=timing.seconds + seconds, by_kind=kinds)


def _cross_check(
    job: Job, schedule: Schedule, rates: ClockRates, kernels: Kernels, cache: Cache | None
) -> CrossCheck | None:
    """Products timed by XLA's speed-of-light model, where the module has its estimates."""
    light = {product.instruction: product.seconds for product in speed_of_light(module_text(job, cache))}
    sol = ours = 0.0
    for op, times in schedule.ops():
        if op.kind in ("matmul", "conv", "kernel") and op.name in light:
            sol += times * light[op.name]
            ours += times * kernels.seconds.get(op.name, op_seconds(op, rates))
    return CrossCheck(sol, ours) if sol else None

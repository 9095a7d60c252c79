"""What `chipwise check` knows of a variant's program on a pool's chips: from its cache, or compiled on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.compiler import compile_job, kept_job
from chipwise.compiled.job import Compiled, Job, Option, Refused, Spec
from chipwise.compiled.reference import training_job
from chipwise.compiled.targets import target_of
from chipwise.errors import DoesNotFit, InputError, MissingCompiler, Refusal
from chipwise.predict.estimate import Estimate
from chipwise.predict.prediction import Prediction
from chipwise.route.job import Variant

if TYPE_CHECKING:
    from chipwise.compiled.check.check import Row

Progress = Callable[[str, str, float], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the compiler made of it; `step` where its schedule tells the time of one."""

    step: Estimate | None = None
    note: str = ""


def check_program(
    variant: Variant, acc: Accelerators, calibration: Calibration, compiles: bool, progress: Progress | None = None
) -> Checked:
    """A program of the user's own; a `Refusal` with the compiler's reason where it does not compile or fit.

    One call of the program is taken as one step of the workload.
    """
    try:
        target = target_of(acc)
    except InputError:
        return Checked(note=f"not checked: no compiler for {acc.chip.id} without the chip")
    try:
        specs = _specs(variant.program)
    except InputError as e:
        raise e.under(f"variants.{variant.name}.program") from None
    jobs = [Job(spec, target, options_of(variant.flags)) for spec in specs]
    checked = _outcome(jobs, acc, compiles, progress)
    if checked is None:
        return Checked(note=f"{shown(variant.program)} was not checked for {acc}")
    job, outcome = checked
    row = _accepted(acc, (job,), outcome, calibration, shown(variant.program))
    if row is None:
        return Checked(note=f"not checked: {outcome.reason}" if isinstance(outcome, Refused) else "")
    if acc.chip.family == "tpu" and row.step is not None:
        return Checked(row.step, f"{shown(variant.program)} compiled: one call is one step")
    return Checked(note=f"{shown(variant.program)} compiles and fits")


def check_reference(
    p: Prediction, variant: Variant, calibration: Calibration, compiles: bool, progress: Progress | None = None
) -> Checked:
    """The workload's reference program; silent where there is none, or nothing is known of it."""
    acc = p.accelerators
    try:
        job = training_job(p.workload, acc, p.layout, options=options_of(variant.flags))
    except (Refusal, InputError) as error:
        return Checked(note=f"not checked: {error}" if compiles else "")
    checked = _outcome([job], acc, compiles, progress)
    if checked is None:
        return Checked()
    row = _accepted(acc, (job, str(p.layout), p.workload), checked[1], calibration, p.workload.name)
    if row is None:
        return Checked(note=f"not checked: {checked[1].reason}" if isinstance(checked[1], Refused) else "")
    if acc.chip.family == "tpu":
        from chipwise.compiled.prediction import compiled_prediction

        return Checked(compiled_prediction(p, checked[1], calibration).step, "compiled")
    return Checked(note="compiles and fits")


def _outcome(
    jobs: list[Job], acc: Accelerators, compiles: bool, progress: Progress | None
) -> tuple[Job, Compiled | Refused] | None:
    """The first of these jobs that is known; else the first compiled, where that is wanted."""
    for job in jobs:
        try:
            kept = kept_job(job)
        except MissingCompiler as error:
            return (job, Refused.without_compiler(error)) if compiles else None
        if kept is not None:
            return job, kept
    if not compiles:
        return None
    tell = None if progress is None else (lambda stage, seconds: progress(str(acc), stage, seconds))
    return jobs[0], compile_job(jobs[0], progress=tell)


def _accepted(
    acc: Accelerators, asked: tuple[Any, ...], outcome: Compiled | Refused, calibration: Calibration, name: str
) -> Row | None:
    """What the outcome says of the chips; None where it says nothing of them, a `Refusal` where they can't run it.

    `asked`: the job, and its layout and workload where it has them. Schedules are read here alone, and what reads them
    is loaded here: most jobs are submitted without one.
    """
    if isinstance(outcome, Refused):
        if outcome.stage in ("import", "program"):
            raise InputError("program", name, f"a program that can be imported ({outcome.reason})")
        if outcome.stage == "limit" or outcome.passing:
            return None  # that says something of this machine, not of the chips
        kind = DoesNotFit if outcome.stage == "memory" else Refusal
        raise kind(f"the compiler refuses {name} on {acc}: {outcome.reason}", outcome.change)
    from chipwise.compiled.check.check import Question, row_of

    row = row_of(Question(acc, *asked), asked[0], outcome, calibration)
    if not row.fits:
        raise DoesNotFit(f"{name} compiles for {acc} but does not fit its memory")
    return row


def shown(program: str) -> str:
    """A program without the folders of its file.

    >>> shown("/a/b/train.py:step"), shown("package.module:step")
    ('train.py:step', 'package.module:step')
    """
    return program.rpartition("/")[2]


def _specs(program: str) -> list[Spec]:
    """The ways in which `chipwise check` may have been told of a program: beside its file, or from this folder."""
    from chipwise.compiled.check.resolve import program_spec

    module, _, function = program.rpartition(":")
    here = Path.cwd()
    sources: list[tuple[str, Path]] = [(program, here)]
    file = Path(module)
    if file.suffix == ".py" and file.is_absolute():
        sources.insert(0, (f"{file.name}:{function}", file.parent))
        if file.is_relative_to(here):
            sources.insert(1, (f"{file.relative_to(here)}:{function}", here))
    candidates = [program_spec(text, folder) for text, folder in sources]
    specs = [spec for spec in candidates if spec is not None]
    if not specs:
        raise InputError("program", program, "file.py:function, package.module:function or an exported file")
    return specs


def options_of(flags: Iterable[str]) -> dict[str, Option]:
    """Options of the compiler as `chipwise check --option` takes them.

    >>> options_of(["--xla_tpu_scoped_vmem_limit_kib=1024", "--xla_dump"])
    {'xla_tpu_scoped_vmem_limit_kib': '1024', 'xla_dump': 'true'}
    """
    pairs = (flag.lstrip("-").partition("=") for flag in flags)
    return {name: value if equals else "true" for name, equals, value in pairs}

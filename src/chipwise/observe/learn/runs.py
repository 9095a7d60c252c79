"""Runs to learn from: logs with the workload and the chips that they were of, named in a file, or a router's attempts.

A run that was sick says nothing of the chip: one that slowed down, hung, was throttled, waited for a straggler or lost
a device is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from os.path import normpath
from pathlib import Path
from statistics import median
from typing import Any

from chipwise.catalog import Accelerators, parse
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.telemetry_files import ObservedRun, Telemetry
from chipwise.errors import BrokenFile, InputError, Refusal
from chipwise.io.files import parse_yaml, read_text
from chipwise.layout import search
from chipwise.layout.named import read_layout
from chipwise.observe.health.diagnosis import Setting, diagnose
from chipwise.observe.health.records import Condition
from chipwise.observe.learn.windows import BLOCK, busy_windows, changed, engines_in, times_as_long, typical
from chipwise.observe.log import Log, read_lines
from chipwise.observe.pace import pace_of
from chipwise.observe.records import CAUSES, FaultClass
from chipwise.observe.text import lines_of
from chipwise.predict.prediction import predict
from chipwise.predict.setup import base_of, named_stack, program_of, stack_of
from chipwise.route.estimates.predicted import accelerators
from chipwise.route.job_log import log_lines
from chipwise.route.ledger import open_view
from chipwise.route.load.jobs import varied
from chipwise.route.load.pools import read_pools
from chipwise.serving.observed import base_of as serving_base
from chipwise.serving.observed import program_of as serving_program
from chipwise.serving.split import Split
from chipwise.workload.model import Workload
from chipwise.workload.read import read_any
from chipwise.workload.serve import ServingWorkload

FEWEST_STEPS = 10  # settled steps told, of which the median says what a step takes
FEWEST_WINDOWS = 30  # busy windows of a server, the same
_SICK = frozenset({Condition.HUNG, Condition.SLOWED, Condition.STRAGGLER, Condition.THROTTLED})
_OF_JOBS = frozenset({FaultClass.OOM, FaultClass.PREEMPTED})  # ends of a run, whose steps were as they should be
_KEYS = ("log", "workload", "on", "layout", "format", "with", "labels")


class LeftOut(StrEnum):
    """Why a run is not learned from."""

    SICK = "sick"
    FEW_STEPS = "few_steps"
    NO_TIME = "no_time"  # its lines do not say what a step took
    UNPREDICTED = "unpredicted"  # the workload can't be predicted there
    OUTLIER = "outlier"
    FEW_RUNS = "few_runs"  # of its kind of program on that chip


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run: what it printed, and what it was."""

    name: str
    log: Log
    workload: Workload | ServingWorkload
    accelerators: Accelerators
    layout: str | None  # None: the best one; of a server, all of its chips one replica
    labels: Mapping[str, str] = field(default_factory=dict)  # versions and the like, beside those that the log says
    unfit: str = ""  # what was wrong with a device of it, by what exporters and agents said


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run that may be learned from, or why not."""

    name: str
    on: str
    run: ObservedRun | None = None
    left_out: LeftOut | None = None
    detail: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def sources_in(path: Path) -> Iterator[Source]:
    """The runs that a file names: under `runs`, each with its `log`, `workload`, `on`, and what is to be changed."""
    raw = parse_yaml(read_text(path), path.name, such="`runs: [{log: run.log, workload: job.yaml, on: h100:64}]`")
    rows = raw.get("runs")
    if not isinstance(rows, list) or not rows or set(raw) != {"runs"}:
        raise BrokenFile("runs", str(path), "a list under `runs`, and nothing beside it")
    for place, row in enumerate(rows):
        yield _source(row, f"runs[{place}]", path.parent)


def _source(row: Any, where: str, folder: Path) -> Source:
    if not isinstance(row, dict):
        raise InputError(where, str(row), f"a mapping of {', '.join(_KEYS)}")
    wrong = next((key for key in row if key not in _KEYS), None)
    if wrong is not None:
        raise InputError(f"{where}.{wrong}", str(row[wrong]), f"one of {', '.join(_KEYS)}")
    missing = next((key for key in ("log", "workload", "on") if not isinstance(row.get(key), str)), None)
    if missing is not None:
        raise InputError(f"{where}.{missing}", str(row.get(missing, "nothing")), "a text, such as run.log or h100:64")
    changes = row.get("with") or {}
    if not isinstance(changes, dict):
        raise InputError(f"{where}.with", str(changes), "flags of the workload, such as {batch: 64}")
    labels = row.get("labels") or {}
    if not isinstance(labels, dict) or any(isinstance(value, dict | list) for value in labels.values()):
        raise InputError(f"{where}.labels", str(labels), "versions and the like by name, such as {driver: 580.95.05}")
    beside = folder / row["workload"]
    flags = {key.replace("-", "_"): str(value) for key, value in changes.items()}
    log = folder / row["log"]
    return Source(
        name=normpath(log),
        log=read_lines(lines_of(str(log)), row.get("format")),
        workload=read_any(str(beside) if beside.is_file() else row["workload"], flags),
        accelerators=parse(row["on"]),
        layout=row.get("layout"),
        labels={str(key): str(value) for key, value in labels.items()},
    )


def sources_of_jobs(ledger: str, pools: Path, unfit: Mapping[str, str] | None = None) -> Iterator[Source]:
    """The attempts of a ledger's jobs that have a workload, and whose output is to be had.

    `unfit`: what was wrong with devices of some, by attempt.
    """
    pool_of = {pool.name: pool for pool in read_pools(pools).pools}
    with open_view(ledger, create=False) as book:
        for job in book.jobs():
            for attempt in book.attempts(job.id) if job.job.workload else ():
                pool = pool_of.get(attempt.pool)
                if pool is None or attempt.started is None:
                    continue
                variant = job.job.variant(attempt.variant)
                workload = varied(job.job.workload, variant.batch, variant.precision)
                try:
                    log = read_lines(log_lines(ledger, job.id, attempt.number))
                except Refusal:  # removed, or kept elsewhere: there is nothing to learn from
                    continue
                yield Source(
                    name=attempt.id,
                    log=log,
                    workload=workload,
                    accelerators=accelerators(pool, variant.chips, attempt.option.topology),
                    layout=attempt.option.layout or None,
                    unfit=(unfit or {}).get(attempt.id, ""),
                )


def candidate(source: Source, calibration: Calibration) -> Candidate:
    """A run against its prediction without telemetry; or why it is left out."""
    if isinstance(source.workload, ServingWorkload):
        return _server(source, source.workload, calibration)
    return _training(source, source.workload, calibration)


def _training(source: Source, workload: Workload, calibration: Calibration) -> Candidate:
    name, on = source.name, str(source.accelerators)
    log, pace = source.log, pace_of(source.log)
    if (sick := _sick(source)) is not None:
        return sick
    if len(pace.settled) < FEWEST_STEPS:
        detail = f"{len(pace.settled)} settled steps; {FEWEST_STEPS} are needed"
        return Candidate(name=name, on=on, left_out=LeftOut.FEW_STEPS, detail=detail)
    plain = without_telemetry(calibration)
    try:
        stack = stack_of(workload, source.accelerators.chip, named_stack(workload))
        layout = (
            search(workload, source.accelerators, plain, named_stack(workload)).best.layout
            if source.layout is None
            else read_layout(source.layout, workload, source.accelerators, plain, stack)
        )
        prediction = predict(workload, source.accelerators, layout, plain, named_stack(workload))
    except Refusal as refusal:
        return Candidate(name=name, on=on, left_out=LeftOut.UNPREDICTED, detail=str(refusal))
    observed = step_seconds(log, prediction.units_per_step, source.accelerators.count)
    if observed is None:
        detail = "no line says what a step took, or how many tokens a second"
        return Candidate(name=name, on=on, left_out=LeftOut.NO_TIME, detail=detail)
    chip = source.accelerators.chip
    run = ObservedRun(
        name=name,
        digest=digest_of(log, on),
        chip=chip.id,
        chips=source.accelerators.count,
        stack=stack.id,
        program=program_of(workload),
        base=base_of(chip, stack, plain),
        at=log.ended or 0.0,
        steps=len(pace.settled),
        observed_seconds=observed,
        predicted_seconds=prediction.step.value,
    )
    return Candidate(name=name, on=on, run=run, labels={**log.versions, **source.labels})


def _sick(source: Source) -> Candidate | None:
    """Why a run says nothing of its chips."""
    name, on = source.name, str(source.accelerators)
    if source.unfit:
        return Candidate(name=name, on=on, left_out=LeftOut.SICK, detail=source.unfit)
    setting = Setting(chips_of_host=source.accelerators.chip.fabric.host_chips)
    for finding in diagnose(source.log, setting):
        fault = finding.condition is Condition.FAULT and finding.fault in CAUSES - _OF_JOBS
        if finding.condition in _SICK or fault:
            detail = f"{finding.condition}: {finding.evidence}"
            return Candidate(name=name, on=on, left_out=LeftOut.SICK, detail=detail)
    return None


def _server(source: Source, workload: ServingWorkload, calibration: Calibration) -> Candidate:
    """The same of a server, by its windows."""
    name, on = source.name, str(source.accelerators)
    if (sick := _sick(source)) is not None:
        return sick
    engines = [busy_windows(theirs) for theirs in engines_in(source.log.serving)]
    least = min((len(windows) for windows in engines), default=0)
    if least < FEWEST_WINDOWS:
        of_one = " of an engine" if len(engines) > 1 else ""
        detail = f"{least} busy windows of serving{of_one}; {FEWEST_WINDOWS} are needed"
        return Candidate(name=name, on=on, left_out=LeftOut.FEW_STEPS, detail=detail)
    plain = without_telemetry(calibration)
    try:
        split = read_split(source.layout, max(1, source.accelerators.count // len(engines)))
        pairs = [
            times_as_long(windows, workload, source.accelerators, split, plain, len(engines)) for windows in engines
        ]
    except Refusal as refusal:
        return Candidate(name=name, on=on, left_out=LeftOut.UNPREDICTED, detail=str(refusal))
    if (change := next(filter(None, (changed(ratios) for ratios, _, _ in pairs)), None)) is not None:
        place, times = change
        detail = (
            f"slowed: {max(times, 1 / times):.2f} times as long {'from' if times > 1 else 'to'} window {place * BLOCK}"
        )
        return Candidate(name=name, on=on, left_out=LeftOut.SICK, detail=detail)
    predicted = median(seconds for _, seconds, _ in pairs)
    run = ObservedRun(
        name=name,
        digest=digest_of(source.log, on),
        chip=source.accelerators.chip.id,
        chips=source.accelerators.count,
        stack=pairs[0][2],
        program=serving_program(workload),
        base=serving_base(plain),
        at=source.log.ended or 0.0,
        steps=sum(len(windows) for windows in engines),
        observed_seconds=predicted * typical([ratio for ratios, _, _ in pairs for ratio in ratios]),
        predicted_seconds=predicted,
    )
    return Candidate(name=name, on=on, run=run, labels={**source.log.versions, **source.labels})


def read_split(text: str | None, chips: int) -> Split:
    """How a server is split: `tp=4,pp=2`; over all of its chips by tp unless it says so.

    >>> str(read_split("tp=4,pp=2", 8)), str(read_split(None, 8)), str(read_split("tp=2 ep=2 x 4", 8))
    ('tp=4 pp=2', 'tp=8', 'tp=2 ep=2')
    """
    if text is None:
        return Split(tp=chips)
    sizes = {}
    for part in text.partition(" x ")[0].replace(",", " ").split():
        axis, _, size = part.partition("=")
        if axis not in ("tp", "pp", "dp", "ep") or not size.isdecimal() or int(size) < 1:
            raise InputError("layout", text, "a split of a server, such as tp=4,pp=2")
        sizes[axis] = int(size)
    return Split(**sizes)


def digest_of(log: Log, on: str) -> str:
    """What tells a run from others: its first steps or windows, with their stamps, and its chips."""
    first = [
        (s.step, s.step_seconds, s.tokens_per_s, s.tokens_per_s_per_device, s.loss, s.at)
        for s in log.steps[:FEWEST_STEPS]
    ]
    if not first:
        windows = [(w.running, w.generation_tokens_per_s, w.at) for w in log.serving[:FEWEST_WINDOWS]]
        return sha256(repr((on, windows)).encode()).hexdigest()[:16]
    return sha256(repr((on, first)).encode()).hexdigest()[:16]


def step_seconds(log: Log, units_per_step: float, chips: int) -> float | None:
    """What a step typically took: by its time, else by the rate of all chips or of one."""
    if seconds := log.typical("step_seconds"):
        return seconds
    if rate := log.typical("tokens_per_s"):
        return units_per_step / rate
    if rate := log.typical("tokens_per_s_per_device"):
        return units_per_step / (rate * chips)
    return pace_of(log).step_seconds


def without_telemetry(calibration: Calibration) -> Calibration:
    """The calibration that runs are held against."""
    return replace(calibration, telemetry=Telemetry())

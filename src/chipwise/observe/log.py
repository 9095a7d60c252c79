"""A log as records: the format found by what its lines say, ranks that say the same told once, restarts kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice, pairwise
from statistics import median

from chipwise.errors import UnknownName
from chipwise.observe.clock import Clock
from chipwise.observe.faults import FaultReader
from chipwise.observe.formats import DOCUMENTS, FORMATS, GENERAL, KERNEL, Reader
from chipwise.observe.formats.documents import ExpositionReader, document
from chipwise.observe.formats.line_format import Findings
from chipwise.observe.formats.mllog import MlperfReader
from chipwise.observe.marks import Mark, mark_of
from chipwise.observe.numbers import number
from chipwise.observe.ranks import RankStep, RankTimers, by_rank
from chipwise.observe.records import Fault, ServingWindow, Step
from chipwise.observe.text import MAX_DOCUMENT_BYTES
from chipwise.observe.versions import versions_in

MAX_WORDS = 16_384  # characters of a line in which words are looked for; some patterns take time by its square
LAG_STEPS = 64  # how far one rank's lines may lie behind another's
UNNAMED_LAG_STEPS = 3  # the same where lines do not name their rank: further back the run has begun again
WARM_UP = 3  # steps after a start that compile, or are told before they have run
FEWEST_SETTLED = 3  # steps behind the warm-up from which a run has settled
_STEP_TIME = re.compile(r"Step Time\s*:\s*([\d.]+)s.{0,200}?GPU utilization:\s*([\d.]+)\s*(?:MODEL_)?TFLOP/s/GPU")
_TOTAL = re.compile(r"\biteration\s+\d+/\s*(\d+)|\bglobal_step\s+\d+/(\d+)|\bstep\s+\d+/(\d+)")
_NOT_VALUES = ("rank", "engine", "at", "line")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a log says."""

    format: str | None  # None: no line is in a format known
    lines: int
    steps: list[Step]
    starts: list[int]  # places in `steps` at which the run began, again after a restart
    serving: list[ServingWindow]
    faults: list[Fault]
    metrics: dict[str, float]
    unread: int  # lines that look like the format's and lack what its lines say: it has changed, or they are cut
    duplicates: int  # steps that another rank told already
    ranks: list[RankStep] = field(default_factory=list)  # steps by rank, where the log has them
    marks: list[Mark] = field(default_factory=list)  # lines that say what is done instead of steps
    series: dict[str, dict[str, float]] = field(default_factory=dict)  # of a page of metrics, by name and labels
    total_steps: int | None = None  # of the whole run, where its steps say "10 of 500"
    began: float | None = None  # seconds since 1970, of the first stamp
    ended: float | None = None  # of the last
    versions: dict[str, str] = field(default_factory=dict)  # of driver and libraries, as first told

    def settled(self, key: str) -> list[float]:
        """A value of the steps behind the warm-up of each start; of all, where too few are."""
        parts = [self.steps[start:end] for start, end in pairwise([*self.starts, len(self.steps)])]
        late = [step for part in parts for step in part[WARM_UP:]]
        values = [amount for step in late if (amount := getattr(step, key)) is not None]
        if len(values) >= FEWEST_SETTLED:
            return values
        return [amount for step in self.steps if (amount := getattr(step, key)) is not None]

    def typical(self, key: str) -> float | None:
        """The median of a value over settled steps."""
        values = self.settled(key)
        return median(values) if values else None


def read_lines(lines: Iterable[str], format: str | None = None) -> Log:
    """Read a log; its format is that which says most, unless one is named."""
    names = [*FORMATS, KERNEL, *DOCUMENTS]
    if format is not None and format not in names:
        raise UnknownName("format", format, names)
    stream = iter(lines)
    first = next((line for line in stream if line.strip()), "")
    if format in DOCUMENTS or (format is None and first.lstrip().startswith("{")):
        head, whole = _head(first, stream)
        made = document("\n".join(head)) if whole else None
        if made is not None:
            return _log(made[0], len(head), made[1])
        stream = chain(head[1:], stream)
    return _read(first, stream, format)


def _read(first: str, rest: Iterable[str], format: str | None) -> Log:
    readers: list[Reader] = [make() for name, make in FORMATS.items() if format in (None, name)]
    faults, timings, clock, timers = FaultReader(), _StepTimes(), Clock(), RankTimers()
    marks: list[Mark] = []
    versions: dict[str, str] = {}
    total: int | None = None
    began: float | None = None
    at: float | None = None
    step: int | None = None
    readings = [(reader, isinstance(reader, MlperfReader), reader.name == GENERAL) for reader in readers]
    count = 0
    for line in chain([first], rest):
        count += 1
        progress, words = False, line[:MAX_WORDS]
        if (stamp := clock.read(words)) is not None:
            at, began = stamp, stamp if began is None else began
        for reader, whole, general in readings:  # the general one is the last, and takes what no other has
            findings = reader.findings
            before, windows_before = len(findings.steps), len(findings.serving)
            if not (progress and general) and reader.read(line if whole else words):
                progress = True
            if len(findings.steps) > before:
                for one in findings.steps[before:]:
                    one.at, one.line, step = stamp, count, one.step
            if len(findings.serving) > windows_before:
                for window in findings.serving[windows_before:]:
                    window.at = stamp
        timings.read(words)
        timers.read(words, step)
        if progress:
            total = total_of(words) or total
        elif (mark := mark_of(words, count)) is not None:
            marks.append(mark)
        for label, version in versions_in(words):
            versions.setdefault(label, version)
        faults.read(words, count, progress, at)
    for reader in readers:
        if isinstance(reader, ExpositionReader):
            reader.end()
    chosen = _chosen(readers)
    if chosen is None:
        log = _log(KERNEL if faults.kernel_lines else None, count, Findings(), faults.faults())
    else:
        timings.complete(chosen.findings.steps)
        log = _log(chosen.name, count, chosen.findings, faults.faults(), timers.rows)
    series = dict(chosen.series) if isinstance(chosen, ExpositionReader) else {}
    return replace(log, series=series, marks=marks, total_steps=total, began=began, ended=at, versions=versions)


def total_of(line: str) -> int | None:
    """How many steps the whole run has, by a line of one of them.

    >>> total_of(" iteration       10/     500 | lm loss: 2.5"), total_of("step: 10  loss: 2.5")
    (500, None)
    """
    match = _TOTAL.search(line)
    return int(next(group for group in match.groups() if group)) if match else None


def _head(first: str, rest: Iterator[str]) -> tuple[list[str], bool]:
    """The lines of what may be one document, and whether they are all."""
    lines, size = [first], len(first)
    for line in rest:
        lines.append(line)
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            return lines, False
    return lines, True


def _log(
    format: str | None, lines: int, findings: Findings, faults: Iterable[Fault] = (), timers: Iterable[RankStep] = ()
) -> Log:
    ranks = by_rank(findings.steps, timers)
    merged, starts = told_once(findings.steps)
    return Log(
        format=format,
        lines=lines,
        steps=merged,
        starts=starts,
        serving=findings.serving,
        faults=list(faults),
        metrics=findings.metrics,
        unread=findings.unread,
        duplicates=len(findings.steps) - len(merged),
        ranks=ranks,
    )


def _chosen(readers: list[Reader]) -> Reader | None:
    """The reader that found most values; one of many programs only where no other found anything."""
    own = [reader for reader in readers if reader.name != GENERAL and len(reader.findings)]
    if own:
        return max(own, key=_worth)
    return next((reader for reader in readers if len(reader.findings)), None)


def _worth(reader: Reader) -> int:
    findings = reader.findings
    rows: list[Step | ServingWindow] = [*findings.steps, *findings.serving]
    return len(findings.metrics) + sum(
        getattr(row, one.name) is not None for row in rows for one in fields(row) if one.name not in _NOT_VALUES
    )


def told_once(steps: list[Step]) -> tuple[list[Step], list[int]]:
    """Steps without those that another rank, or an earlier state of a bar, told already; and where runs began.

    >>> rows = [Step(step=n, loss=loss) for n, loss in ((1, 9.0), (1, 9.0), (2, 8.0), (1, 9.5), (2, 8.5))]
    >>> merged, starts = told_once(rows)
    >>> [step.step for step in merged], starts
    ([1, 2, 1, 2], [0, 2])
    """
    out: list[Step] = []
    starts = [0] if steps else []
    recent: dict[int, int] = {}  # step -> its place, of the run that goes on
    for step in steps:
        place = recent.get(step.step) if step.step is not None else None
        if place is not None and _same(out[place], step, len(out) - place):
            _fill(out[place], step)
            continue
        back = step.step is not None and bool(recent) and step.step <= max(recent)
        if back and (place is not None or not step.rank or step.rank == out[-1].rank):
            starts.append(len(out))
            recent = {}
        if step.step is not None:
            recent[step.step] = len(out)
            if len(recent) > 2 * LAG_STEPS:
                recent = dict(islice(recent.items(), LAG_STEPS, None))
        out.append(step)
    return out, starts


def _same(told: Step, step: Step, lag: int) -> bool:
    """Whether a step is told again: by another rank, or by the same with what it had not said yet."""
    if told.rank and step.rank and told.rank != step.rank:
        return lag <= LAG_STEPS
    return lag == 1 or (not step.rank and lag <= UNNAMED_LAG_STEPS and told.loss == step.loss is not None)


def _fill(told: Step, step: Step) -> None:
    """What only the later line says; of one bar the later state counts."""
    for one in fields(step):
        later = getattr(step, one.name)
        if later is not None and one.name != "rank" and getattr(told, one.name) is None:
            setattr(told, one.name, later)


class _StepTimes:
    """Megatron-Bridge prints the rate of a step on a line of its own, before or after the step's."""

    def __init__(self) -> None:
        self._rates: list[tuple[float, float]] = []

    def read(self, line: str) -> None:
        match = _STEP_TIME.search(line) if "GPU utilization" in line else None
        if match is not None:
            seconds, rate = number(match[1]), number(match[2])
            if seconds and rate:
                self._rates.append((seconds, rate))

    def complete(self, steps: list[Step]) -> None:
        """Give each step the rate told for its time: they come in the same order."""
        waiting = iter(step for step in steps if step.step_seconds and step.tflops_per_device is None)
        for seconds, rate in self._rates:
            for step in waiting:
                if step.step_seconds and abs(step.step_seconds - seconds) <= max(0.006, 0.002 * seconds):
                    step.tflops_per_device = rate
                    break

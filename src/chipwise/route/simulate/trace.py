"""Traces read: jobs with workloads in YAML or CSV, or recorded jobs; every failure is one line that names the field.

A trace's jobs are those of job files (`chipwise schema job`); only what they would run is not needed and may be left
out. Deadlines are durations after arrival: a trace has no calendar.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from chipwise.errors import BrokenFile, InputError
from chipwise.io.csv_lines import Line, check_columns, read_lines
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.predict.estimate import Estimate
from chipwise.route.estimates import Estimator
from chipwise.route.job import Job
from chipwise.route.load.explain import checked
from chipwise.route.load.jobs import jobs_of
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace, in_order
from chipwise.route.simulate.recorded import MOST_S, is_recorded, read_recorded

NEEDED = ("arrival_s", "job")
KNOWN = (*NEEDED, "job_id", "owner", "deadline_s", "priority")
MOST_JOBS = 1_000_000
NOTHING_TO_RUN = ["true"]  # in place of a command that a trace leaves out: it is never run
Say = Callable[[str], None]


def read_trace(
    path: Path,
    pools: Sequence[Pool],
    speed: Mapping[str, float] | None = None,
    estimator: Estimator | None = None,
    say: Say | None = None,
) -> Trace:
    """The arrivals of a file with every way to run them in these pools."""
    if path.suffix.lower() == ".csv":
        header, _ = read_lines(path)
        if is_recorded(header):
            return read_recorded(path, pools, speed or {})
        entries, name = list(_rows(path)), path.stem
    else:
        entries, name = _listed(path)
    if speed:
        raise InputError("speed", ",".join(speed), "recorded jobs: those with workloads are predicted on every chip")
    return _trace(name, entries, pools, estimator or Estimator(), say)


@dataclass(frozen=True, slots=True)
class _Entry:
    arrival: float
    name: str
    job: Job  # deadline as seconds after arrival


def _trace(name: str, entries: Sequence[_Entry], pools: Sequence[Pool], estimator: Estimator, say: Say | None) -> Trace:
    if len(entries) > MOST_JOBS:
        raise InputError("jobs", len(entries), f"at most {MOST_JOBS:,} jobs")
    ways = _Ways(tuple(pools), estimator)
    count_so_far: Counter[str] = Counter()
    counts = Counter(e.name for e in entries)
    arrivals = []
    for i, entry in enumerate(sorted(entries, key=lambda e: e.arrival)):
        if say is not None:
            say(f"{entry.name}, {i + 1} of {len(entries)} jobs estimated")
        count_so_far[entry.name] += 1
        unique_name = entry.name if counts[entry.name] == 1 else f"{entry.name}#{count_so_far[entry.name]}"
        options, infeasible, calm = ways.of(entry.job)
        job = replace(entry.job, deadline=entry.arrival + entry.job.deadline)
        arrivals.append(Arrival(unique_name, entry.arrival, job, options, infeasible, calm))
    return Trace(name, "jobs", in_order(arrivals), tuple(pools), _assumed(arrivals))


@dataclass(slots=True)
class _Ways:
    """The ways to run a job: those of alike jobs are found once."""

    pools: tuple[Pool, ...]
    estimator: Estimator
    cache: dict[Job, tuple[tuple[Option, ...], tuple[Infeasible, ...], tuple[Estimate, ...]]] = field(
        default_factory=dict
    )

    def of(self, job: Job) -> tuple[tuple[Option, ...], tuple[Infeasible, ...], tuple[Estimate, ...]]:
        """Options, what can't be, and what each option takes undisturbed."""
        alike = replace(job, name="", owner="", key="", deadline=inf, priority=1.0)
        if alike not in self.cache:
            options, infeasible = self.estimator.options(job, self.pools)
            self.cache[alike] = tuple(options), tuple(infeasible), self._calm(job, options)
        return self.cache[alike]

    def _calm(self, job: Job, options: Sequence[Option]) -> tuple[Estimate, ...]:
        if not any(pool.interruptions for pool in self.pools):
            return ()
        undisturbed, _ = self.estimator.options(job, [replace(pool, interruptions=0.0) for pool in self.pools])
        times = {(o.pool, o.variant): o.seconds for o in undisturbed}
        return tuple(times[o.pool, o.variant] for o in options)


def _assumed(arrivals: Sequence[Arrival]) -> tuple[str, ...]:
    kinds = Counter(o.seconds.evidence for a in arrivals for o in a.options)
    words = [
        "times are those of `chipwise predict` for the workload, or the job file's own; evidence: "
        + ", ".join(f"{kind} ({count} of {kinds.total()})" for kind, count in kinds.most_common())
    ]
    stretched = any("failures" in o.note or "interruptions" in o.note for a in arrivals for o in a.options)
    if stretched:
        words.append("estimates hold the failures and interruptions that are expected, with the job's checkpoints")
    return tuple(words)


# the two forms


def _listed(path: Path) -> tuple[list[_Entry], str]:
    from chipwise.route.simulate.trace_spec import TraceSpec

    spec = checked(TraceSpec, parse_yaml(read_text(path, MAX_YAML_BYTES), path.name), "trace")
    base = path.parent.resolve()
    out: list[_Entry] = []
    for i, entry in enumerate(spec.jobs):
        for job in _jobs(entry.job, base, f"jobs[{i}].job"):
            job = replace(
                job,
                name=entry.name or job.name,
                owner=entry.owner or job.owner,
                deadline=job.deadline if entry.deadline is None else entry.deadline,
                priority=job.priority if entry.priority is None else entry.priority,
            )
            out += [_Entry(entry.arrival + k * (entry.every or 0.0), job.name, job) for k in range(entry.count)]
    return out, spec.name or path.stem


def _rows(path: Path) -> list[_Entry]:
    header, lines = read_lines(path)
    check_columns(path.name, header, NEEDED, KNOWN)
    jobs_of_file: dict[str, list[Job]] = {}
    out: list[_Entry] = []
    for line in lines:
        file = line.words("job", "a job file, relative to this one")
        if file not in jobs_of_file:
            jobs_of_file[file] = _jobs(file, path.parent.resolve(), line.where("job"))
        out += [_entry(line, job) for job in jobs_of_file[file]]
    if not out:
        raise BrokenFile("file", str(path), "at least one job below the header")
    return out


def _entry(line: Line, job: Job) -> _Entry:
    arrival = line.number_of("arrival_s", f"seconds from 0 to {MOST_S:g}", MOST_S, zero=True)
    if line["deadline_s"]:
        job = replace(job, deadline=line.number_of("deadline_s", "seconds after arrival, above 0, or nothing", MOST_S))
    if line["priority"]:
        job = replace(job, priority=line.number_of("priority", "a number above 0 and at most a million", 1e6))
    if line["owner"]:
        job = replace(job, owner=line["owner"])
    return _Entry(arrival, line["job_id"] or job.name, job)


def _jobs(source: str | dict[str, Any], base: Path, where: str) -> list[Job]:
    """The jobs of a file or a mapping; nothing has to be there to run, and deadlines count from arrival."""
    if isinstance(source, str):
        path = base / source
        raw, base = parse_yaml(read_text(path, MAX_YAML_BYTES), path.name), path.parent
    else:
        raw = source
    entries = raw["jobs"] if isinstance(raw.get("jobs"), list) else [raw]
    for entry in entries:
        if isinstance(entry, dict):
            entry.setdefault("command", NOTHING_TO_RUN)
            deadline = entry.get("deadline")
            if isinstance(deadline, str) and re.match(r"\d{4}-", deadline.strip()):
                raise InputError(f"{where}.deadline", deadline, "a duration after arrival: a trace has no calendar")
    try:
        return jobs_of(raw, base, 0.0)
    except InputError as error:
        raise error.under(f"{where}.{error.field}") from None

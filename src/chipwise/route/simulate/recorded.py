"""Traces of what once ran: an arrival, a number of GPUs and a run time, with no model behind them.

Columns: job_id, arrival_s, gpus, duration_s; virtual_cluster (the owner), deadline_s (after arrival) and priority
where known. What such a job takes on another chip is not known: the same time, unless a factor is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

from chipwise.errors import BrokenFile, InputError
from chipwise.io.csv_lines import MAX_CHIPS, Line, check_columns, read_lines
from chipwise.predict.estimate import Estimate
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace, in_order

NEEDED = ("job_id", "arrival_s", "gpus", "duration_s")
KNOWN = (*NEEDED, "virtual_cluster", "deadline_s", "priority")
MOST_S = 1e10  # three centuries; a timestamp in milliseconds since 1970 is more
MOST_FACTOR = 1e6
VARIANT = "recorded"


def is_recorded(header: Sequence[str]) -> bool:
    """Whether a CSV's header is that of recorded jobs."""
    return "duration_s" in header


def read_recorded(
    path: Path, pools: Sequence[Pool], speed: Mapping[str, float], checkpoint: Checkpoint | None = None
) -> Trace:
    """The jobs of a file with a way to run them in every pool that they may use."""
    header, lines = read_lines(path)
    check_columns(path.name, header, NEEDED, KNOWN)
    _check_speed(speed, pools)
    cache: dict[int, tuple[Variant, ...]] = {}
    arrivals: list[Arrival] = []
    names: set[str] = set()
    for line in lines:
        name = line.words("job_id", "a name or number of the job's own")
        if name in names:
            raise line.wrong("job_id", "each job only once")
        names.add(name)
        arrivals.append(_arrival(line, name, pools, speed, checkpoint or Checkpoint(), cache))
    if not arrivals:
        raise BrokenFile("file", str(path), "at least one job below the header")
    return Trace(path.stem, "recorded", in_order(arrivals), tuple(pools), _assumed(pools, speed, checkpoint))


def _arrival(
    line: Line,
    name: str,
    pools: Sequence[Pool],
    speed: Mapping[str, float],
    checkpoint: Checkpoint,
    cache: dict[int, tuple[Variant, ...]],
) -> Arrival:
    arrival = line.number_of("arrival_s", f"seconds from 0 to {MOST_S:g}", MOST_S, zero=True)
    count = whole_number(line, "gpus", MAX_CHIPS)
    seconds = line.number_of("duration_s", f"seconds above 0 and at most {MOST_S:g}", MOST_S)
    after = inf
    if line["deadline_s"]:
        after = line.number_of("deadline_s", "seconds after arrival, above 0, or nothing", MOST_S)
    priority = 1.0
    if line["priority"]:
        priority = line.number_of("priority", "a number above 0 and at most a million", 1e6)
    variants = cache.setdefault(count, (Variant(VARIANT, "gpu", count),))
    owner, deadline = line["virtual_cluster"], arrival + after
    job = Job(name, variants, owner=owner, deadline=deadline, priority=priority, checkpoint=checkpoint)
    options: list[Option] = []
    infeasible: list[Infeasible] = []
    for pool in pools:
        option = _option(pool, count, seconds, speed)
        if isinstance(option, Option):
            options.append(option)
        else:
            infeasible.append(option)
    return Arrival(name, arrival, job, tuple(options), tuple(infeasible))


def whole_number(line: Line, column: str, most: int) -> int:
    """A number of things, 1 at the least."""
    accepted = f"a whole number from 1 to {most:,}"
    number = line.number_of(column, accepted, most)
    if not number.is_integer():
        raise line.wrong(column, accepted)
    return int(number)


def _option(pool: Pool, chips: int, seconds: float, speed: Mapping[str, float]) -> Option | Infeasible:
    factor = speed.get(pool.chip, 1.0 if pool.family == "gpu" else 0.0)
    if not factor:
        return Infeasible(
            pool.name,
            VARIANT,
            f"recorded on GPUs: no speed is known on {pool.chip}",
            f"a speed for it, such as {pool.chip}=2.5",
        )
    taken = pool.takes(chips)
    if taken is None:
        return Infeasible(pool.name, VARIANT, f"{chips} chips at once are more than it has: {pool.count}")
    held, topology = taken
    time = seconds / factor
    if time > pool.max_seconds:
        return Infeasible(pool.name, VARIANT, f"it runs longer than the {pool.max_seconds:g} s allowed there")
    return Option(
        pool.name,
        VARIANT,
        held,
        topology,
        Estimate(time, time, time, "measured"),
        held * pool.usd_per_chip_hour,
        held * pool.watts_chip,
    )


def _check_speed(speed: Mapping[str, float], pools: Sequence[Pool]) -> None:
    chips = sorted({p.chip for p in pools})
    for chip, factor in speed.items():
        if chip not in chips:
            raise InputError("speed", chip, f"a chip of the pools: {', '.join(chips)}")
        if not 0 < factor <= MOST_FACTOR:
            raise InputError("speed", f"{chip}={factor:g}", "a factor above 0, such as h100=2.5")


def _assumed(pools: Sequence[Pool], speed: Mapping[str, float], checkpoint: Checkpoint | None) -> tuple[str, ...]:
    gpus = sorted({p.chip for p in pools if p.family == "gpu" and p.chip not in speed})
    others = sorted({p.chip for p in pools if p.family != "gpu" and p.chip not in speed})
    words = []
    if gpus:
        words.append(
            f"recorded jobs take the recorded time on {', '.join(gpus)}: without a model nothing better is "
            "known; a speed of the chip says it"
        )
    if speed:
        words.append(
            "speed against the recorded GPUs, as given: "
            + ", ".join(f"{chip} {factor:g}x" for chip, factor in speed.items())
        )
    if others:
        words.append(f"recorded jobs don't run on {', '.join(others)}: they were recorded on GPUs")
    words.append("policies know every recorded run time when the job arrives, which no scheduler in service does")
    if checkpoint is None or not checkpoint.restartable:
        words.append("recorded jobs are not restartable: once started, they run to their end")
    return tuple(words)

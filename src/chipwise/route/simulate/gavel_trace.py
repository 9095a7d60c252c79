"""A Gavel trace: jobs of so many steps, steps a second by kind of accelerator, and a cluster.

A folder holds `jobs.csv`, `throughput.csv` and `cluster.csv`, the inputs of Gavel's simulator (OSDI 2020) as scheduler
studies exchange them. An error names file, line and column; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np

from chipwise.errors import BrokenFile
from chipwise.io.csv_lines import MAX_CHIPS, check_columns, read_lines
from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Flags, Floats, Ints
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace
from chipwise.route.simulate.recorded import MOST_S, whole_number

JOBS = ("job_id", "arrival_s", "workload", "scale_factor", "total_steps")
JOBS_KNOWN = (*JOBS, "priority_weight", "slo_s", "duration_hint_s")  # the hint is read by nobody: rates are known
THROUGHPUT = ("workload", "accelerator", "scale_factor", "steps_per_s")
CLUSTER = ("accelerator", "count", "usd_per_hour")
CLUSTER_KNOWN = (*CLUSTER, "per_server")  # servers don't matter here: rates don't depend on placement
MOST_STEPS = 2**53  # a float holds every whole number up to there
MAX_USD_H = 1e6
MOST_WEIGHT = 1e6
MOST_RATE = 1e12  # steps a second
VARIANT = "gavel"
ASSUMPTIONS = (
    "rates are known exactly and don't depend on placement; a job gets all its accelerators of one kind, or none",
    "jobs of a Gavel trace can be stopped and moved at any time: nothing is repeated, and restarting takes no time",
)


@dataclass(frozen=True, slots=True)
class GavelTrace:
    """Jobs [J] in order of arrival, pools [P] as the file has them, and rates of whole jobs [J, P]."""

    name: str
    jobs: tuple[str, ...]
    arrival: Floats  # seconds
    workload: tuple[str, ...]
    chips: Ints  # all at once, of one pool
    steps: Floats  # whole numbers
    weight: Floats
    slo: Floats  # seconds after arrival; inf: none
    pools: tuple[str, ...]
    count: Ints
    usd_per_chip_hour: Floats
    rate: Floats  # steps a second of the whole job; 0: it can't run there

    def runs(self) -> Flags:
        """Where each job can run [J, P]: its rate is known, and all its chips are there."""
        return np.asarray((self.rate > 0) & (self.chips[:, None] <= self.count))

    def infeasible(self, job: int, pool: int) -> str:
        """Why a job can't run in a pool; empty where it can."""
        chips = self.chips[job]
        if chips > self.count[pool]:
            return f"has {self.count[pool]} of the {chips} accelerators it needs at once"
        return "" if self.rate[job, pool] > 0 else f"no rate above 0 on {chips}"

    def trace(self) -> Trace:
        """The same jobs as arrivals that the event simulator replays: free to stop and to move, with no power known."""
        pools = tuple(
            Pool(name, "local", name, "gpu", int(count), usd_per_chip_hour=float(price))
            for name, count, price in zip(self.pools, self.count, self.usd_per_chip_hour, strict=True)
        )
        arrivals = tuple(self._arrival(j, pools) for j in range(len(self.jobs)))
        return Trace(self.name, "gavel", arrivals, pools, ASSUMPTIONS)

    def _arrival(self, j: int, pools: tuple[Pool, ...]) -> Arrival:
        arrival, chips = float(self.arrival[j]), int(self.chips[j])
        job = Job(
            self.jobs[j],
            (Variant(VARIANT, "gpu", chips),),
            deadline=arrival + float(self.slo[j]),
            priority=float(self.weight[j]),
            checkpoint=Checkpoint(restartable=True, every=0.0),
        )
        options: list[Option] = []
        infeasible: list[Infeasible] = []
        for p, pool in enumerate(pools):
            if reason := self.infeasible(j, p):
                infeasible.append(Infeasible(pool.name, VARIANT, reason))
                continue
            seconds = float(self.steps[j] / self.rate[j, p])
            estimate = Estimate(seconds, seconds, seconds, "measured")
            options.append(Option(pool.name, VARIANT, chips, "", estimate, chips * pool.usd_per_chip_hour, 0.0))
        return Arrival(self.jobs[j], arrival, job, tuple(options), tuple(infeasible))


def read_gavel_trace(folder: Path) -> GavelTrace:
    """The trace of a folder."""
    if not folder.is_dir():
        raise BrokenFile("trace", str(folder), "a folder with jobs.csv, throughput.csv and cluster.csv")
    pools, count, price = _cluster(folder / "cluster.csv")
    rates = _rates(folder / "throughput.csv")
    rows = _jobs(folder / "jobs.csv")
    rate = np.array([[rates.get((w, pool, n), 0.0) for pool in pools] for _, _, w, n, *_ in rows])
    ids, arrival, workload, chips, steps, weight, slo = zip(*rows, strict=True)
    return GavelTrace(
        name=folder.name,
        jobs=ids,
        arrival=np.array(arrival, dtype=np.float64),
        workload=workload,
        chips=np.array(chips, dtype=np.int64),
        steps=np.array(steps, dtype=np.float64),
        weight=np.array(weight, dtype=np.float64),
        slo=np.array(slo, dtype=np.float64),
        pools=pools,
        count=count,
        usd_per_chip_hour=price,
        rate=rate,
    )


def _cluster(path: Path) -> tuple[tuple[str, ...], Ints, Floats]:
    header, lines = read_lines(path)
    check_columns(path.name, header, CLUSTER, CLUSTER_KNOWN)
    kinds: dict[str, tuple[int, float]] = {}
    for line in lines:
        name = line.words("accelerator", "a kind of accelerator such as v100")
        if name in kinds:
            raise line.wrong("accelerator", "each kind only once")
        if line["per_server"]:
            whole_number(line, "per_server", MAX_CHIPS)
        price = line.number_of("usd_per_hour", f"US dollars from 0 to {MAX_USD_H:,.0f}", MAX_USD_H, zero=True)
        kinds[name] = whole_number(line, "count", MAX_CHIPS), price
    if not kinds:
        raise BrokenFile("file", str(path), "at least one kind of accelerator below the header")
    counts, prices = zip(*kinds.values(), strict=True)
    return tuple(kinds), np.array(counts, dtype=np.int64), np.array(prices, dtype=np.float64)


def _rates(path: Path) -> Mapping[tuple[str, str, int], float]:
    header, lines = read_lines(path)
    check_columns(path.name, header, THROUGHPUT, THROUGHPUT)
    rates: dict[tuple[str, str, int], float] = {}
    for line in lines:
        key = (
            line.words("workload", "a name"),
            line.words("accelerator", "a kind of accelerator such as v100"),
            whole_number(line, "scale_factor", MAX_CHIPS),
        )
        if key in rates:
            raise line.wrong("workload", "each workload, accelerator and scale factor only once")
        rates[key] = line.number_of(
            "steps_per_s", f"steps a second from 0 (can't run there) to {MOST_RATE:g}", MOST_RATE, zero=True
        )
    return rates


def _jobs(path: Path) -> list[tuple[str, float, str, int, int, float, float]]:
    header, lines = read_lines(path)
    check_columns(path.name, header, JOBS, JOBS_KNOWN)
    rows: list[tuple[str, float, str, int, int, float, float]] = []
    names: set[str] = set()
    for line in lines:
        name = line.words("job_id", "a name or number of the job's own")
        if name in names:
            raise line.wrong("job_id", "each job only once")
        names.add(name)
        arrival = line.number_of("arrival_s", f"seconds from 0 to {MOST_S:g}", MOST_S, zero=True)
        if rows and arrival < rows[-1][1]:
            raise line.wrong("arrival_s", f"no time before the line above ({rows[-1][1]:g})")
        weight = 1.0
        if line["priority_weight"]:
            weight = line.number_of("priority_weight", f"a number above 0 and at most {MOST_WEIGHT:g}", MOST_WEIGHT)
        slo = inf
        if line["slo_s"]:
            slo = line.number_of("slo_s", "seconds after arrival, above 0, or nothing", MOST_S)
        rows.append(
            (
                name,
                arrival,
                line.words("workload", "a name"),
                whole_number(line, "scale_factor", MAX_CHIPS),
                whole_number(line, "total_steps", MOST_STEPS),
                weight,
                slo,
            )
        )
    if not rows:
        raise BrokenFile("file", str(path), "at least one job below the header")
    return rows

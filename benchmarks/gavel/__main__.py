"""Our policies beside Gavel's on the same jobs, by the rules of Gavel's simulator; exit with 1 when a bar is missed.

    python -m benchmarks.gavel [FOLDER] [--policy LIST] [--reallocate-every TIME] [--json]

FOLDER holds a Gavel trace (jobs.csv, throughput.csv, cluster.csv), and Gavel's results.csv where there is one; default:
examples/traces/gavel-seed0. Without --reallocate-every each policy is replayed twice: with an allocation at every round
that needs one, and at Gavel's least interval of 1,920 s. Gavel drops a job now and then, so our averages, of all jobs,
are set against its averages with dropped jobs counted. CPU seconds are those of the replay (the median of several);
reading files, imports and compiling at the first use are not in them, nor are files and imports in Gavel's.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.gavel.rounds import GAVEL_REALLOCATE_S, Result, replay

from chipwise.errors import ChipwiseError
from chipwise.route.policies import POLICIES
from chipwise.route.simulate.gavel_trace import GavelTrace, read_gavel_trace
from chipwise.units import parse_duration

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "traces" / "gavel-seed0"
TIMES = 7
FASTER = 20.0  # times more jobs a CPU second
# ours -> the one of Gavel's that does the same
COMPARABLE = {"fastest": "fifo_perf", "max-min-fair": "max_min_fairness_perf",
              "finish-time-fair": "finish_time_fairness_perf",
              "max-throughput-per-dollar": "max_sum_throughput_normalized_by_cost_perf"}  # fmt: skip
FIELDS = ("avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s", "cost_usd", "completed", "utilization", "rounds",
          "decisions", "deadline_misses")  # fmt: skip
Row = dict[str, float]


def theirs(folder: Path) -> dict[str, Row]:
    """Gavel's results by policy; none where the file is not there."""
    path = folder / "results.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        return {row.pop("policy"): {k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)}


def ours(work: GavelTrace, policies: Sequence[str], reallocate_s: float) -> dict[str, Row]:
    """The figures of each of our policies."""
    figures: dict[str, Row] = {}
    for name in policies:
        runs: list[Result] = [replay(work, name, reallocate_s) for _ in range(TIMES if name in COMPARABLE else 1)]
        last = runs[-1]
        cpu_s = median(r.cpu_s for r in runs)
        figures[name] = {k: float(getattr(last, k)) for k in FIELDS} | {
            "refused": len(last.refused),
            "cpu_s": cpu_s,
            "worst_ratio": last.fairness.worst_ratio,
            "jain": last.fairness.jain,
            "jobs_per_cpu_s": last.completed / cpu_s,
        }
    return figures


def bars(figures: dict[str, dict[str, Row]], gavel: dict[str, Row], jobs: int) -> dict[str, bool]:
    """What must hold, and whether it does."""
    held: dict[str, bool] = {}
    least = min(r["avg_jct_incl_dropped_s"] for r in gavel.values())
    cheap = min(r["cost_usd"] for r in gavel.values())
    for when, rows in figures.items():
        held[f"sooner and cheaper than all of Gavel's, {when}"] = any(
            r["completed"] == jobs and r["avg_jct_s"] < least and r["cost_usd"] < cheap for r in rows.values()
        )
        if "max-min-fair" in rows:
            fair, other = rows["max-min-fair"], gavel["max_min_fairness_perf"]
            held[f"max-min-fair, {when}"] = (
                fair["avg_jct_s"] <= other["avg_jct_incl_dropped_s"] and fair["p99_jct_s"] <= other["p99_jct_s"]
            )
    for name, other_name in COMPARABLE.items():
        if not all(name in rows for rows in figures.values()):
            continue
        rate = gavel[other_name]["jobs_total"] / gavel[other_name]["sim_cpu_s"]
        for when, rows in figures.items():
            held[f"{FASTER:g} times the jobs a CPU second, {name}, {when}"] = (
                rows[name]["jobs_per_cpu_s"] >= FASTER * rate
            )
    return held


def show(figures: dict[str, dict[str, Row]], gavel: dict[str, Row]) -> None:
    """Tables."""
    if gavel:
        print(
            f"{'Gavel':44}{'avg s':>9}{'+dropped':>9}{'p99 s':>10}{'USD':>9}{'done':>6}{'CPU s':>8}{'jobs/CPU s':>12}"
        )
        for name, r in gavel.items():
            print(
                f"{name:44}{r['avg_jct_s']:9,.0f}{r['avg_jct_incl_dropped_s']:9,.0f}{r['p99_jct_s']:10,.0f}"
                f"{r['cost_usd']:9.2f}{r['jobs_completed']:6.0f}{r['sim_cpu_s']:8.2f}"
                f"{r['jobs_total'] / r['sim_cpu_s']:12,.0f}"
            )
    for when, rows in figures.items():
        print(
            f"\n{'ours, ' + when:44}{'avg s':>9}{'median s':>9}{'p99 s':>10}{'USD':>9}{'done':>6}{'CPU s':>8}"
            f"{'jobs/CPU s':>12}{'x Gavel':>9}{'worst':>7}{'Jain':>6}"
        )
        for name, r in rows.items():
            times = ""
            if gavel and name in COMPARABLE:
                other = gavel[COMPARABLE[name]]
                times = f"{r['jobs_per_cpu_s'] * other['sim_cpu_s'] / other['jobs_total']:.0f}"
            print(
                f"{name:44}{r['avg_jct_s']:9,.0f}{r['median_jct_s']:9,.0f}{r['p99_jct_s']:10,.0f}{r['cost_usd']:9.2f}"
                f"{r['completed']:6.0f}{r['cpu_s']:8.4f}{r['jobs_per_cpu_s']:12,.0f}{times:>9}{r['worst_ratio']:7.2f}"
                f"{r['jain']:6.2f}"
            )


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gavel", description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="a Gavel trace; default: seed 0")
    parser.add_argument("--policy", default="all", help="policies such as fastest,max-min-fair; default: all")
    parser.add_argument("--reallocate-every", metavar="TIME", help="least time between two allocations, such as 1920s")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def run(given: argparse.Namespace) -> int:
    """Replay, print, and say whether the bars hold."""
    work, gavel = read_gavel_trace(given.folder), theirs(given.folder)
    # a Gavel trace has no watts
    named = [p for p in POLICIES if p != "least-energy"] if given.policy == "all" else given.policy.split(",")
    intervals = (0.0, GAVEL_REALLOCATE_S)
    if given.reallocate_every is not None:
        intervals = (parse_duration(given.reallocate_every, "--reallocate-every"),)
    figures = {
        f"at most every {s:,.0f} s" if s else "an allocation at every change": ours(work, named, s) for s in intervals
    }
    held = bars(figures, gavel, len(work.jobs)) if gavel else {}
    if given.json:
        print(json.dumps({"ours": figures, "gavel": gavel, "bars": held}, indent=1))
    else:
        show(figures, gavel)
        print()
        for bar, kept in held.items():
            print(f"{'kept  ' if kept else 'MISSED'} {bar}")
    return 0 if all(held.values()) else 1


def main() -> int:
    """Run; bad input is one line."""
    try:
        return run(options())
    except ChipwiseError as error:
        print(f"benchmarks.gavel: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

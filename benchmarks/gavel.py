"""Our policies beside Gavel's on the same work; exit with 1 when a bar is missed.

    python benchmarks/gavel.py [FOLDER] [--json]

FOLDER holds neutral work, and Gavel's results.csv where there is one; examples/traces/gavel-seed0 unless said. Each
policy is replayed with an allocation at every boundary that needs one, and at Gavel's least interval of 1,920 s. Gavel
drops a job now and then, so our averages, of all jobs, are set against its averages with dropped jobs counted. CPU
seconds are those of the replay (the middle of several); reading files, imports and compiling at the first use are not
in them, nor are files and imports in Gavel's.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from statistics import median

from chipwise.route.policies import POLICIES
from chipwise.route.simulate.neutral import Neutral, read
from chipwise.route.simulate.rounds import GAVEL_RECOMPUTE_S, Result, replay

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "traces" / "gavel-seed0"
TIMES = 7
FASTER = 20.0  # times more jobs a CPU second
# ours -> the one of Gavel's that does the same
COMPARABLE = {"fastest": "fifo_perf", "max-min-fair": "max_min_fairness_perf",
              "finish-time-fair": "finish_time_fairness_perf",
              "max-throughput-per-dollar": "max_sum_throughput_normalized_by_cost_perf"}  # fmt: skip
FIELDS = ("avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s", "cost_usd", "completed", "utilisation", "rounds",
          "decisions", "deadline_misses")  # fmt: skip
Row = dict[str, float]


def theirs(folder: Path) -> dict[str, Row]:
    """Gavel's results by policy; none where the file is not there."""
    path = folder / "results.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        return {row.pop("policy"): {k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)}


def ours(work: Neutral, recompute_s: float) -> dict[str, Row]:
    """Each of our policies on the work."""
    found: dict[str, Row] = {}
    for name in POLICIES:
        if name == "least-energy":  # neutral work has no watts
            continue
        runs: list[Result] = [replay(work, name, recompute_s) for _ in range(TIMES if name in COMPARABLE else 1)]
        last = runs[-1]
        found[name] = {k: float(getattr(last, k)) for k in FIELDS}
        found[name] |= {
            "refused": len(last.refused),
            "cpu_s": median(r.cpu_s for r in runs),
            "worst_ratio": last.fairness.worst_ratio,
            "jain": last.fairness.jain,
        }
        found[name]["jobs_per_cpu_s"] = last.completed / found[name]["cpu_s"]
    return found


def bars(found: dict[str, dict[str, Row]], gavel: dict[str, Row], jobs: int) -> dict[str, bool]:
    """What must hold, and whether it does."""
    held: dict[str, bool] = {}
    least = min(r["avg_jct_incl_dropped_s"] for r in gavel.values())
    cheap = min(r["cost_usd"] for r in gavel.values())
    for when, rows in found.items():
        held[f"sooner and cheaper than all of Gavel's, {when}"] = any(
            r["completed"] == jobs and r["avg_jct_s"] < least and r["cost_usd"] < cheap for r in rows.values()
        )
        fair, other = rows["max-min-fair"], gavel["max_min_fairness_perf"]
        held[f"max-min-fair, {when}"] = (
            fair["avg_jct_s"] <= other["avg_jct_incl_dropped_s"] and fair["p99_jct_s"] <= other["p99_jct_s"]
        )
    for name, other_name in COMPARABLE.items():
        rate = gavel[other_name]["jobs_total"] / gavel[other_name]["sim_cpu_s"]
        for when, rows in found.items():
            held[f"{FASTER:g} times the jobs a CPU second, {name}, {when}"] = (
                rows[name]["jobs_per_cpu_s"] >= FASTER * rate
            )
    return held


def show(found: dict[str, dict[str, Row]], gavel: dict[str, Row]) -> None:
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
    for when, rows in found.items():
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


def main() -> int:
    """Replay, print, and say whether the bars hold."""
    given = [a for a in sys.argv[1:] if not a.startswith("--")]
    folder = Path(given[0]) if given else FOLDER
    work, gavel = read(folder), theirs(folder)
    found = {
        "an allocation at every change": ours(work, 0.0),
        f"at most every {GAVEL_RECOMPUTE_S:,.0f} s": ours(work, GAVEL_RECOMPUTE_S),
    }
    held = bars(found, gavel, len(work.jobs)) if gavel else {}
    if "--json" in sys.argv:
        print(json.dumps({"ours": found, "gavel": gavel, "bars": held}, indent=1))
    else:
        show(found, gavel)
        print()
        for bar, kept in held.items():
            print(f"{'kept  ' if kept else 'MISSED'} {bar}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

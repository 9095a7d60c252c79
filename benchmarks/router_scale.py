"""A router with 100,000 open jobs, 100,000 ended ones whose folders are kept, and 50 pools of this machine.

    python benchmarks/router_scale.py [passes] [memory] [--open 100000] [--ended 100000] [--pools 50] [--starts 100]

``passes``: CPU seconds of the router's own process for its first scheduling pass, which reads every open job, and for
passes with 100 starts and 100 ends each, with real processes; beside it the same with none of the ended ones, so that
what is kept shows in the ratio. ``memory``: resident memory over 10,000 passes with jobs that end and come all the
while, and its slope by least squares over the second half. Jobs are of 1,000 kinds, each of which can run in ten pools.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from chipwise.predict.estimate import Estimate
from chipwise.route.backend import RUNNING, SUCCEEDED, AttemptStatus, Capacity
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.ledger import Ledger, NewJob, open_ledger
from chipwise.route.names import DEFAULT_POLICY
from chipwise.route.option import Option
from chipwise.route.policies import policy_named
from chipwise.route.pool import Pool
from chipwise.route.router import Router, RouterOptions

KINDS, WHERE = 1_000, 10  # kinds of jobs, and pools that each can run in
MOST_PASS_S, MOST_FIRST_S = 1.0, 5.0
BATCH = 5_000


def pools_of(count: int, chips: int) -> list[Pool]:
    return [Pool(f"pool{p}", "local", "cpu", "cpu", chips, usd_per_chip_hour=1.0 + p / count) for p in range(count)]


def kinds_of(pools: list[Pool], rng: np.random.Generator) -> list[tuple[Option, ...]]:
    """Ways to run of each kind of job."""
    kinds = []
    for _ in range(KINDS):
        hours = float(np.exp(rng.normal(0.0, 1.0)))
        chosen = rng.choice(len(pools), min(WHERE, len(pools)), replace=False)
        seconds = [3600 * hours * float(np.exp(rng.normal(0, 0.3))) for _ in chosen]
        kinds.append(
            tuple(
                Option(
                    pools[p].name,
                    "cpu",
                    1,
                    "",
                    Estimate(s, s / 1.3, 1.3 * s, "measured"),
                    pools[p].usd_per_chip_hour,
                    90.0,
                )
                for p, s in zip(chosen.tolist(), seconds, strict=True)
            )
        )
    return kinds


def jobs_of(kinds: list[tuple[Option, ...]], first: int, count: int, rng: np.random.Generator) -> list[NewJob]:
    variant = Variant("cpu", "cpu", 1, command=("true",))
    checkpoint = Checkpoint(restartable=True, every=600.0)
    kind = rng.integers(0, len(kinds), count).tolist()
    return [
        NewJob(Job(f"train-{first + k}", (variant,), owner=f"user{k % 40}", checkpoint=checkpoint), kinds[kind[k]])
        for k in range(count)
    ]


def fill(ledger: Ledger, folder: Path, pools: list[Pool], waiting: int, ended: int, seed: int = 0) -> None:
    """Write jobs that wait, and jobs that ended a week ago with their attempts and folders."""
    rng = np.random.default_rng(seed)
    kinds, week = kinds_of(pools, rng), time.time() - 7 * 86_400
    for first in range(0, ended, BATCH):
        count = min(BATCH, ended - first)
        numbers = ledger.submit(jobs_of(kinds, first, count, rng), week)
        _end_all(ledger, numbers, folder, kinds[0][0], week)
    for first in range(0, waiting, BATCH):
        ledger.submit(jobs_of(kinds, ended + first, min(BATCH, waiting - first), rng), week)


def _end_all(ledger: Ledger, numbers: list[str], folder: Path, option: Option, when: float) -> None:
    from chipwise.route.ledger.codec import encode

    plan, db = encode(option, Option), ledger._db
    with db.write():
        db.many("UPDATE jobs SET state = 'succeeded', done = 1, reason = '' WHERE id = ?", [(int(n),) for n in numbers])
        db.many(
            "INSERT INTO attempts (id, job_id, number, pool, variant, chips, plan, state, router, lease, intended, "
            "submitted, started, ended, exit_code, backend_id) "
            "VALUES (?, ?, 1, ?, 'cpu', 1, ?, 'succeeded', 'r', ?, ?, ?, ?, ?, 0, ?)",
            [(f"{ledger.uid}-{n}-1", int(n), option.pool, plan, *[when] * 5, f"local-{n}") for n in numbers],
        )
    for number in numbers:
        own = folder / "attempts" / f"{ledger.uid}-{number}-1"
        own.mkdir(parents=True)
        claim = {"by": f"local-{number}", "at": when, "pid": 1, "start": 1, "boot": "another", "pool": option.pool}
        (own / "claim").write_text(json.dumps({**claim, "chips": "0", "host": os.uname().nodename}))
        (own / "end").write_text(json.dumps({"by": f"local-{number}", "exit_code": 0, "started": when, "ended": when}))


def router_on(ledger: Ledger, folder: Path, pools: list[Pool], backend: object, policy: str = DEFAULT_POLICY) -> Router:
    options = RouterOptions(policy, keep_s=30 * 86_400.0)
    return Router(
        ledger,
        {"local": backend},  # type: ignore[dict-item]
        pools,
        policy_named(policy),
        folders={"local": folder},
        name="benchmark-1",
        options=options,
    )


def cpu(step: object) -> tuple[float, object]:
    begun = time.process_time()
    value = step()  # type: ignore[operator]
    return time.process_time() - begun, value


@dataclass
class Figures:
    """CPU seconds."""

    first: float
    passes: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def measure(args: argparse.Namespace, ended: int, policy: str) -> Figures:
    """The first pass and some more with real processes."""
    with tempfile.TemporaryDirectory(dir=args.folder or None) as place:
        folder, pools = Path(place) / "state", pools_of(args.pools, max(1, args.starts // args.pools))
        with open_ledger(str(Path(place) / "ledger.db")) as ledger:
            fill(ledger, folder, pools, args.open, ended)
            LocalBackend(folder).list()  # folders of an older version are looked through once
            router = router_on(ledger, folder, pools, LocalBackend(folder), policy)
            router.planner.warm()
            gc.collect()
            seconds, report = cpu(router.tick)
            figures = Figures(seconds)
            for _ in range(args.passes):
                _wait_for(router, ledger)
                seconds, report = cpu(router.tick)
                figures.passes.append(seconds)
                figures.starts.append(len(report.started))  # type: ignore[attr-defined]
            _wait_for(router, ledger)
            router.tick()
            gc.unfreeze()
    return figures


def _wait_for(router: Router, ledger: Ledger) -> None:
    """Wait until the programs that run have ended: only they are waited for, the router does nothing."""
    backend = router.backends["local"].backend
    attempts = ledger.attempts(under_way=True)
    while any(not (backend.attempts / a.id / "end").exists() for a in attempts):  # type: ignore[attr-defined]
        time.sleep(0.05)
    time.sleep(0.2)


def passes(args: argparse.Namespace) -> bool:
    """Print what passes cost."""
    print(
        f"passes: {args.open:,} open jobs, {args.ended:,} ended with their folders, {args.pools} pools, "
        f"{DEFAULT_POLICY}; CPU seconds of the router alone"
    )
    good, median = True, {}
    for ended in (args.ended, 0):
        figures = measure(args, ended, DEFAULT_POLICY)
        median[ended] = float(np.median(figures.passes)), figures.first
        verdicts = [figures.first <= MOST_FIRST_S, max(figures.passes) <= MOST_PASS_S]
        good &= all(verdicts)
        print(
            f"  {ended:9,} ended: first pass {figures.first:5.2f} s (at most {MOST_FIRST_S:g}: {_met(verdicts[0])}); "
            f"passes with {min(figures.starts)} to {max(figures.starts)} starts and as many ends: "
            f"{', '.join(f'{s:.2f}' for s in figures.passes)} s (at most {MOST_PASS_S:g}: {_met(verdicts[1])})"
        )
    (with_kept, first), (without, bare) = median[args.ended], median[0]
    print(
        f"  what is kept costs: a pass {with_kept / without:.2f} times one without, the first {first / bare:.2f} times"
    )
    return good


def _met(good: bool) -> str:
    return "met" if good else "MISSED"


class Clockwork:
    """A backend whose attempts end at the next listing: passes without processes, for thousands of them."""

    name = "local"

    def __init__(self) -> None:
        self.jobs: dict[str, AttemptStatus] = {}
        self.count = 0

    def submit(self, launch: object) -> str:
        self.count += 1
        attempt = launch.attempt  # type: ignore[attr-defined]
        self.jobs[attempt] = AttemptStatus(attempt, f"c-{self.count}", RUNNING, started=time.time())
        return f"c-{self.count}"

    def list(self) -> list[AttemptStatus]:
        ended = [replace(s, state=SUCCEEDED, exit_code=0, ended=time.time()) for s in self.jobs.values()]
        self.jobs = {}
        return ended

    def status(self, attempts: object) -> list[AttemptStatus]:
        return []

    def cancel(self, backend_id: str) -> None:
        pass

    def capacity(self, pools: list[Pool]) -> dict[str, Capacity]:
        return {pool.name: Capacity(pool.count, pool.count) for pool in pools}

    def predicted_start(self, launch: object) -> None:
        return None


def resident() -> float:
    """MiB of this process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def slope(passes: list[int], memory: list[float]) -> float:
    """MiB a thousand passes, by least squares over the second half: in the first, caches fill."""
    half = len(passes) // 2
    return 1000 * float(np.polyfit(passes[half:], memory[half:], 1)[0])


def memory(args: argparse.Namespace, say: object = print) -> float:
    """Print how memory grows with passes; MiB a thousand passes."""
    with tempfile.TemporaryDirectory(dir=args.folder or None) as place:
        folder, pools, rng = Path(place) / "state", pools_of(4, 1), np.random.default_rng(0)
        kinds = kinds_of(pools, rng)
        with open_ledger(str(Path(place) / "ledger.db")) as ledger:
            ledger._db.run("PRAGMA synchronous = OFF")  # memory is measured, not the disk
            ledger.submit(jobs_of(kinds, 0, 200, rng), time.time())
            router = router_on(ledger, folder, pools, Clockwork())
            log = _log(router)
            seen, sizes, ended = [], [], 0
            for n in range(args.memory_passes):
                ledger.submit(jobs_of(kinds, n * 4, 4, rng), time.time())
                report = router.tick()
                log(report)
                ended += len(report.ended)
                for attempt, _ in report.ended:
                    _remove(folder / "attempts" / attempt)
                if n % max(1, args.memory_passes // 100) == 0:
                    seen.append(n)
                    sizes.append(resident())
    found = slope(seen, sizes)
    say(  # type: ignore[operator]
        f"memory: {args.memory_passes:,} passes, {ended:,} jobs ended: {sizes[0]:.0f} MiB, "
        f"{sizes[len(sizes) // 2]:.0f} at half, {sizes[-1]:.0f} at the end; slope of the second half "
        f"{found:+.3f} MiB a thousand passes"
    )
    return found


def _log(router: Router) -> object:
    """The router's lines, as `chipwise router run --out FILE` keeps them."""
    from chipwise.cli.router_log import RouterLog
    from chipwise.route.load import Pools

    log = RouterLog(router, Pools(router.pools, Path()), 2.0, quiet=True)
    return log.tick


def _remove(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=["passes", "memory", []], help="all, where none is named")
    for name, default in (("open", 100_000), ("ended", 100_000), ("pools", 50), ("starts", 100), ("passes", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--memory-passes", type=int, default=10_000)
    parser.add_argument("--folder", default="", help="where ledgers and folders are made; default: the temporary one")
    args = parser.parse_args()
    good = True
    if not args.sections or "passes" in args.sections:
        good &= passes(args)
    if not args.sections or "memory" in args.sections:
        memory(args)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

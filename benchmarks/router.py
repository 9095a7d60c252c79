"""How long the router decides: one event with thousands queued, and the fair policies' linear programs.

    python benchmarks/router.py [decision] [lp] [ledger] [--jobs 10000] [--pools 20] [--events 300] [--lp-jobs 1000]

``decision``: 10,000 jobs wait for 20 pools that are full but for what has just been freed. An event is what a router or
a simulation does: a job arrives, or a job ends and its chips are free; the board is brought up to date, the policy is
asked and the job at hand placed, with its reason. Half of the events are of each kind. Events of the first minutes, in
which a policy moves hundreds of jobs that were placed by price, are not timed. ``lp``: shares for 1,000 jobs in
20 pools, all unlike each other, from nothing and again after one in a hundred has changed. ``ledger``: submissions a
second (router_ledger.py).

Wall time and CPU time are both printed: a busy machine shows in the difference. So does work that is the same every
time, done after each event: how far its p99 lies above its p50 is the machine's doing.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np

from chipwise.predict.estimate import Estimate
from chipwise.route.allocate import DEPTH, allocate, queue_window
from chipwise.route.cluster_state import ClusterState, Policy
from chipwise.route.job_table import Candidate, JobTable
from chipwise.route.option import Option
from chipwise.route.policies import POLICIES
from chipwise.route.pool import Pool

SETTLED = 120  # events, an hour, before the first that is timed: the queue was filled by price alone
MOST_MS = 5.0  # CPU milliseconds of an event at p99
FEW = 20  # decisions in one event: with more, what each of them adds shows
SHARING = ("max-min-fair", "finish-time-fair")


class Site:
    """Pools, and jobs that are made up as they are asked for: no two alike."""

    def __init__(self, pools: int, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.speed = np.exp(rng.normal(0, 0.6, pools))
        price = 2.0 * self.speed * np.exp(rng.normal(0, 0.25, pools))
        self.pools = [
            Pool(
                f"pool{p}",
                "local",
                f"chip{p}",
                "gpu",
                int(rng.choice([32, 64, 128])),
                usd_per_chip_hour=float(price[p]),
                interruptions=0.05 if p % 5 == 0 else 0.0,
            )
            for p in range(pools)
        ]
        self.made = 0

    def job(self, now: float) -> Candidate:
        """One more job: it can run in four of five pools."""
        rng, self.made = self.rng, self.made + 1
        hours, chips = float(np.exp(rng.normal(1.0, 1.0))), int(rng.choice([1, 2, 4, 8], p=[0.6, 0.2, 0.1, 0.1]))
        spread = float(rng.uniform(1.1, 1.5))
        options = []
        for p, pool in enumerate(self.pools):
            if p and rng.random() < 0.2:
                continue
            seconds = hours * 3600 / self.speed[p] * float(np.exp(rng.normal(0, 0.35)))
            options.append(
                Option(
                    pool.name,
                    "gpu",
                    chips,
                    "",
                    Estimate(seconds, seconds / spread, seconds * spread, "modelled"),
                    pool.usd_per_chip_hour * chips,
                    500.0 * chips,
                )
            )
        deadline = now + hours * 3600 * float(rng.uniform(2, 200))
        return Candidate(
            f"job{self.made}",
            now,
            tuple(options),
            float(rng.choice([1, 1, 1, 2, 4])),
            deadline,
            restartable=bool(rng.random() < 0.7),
            every=1800.0,
            restart=120.0,
        )


class Queue:
    """A board with full pools and a long queue, on a clock of its own."""

    def __init__(self, site: Site, jobs: int) -> None:
        self.site, self.board, self.now = site, JobTable(site.pools), 0.0
        self.total = np.array([p.count for p in site.pools], dtype=np.int64)
        self.free = self.total.copy()
        self.running: dict[str, str] = {}
        while len(self.board) < jobs + len(self.running):
            self.now += 3.6  # 10,000 in ten hours
            job = site.job(self.now)
            self.board.add(job)
            for option in sorted(job.options, key=lambda o: o.usd):
                k = self.board.pools.index(option.pool)
                if option.chips <= self.free[k]:
                    self.start(job.id, option.pool)
                    break

    def start(self, job: str, pool: str) -> None:
        """A job takes its chips."""
        self.free[self.board.pools.index(pool)] -= self.board.option(job, pool).chips
        self.board.started(job, pool, self.now)
        self.running[job] = pool

    def free_up(self, job: str) -> str:
        """A job gives its chips back."""
        pool = self.running.pop(job)
        self.free[self.board.pools.index(pool)] += self.board.option(job, pool).chips
        return pool

    def event(self, policy: Policy, arrival: bool) -> int:
        """One event, and how many decisions it came to."""
        if arrival:
            job = self.site.job(self.now)
            begun = time.perf_counter(), time.process_time()
            self.board.add(job)
            waits = [job.id]
        else:
            gone = str(self.site.rng.choice(sorted(self.running)))
            begun = time.perf_counter(), time.process_time()
            self.free_up(gone)
            self.board.remove(gone)
            waits = []
        at = self.board.moment(self.now, self.free, self.total)
        view = queue_window(self.board, policy, at, explain=waits)
        found = allocate(view, policy(view), self.board.option, explain=waits)
        self.took = time.perf_counter() - begun[0], time.process_time() - begun[1]
        for decision in found:
            if decision.kind == "stop":
                self.free_up(decision.job)
                self.board.stopped(decision.job, self.now)
            elif decision.kind == "start":
                self.start(decision.job, decision.pool)
        return len(found)


def decision(args: argparse.Namespace) -> None:
    """Time of one event, by policy."""
    print(
        f"decision: one event with {args.jobs:,} jobs queued for {args.pools} pools, {args.events} events, "
        f"the first {DEPTH:,} have a turn"
    )
    steady: list[float] = []
    for name in (n for n in POLICIES if n not in SHARING):
        queue = Queue(Site(args.pools, args.seed), args.jobs)
        settling = 0
        for k in range(SETTLED):  # compiled, and the pools filled as the policy likes: nobody moves at once
            queue.now += 30.0
            settling = max(settling, queue.event(POLICIES[name], k % 2 == 0))
        gc.collect()
        gc.freeze()  # as the router does once it has read its jobs
        took, counts = [], []
        for k in range(args.events):
            queue.now += 30.0
            counts.append(queue.event(POLICIES[name], k % 2 == 0))
            took.append(queue.took)
            steady.append(_fixed())
        wall, cpu = (1e3 * np.array(part) for part in zip(*took, strict=True))
        p50, p99 = np.percentile(cpu, [50, 99])
        each = float(np.polyfit(counts, cpu, 1)[0]) if max(counts) > FEW else 0.0
        print(
            f"  {name:26} p50 {np.percentile(wall, 50):6.2f} ms  p99 {np.percentile(wall, 99):6.2f} ms   "
            f"(CPU p50 {p50:5.2f} p99 {p99:6.2f} ms, at most {MOST_MS:g}: {'met' if p99 <= MOST_MS else 'MISSED'}; "
            f"decisions an event: mean {np.mean(counts):.1f}, most {max(counts)}"
            + (f", {1e3 * each:.0f} us for each" if each else "")
            + f"; {settling} in one while it settled)"
        )
    p50, p99 = 1e3 * np.percentile(steady, [50, 99])
    print(f"  the same work every time   p50 {p50:6.2f} ms  p99 {p99:6.2f} ms   (what the machine itself adds)")


WORK = np.random.default_rng(0).random((1300, 20))  # the rows that a decision looks at


def _fixed() -> float:
    """Seconds of work that never changes, about as long as a decision."""
    begun, x = time.perf_counter(), WORK
    for _ in range(60):
        x = np.minimum(x * 1.0001, WORK + 1)
    return time.perf_counter() - begun


def lp(args: argparse.Namespace) -> None:
    """Time of the shares of the fair policies, from nothing and after a change."""
    print(f"lp: shares for {args.lp_jobs:,} jobs in {args.pools} pools; cold: no basis is known; warm: the last one is")
    for name in SHARING:
        _, few, some = _jobs_on(Site(args.pools + 1, args.seed), 5)
        POLICIES[name](few.state(0.0, some, some))  # loads the solver and what is compiled; no basis is kept
        site, board, total = _jobs_on(Site(args.pools, args.seed), args.lp_jobs)
        now = 60.0 * args.lp_jobs
        _timed(f"{name}, cold", POLICIES[name], board.state(now, total, total))
        for again in range(3):
            for k in range(args.lp_jobs // 100):
                board.remove(board.state(now, total, total).jobs[17 * k])
                board.add(site.job(now))
            now += 360.0
            what = f"{name}, warm, one in a hundred changed ({again + 1})"
            _timed(what, POLICIES[name], board.state(now, total, total))


def _jobs_on(site: Site, many: int) -> tuple[Site, JobTable, np.ndarray]:
    """A board with so many jobs, a minute apart, and the chips of its pools."""
    board = JobTable(site.pools)
    for k in range(many):
        board.add(site.job(60.0 * k))
    return site, board, np.array([p.count for p in site.pools], dtype=np.int64)


def ledger(args: argparse.Namespace) -> None:
    """Submissions a second into the ledger."""
    import router_ledger

    router_ledger.main(args.ledger_url)


def _timed(what: str, policy: Policy, view: ClusterState) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    policy(view)
    print(f"  {what:50} {time.perf_counter() - wall:6.3f} s  (CPU {time.process_time() - cpu:6.3f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "sections", nargs="*", choices=["decision", "lp", "ledger", []], help="all, where none is named"
    )
    for name, default in (("jobs", 10_000), ("pools", 20), ("events", 300), ("lp-jobs", 1_000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ledger-url", default="", help="of a PostgreSQL; one of its own where none is given")
    args = parser.parse_args()
    for name, section in (("decision", decision), ("lp", lp), ("ledger", ledger)):
        if not args.sections or name in args.sections:
            section(args)


if __name__ == "__main__":
    main()

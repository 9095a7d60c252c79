"""All that goes wrong at once: routers, shims and daemons killed, a silent database, a full disk, clocks that are set,
hostile programs; `python storm.py [PLACE ...]` prints what came of it, in local pools, two routers on PostgreSQL, Slurm.

Programs write their logs where there is always room: what they say is what really happened.
"""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import chaos
from chaos import Fault
from hostile_jobs import HOSTILE, job
from local_pools import OPTIONS, Local
from postgres_server import postgres_server
from slurm_cluster import SlurmCluster
from slurm_route import Site

from chipwise.route.backends import shim
from chipwise.route.job import Checkpoint, Variant
from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S

SECONDS = (0.1, 0.2, 0.5, 1.0, 1.5)
SLURM_VARIANTS = (Variant("tpu", "tpu", 1), Variant("gpu", "gpu", 1))
SLURM_OPTIONS = (chaos.option("v5e", 0.5, "tpu"), chaos.option("h200", 0.5, "gpu", usd_hour=2.0))
BUDGET_USD = 1.0  # an hour of a chip: far more than any job needs, far less than ten days
DAY_NS = 86_400 * 10**9
DISK_MB = 512
STATES = {"T", "t"}  # of a process that was stopped
CHIPS = 24  # of each local pool


@dataclass
class Size:
    """How much of it."""

    jobs: int
    routers: int  # kills of each
    shims: int
    daemons: int = 0
    fault_s: float = 60.0
    clock_s: float = 10.0
    hostile: int = 3  # jobs of each kind
    limit: float = 1800.0


@dataclass
class Result:
    """What came of one place."""

    place: str
    size: Size
    outcome: chaos.Outcome
    hostile: int
    problems: list[str] = field(default_factory=list)

    def row(self) -> list[str]:
        """As the table has it."""
        kills = ", ".join(f"{n} {what}s" for what, n in sorted(self.outcome.killed.items()))
        faults = f"silent database and full disk {self.size.fault_s:g} s each, clock +10 d, -10 d"
        attempts = ", ".join(f"{n} {state}" for state, n in sorted(self.outcome.attempts.items()))
        return [
            self.place,
            f"{self.size.jobs} + {self.hostile} hostile",
            f"{self.outcome.kills}: {kills}",
            faults,
            str(self.outcome.lost),
            str(self.outcome.doubled),
            attempts,
            f"{self.outcome.seconds:.0f}",
        ]


HEAD = ["place", "jobs", "kills", "faults", "lost", "doubled", "attempts", "seconds"]


class Clock:
    """The time of day of routers; see set_clock.c."""

    def __init__(self, folder: Path) -> None:
        self.library, self.file = folder / "set_clock.so", folder / "clock"
        source = Path(__file__).with_name("set_clock.c")
        line = ["cc", "-shared", "-fPIC", "-O1", "-o", self.library, source, "-ldl"]
        subprocess.run(list(map(str, line)), check=True, capture_output=True)
        self.file.write_bytes(struct.pack("q", 0))

    def environment(self) -> dict[str, str]:
        """Under which a process has this clock."""
        return {"LD_PRELOAD": str(self.library), "SET_CLOCK": str(self.file)}

    def _set(self, days: float) -> None:
        with self.file.open("r+b") as file:
            file.write(struct.pack("q", int(days * DAY_NS)))

    @contextmanager
    def off(self, days: float):
        """So many days off for a while."""
        self._set(days)
        try:
            yield
        finally:
            self._set(0)


class Disk:
    """A small disk of its own, which can be filled; only root can mount one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o755)

    def __enter__(self):
        line = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "storm", str(self.folder)]
        subprocess.run(line, check=True, capture_output=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False, capture_output=True)

    @contextmanager
    def full(self):
        """No byte is free, for all that others remove meanwhile."""
        over, ballast = threading.Event(), self.folder / "ballast"

        def fill():
            with ballast.open("ab", buffering=0) as file:
                while not over.is_set():
                    with suppress(OSError):
                        while file.write(b"\0" * 2**20) and not over.is_set():
                            pass
                    with suppress(OSError):
                        while file.write(b"\0" * 4096) and not over.is_set():
                            pass
                    over.wait(0.05)

        thread = threading.Thread(target=fill)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            ballast.unlink()


@contextmanager
def locked(path: Path):
    """Another process has a ledger of SQLite locked."""
    program = (
        "import sqlite3, sys; link = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None); "
        "link.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        yield
    finally:
        holder.stdin.close()
        holder.wait(PATIENCE_S)
        holder.stdout.close()


def shims(folder: Path) -> dict[int, str]:
    """The shims of attempts below a folder, by pid."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            at = next((n for n, word in enumerate(words) if word.endswith("shim.py")), len(words))
            if "python" in words[0] and at + 1 < len(words) and words[at + 1].startswith(str(folder)):
                found[int(entry.name)] = Path(words[at + 1]).name
    return found


def kill_shim(folder: Path, logs: Path, outlived: list[str]) -> bool:
    """Kill a shim whose program runs, and see that the program is dead then; False where there is none.

    The program is stopped first: one that has said its last line may be done, though nobody knows yet.
    """
    for pid, attempt in shims(folder).items():
        program = shim.descendants(pid)
        if not program:
            continue
        for each in program:
            _send(each, signal.SIGSTOP)
        time.sleep(0.01)
        if not all(_state(each) in STATES for each in program) or not _at_work(logs, attempt):
            for each in program:
                _send(each, signal.SIGCONT)
            continue
        _send(pid, signal.SIGKILL)
        end = time.monotonic() + 5.0
        while _state(program[0]) not in ("", "Z", "X"):
            if time.monotonic() > end:
                outlived.append(f"the program of attempt {attempt} outlived its shim")
                _send(program[0], signal.SIGKILL)
            time.sleep(0.005)
        for each in program[1:]:
            _send(each, signal.SIGCONT)
        return True
    return False


def _at_work(logs: Path, attempt: str) -> bool:
    """Whether an attempt is of a job that logs, has begun and has not said that it is done."""
    words = f" {attempt}\n"
    for log in logs.glob("*.log"):
        with suppress(OSError):
            text = log.read_text()
            if f"start{words}" in text:
                return f"end{words}" not in text
    return False


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def left_running(folder: Path) -> list[str]:
    """Shims of attempts below a folder and programs of theirs, after a moment to leave."""
    names, end = set(), time.monotonic() + 10.0
    for attempts in folder.rglob("attempts"):
        names |= {f"CHIPWISE_ATTEMPT={entry.name}".encode() for entry in attempts.iterdir()}
    while True:
        found = [f"the shim of {attempt} ({pid}) still runs" for pid, attempt in shims(folder).items()]
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (entry / "environ").read_bytes().split(b"\0")
                if _state(int(entry.name)) not in ("", "Z", "X") and names.intersection(variables):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(f"process {entry.name} still runs: {words[:100]}")
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)


def made(logs: Path, size: Size, options, seed: int, variants=(), chips: str = ""):
    """The jobs of a storm: a third may be restarted, a third have a budget; and the hostile ones."""
    jobs = chaos.jobs(logs, size.jobs, options, SECONDS, seed, variants, chips=chips)
    mixed = []
    for n, one in enumerate(jobs):
        checkpoint = Checkpoint(restartable=n % 3 == 0, every=0.1) if n % 3 == 0 else Checkpoint()
        budget = {"budget": BUDGET_USD} if n % 3 == 1 else {}
        mixed.append(replace(one, job=replace(one.job, checkpoint=checkpoint, **budget)))
    bad = [
        job(f"{what} {n}", program, options=options, variants=variants)
        for what, program in HOSTILE.items()
        for n in range(size.hostile)
    ]
    return mixed, bad


def blow(
    place: str,
    folder: Path,
    state: Path,
    site: Callable[[int], Sequence[str]],
    url: str,
    size: Size,
    faults: Sequence[Fault],
    *,
    clock: Clock,
    jobs,
    seed: int,
    routers: int = 1,
    daemons: Callable[[], bool] | None = None,
    backend_attempts=None,
    env=None,
) -> Result:
    """Run one."""
    outlived: list[str] = []
    logs = folder / "logs"
    blows = {"shim": (size.shims, lambda: kill_shim(state, logs, outlived))}
    if daemons is not None:
        blows["daemon"] = (size.daemons, daemons)
    clocks = [
        Fault("clock ahead", size.clock_s, lambda: clock.off(10)),
        Fault("clock behind", size.clock_s, lambda: clock.off(-10)),
    ]
    outcome = chaos.run(
        site,
        url,
        jobs[0],
        size.routers,
        seed,
        folder=folder,
        logs=logs,
        routers=routers,
        backend_attempts=backend_attempts,
        limit=size.limit,
        env={**(env or chaos.environment()), **clock.environment()},
        blows=blows,
        faults=[*faults, *clocks],
        hostile=jobs[1],
    )
    problems = [*outcome.problems, *outlived, *left_running(state)]
    with open_ledger(url) as ledger:
        names = {one.job.name for one in jobs[1]}
        ran = {a.job_id for a in ledger.attempts() if a.state not in ("refused",)}
        idle = [row.job.name for row in ledger.jobs() if row.job.name in names and row.id not in ran]
        problems += [f"hostile job {name!r} never ran" for name in idle]
    return Result(place, size, outcome, len(jobs[1]), problems)


def local(folder: Path, size: Size, seed: int = 1) -> Result:
    """One router, a ledger of SQLite and local pools, all on one disk."""
    with Disk(folder / "disk") as disk:
        there = Local(folder / "disk", str(folder / "disk" / "ledger.db"), CHIPS)
        return _local("local, SQLite", there, folder, size, seed, disk, lambda: locked(folder / "disk" / "ledger.db"))


def postgresql(folder: Path, size: Size, seed: int = 2) -> Result:
    """Two routers, a ledger of PostgreSQL and local pools."""
    with Disk(folder / "disk") as disk, postgres_server() as server:
        there = Local(folder / "disk", server.database("storm"), CHIPS)
        turns = iter(range(10**6))

        def daemon() -> bool:
            mine = [pid for pid in server.processes() if b" storm " in _read(Path(f"/proc/{pid}/cmdline"))]
            if not mine or _state(server.process.pid) in STATES:  # it recovers, or is silent just now
                return False
            if next(turns) % 3 == 2:
                server.kill()
            else:
                _send(mine[-1], signal.SIGKILL)
            return True

        return _local(
            "two routers, PostgreSQL",
            there,
            folder,
            size,
            seed,
            disk,
            lambda: server.silent(server.processes(), whole=True),
            routers=2,
            daemons=daemon,
        )


def _local(place, there, folder, size, seed, disk, silent, **more):
    clock, chips = Clock(folder), folder / "chips"
    chips.mkdir()
    there.warm()
    try:
        return blow(
            place,
            folder,
            there.folder / "state",
            there.router,
            there.url,
            size,
            [Fault("silent database", size.fault_s, silent), Fault("full disk", size.fault_s, disk.full)],
            clock=clock,
            jobs=made(folder / "logs", size, OPTIONS, seed, chips=str(chips)),
            seed=seed,
            **more,
        )
    finally:
        there.kill()


def slurm(folder: Path, size: Size, seed: int = 3) -> Result:
    """One router, a ledger of SQLite, a real cluster whose controller and nodes' daemons are killed."""
    with Disk(folder / "disk") as disk, SlurmCluster(min_job_age=3600) as cluster:
        site = Site(cluster, folder / "disk", shapes=("1x1",))
        names, over = iter(["slurmctld", *cluster.nodes] * 10**4), threading.Event()

        def daemon() -> bool:
            cluster.restart(next(names))
            return True

        def administer() -> None:
            while not over.wait(2.0):
                cluster.resume_drained()

        def command(n: int):
            words = ["router", "run", "--pools", site.pools, "--policy", "fastest", "--ledger", site.url]
            return chaos.command(*words, "--interval", "0.2s", "--lease", "12s", "--until-idle")

        env = chaos.environment(**cluster.environment)
        subprocess.run(list(map(str, command(0))), check=True, capture_output=True, env=env, timeout=PATIENCE_S)
        threading.Thread(target=administer, daemon=True).start()
        try:
            return blow(
                "Slurm, SQLite",
                folder,
                folder / "disk" / "shared",
                command,
                site.url,
                size,
                [
                    Fault("silent database", size.fault_s, lambda: locked(folder / "disk" / "ledger.db")),
                    Fault("full disk", size.fault_s, disk.full),
                ],
                clock=Clock(folder),
                jobs=made(folder / "logs", size, SLURM_OPTIONS, seed, SLURM_VARIANTS),
                seed=seed,
                daemons=daemon,
                env=env,
            )
        finally:
            over.set()


FULL = {
    "local": (local, Size(2000, 70, 30)),
    "postgresql": (postgresql, Size(2000, 55, 40, 20)),
    "slurm": (slurm, Size(2000, 50, 20, 30, limit=3600.0)),
}


def main(arguments: Sequence[str]) -> int:
    """Run the places that are named `PLACE` or `PLACE=JOBS`, or all, and print the table."""
    from scratch import Run

    this, failed, rows = Run.begin(), False, [HEAD, ["---"] * len(HEAD)]
    try:
        for word in arguments or FULL:
            name, _, number = word.partition("=")
            place, size = FULL[name]
            folder = this.folder / name
            folder.mkdir()
            found = place(folder, replace(size, jobs=int(number)) if number else size)
            rows.append(found.row())
            for (status, words), n in sorted(found.outcome.left.items()):
                print(f"{name}: {n} routers left by themselves with status {status}: {words}", flush=True)
            for line in found.problems[:50]:
                print(f"{name}: PROBLEM: {line}", flush=True)
            print(f"| {' | '.join(found.row())} |", flush=True)
            failed = failed or bool(found.problems)
            keep = os.environ.get("STORM_KEEP")
            if failed and keep:
                subprocess.run(["cp", "-r", str(folder), keep], check=False)
    finally:
        this.end()
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

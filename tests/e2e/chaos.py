"""Routers killed at random while jobs run, on any backend: what must hold afterwards, whatever happened.

Each job appends lines to a log of its own, `start ATTEMPT` and `end ATTEMPT`, so that what really ran can be compared
with what the ledger says.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chipwise.predict.estimate import Estimate
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.records import OVER, UNDER_WAY, NewJob
from chipwise.route.option import Option
from patience import PATIENCE_S

# the shell is the job's own program here: what chipwise hands over is an argv
SCRIPT = 'echo "start $CHIPWISE_ATTEMPT" >> "$1"; sleep "$2"; echo "end $CHIPWISE_ATTEMPT" >> "$1"'
OVERDUE_S = 5.0  # without progress, after which the next kill comes all the same


@dataclass
class Outcome:
    """What happened."""

    seconds: float
    kills: int
    states: dict[str, int]  # jobs by state
    attempts: dict[str, int]  # by state
    problems: list[str]
    said: str = ""  # by the routers
    runs: Counter = field(default_factory=Counter)  # starts by attempt


def jobs(
    folder: Path,
    number: int,
    options: Sequence[Option],
    seconds: Sequence[float],
    seed: int = 0,
    variants: Sequence[Variant] = (),
    **more,
) -> list[NewJob]:
    """Jobs that log what they do; `variants` name families, chips and so on, their commands are set here."""
    folder.mkdir(parents=True, exist_ok=True)
    draw, found = random.Random(seed), []
    for n in range(number):
        command = ("sh", "-c", SCRIPT, "job", str(folder / f"{n}.log"), f"{draw.choice(seconds):g}")
        own = tuple(Variant(v.name, v.family, v.chips, v.on, command) for v in variants) or (
            Variant("cpu", "cpu", 1, command=command),
        )
        found.append(NewJob(Job(f"job-{n}", own, **more), tuple(options), ()))
    return found


def option(pool: str, seconds: float, variant: str = "cpu", chips: int = 1, usd_hour: float = 1.0) -> Option:
    """A way to run one, with a given estimate."""
    return Option(pool, variant, chips, "", Estimate(seconds, seconds / 2, 2 * seconds, "measured"), usd_hour, 0.0)


class RouterProcess:
    """`chipwise router run`, really started."""

    def __init__(self, line: Sequence[str], log: Path, env: dict[str, str] | None = None) -> None:
        self.log, self.begun = log, log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [str(word) for word in line],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )

    def said(self) -> str:
        """What this one has said."""
        with self.log.open("rb") as file:
            file.seek(self.begun)
            return file.read().decode("utf-8", "replace")

    def ready(self) -> bool:
        """Whether it has begun to work."""
        return "router " in self.said()

    def kill(self) -> None:
        """As a power cut would; jobs live on, since they are not its children's children by then."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def run(
    make_router_command: Callable[[int], Sequence[str]],
    ledger_url: str,
    submissions: Sequence[NewJob],
    kills: int,
    seed: int,
    hurt: Callable[[str], None] | None = None,
    *,
    folder: Path,
    logs: Path,
    routers: int = 1,
    backend_attempts: Callable[[], set[str]] | None = None,
    limit: float = 3 * PATIENCE_S,
    env: dict[str, str] | None = None,
) -> Outcome:
    """Submit jobs, run routers on them, kill those at random at least `kills` times, and see what came of it.

    `make_router_command(n)`: the command line of the n-th router at work, which must leave when no job is open
    (--until-idle). `hurt("down")` and `hurt("back")` are called once each, a third and two thirds through.
    `backend_attempts()`: the attempts that the backend has really run. `folder`: for the routers' words.

    An attempt that its backend itself started again may have come to its end before, unseen: the power of a node goes
    between a program's last line and the end on disk. Any other has one start and one end.
    """
    draw, begun = random.Random(seed), time.monotonic()
    with open_ledger(ledger_url) as ledger:
        ids = ledger.submit(submissions, time.time())
        started = [RouterProcess(make_router_command(n), folder / f"router-{n}.txt", env) for n in range(routers)]
        done, hurts = 0, ["down", "back"] if hurt else []
        try:
            while done < kills:
                _pause(ledger, draw, len(ids) * (done + draw.random()) / (kills + 1), begun + limit)
                if hurts and done >= kills * (3 - len(hurts)) // 3:
                    hurt(hurts.pop(0))
                n = draw.randrange(routers)
                _awaited(started[n], draw, begun + limit)
                if started[n].process.poll() is None:
                    started[n].kill()
                    done += 1
                started[n] = RouterProcess(make_router_command(n), folder / f"router-{n}.txt", env)
            for each in hurts:
                hurt(each)
            _finished(ledger, started, make_router_command, folder, begun + limit, env)
        finally:
            for each in started:
                if each.process.poll() is None:
                    each.kill()
        said = "\n".join((folder / f"router-{n}.txt").read_text("utf-8", "replace") for n in range(routers))
        return _judged(ledger, ids, logs, time.monotonic() - begun, done, said, backend_attempts)


def command(*arguments: object) -> list[str]:
    """`chipwise ARGUMENTS` by this Python."""
    return [sys.executable, "-m", "chipwise", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """This process's variables, with the package's folder."""
    src = str(Path(__file__).resolve().parents[2] / "src")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [src, os.environ.get("PYTHONPATH")])), **more}


def _pause(ledger, draw, goal, until):
    """Wait for the jobs to get on, and a random moment longer."""
    overdue = time.monotonic() + OVERDUE_S
    while _over(ledger) < goal and time.monotonic() < overdue:
        assert time.monotonic() < until, "the jobs took too long"
        time.sleep(0.02)
    time.sleep(draw.random() * 0.3)


def _awaited(router, draw, until):
    """Most routers are killed at work, some while they begin."""
    if draw.random() < 0.1:
        return
    begun = time.monotonic()
    while not router.ready() and router.process.poll() is None:
        assert time.monotonic() < min(until, begun + PATIENCE_S), router.said()
        time.sleep(0.01)
    time.sleep(draw.random() * 0.5)


def _finished(ledger, started, make_router_command, folder, until, env):
    """Let the routers do what is left; one that leaves before all is over is started again."""
    while True:
        for n, each in enumerate(started):
            status = each.process.poll()
            assert status in (None, 0), f"router {n} left with {status}: {each.said()[-2000:]}"
            if status == 0 and ledger.open_jobs():
                started[n] = RouterProcess(make_router_command(n), folder / f"router-{n}.txt", env)
        if not ledger.open_jobs() and all(each.process.poll() is not None for each in started):
            return
        assert time.monotonic() < until, "the jobs took too long: " + str(ledger.totals())
        time.sleep(0.05)


def _over(ledger):
    jobs_by_state = ledger.totals()["jobs"]
    return sum(n for state, n in jobs_by_state.items() if state in OVER)


def _judged(ledger, ids, logs, seconds, kills, said, backend_attempts):
    rows, attempts = [ledger.job(each) for each in ids], ledger.attempts()
    problems = [f"ledger: {line}" for line in ledger.check()]
    problems += [f"job {row.id} is {row.state}: {row.reason}" for row in rows if row.state != "succeeded"]
    by_job = {}
    for attempt in attempts:
        by_job.setdefault(attempt.job_id, []).append(attempt)
    starts, ends = Counter(), Counter()
    for n, row in enumerate(rows):
        log = logs / f"{n}.log"
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        starts.update(line[6:] for line in lines if line.startswith("start "))
        ends.update(line[4:] for line in lines if line.startswith("end "))
        good = [a for a in by_job.get(row.id, ()) if a.state == "succeeded"]
        if len(good) != 1:
            problems.append(f"job {row.id} has {len(good)} attempts that are done")
        problems += [
            f"attempt {a.id} is done, and its program wrote {starts[a.id]} starts and {ends[a.id]} ends"
            for a in good
            if not 1 <= ends[a.id] <= starts[a.id] <= 1 + a.restarts
        ]
    known = {a.id: a for a in attempts}
    problems += [
        f"attempt {each} ran {n} times, and its backend started it again {known[each].restarts} times"
        for each, n in starts.items()
        if each in known and n > 1 + known[each].restarts
    ]
    problems += [f"attempt {each} ran and is not in the ledger" for each in starts if each not in known]
    problems += [
        f"attempt {each} is {known[each].state} and its program ran"
        for each in starts
        if each in known and known[each].state == "refused"
    ]
    problems += [f"attempt {a.id} is still {a.state}" for a in attempts if a.state in UNDER_WAY]
    if backend_attempts is not None:
        ran = backend_attempts()
        problems += [f"attempt {each} is on the backend and not in the ledger" for each in ran - set(known)]
        problems += [f"attempt {each} ran and the backend doesn't know it" for each in set(starts) - ran]
    return Outcome(
        seconds,
        kills,
        dict(Counter(row.state for row in rows)),
        dict(Counter(a.state for a in attempts)),
        problems,
        said,
        starts,
    )

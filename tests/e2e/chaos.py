"""Routers killed at random while jobs run, on any backend: what must hold afterwards, whatever happened.

Each job appends lines to a log of its own, `start ATTEMPT` and `end ATTEMPT`, so that what really ran can be compared
with what the ledger says; where chips have files, each program locks its own, and says `shared ATTEMPT` where another
has it. What else is killed and broken meanwhile: storm.py.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from chipwise.predict.estimate import Estimate
from chipwise.route.job import Job, Variant
from chipwise.route.ledger import LedgerError, open_ledger
from chipwise.route.ledger.records import OVER, UNDER_WAY, NewJob
from chipwise.route.option import Option
from patience import PATIENCE_S

# the shell is the job's own program here: what chipwise hands over is an argv
SCRIPT = """echo "start $CHIPWISE_ATTEMPT" >> "$1"
if [ "$3" ]; then exec 9> "$3/$CHIPWISE_POOL-$CHIPWISE_CHIP_IDS"; flock -n 9 || echo "shared $CHIPWISE_ATTEMPT" >> "$1"; fi
while [ "$4" ] && [ ! -e "$4" ]; do sleep 0.05; done
sleep "$2"; echo "end $CHIPWISE_ATTEMPT" >> "$1"
"""
OVERDUE_S = 5.0  # without progress, after which the next kill comes all the same
AGAIN_S = 1.0  # before a router that left is started again, as a service manager would
LEFT = (0, 2, 75)  # with which a router may leave while its ledger is away: nothing is open, one line says why, it hung


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
    killed: Counter = field(default_factory=Counter)  # by what it was
    lost: int = 0  # jobs that have not succeeded, or whose program does not say so
    doubled: int = 0  # attempts that ran twice, jobs that completed twice, chips that two had
    left: Counter = field(default_factory=Counter)  # routers that left by themselves, by status and last words


@dataclass(frozen=True)
class Fault:
    """Something that is broken for a while."""

    name: str
    seconds: float
    broken: Callable[[], AbstractContextManager]


def jobs(
    folder: Path,
    number: int,
    options: Sequence[Option],
    seconds: Sequence[float],
    seed: int = 0,
    variants: Sequence[Variant] = (),
    chips: str = "",
    kills: int = 0,
    **more,
) -> list[NewJob]:
    """Jobs that log what they do; `variants` name families, chips and so on, their commands are set here.

    `chips`: a folder for a file of each chip, where the backend says which a program has. `kills`: so many are to come
    while jobs are open, however fast those are: each kill lets as many more of them end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draw, found = random.Random(seed), []
    for n in range(number):
        gate = _gate(folder, before) if (before := n * (kills + 1) // number) else ""
        words = (str(folder / f"{n}.log"), f"{draw.choice(seconds):g}", chips, str(gate))
        command = ("sh", "-c", SCRIPT, "job", *words)
        own = tuple(Variant(v.name, v.family, v.chips, v.on, command) for v in variants) or (
            Variant("cpu", "cpu", 1, command=command),
        )
        found.append(NewJob(Job(f"job-{n}", own, **more), tuple(options), ()))
    return found


def _gate(folder: Path, kills: int) -> Path:
    """The file that is there after so many kills."""
    return folder / f"gate-{kills}"


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


class Progress:
    """How far the jobs are, as a thread of its own reads it: the ledger may be silent for a minute."""

    def __init__(self, url: str, number: int) -> None:
        self.over, self.open, self._url, self._done = 0, number, url, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.wait(0.05):
            with suppress(LedgerError), open_ledger(self._url) as ledger:
                while not self._done.wait(0.05):
                    by_state = ledger.totals()["jobs"]
                    self.over = sum(n for state, n in by_state.items() if state in OVER)
                    self.open = sum(by_state.values()) - self.over


class Routers:
    """The routers of a ledger, each started again when it was killed or has left."""

    def __init__(self, commands, folder, env, progress, tolerant):
        self.commands, self.folder, self.env, self.progress = commands, folder, env, progress
        self.tolerant, self.left = tolerant, Counter()
        self.started = [self._start(n) for n in range(len(commands))]
        self._gone = {}  # when one that left was seen to have

    def _start(self, n):
        return RouterProcess(self.commands[n], self.folder / f"router-{n}.txt", self.env)

    def kill(self, n):
        """Kill one and start it again; whether it lived."""
        lived = self.started[n].process.poll() is None
        if lived:
            self.started[n].kill()
            self.started[n] = self._start(n)
        return lived

    def tend(self):
        """Start those again that have left while jobs are open; whether none runs any more."""
        for n, each in enumerate(self.started):
            status = each.process.poll()
            if status is None:
                continue
            allowed = LEFT if self.tolerant else (0,)
            assert status in allowed, f"router {n} left with {status}: {each.said()[-2000:]}"
            if n not in self._gone:
                self._gone[n] = time.monotonic()
                self.left[status, "" if status == 0 else " ".join(each.said().splitlines()[-1:])[:300]] += 1
            if self.progress.open and time.monotonic() > self._gone[n] + (AGAIN_S if status else 0.0):
                del self._gone[n]
                self.started[n] = self._start(n)
        return all(each.process.poll() is not None for each in self.started)

    def end(self):
        for each in self.started:
            if each.process.poll() is None:
                each.kill()


class Weather:
    """Faults, each in its turn as the jobs get on."""

    def __init__(self, faults, number, progress):
        share = number / (len(faults) + 2)
        self.coming = [(share * (n + 1), fault) for n, fault in enumerate(faults)]
        self.progress, self.stack, self.until, self.now = progress, ExitStack(), 0.0, ""

    def tend(self):
        """Begin what is due, end what has lasted; whether all is over."""
        if self.now and time.monotonic() > self.until:
            self.now = ""
            self.stack.close()
        if not self.now and self.coming and self.progress.over >= self.coming[0][0]:
            _, fault = self.coming.pop(0)
            self.now, self.until = fault.name, time.monotonic() + fault.seconds
            self.stack.enter_context(fault.broken())
        return not self.now and not self.coming


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
    blows: Mapping[str, tuple[int, Callable[[], bool]]] | None = None,
    faults: Sequence[Fault] = (),
    hostile: Sequence[NewJob] = (),
) -> Outcome:
    """Submit jobs, run routers on them, kill those at random at least `kills` times, and see what came of it.

    `make_router_command(n)`: the command line of the n-th router at work, which must leave when no job is open
    (--until-idle). `hurt("down")` and `hurt("back")` are called once each, a third and two thirds through.
    `backend_attempts()`: the attempts that the backend has really run. `folder`: for the routers' words.
    `blows`: what else is killed, how often, and how, which says whether there was one. `faults` come one after another.
    `hostile` jobs are among the others; what becomes of them is all the same, and they are cancelled at the end.

    An attempt that its backend itself started again may have come to its end before, unseen: the power of a node goes
    between a program's last line and the end on disk. Any other has one start and one end. So may an attempt that
    `hurt` killed at random; what `blows` kill must not have said its last line, and completes once.
    """
    draw, begun, killed = random.Random(seed), time.monotonic(), Counter()
    until, others = begun + limit, dict(blows or {})
    planned = ["router"] * kills + [name for name, (times, _) in others.items() for _ in range(times)]
    if others:
        draw.shuffle(planned)
    with open_ledger(ledger_url) as ledger:
        ids, bad = _submitted(ledger, submissions, hostile, draw)
        with Progress(ledger_url, len(ids) + len(bad)) as progress:
            commands = [make_router_command(n) for n in range(routers)]
            tended = Routers(commands, folder, env, progress, bool(faults or others))
            weather, hurts = Weather(faults, len(ids), progress), ["down", "back"] if hurt else []

            def tend():
                assert time.monotonic() < until, f"the jobs took too long: {progress.open} open; {dict(killed)}"
                weather.tend()
                return tended.tend()

            try:
                while planned:
                    done = sum(killed.values())
                    _pause(progress, draw, len(ids) * (done + draw.random()) / (done + len(planned) + 1), tend)
                    if hurts and done >= (done + len(planned)) * (3 - len(hurts)) // 3:
                        hurt(hurts.pop(0))
                    what = planned.pop(0)
                    if what == "router":
                        n = draw.randrange(routers)
                        _awaited(tended, n, draw, tend)
                        struck = tended.kill(n)
                    else:
                        struck = others[what][1]()
                    killed[what] += struck
                    _gate(logs, sum(killed.values())).touch()
                    if not struck and progress.open > len(bad):
                        planned.insert(draw.randrange(len(planned) + 1), what)
                for each in range(kills + 1):  # for whatever could not be killed any more
                    _gate(logs, each).touch()
                for each in hurts:
                    hurt(each)
                _finished(ledger, progress, set(bad), weather, tend)
            finally:
                weather.stack.close()
                tended.end()
        said = "\n".join((folder / f"router-{n}.txt").read_text("utf-8", "replace") for n in range(routers))
        outcome = _judged(
            ledger,
            ids,
            logs,
            time.monotonic() - begun,
            sum(killed.values()),
            said,
            backend_attempts,
            frozenset(bad),
            hurt is not None,
        )
        outcome.killed, outcome.left = killed, tended.left
        return outcome


def _submitted(ledger, submissions, hostile, draw):
    """Hand all jobs in, the hostile ones at random places; the ids of both."""
    mixed = [(one, False) for one in submissions]
    for one in hostile:
        mixed.insert(draw.randrange(len(mixed) + 1), (one, True))
    ids = ledger.submit([one for one, _ in mixed], time.time())
    marked = list(zip(ids, mixed, strict=True))
    return [each for each, (_, bad) in marked if not bad], [each for each, (_, bad) in marked if bad]


def command(*arguments: object) -> list[str]:
    """`chipwise ARGUMENTS` by this Python."""
    return [sys.executable, "-m", "chipwise", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """This process's variables, with the package's folder."""
    src = str(Path(__file__).resolve().parents[2] / "src")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [src, os.environ.get("PYTHONPATH")])), **more}


def _pause(progress, draw, goal, tend):
    """Wait for the jobs to get on, and a random moment longer."""
    overdue = time.monotonic() + OVERDUE_S
    while progress.over < goal and time.monotonic() < overdue:
        tend()
        time.sleep(0.02)
    time.sleep(draw.random() * 0.3)
    tend()


def _awaited(routers, n, draw, tend):
    """Most routers are killed at work, some while they begin."""
    if draw.random() < 0.1:
        return
    begun = time.monotonic()
    while not routers.started[n].ready() and routers.started[n].process.poll() is None:
        assert time.monotonic() < begun + PATIENCE_S, routers.started[n].said()
        tend()
        time.sleep(0.01)
    time.sleep(draw.random() * 0.5)


def _finished(ledger, progress, bad, weather, tend):
    """Let the routers do what is left; one that leaves before all is over is started again."""
    cancelled = not bad
    while True:
        left = tend()
        if not cancelled and progress.open <= len(bad) and not weather.now:
            with suppress(LedgerError):
                stubborn = [row.id for row in ledger.open_jobs()]
                if bad.issuperset(stubborn):
                    ledger.change("cancel", stubborn, time.time())
                    cancelled = True
        if left and not progress.open:
            return
        time.sleep(0.05)


def _judged(ledger, ids, logs, seconds, kills, said, backend_attempts, hostile=frozenset(), cut=False):
    """What came of it. `cut`: programs may have been killed between their last line and the end on disk."""
    rows, attempts = [ledger.job(each) for each in ids], ledger.attempts()
    problems = [f"ledger: {line}" for line in ledger.check()]
    problems += [f"audit log: {line}" for line in ledger.verify_audit(None).problems]
    by_job = {}
    for attempt in attempts:
        by_job.setdefault(attempt.job_id, []).append(attempt)
    known = {a.id: a for a in attempts}
    starts, ends, lost, doubled = Counter(), Counter(), [], []
    for n, row in enumerate(rows):
        log = logs / f"{n}.log"
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        starts.update(line[6:] for line in lines if line.startswith("start "))
        completed = [line[4:] for line in lines if line.startswith("end ")]
        ends.update(completed)
        doubled += [f"attempt {line[7:]} had the chip of another" for line in lines if line.startswith("shared ")]
        good = [a for a in by_job.get(row.id, ()) if a.state == "succeeded"]
        if row.state != "succeeded":
            lost.append(f"job {row.id} is {row.state}: {row.reason}")
        elif not any(ends[a.id] for a in good):
            lost.append(f"job {row.id} has succeeded, and its program does not say so")
        if len(good) != 1:
            problems.append(f"job {row.id} has {len(good)} attempts that are done")
        again = sum(known[each].restarts for each in set(completed) if each in known)
        if not cut and not row.job.checkpoint.restartable and len(completed) > 1 + again:
            doubled.append(f"job {row.id} may run once, and completed {len(completed)} times: {completed}")
        problems += [
            f"attempt {a.id} is done, and its program wrote {starts[a.id]} starts and {ends[a.id]} ends"
            for a in good
            if not 1 <= ends[a.id] <= starts[a.id] <= 1 + a.restarts
        ]
    doubled += [
        f"attempt {each} ran {n} times, and its backend started it again {known[each].restarts} times"
        for each, n in starts.items()
        if each in known and n > 1 + known[each].restarts
    ]
    problems += lost + doubled
    problems += [f"attempt {each} ran and is not in the ledger" for each in starts if each not in known]
    problems += [
        f"attempt {each} is {known[each].state} and its program ran"
        for each in starts
        if each in known and known[each].state == "refused"
    ]
    problems += [f"attempt {a.id} is still {a.state}" for a in attempts if a.state in UNDER_WAY]
    if backend_attempts is not None:
        ran, spoilt = backend_attempts(), {a.id for a in attempts if a.job_id in hostile}
        problems += [f"attempt {each} is on the backend and not in the ledger" for each in ran - set(known)]
        problems += [f"attempt {each} ran and the backend doesn't know it" for each in set(starts) - ran - spoilt]
    return Outcome(
        seconds,
        kills,
        dict(Counter(row.state for row in rows)),
        dict(Counter(a.state for a in attempts)),
        problems,
        said,
        starts,
        lost=len(lost),
        doubled=len(doubled),
    )


def known_to(backend):
    """All attempts that a local backend knows, those included that ended long ago."""
    names = [folder.name for folder in backend.attempts.iterdir()] if backend.attempts.exists() else []
    return {seen.attempt for seen in backend.status([(name, "") for name in names])}

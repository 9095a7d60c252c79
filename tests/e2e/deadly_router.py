"""Routers that kill themselves at a given line, and healthy ones that come after: `python deadly_router.py FOLDER`.

A process of its own that forks: every point is a fresh ledger, a router that SIGKILLs itself before or after the n-th
call of a method, then a healthy router until no job is open. Prints a JSON list: point, killed, problems.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import chaos

from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.ledger import open_ledger
from chipwise.route.policies import policy_named
from chipwise.route.pool import Pool
from chipwise.route.router import Router, RouterOptions, reconcile, run, submitter
from patience import PATIENCE_S

POOLS = [Pool("near", "local", "cpu", "cpu", 2), Pool("far", "local", "cpu", "cpu", 1)]
# object, method, how often it has been called by then: every word that changes the ledger, the folders or the backend
POINTS = [
    *(
        ("ledger", name, 1)
        for name in (
            "heartbeat",
            "take",
            "decide",
            "record_digests",
            "mark_submitted",
            "observe",
            "end",
            "backend_health",
        )
    ),
    ("ledger", "mark_submitted", 2),
    ("ledger", "end", 2),
    ("ledger", "decide", 2),
    *(("backend", name, 1) for name in ("submit_all", "list", "capacity")),
    ("backend", "submit_all", 2),
    ("module", "write_launch", 1),
    ("module", "write_launch", 2),
    ("module", "revoke_claim", 1),
]


AT_ONCE = 3


class Deadly:
    """Something whose n-th call of a method is the last thing that this process does."""

    def __init__(self, inner, method, number, when):
        self._inner, self._method, self._left, self._when = inner, method, number, when

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if name != self._method:
            return found
        return deadly(found, self)


def deadly(call, state):
    def last(*arguments, **more):
        state._left -= 1
        if state._left == 0 and state._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = call(*arguments, **more)
        if state._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return last


def router(folder, url, point=None, when=""):
    """A router; with a point, one that dies there."""
    ledger = open_ledger(url)
    home = folder / "state" / ledger.uid
    backend = LocalBackend(home)
    kind, method, number = point or ("", "", 0)
    if kind == "ledger":
        ledger = Deadly(ledger, method, number, when)
    if kind == "backend":
        backend = Deadly(backend, method, number, when)
    if kind == "module":
        state = Deadly(None, method, number, when)
        for module in (submitter, reconcile):
            if hasattr(module, method):
                setattr(module, method, deadly(getattr(module, method), state))
    return Router(
        ledger,
        {"local": backend},
        POOLS,
        policy_named("fastest"),
        folders={"local": home},
        name="one",
        options=RouterOptions(lease_s=5.0),
    )


def forked(call):
    """The status of a call in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            call()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def tried(folder, point, when):
    """What came of one point."""
    folder.mkdir()
    url = str(folder / "ledger.db")
    with open_ledger(url) as ledger:
        found = chaos.jobs(folder / "logs", 4, [chaos.option("near", 0.2), chaos.option("far", 0.3)], (0.0, 0.1))
        bad = chaos.jobs(folder / "bad", 1, [chaos.option("near", 0.2)], (0.0,))[
            0
        ]  # refused by the backend, so its claim is revoked
        ids = ledger.submit(found, time.time())
        refused = ledger.submit([refusable(bad)], time.time()) if point[1] == "revoke_claim" else []
    status = forked(lambda: run(router(folder, url, point, when), 0.05, until_idle=True))
    healthy = forked(lambda: finish(folder, url))
    with open_ledger(url) as ledger:
        ran = chaos.known_to(LocalBackend(folder / "state" / ledger.uid))
        outcome = chaos._judged(ledger, ids, folder / "logs", 0.0, 1, "", lambda: ran)
        problems = outcome.problems + [
            f"{each} is {ledger.job(each).state}"
            for each in refused
            if ledger.job(each).state not in ("failed", "pending")
        ]
    problems += [] if healthy == 0 else [f"the healthy router left with {healthy}"]
    return {
        "point": [*point, when],
        "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
        "problems": problems,
    }


def refusable(submission):
    """The same job, but for a secret that the pool may not hand over: the local backend refuses it."""
    from dataclasses import replace

    variant = replace(submission.job.variants[0], secrets=("NOBODY_HAS_THIS",))
    return replace(submission, job=replace(submission.job, name="refused", variants=(variant,)))


def finish(folder, url):
    """Healthy ticks until all that can end has ended."""
    healthy, until = router(folder, url), time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        healthy.tick()
        rows = healthy.ledger.open_jobs()
        if all(row.job.name == "refused" for row in rows) and not healthy.ledger.attempts(under_way=True):
            return
        time.sleep(0.05)
    raise AssertionError("the jobs took too long")


def main(folder):
    """Every point, before and after; several at a time, since most of it is waiting."""
    made = Path(folder)
    router(made, str(made / "warm.db")).planner.warm()
    points = [(n, point, when) for n, point in enumerate(POINTS) for when in ("before", "after")]
    workers = []
    for w in range(AT_ONCE):
        pid = os.fork()
        if pid == 0:
            found = [tried(made / f"{n}-{when}", point, when) for n, point, when in points[w::AT_ONCE]]
            (made / f"found-{w}.json").write_text(json.dumps(found))
            os._exit(0)
        workers.append(pid)
    ends = [os.waitpid(pid, 0)[1] for pid in workers]
    assert ends == [0] * AT_ONCE, ends
    print(json.dumps([each for w in range(AT_ONCE) for each in json.loads((made / f"found-{w}.json").read_text())]))


if __name__ == "__main__":
    main(sys.argv[1])

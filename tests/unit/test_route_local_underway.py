"""The local backend lists what may run, not what is kept; starts do not wait for one another; no kill loses either."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from route_cases import job, launch, option, pool
from test_route_router import Stage

from chipwise.route.backend import LOST, RUNNING, SUCCEEDED, BackendRefused
from chipwise.route.backends import shim
from chipwise.route.backends.local import backend as local
from chipwise.route.backends.local import processes
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.launch import claim_of, revoke_claim
from patience import until


def marked(folder):
    return sorted(entry.name for entry in (folder / "local.underway").iterdir())


def over(backend, *attempts):
    """Wait until all of these have ended, by their names alone."""
    until(
        lambda: (
            all(s.state != RUNNING for s in backend.status([(a, "") for a in attempts]))
            and all(claim_of(backend.attempts / a) is not None for a in attempts)
        )
    )


@pytest.fixture
def opened(monkeypatch):
    """The folders of attempts whose claim was read, and how often the folder of all of them was listed."""
    reads, listings = [], []
    real, scan = local.claim_of, os.scandir

    def claim(folder):
        reads.append(Path(folder).name)
        return real(folder)

    def scandir(path="."):
        if Path(path).name in ("attempts", "local.underway"):
            listings.append(Path(path).name)
        return scan(path)

    monkeypatch.setattr(local, "claim_of", claim)
    monkeypatch.setattr(os, "scandir", scandir)
    return reads, listings


def test_a_listing_opens_no_folder_of_what_has_ended(tmp_path, opened):
    backend, names = LocalBackend(tmp_path), [f"u-{n}-1" for n in range(1, 9)]
    at = pool(count=8)
    assert backend.submit_all([launch(tmp_path, "true", number=n, at=at) for n in range(1, 9)])
    over(backend, *names)
    assert {s.attempt for s in backend.list()} <= set(names)  # once more at the most, with how they ended
    reads, listings = opened
    reads.clear()
    listings.clear()
    assert backend.list() == [] and reads == [] and listings == ["local.underway"]
    assert [s.state for s in backend.status([(name, "") for name in names])] == [SUCCEEDED] * 8  # asked for by name
    assert LocalBackend(tmp_path).list() == [] and marked(tmp_path) == []


def test_one_listing_a_pass_however_many_start_and_stop(tmp_path, opened):
    """Starts look at the names of what is under way once more, under their lock: another router may start too."""
    stage = Stage(tmp_path, [pool("near", 6)], {"local": LocalBackend(tmp_path / "state")})
    for _ in range(6):
        stage.submit(job("sleep", "60"), option("near"))
    try:
        _, listings = opened
        stage.tick()
        assert len(stage.ledger.attempts(under_way=True)) == 6
        listings.clear()
        report = stage.tick()
        assert not report.started and listings == ["local.underway"]
        for number in range(1, 7):
            stage.ledger.ask_cancel(str(number), stage.now)
        listings.clear()
        report = stage.tick()
        assert len(report.stopped) == 6 and listings == ["local.underway"]
        for _ in range(3):
            stage.submit(job("sleep", "60"), option("near"))
        until(lambda: stage.tick() and all(stage.job(str(n)).state == "cancelled" for n in range(1, 7)))
        listings.clear()
        report = stage.tick()
        assert "attempts" not in listings and len(listings) <= 2
    finally:
        for attempt in stage.ledger.attempts(under_way=True):
            claim = claim_of(stage.path(attempt.id))
            processes.send(claim.pid, claim.start, signal.SIGKILL)
        stage.ledger.close()


BARRIER = """
import os, runpy, sys, time
folder = os.path.dirname(os.path.abspath(sys.argv[1]))
open(os.path.join(folder, "here." + str(os.getpid())), "w").close()
until = time.monotonic() + 60
while sum(name.startswith("here.") for name in os.listdir(folder)) < {count} and time.monotonic() < until:
    time.sleep(0.01)
sys.argv = [{shim!r}, *sys.argv[1:]]
runpy.run_path({shim!r}, run_name="__main__")
"""


def test_starts_do_not_wait_for_one_another(tmp_path, monkeypatch):
    """Each shim makes its claim only when all five have begun: one after the other, none would get there."""
    slow = tmp_path / "slow.py"
    slow.write_text(BARRIER.format(count=5, shim=shim.__file__))
    monkeypatch.setattr(local.shim, "__file__", str(slow))
    backend, at = LocalBackend(tmp_path / "state"), pool(count=5)
    (tmp_path / "state").mkdir()
    launches = [launch(tmp_path / "state", "true", number=n, at=at) for n in range(1, 6)]
    answers = backend.submit_all(launches)
    assert [claim_of(one.folder).by for one in launches] == answers
    chips = [claim_of(one.folder).chips for one in launches]
    assert sorted(chips) == [(0,), (1,), (2,), (3,), (4,)]  # none was handed out twice
    over(backend, *(one.attempt for one in launches))


def test_one_that_can_not_start_leaves_the_others_alone(tmp_path):
    backend, at = LocalBackend(tmp_path), pool(count=2)
    launches = [launch(tmp_path, "true", number=n, at=at) for n in (1, 2, 3)]
    (launches[0].folder / "launch.json").write_text("{}")
    broken, good, full = backend.submit_all(launches)
    assert isinstance(broken, BackendRefused) and "no launch" in str(broken)
    assert good == claim_of(launches[1].folder).by
    assert isinstance(full, BackendRefused) and "0 free chips" in str(full)
    over(backend, "u-2-1")
    backend.list()
    assert marked(tmp_path) == []  # what never started holds nothing


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from chipwise.route.backends.local import backend as local
from chipwise.route.backends.local.underway import Underway
from route_cases import launch, pool
def killed(real):
    def step(*a, **k):
        if sys.argv[4] == "after":
            real(*a, **k)
        os.kill(os.getpid(), signal.SIGKILL)
    return step
place = {"add": Underway, "discard": Underway, "posix_spawn": os}[sys.argv[3]]
setattr(place, sys.argv[3], killed(getattr(place, sys.argv[3])))
backend = local.LocalBackend(Path(sys.argv[1]))
at = pool(count=2)
backend.submit_all([launch(Path(sys.argv[1]), "sh", "-c", "echo ran >> ran", number=n, at=at) for n in (1, 2)])
while True:
    backend.list()
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["add", "posix_spawn", "discard"])
def test_a_router_killed_at_any_step_loses_no_attempt_and_no_chip(tmp_path, step, when):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent), step, when],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL
    backend, at = LocalBackend(tmp_path), pool(count=2)
    launches = [launch(tmp_path, "sh", "-c", "echo ran >> ran", number=n, at=at) for n in (1, 2)]
    answers = backend.submit_all(launches)  # those without a claim, as the next router does
    assert [claim_of(one.folder).by for one in launches] == answers
    over(backend, "u-1-1", "u-2-1")
    backend.list()
    assert marked(tmp_path) == [] and backend.capacity([at])["near"].free == 2
    assert {s.state for s in backend.status([("u-1-1", ""), ("u-2-1", "")])} == {SUCCEEDED}


def test_what_an_older_version_has_started_is_found_once(tmp_path, opened):
    backend, at = LocalBackend(tmp_path), pool(count=3)
    launches = [launch(tmp_path, *words, number=n, at=at) for n, words in enumerate([("sleep", "60"), ("true",)], 1)]
    answers = backend.submit_all(launches)
    over(backend, "u-2-1")
    for entry in (tmp_path / "local.underway").iterdir():
        entry.unlink()
    (tmp_path / "local.underway").rmdir()  # as before there were such files
    new = LocalBackend(tmp_path)
    assert [(s.attempt, s.backend_id, s.state) for s in new.list()] == [("u-1-1", answers[0], RUNNING)]
    assert new.capacity([at])["near"].free == 2 and marked(tmp_path) == ["u-1-1"]
    _, listings = opened
    listings.clear()
    new.list()
    assert listings == ["local.underway"]
    claim = claim_of(launches[0].folder)
    processes.send(claim.pid, claim.start, signal.SIGKILL)
    until(lambda: [s.state for s in new.list()] != [RUNNING])
    assert new.status([("u-1-1", "")])[0].state == LOST


def test_what_was_given_up_or_removed_is_under_way_no_more(tmp_path):
    backend = LocalBackend(tmp_path)
    one, two, three = (launch(tmp_path, "true", number=n) for n in (1, 2, 3))
    for attempt in (one, two, three):
        backend.underway.add(attempt.attempt)
    revoke_claim(one.folder, "router-1")
    two.folder.joinpath("launch.json").unlink()
    two.folder.rmdir()
    assert backend.list() == [] and marked(tmp_path) == ["u-3-1"]  # which may still be about to start


def test_the_files_are_their_owners_alone(tmp_path):
    backend = LocalBackend(tmp_path)
    backend.submit(launch(tmp_path, "sleep", "60"))
    folder = tmp_path / "local.underway"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "u-1-1").stat().st_mode) == 0o600
    claim = claim_of(tmp_path / "attempts" / "u-1-1")
    processes.send(claim.pid, claim.start, signal.SIGKILL)
    over(backend, "u-1-1")


def test_one_pass_over_the_processes_tells_of_all_that_have_ended(tmp_path, monkeypatch):
    passes, real = [], processes.running
    monkeypatch.setattr(processes, "running", lambda: passes.append(1) or real())
    backend, at = LocalBackend(tmp_path), pool(count=6)
    launches = [launch(tmp_path, "true", number=n, at=at) for n in range(1, 7)]
    backend.submit_all(launches)
    claims = [claim_of(one.folder) for one in launches]
    until(lambda: not any(processes.alive(c.pid, c.start, c.boot) for c in claims))
    passes.clear()
    assert [s.state for s in backend.list()] == [SUCCEEDED] * 6 and passes == [1]

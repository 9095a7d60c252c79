"""Who could put something where a router runs programs from: nobody but its user."""

import os
import sqlite3
import subprocess
import sys

import pytest
from command import chipwise

from chipwise.route.backends import shim
from chipwise.route.launch import digest_of
from chipwise.route.ledger import open_ledger

NOBODY = 65534  # a real user of every Linux: it owns nothing and may do nothing
root_alone = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "pools.yaml").write_text(
        f"folder: {tmp_path}/state\npools: [{{name: cpu, backend: local, chip: cpu, count: 1}}]\n"
    )
    (tmp_path / "jobs.yaml").write_text("{name: hello, command: [echo, hello], estimates: {cpu: 1s}, retries: 0}\n")
    chosen = ("--pools", tmp_path / "pools.yaml", "--ledger", tmp_path / "l.db")
    submitted = chipwise("jobs", "submit", tmp_path / "jobs.yaml", *chosen)
    assert submitted.returncode == 0, submitted.stderr
    return tmp_path


def route(place):
    chosen = ("--pools", place / "pools.yaml", "--ledger", place / "l.db", "--interval", "0.2s")
    return chipwise("router", "run", *chosen, "--policy", "cheapest", "--until-idle")


def uid(place):
    with open_ledger(str(place / "l.db")) as ledger:
        return ledger.uid


def refused(routed, *words):
    assert routed.returncode == 2 and routed.stderr.count("\n") == 1, routed.stderr
    assert all(word in routed.stderr for word in words), routed.stderr
    assert not routed.stdout


@root_alone
def test_a_folder_of_another_user_is_refused(place):
    (place / "state").mkdir()
    os.chown(place / "state", NOBODY, NOBODY)
    refused(route(place), "folder", f"belongs to user {NOBODY}")


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_can_write_is_refused(place, mode):
    (place / "state").mkdir()
    os.chown(place / "state", -1, NOBODY) if os.geteuid() == 0 else None
    (place / "state").chmod(mode)
    refused(route(place), "folder", f"can be written by others (mode {mode:o})")
    (place / "state").chmod(0o1777)  # nobody can replace another's folder there
    assert route(place).returncode == 0


@root_alone
def test_a_folder_that_is_a_link_of_another_user_is_refused(place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (place / "state").mkdir()
    (place / "state").chmod(0o1777)
    link = place / "state" / uid(place)
    link.symlink_to(tmp_path / "elsewhere")
    os.lchown(link, NOBODY, NOBODY)
    refused(route(place), f"is a link of user {NOBODY}")
    os.lchown(link, os.geteuid(), -1)
    assert route(place).returncode == 0


def test_all_that_lies_there_is_the_users_alone(place):
    own = place / "state" / uid(place)
    (own / "attempts").mkdir(parents=True, mode=0o755)  # as an older version made them
    own.chmod(0o755)
    assert route(place).returncode == 0
    entries = [own, *own.rglob("*")]
    assert {path.name for path in entries} >= {"launch.json", "claim", "end", "output", "alive", "attempts"}
    assert [path for path in entries if path.lstat().st_mode & 0o077] == []


def test_a_launch_that_was_put_there_beforehand_is_never_run(place):
    """Whoever knows a ledger knows the name of its next attempt."""
    folder = place / "state" / uid(place) / "attempts" / f"{uid(place)}-1-1"
    folder.mkdir(parents=True, mode=0o700)
    planted = f'{{"attempt": "x", "argv": ["touch", "{place}/ran"], "environment": {{}}, "cwd": "/"}}'
    (folder / "launch.json").write_text(planted)
    routed = route(place)
    assert routed.returncode == 0 and not (place / "ran").exists()
    assert "is not what a router wrote" in routed.stdout, routed.stdout
    with open_ledger(str(place / "l.db")) as ledger:
        assert [a.state for a in ledger.attempts("1")] == ["refused", "succeeded"]  # the next has another folder
        assert ledger.check() == []


def test_the_ledger_has_the_digest_of_what_was_run(place):
    assert route(place).returncode == 0
    with open_ledger(str(place / "l.db")) as ledger:
        (attempt,) = ledger.attempts("1")
    assert attempt.digest == digest_of(
        (place / "state" / uid(place) / "attempts" / attempt.id / "launch.json").read_bytes()
    )


@pytest.mark.parametrize("variable", [shim.DIGEST, shim.BEFORE_DIGEST])
def test_a_launch_that_was_changed_since_is_not_run(tmp_path, variable):
    launch = b'{"attempt": "a", "argv": ["touch", "ran"], "environment": {}, "cwd": "."}'
    before = b'{"argv": ["env"]}'
    files = {shim.DIGEST: ("launch.json", launch), shim.BEFORE_DIGEST: ("before.json", before)}
    for name, data in files.values():
        (tmp_path / name).write_bytes(data)
    digests = {name: digest_of(data) for name, (_, data) in files.items()}

    def run():
        line = [sys.executable, "-I", "-S", shim.__file__, str(tmp_path), "by"]
        return subprocess.run(line, env={**os.environ, **digests}, capture_output=True, text=True, cwd=tmp_path)

    changed = tmp_path / files[variable][0]
    changed.write_bytes(changed.read_bytes() + b" ")
    done = run()
    assert done.returncode == shim.UNREADABLE and "is not what the router wrote" in done.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "claim").exists()
    changed.write_bytes(files[variable][1])
    assert run().returncode == 0 and (tmp_path / "ran").exists()


def test_a_ledger_that_others_could_change_is_not_routed_by(place):
    (place / "l.db").chmod(0o666)
    refused(route(place), "other users could change it", "can be written by others (mode 666)")


def test_a_damaged_ledger_is_not_routed_by(place):
    with sqlite3.connect(place / "l.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data = bytearray((place / "l.db").read_bytes())
    data[(page - 1) * size : (page - 1) * size + 64] = b"\xff" * 64
    (place / "l.db").write_bytes(data)
    before = (place / "l.db").read_bytes()
    refused(route(place), "damaged", "ledger repair")
    assert (place / "l.db").read_bytes() == before

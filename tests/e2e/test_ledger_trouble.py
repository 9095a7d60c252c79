"""A ledger that is damaged, locked, out of disk, read-only or gone: one line, nothing lost, exit status 2."""

import multiprocessing
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from command import ROOT, chipwise, good
from ledger_cases import POOLS, start, submission
from postgres_server import postgres_server

from chipwise.route.backend import AttemptStatus
from chipwise.route.ledger import Ledger, LedgerError, open_ledger
from chipwise.route.ledger.database import SQLite
from chipwise.route.ledger.disks import shared
from patience import PATIENCE_S

pytestmark = pytest.mark.service

POOLS_FILE = ROOT / "examples" / "pools" / "local.yaml"
HELLO = ROOT / "examples" / "jobs" / "hello.yaml"


@pytest.fixture(scope="module")
def server():
    with postgres_server() as running:
        yield running


def told(done):
    """The one line of a command that was refused."""
    assert (
        done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    ), done.stderr
    return done.stderr


def submit(ledger, **more):
    return chipwise("jobs", "submit", HELLO, "--pools", POOLS_FILE, "--ledger", ledger, **more)


def filled(path, jobs=50):
    with open_ledger(str(path)) as ledger:
        ledger.submit([submission(f"job {i}") for i in range(jobs)], 1.0)


def test_a_second_connection_of_a_process_leaves_the_locks_of_the_first(tmp_path):
    """Else another process that comes and goes takes the log away under it, and what it writes then is lost."""
    path = tmp_path / "ledger.db"
    with open_ledger(str(path)) as first, open_ledger(str(path)):
        first.submit([submission("before")], 1.0)
        assert "before" in good("jobs", "list", "--ledger", path)
        first.submit([submission("after")], 2.0)
        assert "after" in good("jobs", "list", "--ledger", path)


def test_a_link_to_nowhere_is_no_place_for_a_ledger(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "can't be opened" in told(submit(tmp_path / "link"))
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_no_ledger_is_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and no database\n" * 100)
    assert "damaged or no database" in told(submit(path))
    assert path.read_text() == "these are my notes, and no database\n" * 100


def test_a_database_of_something_else_is_left_as_it_is(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as link:
        link.execute("CREATE TABLE recipes (name TEXT)")
    assert "tables of something else" in told(submit(path))


def test_a_damaged_ledger_says_so_and_how_to_rescue_it(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path)
    data = bytearray(path.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 200] = b"\xa5" * 200
    path.write_bytes(data)
    line = told(chipwise("jobs", "list", "--ledger", path))
    assert "damaged" in line and ".recover" in line and "left as it is" in line


def test_a_ledger_on_a_network_file_system_stays_with_one_machine(tmp_path):
    with open_ledger(str(tmp_path / "ledger.db")) as ledger:
        ledger.check_host("one", "nfs4")
        ledger.check_host("one", "nfs4")
        with pytest.raises(LedgerError, match=r"nfs4.*used on one; SQLite can't be shared"):
            ledger.check_host("two", "nfs4")
        ledger.check_host("two", "")  # copied to a disk of its own


def test_network_file_systems_are_told_by_the_longest_mount():
    mounts = "\n".join(
        (
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
            "2 1 0:2 / /net rw shared:1 - nfs4 fs:/ rw",
            "3 2 8:2 / /net/disk rw - xfs /dev/sdb rw",
            "4 1 0:3 / /a\\040b rw - cifs //fs/x rw",
            "nonsense",
        )
    )
    found = [shared(Path(path), mounts) for path in ("/x", "/net/x", "/net/disk/x", "/network/x", "/a b/x")]
    assert found == ["", "nfs4", "", "", "cifs"]
    assert shared(Path("/x"), "") == ""


def test_a_ledger_of_another_version_is_not_touched(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path)
    with closing(sqlite3.connect(path)) as link, link:
        link.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    assert "version 99" in told(submit(path))


def test_a_ledger_that_another_process_keeps_locked_is_waited_for_and_then_given_up(tmp_path):
    path = tmp_path / "ledger.db"
    filled(path)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        closing(Ledger(SQLite(path, True, busy_s=0.2))) as ledger,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            LedgerError, match="held it locked for too long; nothing was written and nothing is lost"
        ) as late:
            ledger.submit([submission()], 1.0)
        assert late.value.temporary  # a router tries again
        assert len(ledger.jobs()) == 50  # who only reads is not held up
        other.execute("ROLLBACK")
        assert ledger.submit([submission()], 1.0) == ["51"] and ledger.check() == []


def test_a_postgresql_that_another_session_keeps_locked_is_given_up_too(server):
    from chipwise.route.ledger.postgres import _LOCK, PostgreSQL

    url = server.database("locked")
    with open_ledger(url) as first, closing(Ledger(PostgreSQL(url, busy_s=0.2))) as second:
        with first._db.write() as db:
            db.all("SELECT pg_advisory_xact_lock(?)", _LOCK)
            with pytest.raises(LedgerError, match="held it locked for too long"):
                second.submit([submission()], 1.0)
        assert second.submit([submission()], 1.0) == ["1"]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    """As a user who is not root: root may write anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "closed"
        place.mkdir(mode=0o555)
        place.chmod(0o555)
        program = textwrap.dedent(f"""
            import os, sys; sys.path[:0] = {[str(ROOT / "src"), *sys.path]!r}
            from chipwise.route.ledger import LedgerError, open_ledger
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            try:
                open_ledger({str(place / "ledger.db")!r})
            except LedgerError as error:
                sys.exit(str(error))
        """)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (
            done.returncode == 1 and "can't be opened for writing" in done.stderr and "Traceback" not in done.stderr
        ), done.stderr
        assert list(place.iterdir()) == []


def _small():
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # bytes of any one file
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


FILL = """
import sys
sys.path[:0] = {path!r}
from ledger_cases import submission
from chipwise.route.ledger import LedgerError, open_ledger
ledger, known = open_ledger({url!r}), 0
try:
    while known < 100_000:
        known = int(ledger.submit([submission(f"job {{known}} " + "x" * 5000) for _ in range(5)], 1.0)[-1])
except LedgerError as error:
    print(known)
    assert error.temporary  # a router tries again
    sys.exit(str(error))
"""


@pytest.mark.parametrize("how", ["a limit on the size of files", "a small disk"])
def test_a_full_disk_loses_nothing_that_was_submitted(how, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        how == "a small disk"
        and os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
        ).returncode
        == 0
    )
    try:
        url = str(disk / "ledger.db")
        program = FILL.format(path=[str(ROOT / "src"), str(ROOT / "tests" / "e2e")], url=url)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            preexec_fn=None if mounted else _small,
        )
        assert done.returncode == 1 and "full" in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert "nothing is lost" in done.stderr or "what was committed is kept" in done.stderr
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)  # someone made room
        with open_ledger(url) as ledger:
            assert len(ledger.jobs()) == int(done.stdout) and ledger.check() == []
            assert ledger.submit([submission()], 2.0) == [str(int(done.stdout) + 1)]
    finally:
        if mounted:
            subprocess.run(["umount", str(disk)], check=True)


def test_a_postgresql_that_goes_away_midway_loses_nothing_and_is_found_again(server):
    url = server.database("away")
    with open_ledger(url) as ledger:
        ledger.submit([submission(key="a")], 1.0)
        with pytest.raises(LedgerError) as gone, ledger._db.write() as db:
            db.run("UPDATE jobs SET reason = 'half a step'")
            server.stop()
            db.all("SELECT id FROM jobs")
        assert (
            "hunter2" not in str(gone.value)
            and "what was committed is kept" in str(gone.value)
            and "\n" not in str(gone.value)
        )
        with pytest.raises(LedgerError):
            ledger.jobs()
        line = told(chipwise("jobs", "list", "--ledger", url))
        assert "does not answer" in line and "hunter2" not in line
        server.start()
        assert ledger.job("1").reason == "no scheduling pass yet"  # the half step was not kept
        assert ledger.submit([submission(key="a")], 1.0) == ["1"] and ledger.check() == []


def test_a_router_whose_postgresql_was_restarted_between_two_steps_notices_nothing(server):
    with open_ledger(server.database("restarted")) as ledger:
        server.stop()
        server.start()
        assert ledger.submit([submission()], 1.0) == ["1"]


@pytest.mark.parametrize(
    "url",
    ["mysql://ann:hunter2@db/x", "postgresql://ann:hunter2@127.0.0.1:1/x", "postgresql://ann:hunter2@/x?host=/nowhere"],
)
def test_a_url_that_leads_nowhere_is_one_line_without_its_password(url):
    line = told(chipwise("jobs", "list", "--ledger", url))
    assert "hunter2" not in line


def _crowd(url, number, barrier, queue):
    barrier.wait()
    with open_ledger(url) as ledger:
        ids = [ledger.submit([submission(key="shared")], 1.0)[0]]
        ids += ledger.submit([submission(f"own {number}")], 1.0)
        made = []
        for job_id in map(str, range(1, 6)):
            made += [
                a.id for a in ledger.decide(f"r{number}", "fastest", [start(job_id)], 2.0, 30.0, {**POOLS, "h100": 4})
            ]
        queue.put((ids[0], made))


def test_a_value_that_no_column_holds_is_told_apart_from_a_ledger_that_fails(server):
    with open_ledger(server.database("values")) as ledger:
        (job,) = ledger.submit([submission()], 1000.0)
        (attempt,) = ledger.decide("r", "p", [start(job)], 1001.0, 60.0, POOLS)
        status = AttemptStatus(attempt.id, "7", "running", started=1002.0, restarts=2**40)
        with pytest.raises(LedgerError, match="out of range") as raised:
            ledger.observe(attempt.id, status, 1003.0)
        assert raised.value.values and not raised.value.temporary
        ledger.observe(attempt.id, replace(status, restarts=3), 1004.0)
        assert ledger.attempt(attempt.id).restarts == 3 and ledger.check() == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_that_open_submit_and_decide_at_once_agree(kind, server, tmp_path):
    url = str(tmp_path / "new.db") if kind == "sqlite" else server.database("crowd")
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(4), context.Queue()
    crowd = [context.Process(target=_crowd, args=(url, i, barrier, queue)) for i in range(4)]
    for process in crowd:
        process.start()
    said = [queue.get(timeout=PATIENCE_S) for _ in crowd]
    for process in crowd:
        process.join(PATIENCE_S)
    made = [attempt for _, theirs in said for attempt in theirs]
    assert len({job for job, _ in said}) == 1 and len(made) == len(set(made)) == 2  # four chips are two jobs of two
    with open_ledger(url) as ledger:
        assert (
            ledger.check() == []
            and len(ledger.jobs()) == 5
            and {a.id for a in ledger.attempts(under_way=True)} == set(made)
        )


def _opens(files, number, barrier, queue):
    told = []
    for file in files:
        barrier.wait()
        try:
            with open_ledger(file) as ledger:
                told.append(ledger.uid)
        except LedgerError as error:
            told.append(f"{number}: {error}")
    queue.put(told)


def test_a_new_ledger_may_be_opened_by_many_at_once(tmp_path):
    """SQLite does not wait for another that turns the write-ahead log on."""
    context = multiprocessing.get_context("spawn")
    barrier, queue, files = context.Barrier(6), context.Queue(), [str(tmp_path / f"{n}.db") for n in range(20)]
    crowd = [context.Process(target=_opens, args=(files, i, barrier, queue)) for i in range(6)]
    for process in crowd:
        process.start()
    said = [queue.get(timeout=PATIENCE_S) for _ in crowd]
    for process in crowd:
        process.join(PATIENCE_S)
    assert [set(told) for told in zip(*said, strict=True) if len(set(told)) > 1] == []


KILLED = """
import sys
sys.path[:0] = {path!r}
from ledger_cases import start, submission
from chipwise.route.ledger import open_ledger
ledger, pools = open_ledger({url!r}), {{"h100": 10**6}}
while True:
    ids = ledger.submit([submission() for _ in range(3)], 1.0)
    print(*ids, flush=True)
    for a in ledger.decide("r", "fastest", [start(i) for i in ids], 1.0, 30.0, pools):
        ledger.mark_submitted(a.id, a.id, 1.0)
        ledger.end(a.id, AttemptEnd("succeeded", "succeeded", spent=0.5), 1.0)
"""


def test_a_process_killed_at_any_moment_leaves_a_sound_ledger_with_all_it_submitted(tmp_path):
    url = str(tmp_path / "ledger.db")
    program = KILLED.format(path=[str(ROOT / "src"), str(ROOT / "tests" / "e2e")], url=url)
    submitted = set()
    for i in range(5):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
            submitted |= set(process.stdout.readline().split())
            time.sleep(0.02 * i)  # a moment of its own choosing
            process.send_signal(signal.SIGKILL)
            submitted |= set(process.stdout.read().rpartition("\n")[0].split())
    with open_ledger(url) as ledger:
        assert ledger.check() == [] and submitted <= {row.id for row in ledger.jobs()}

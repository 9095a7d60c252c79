"""What a shim has recorded counts, not what its program has made of its own folder: real programs that spoil it."""

import signal
from pathlib import Path

import pytest
from route_cases import launch, pool
from test_route_local import PYTHON, backend, ended  # noqa: F401 - a fixture

from chipwise.route.backend import CANCELLED, LOST, RUNNING, SUCCEEDED
from chipwise.route.backends.local import backend as local
from chipwise.route.backends.local import processes
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.launch import claim_of, end_of
from patience import until

# what a program does to its folder, while `go` is not there yet
REWRITE = """
import json, os, pathlib, time
claim = json.load(open("claim"))
claim.update({changes})
open("claim.new", "w").write(json.dumps(claim))
os.rename("claim.new", "claim")
"""
WAIT = "\nopen({said!r}, 'w').close()\nwhile not pathlib.Path({go!r}).exists(): time.sleep(0.01)\n"
SPOILT = {
    "all is removed": "import os, pathlib, shutil, time\n[os.unlink(n) for n in os.listdir() if os.path.isfile(n)]",
    "the folder is removed": "import os, pathlib, shutil, time\nshutil.rmtree(os.getcwd())",
    "it is another's": REWRITE.format(changes='by="local-somebody"'),
    "it was given up": REWRITE.format(changes='by="ended by me"'),
    "it is of another machine": REWRITE.format(changes='host="elsewhere", boot="x", chips="0,1,2,3"'),
    "it was restarted without end": REWRITE.format(changes="restarts=2**40"),
    "it is a folder": "import os, pathlib, time\nos.unlink('claim'); os.mkdir('claim'); os.mkdir('end'); os.mkdir('end/x')",
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_program_that_spoils_its_claim_still_runs_once_and_has_its_end(backend, tmp_path, what):  # noqa: F811
    said, go = tmp_path / "said", tmp_path / "go"
    there = launch(tmp_path, PYTHON, "-c", SPOILT[what] + WAIT.format(said=str(said), go=str(go)), at=pool(count=4))
    backend_id = backend.submit(there)
    until(said.exists)
    for seen in (backend, LocalBackend(tmp_path)):  # also a router that has just begun
        (status,) = seen.list()
        assert (status.state, status.backend_id, status.restarts) == (RUNNING, backend_id, 0)
        assert seen.submit(there) == backend_id
        assert seen.capacity([there.pool])["near"].free == 3
    go.touch()
    status = ended(backend)
    assert (status.state, status.exit_code, status.backend_id) == (SUCCEEDED, 0, backend_id)
    assert backend.capacity([there.pool])["near"].free == 4 and backend.list() == []
    again = LocalBackend(tmp_path).status([("u-1-1", backend_id)])  # by its folder, which has been put right
    assert again == [status] and claim_of(there.folder).by == end_of(there.folder).by == backend_id


def test_an_end_that_a_program_wrote_itself_is_none(backend, tmp_path):  # noqa: F811
    code = (
        "import json, os; by = json.load(open('claim'))['by']\n"
        "json.dump({'by': by, 'exit_code': 0, 'started': 1, 'ended': 1}, open('end', 'w')); os.kill(os.getppid(), 9)"
    )
    backend.submit(launch(tmp_path, PYTHON, "-c", code))
    status = ended(backend)
    assert status.state == LOST and status.ended is None
    assert ended(LocalBackend(tmp_path)).state == LOST


@pytest.mark.parametrize(
    "stop", ["os.symlink('/nonexistent', 'stop')", "open('stop', 'w').close(); os.utime('stop', (4e9, 4e9))"]
)
def test_a_program_can_not_keep_itself_from_being_told_to_stop(backend, tmp_path, stop):  # noqa: F811
    there = launch(tmp_path, PYTHON, "-c", f"import os, time; {stop}; open('up', 'w').close(); time.sleep(600)")
    backend_id = backend.submit(there)
    until((there.folder / "up").exists)
    backend.cancel(backend_id)
    assert ended(backend).state == CANCELLED


def test_one_that_says_it_was_told_is_killed_all_the_same(backend, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(local, "MARGIN_S", -29.9)  # of the grace of 30 s little is left
    code = "import os, time; open('stop', 'w').close(); open('up', 'w').close(); time.sleep(600)"
    there = launch(tmp_path, PYTHON, "-c", code)
    backend_id = backend.submit(there)
    until((there.folder / "up").exists)

    def over():
        backend.cancel(backend_id)
        return not any(s.state == RUNNING for s in backend.status([("u-1-1", "")]))

    until(over)


def test_what_hides_in_the_cgroup_of_a_killed_shim_is_ended(backend, tmp_path):  # noqa: F811
    pids = tmp_path / "pids"
    hide = f'(env -i setsid sh -c "echo \\$\\$ > {pids}; exec sleep 600" &)'
    there = launch(tmp_path, "sh", "-c", f"{hide}; sleep 600")
    backend.submit(there)
    until(lambda: pids.exists() and pids.read_text().strip())
    record = backend.underway.record("u-1-1")
    if not record.scope:
        pytest.skip("no cgroup of version 2 that may be divided")
    processes.send(record.claim.pid, record.claim.start, signal.SIGKILL)
    assert ended(backend).state == LOST
    info = processes.process_info(int(pids.read_text()))
    assert info is None or info[0] in "ZX"
    assert not Path(record.scope).exists()

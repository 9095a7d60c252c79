"""The local backend with real processes, and the shim that runs them once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from route_cases import launch, pool

from backend_contract import BackendContract, with_folder
from chipwise.route.attempt_files import locked
from chipwise.route.backend import CANCELLED, FAILED, LOST, RUNNING, SUCCEEDED, BackendDown, BackendRefused
from chipwise.route.backends import shim
from chipwise.route.backends.local import backend as local
from chipwise.route.backends.local import processes
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.launch import REVOKED, claim_of, end_of, revoke_claim
from patience import PATIENCE_S, until

SHIM = [sys.executable, "-I", "-S", shim.__file__]
PYTHON = sys.executable


@pytest.fixture
def backend(tmp_path):
    made = LocalBackend(tmp_path)
    yield made
    for seen in made.list():
        claim = claim_of(made.attempts / seen.attempt)
        for pid, start in processes.left_behind(made.attempts / seen.attempt, claim.pid, claim.start, claim.boot):
            processes.send(pid, start, signal.SIGKILL)
        processes.send(claim.pid, claim.start, signal.SIGKILL)
    until(lambda: all(s.state != RUNNING for s in made.list()))


def test_attempts_of_the_same_name_in_another_folder_are_left_alone(tmp_path):
    one, other = (LocalBackend(tmp_path / place) for place in ("a-ledger", "its-copy"))
    for backend in (one, other):
        backend.submit(launch(backend.folder, "sleep", "60"))
    claims = [claim_of(backend.attempts / "u-1-1") for backend in (one, other)]
    program = until(lambda: processes.left_behind(other.attempts / "u-1-1", claims[1].pid, 0, processes.boot()))
    processes.send(claims[0].pid, claims[0].start, signal.SIGKILL)
    assert ended(one).state == LOST
    assert other.status([("u-1-1", "")])[0].state == RUNNING and all(processes.process_info(pid) for pid, _ in program)
    other.cancel(claims[1].by)
    assert ended(other).state == CANCELLED


def ended(backend, attempt="u-1-1"):
    return until(lambda: next((s for s in backend.status([(attempt, "")]) if s.state != RUNNING), None))


def seen_anew(folder, attempt="u-1-1"):
    """An attempt as a router sees it that has just begun."""
    return LocalBackend(folder).status([(attempt, "")])[0]


def test_a_program_runs_with_its_arguments_and_variables_and_its_end_is_kept(backend, tmp_path):
    code = "import os, sys; print(sys.argv[1:], os.environ['MINE'], os.environ['CHIPWISE_CHIP_IDS'], os.getcwd())"
    there = launch(tmp_path, PYTHON, "-c", code, "a b", "$(x)", variables=[("MINE", "'quoted'")])
    backend_id = backend.submit(there)
    seen = ended(backend)
    assert (seen.state, seen.exit_code, seen.backend_id) == (SUCCEEDED, 0, backend_id)
    assert (there.folder / "output").read_text() == f"['a b', '$(x)'] 'quoted' 0 {there.folder}\n"
    end = end_of(there.folder)
    assert end.by == backend_id and end.started <= end.ended


@pytest.mark.parametrize(
    ("command", "state", "code"),
    [
        (("false",), FAILED, 1),
        ((PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"), FAILED, 137),
        (("/no/such/program",), FAILED, 127),
        (("/etc/passwd",), FAILED, 126),
        (("true",), SUCCEEDED, 0),
    ],
)
def test_every_end_is_told_as_shells_do(backend, tmp_path, command, state, code):
    backend.submit(launch(tmp_path, *command))
    seen = ended(backend)
    assert (seen.state, seen.exit_code) == (state, code)


class Site:
    """Attempts as processes of this machine."""

    def __init__(self, backend, folder):
        self.backend, self.folder = backend, folder

    def another(self):
        return LocalBackend(self.folder)

    def launch(self, script):
        return launch(self.folder, PYTHON, "-c", with_folder(script, self.folder / "attempts" / "u-1-1"))

    def lose(self, one):
        claim = claim_of(one.folder)
        processes.send(claim.pid, claim.start, signal.SIGKILL)


class TestContract(BackendContract):
    @pytest.fixture
    def site(self, backend, tmp_path):
        return Site(backend, tmp_path)


def test_a_second_shim_leaves_at_once_and_runs_nothing(backend, tmp_path):
    there = launch(tmp_path, "sh", "-c", "echo ran >> ran; sleep 30")
    backend.submit(there)
    until((there.folder / "ran").exists)
    second = subprocess.run([*SHIM, str(there.folder), "another"], capture_output=True, text=True, check=False)
    assert second.returncode == shim.TAKEN and "nothing was run" in second.stderr
    assert (there.folder / "ran").read_text() == "ran\n"


def test_twenty_shims_at_once_run_it_once(tmp_path):
    there = launch(tmp_path, "sh", "-c", "echo ran >> ran")
    many = [subprocess.Popen([*SHIM, str(there.folder), f"number-{n}"], stderr=subprocess.DEVNULL) for n in range(20)]
    statuses = sorted(each.wait(PATIENCE_S) for each in many)
    assert statuses == [0] + [shim.TAKEN] * 19 and (there.folder / "ran").read_text() == "ran\n"


def test_the_same_job_of_a_backend_may_come_again_until_it_has_ended(tmp_path):
    there = launch(tmp_path, "sh", "-c", "echo ran >> ran; test $(wc -l < ran) -ge 2 || sleep 60; exit 7")
    first = subprocess.Popen([*SHIM, str(there.folder), "17"], start_new_session=True)
    until((there.folder / "ran").exists)
    os.killpg(first.pid, signal.SIGKILL)  # the node dies
    first.wait()
    for pid, start in processes.left_behind(there.folder, first.pid, 0, processes.boot()):
        processes.send(pid, start, signal.SIGKILL)
    again = subprocess.run([*SHIM, str(there.folder), "17"], check=False)
    assert again.returncode == 7 and claim_of(there.folder).restarts == 1
    once_more = subprocess.run([*SHIM, str(there.folder), "17"], check=False)
    assert once_more.returncode == 7 and (there.folder / "ran").read_text() == "ran\nran\n"


def test_what_was_buried_never_runs(backend, tmp_path):
    there = launch(tmp_path, "touch", "ran")
    assert revoke_claim(there.folder, "router-1") and revoke_claim(there.folder, "router-2")
    assert backend.submit(there).startswith(REVOKED) and backend.list() == []
    assert (
        subprocess.run([*SHIM, str(there.folder), "late"], stderr=subprocess.DEVNULL, check=False).returncode
        == shim.TAKEN
    )
    assert not (there.folder / "ran").exists()


def test_what_runs_can_not_be_buried(backend, tmp_path):
    there = launch(tmp_path, "sleep", "60")
    backend.submit(there)
    assert not revoke_claim(there.folder, "router-1")


def test_a_program_that_is_told_to_stop_can_save_its_work(backend, tmp_path):
    saves = "trap 'echo saved > saved; exit 143' TERM; echo ready > ready; while :; do sleep 0.05; done"
    there = launch(tmp_path, "sh", "-c", saves)
    backend_id = backend.submit(there)
    until((there.folder / "ready").exists)
    backend.cancel(backend_id)
    seen = ended(backend)
    assert (seen.state, seen.exit_code) == (CANCELLED, 143) and (there.folder / "saved").exists()


def test_a_program_that_finishes_though_told_to_stop_is_done(backend, tmp_path):
    there = launch(tmp_path, "sh", "-c", "trap 'exit 0' TERM; echo ready > ready; while :; do sleep 0.05; done")
    backend_id = backend.submit(there)
    until((there.folder / "ready").exists)
    backend.cancel(backend_id)
    assert ended(backend).state == SUCCEEDED


def test_a_program_that_will_not_stop_is_killed_after_its_grace(backend, tmp_path):
    there = launch(tmp_path, "sh", "-c", "trap '' TERM; echo ready > ready; while :; do sleep 0.05; done", grace=0.3)
    backend_id = backend.submit(there)
    until((there.folder / "ready").exists)
    backend.cancel(backend_id)
    seen = ended(backend)
    assert (seen.state, seen.exit_code) == (CANCELLED, 137)


def test_the_time_limit_is_kept(backend, tmp_path):
    backend.submit(launch(tmp_path, "sleep", "60", time_limit=0.2))
    seen = ended(backend)
    assert seen.state == CANCELLED and "time limit" in seen.reason


def test_cancelling_what_has_ended_or_never_was_is_no_error(backend, tmp_path):
    backend_id = backend.submit(launch(tmp_path, "true"))
    ended(backend)
    backend.cancel(backend_id)
    backend.cancel("local-nobody")
    assert ended(backend).state == SUCCEEDED


def test_chips_are_never_handed_out_twice_and_come_back(backend, tmp_path):
    at = pool(count=4)
    for number, chips in ((1, 1), (2, 2), (3, 1)):
        backend.submit(launch(tmp_path, "sleep", "60", number=number, at=at, chips=chips))
    held = [chip for n in (1, 2, 3) for chip in claim_of(tmp_path / "attempts" / f"u-{n}-1").chips]
    assert sorted(held) == [0, 1, 2, 3] and backend.capacity([at])["near"].free == 0
    with pytest.raises(BackendRefused, match="0 free chips"):
        backend.submit(launch(tmp_path, "true", number=4, at=at))
    backend.cancel(next(s.backend_id for s in backend.list() if s.attempt == "u-2-1"))
    ended(backend, "u-2-1")
    assert backend.capacity([at])["near"].free == 2
    backend.submit(launch(tmp_path, "sleep", "60", number=5, at=at, chips=2))
    assert claim_of(tmp_path / "attempts" / "u-5-1").chips == claim_of(tmp_path / "attempts" / "u-2-1").chips


def test_chips_have_the_ids_of_the_pool_and_the_job_can_not_take_others(backend, tmp_path):
    at = pool(count=2, family="gpu", chip="h100", address=(("ids", "4,6"),))
    there = launch(
        tmp_path,
        "sh",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES $CHIPWISE_CHIP_IDS",
        at=at,
        chips=2,
        variables=[("CUDA_VISIBLE_DEVICES", "0,1,2,3")],
    )
    backend.submit(there)
    ended(backend)
    assert (there.folder / "output").read_text() == "4,6 4,6\n"


def test_a_process_that_is_killed_is_lost_and_takes_its_program_with_it(backend, tmp_path):
    there = launch(tmp_path, "sh", "-c", "sleep 300 & echo $! > child; wait")
    backend.submit(there)
    child = int(until(lambda: (there.folder / "child").exists() and (there.folder / "child").read_text().strip()))
    claim = claim_of(there.folder)
    processes.send(claim.pid, claim.start, signal.SIGKILL)
    seen = ended(backend)
    assert seen.state == LOST and "no end" in seen.reason
    assert processes.process_info(child) is None or processes.process_info(child)[0] == "Z"
    assert backend.capacity([pool()])["near"].free == 2


def test_a_pid_that_is_used_again_is_not_taken_for_the_program(backend, tmp_path):
    there = launch(tmp_path, "true")
    backend.submit(there)
    ended(backend)
    claim = json.loads((there.folder / "claim").read_text())
    (there.folder / "end").unlink()
    (there.folder / "claim").write_text(json.dumps(claim | {"pid": os.getpid()}))  # alive, but not that process
    assert seen_anew(tmp_path).state == LOST
    assert processes.process_info(os.getpid()) is not None
    (there.folder / "claim").write_text(json.dumps(claim | {"boot": "another"}))
    assert seen_anew(tmp_path).state == LOST


def test_processes_of_another_machine_are_not_judged(backend, tmp_path):
    there = launch(tmp_path, "true")
    (there.folder / "claim").write_text(json.dumps({"by": "local-x", "at": 1.0, "pid": 1, "host": "elsewhere"}))
    assert LocalBackend(tmp_path).list()[0].state == RUNNING
    (there.folder / "end").write_text(json.dumps({"by": "local-x", "exit_code": 0, "started": 1, "ended": 2}))


def test_a_process_of_another_container_is_told_by_its_lock_not_by_its_pid(backend, tmp_path, monkeypatch):
    contained = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*contained, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no name space of processes can be made here")
    monkeypatch.setattr(local, "TIMEOUT_S", 0.0)
    there = launch(tmp_path, "sleep", "300")
    with subprocess.Popen([*contained, *SHIM, str(there.folder), "local-c"]) as inside:
        until(lambda: locked(there.folder / "alive"))
        claim = claim_of(there.folder)
        assert claim.space != processes.space() and not processes.alive(claim.pid, claim.start, claim.boot)
        assert backend.list()[0].state == RUNNING
        inside.kill()
    until(lambda: backend.list()[0].state == LOST)


def test_what_a_shutdown_told_to_stop_is_lost_not_cancelled(backend, tmp_path):
    there = launch(tmp_path, "sleep", "300")
    backend.submit(there)
    claim = json.loads((there.folder / "claim").read_text())
    processes.send(claim["pid"], claim["start"], signal.SIGTERM)
    assert ended(backend).state == CANCELLED  # by a person, as far as anyone can tell
    (there.folder / "claim").write_text(json.dumps(claim | {"boot": "before"}))
    seen = seen_anew(tmp_path)
    assert (seen.state, seen.reason) == (LOST, "the machine went down")
    (there.folder / "stop").touch()
    assert seen_anew(tmp_path).state == CANCELLED


def test_an_end_that_can_not_be_written_yet_is_written_later(backend, tmp_path):
    there = launch(tmp_path, "sh", "-c", "mkdir end; mkdir end/x; echo ran >> ../ran")  # in the way, as a full disk is
    backend.submit(there)
    until(lambda: (tmp_path / "attempts" / "ran").exists())
    time.sleep(0.2)
    (there.folder / "end" / "x").rmdir()
    (there.folder / "end").rmdir()
    assert ended(backend).state == SUCCEEDED and (tmp_path / "attempts" / "ran").read_text() == "ran\n"


def test_claims_and_ends_that_can_not_be_read_are_lost_not_run_again(backend, tmp_path):
    there = launch(tmp_path, "touch", "ran")
    (there.folder / "claim").write_text("{")
    assert claim_of(there.folder).by == "?" and backend.submit(there) == "?"
    (there.folder / "end").write_text("[]")
    assert end_of(there.folder).exit_code is None and not (there.folder / "ran").exists()


def test_secrets_reach_the_program_and_no_file(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "hunter2-very-secret")
    monkeypatch.setenv("OTHER_TOKEN", "not-its-business")
    there = launch(
        tmp_path,
        "sh",
        "-c",
        'test ${#API_TOKEN} = 19 && test -z "$OTHER_TOKEN"',
        secrets=["API_TOKEN"],
        at=pool(address=(("secrets", "API_TOKEN,OTHER_TOKEN"),)),
    )
    backend.submit(there)
    assert ended(backend).state == SUCCEEDED
    assert "hunter2" not in backend.render(there)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"hunter2" not in file.read_bytes(), file


def test_a_secret_that_is_not_there_is_a_refusal(backend, tmp_path):
    with pytest.raises(BackendRefused, match="NOT_THERE"):
        backend.submit(launch(tmp_path, "true", secrets=["NOT_THERE"], at=pool(address=(("secrets", "NOT_THERE"),))))


def test_a_launch_file_that_can_not_be_read_is_a_refusal_and_runs_nothing(backend, tmp_path):
    there = launch(tmp_path, "touch", "ran")
    (there.folder / "launch.json").write_text("{}")
    with pytest.raises(BackendRefused, match="no launch"):
        backend.submit(there)
    assert not (there.folder / "claim").exists() and not (there.folder / "ran").exists()


@pytest.mark.parametrize("words", [("a\0b",), ("\ud800",), ()])
def test_words_that_no_program_can_be_given_are_refused(tmp_path, words):
    with pytest.raises(BackendRefused):
        launch(tmp_path, *words)


def test_a_folder_that_can_not_be_used_is_a_backend_that_is_down(tmp_path):
    (tmp_path / "attempts").write_text("a file")
    with pytest.raises(BackendDown):
        LocalBackend(tmp_path).list()
    with pytest.raises(BackendDown):
        LocalBackend(tmp_path / "attempts").submit(launch(tmp_path / "other", "true"))


def test_a_router_that_is_killed_while_it_submits_leaves_no_chip_behind(backend, tmp_path):
    """The lock goes with the shim: killed anywhere in `submit`, the ids are free again or in the claim."""
    at = pool(count=1)
    there = launch(tmp_path, "true", at=at)
    code = (
        "import os, sys, signal; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from chipwise.route.backends.local import backend as local; from route_cases import launch, pool\n"
        "real = os.posix_spawn\n"
        "def killed(*a, **k):\n    real(*a, **k); os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.posix_spawn = killed\n"
        "local.LocalBackend(Path(sys.argv[1])).submit(launch(Path(sys.argv[1]), 'true', at=pool(count=1)))\n"
    )
    done = subprocess.run(
        [PYTHON, "-c", code, str(tmp_path), str(Path(__file__).parent)],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL
    assert ended(backend).state == SUCCEEDED  # its shim went on alone
    assert backend.submit(there) == claim_of(there.folder).by and backend.capacity([at])["near"].free == 1


def test_the_shim_needs_nothing_but_the_standard_library(tmp_path):
    """It is read by whatever Python a node has, from 3.8 on."""
    import ast

    text = Path(shim.__file__).read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 8))
    names = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names) and "from __future__ import annotations" in text

"""What every backend guarantees, written once: local processes, Slurm, Ray and Kubernetes pass the same tests.

A test module of a backend subclasses `BackendContract` and has a fixture `site`:

    site.backend            the backend
    site.another()          the same, as a router sees it that has just begun
    site.launch(script)     an attempt that runs a Python script `with_folder` of the attempt; each test has one
    site.lose(launch)       what runs the attempt's program is gone at once: a machine, or the process that watches it
"""

from __future__ import annotations

from typing import Any

from chipwise.route.backend import CANCELLED, ENDED, FAILED, LOST, RUNNING, SUCCEEDED
from patience import until

BEGUN = "import os\n(folder / 'pids').write_text(f'{os.getppid()} {os.getpid()}')\n(folder / 'begun').touch()\n"
RAN = "(folder / 'ran').open('a').write('x')\n"
WAITS = BEGUN + "import time\nwhile not (folder / 'go').exists(): time.sleep(0.05)\n" + RAN


def with_folder(script: str, folder: object) -> str:
    """A script that knows the folder of its attempt."""
    return (
        f"from pathlib import Path\nfolder = Path({str(folder)!r})\nfolder.mkdir(parents=True, exist_ok=True)\n{script}"
    )


def statuses(backend: Any, launch: Any) -> list[Any]:
    """What a backend says of an attempt: several where it was submitted several times."""
    return [status for status in backend.status([(launch.attempt, "")]) if status.attempt == launch.attempt]


def ended(backend: Any, launch: Any, backend_id: str = "") -> Any:
    """The attempt once all that was submitted of it has ended or left."""

    def over() -> Any:
        found = [s for s in backend.status([(launch.attempt, backend_id)]) if s.attempt == launch.attempt]
        return found[0] if len(found) == 1 and found[0].state in ENDED else None

    return until(over, lambda: f"{launch.attempt} has not ended: {statuses(backend, launch)}")


class BackendContract:
    """The tests."""

    def test_an_attempt_that_is_submitted_twice_runs_once(self, site: Any) -> None:
        launch = site.launch(RAN)
        assert launch.attempt in site.backend.render(launch)
        first = site.backend.submit(launch)
        site.backend.submit(launch)
        site.another().submit(launch)
        status = ended(site.backend, launch, first)
        assert (status.state, status.exit_code, status.backend_id) == (SUCCEEDED, 0, first)
        assert status.started is not None and status.started <= status.ended
        assert (launch.folder / "ran").read_text() == "x"
        site.backend.cancel(first)  # no error, and no other end
        assert {s.state for s in site.backend.status([(launch.attempt, first)])} <= {SUCCEEDED}

    def test_a_failure_has_the_status_of_the_program(self, site: Any) -> None:
        launch = site.launch(RAN + "raise SystemExit(7)")
        backend_id = site.backend.submit(launch)
        status = ended(site.backend, launch, backend_id)
        assert (status.state, status.exit_code) == (FAILED, 7)
        assert (launch.folder / "ran").read_text() == "x"

    def test_a_program_goes_on_without_its_router_and_the_next_one_finds_it(self, site: Any) -> None:
        launch = site.launch(WAITS)
        backend_id = site.backend.submit(launch)
        until((launch.folder / "begun").exists)
        later = site.another()
        until(lambda: [s.state for s in later.status([(launch.attempt, backend_id)])] == [RUNNING])
        (launch.folder / "go").touch()
        assert ended(later, launch, backend_id).state == SUCCEEDED
        assert (launch.folder / "ran").read_text() == "x"

    def test_what_is_cancelled_has_ended_and_its_program_with_it(self, site: Any) -> None:
        launch = site.launch(WAITS)
        backend_id = site.backend.submit(launch)
        until((launch.folder / "begun").exists)
        site.backend.cancel(backend_id)
        until(lambda: all(s.state == CANCELLED for s in site.backend.status([(launch.attempt, backend_id)])))
        (launch.folder / "go").touch()
        site.backend.cancel(backend_id)  # no error
        assert not (launch.folder / "ran").exists()

    def test_what_is_lost_is_told_and_is_not_run_again(self, site: Any) -> None:
        launch = site.launch(WAITS)
        backend_id = site.backend.submit(launch)
        until((launch.folder / "begun").exists)
        until(lambda: [s.state for s in site.backend.status([(launch.attempt, backend_id)])] == [RUNNING])
        site.lose(launch)
        status = ended(site.backend, launch, backend_id)
        assert status.state == LOST and status.reason
        (launch.folder / "go").touch()
        site.backend.submit(launch)  # the router's second thought: the attempt is over
        assert ended(site.another(), launch, backend_id).state == LOST
        assert not (launch.folder / "ran").exists()

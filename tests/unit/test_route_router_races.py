"""Two routers, clocks that jump, backends that tell a part, folders that are gone: no router falls over, no job is lost."""

from dataclasses import replace

import pytest
from route_backend import Scripted
from route_cases import job, option, pool, restartable
from test_route_router import Stage

from chipwise.route.backend import (
    CANCELLED,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    AttemptStatus,
    BackendDown,
    BackendRefused,
)
from chipwise.route.launch import revoke_claim, write_launch
from chipwise.route.ledger import Conflict
from chipwise.route.ledger.records import AttemptEnd

pytestmark = pytest.mark.thorough


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path)
    yield made
    assert made.ledger.check() == []
    made.ledger.close()


def block(stage, there=True):
    """Where attempts have their folders there is a file, as when a shared folder isn't mounted."""
    attempts = stage.folder / "state" / "attempts"
    attempts.parent.mkdir(exist_ok=True)
    if there:
        if attempts.is_dir():
            attempts.rename(attempts.with_name("aside"))
        attempts.write_text("")
    else:
        attempts.unlink()
        if attempts.with_name("aside").exists():
            attempts.with_name("aside").rename(attempts)


def test_a_folder_that_can_not_be_written_is_a_backend_that_is_down_until_it_is_back(stage):
    stage.submit(job("run"), option("near"))
    block(stage)
    report = stage.tick()
    assert "slurm" in stage.router.health.errors and report.started == [] and stage.attempt().state == "intended"
    for _ in range(100):
        stage.tick(2.0)
    assert stage.attempt().state == "intended" and not stage.router.health.rows["slurm"].ok
    block(stage, False)
    for _ in range(10):
        stage.tick(60.0)
    assert stage.attempt(len(stage.ledger.attempts("1"))).state == "running"


def test_a_refusal_that_can_not_be_written_down_is_said_again_later(stage):
    stage.submit(job("run"), option("near"))
    stage.backend.fails["submit"] = BackendDown("slow")
    stage.tick()
    stage.backend.fails["submit"] = BackendRefused("no such partition")
    submit = stage.backend.submit

    def blocked(launch):
        block(stage)
        return submit(launch)

    stage.backend.submit = blocked
    stage.tick(5.0)
    assert stage.attempt().state == "intended"
    block(stage, False)
    stage.backend.submit = submit
    stage.tick(200.0)
    assert stage.attempt().state == "refused"


def test_a_backend_that_lists_a_part_at_first_loses_nothing(stage):
    stage.submit(job("run"))
    stage.tick()
    stage.tick()
    shown, stage.backend.jobs = stage.backend.jobs, {}
    stage.tick(3600.0)  # the clock may have jumped, too
    assert stage.attempt().state == "running"
    stage.tick(1.0)
    stage.backend.jobs = shown
    stage.tick(3600.0)
    stage.backend.jobs = {}
    stage.tick(3600.0)
    assert stage.attempt().state == "running"  # seen in between: the count begins again
    stage.tick(-7200.0)
    stage.tick(10.0)
    assert stage.attempt().state == "running"
    for _ in range(3):
        stage.tick(10.0)
    assert stage.attempt().state == "lost"


def test_one_that_can_not_be_stopped_does_not_hide_the_end_of_another(stage):
    stage.submit(job("run"), option("near"))
    stage.submit(job("run"), option("near"))
    stage.tick()
    stage.tick()
    stage.ledger.ask_cancel("1", stage.now)
    stage.backend.fails["cancel"] = BackendDown("permission denied")
    stage.end(SUCCEEDED, "2", exit_code=0)
    report = stage.tick()
    assert [end for _, end in report.ended] == ["succeeded"] and stage.job("2").state == "succeeded"
    assert "permission denied" in report.quarantined[f"attempt {stage.attempt().id}"]
    assert not report.down and stage.job("1").state == "running"
    stage.backend.up()
    stage.tick(60.0)
    stage.tick()
    assert stage.job("1").state == "cancelled"


def test_a_router_leaves_doubles_of_anothers_attempt_to_that_one(stage):
    """Each would keep another of the two, and both would be stopped."""
    stage.submit(job("run"), option("near"))
    stage.backend.state = PENDING
    stage.tick()
    stage.backend.launches["0"] = stage.backend.launches["1"]
    stage.backend.jobs["0"] = replace(stage.backend.jobs["1"], backend_id="0")
    stage.tick(0.1, stage.another("two"))
    assert {s.state for s in stage.backend.jobs.values()} == {PENDING}
    stage.tick()
    assert stage.backend.jobs["1"].state == PENDING and stage.backend.jobs["0"].state == CANCELLED


def test_a_double_that_made_the_claim_as_it_was_stopped_does_not_park_its_job(stage):
    stage.submit(job("run"), option("near"))
    stage.backend.state = PENDING
    stage.tick()
    stage.backend.launches["2"] = stage.backend.launches["1"]
    stage.backend.jobs["2"] = replace(stage.backend.jobs["1"], backend_id="2")
    stage.tick()
    assert stage.backend.jobs["2"].state == CANCELLED
    folder = stage.path(stage.attempt().id)
    (folder / "claim").write_text('{"by": "2", "at": 1.0}')
    stage.backend.set("1", state=FAILED, exit_code=79)
    stage.tick()
    assert stage.attempt().state == "lost" and stage.job().state == "pending"


def test_an_attempt_that_nobody_saw_run_has_its_node(stage):
    """It began and ended between two passes: its end alone says where it was."""
    stage.submit(job("run"), option("near"))
    stage.tick()
    stage.backend.set("1", state=SUCCEEDED, exit_code=0, started=stage.now, ended=stage.now, where="node-7")
    stage.tick()
    assert stage.attempt().state == "succeeded" and stage.attempt().where == "node-7"


def test_a_double_in_the_queue_does_not_hide_that_the_attempt_has_ended(stage):
    stage.submit(job("run"), option("near"))
    stage.tick()
    stage.tick()
    folder = stage.path(stage.attempt().id)
    (folder / "claim").write_text('{"by": "1", "at": 1.0}')
    (folder / "end").write_text('{"by": "1", "exit_code": 0, "started": 1.0, "ended": 2.0}')
    stage.backend.launches["7"] = stage.backend.launches["1"]
    stage.backend.jobs = {"7": AttemptStatus(stage.attempt().id, "7", PENDING)}
    stage.tick()
    assert stage.job().state == "succeeded" and stage.backend.jobs["7"].state == CANCELLED


def test_an_attempt_that_another_router_ended_meanwhile_stops_nobody(stage):
    """Between the look at an attempt and the word that it is to stop."""
    stage.submit(job("run", budget=0.001), option("near", 0.1, usd_hour=3.6))
    stage.tick()
    stage.backend.set("1", started=stage.now)
    stage.tick()
    ask = stage.ledger.ask_stop

    def late(attempt, why, now):
        stage.ledger.end(attempt, AttemptEnd("lost"), now)
        return ask(attempt, why, now)

    stage.ledger.ask_stop = late
    stage.tick(20.0)
    assert stage.attempt(1).state == "lost"


def test_a_router_does_not_hand_over_what_another_has_taken_or_its_owner_cancelled(stage):
    stage.submit(job("run"), option("near"))
    stage.submit(job("run"), option("near"))
    decide = stage.ledger.decide

    def meanwhile(*arguments):
        found = decide(*arguments)
        stage.ledger.ask_cancel("1", stage.now)
        stage.now += 1000.0
        stage.ledger.take("two", stage.now, 30.0)
        return found

    stage.ledger.decide = meanwhile
    assert stage.tick().started == [] and stage.backend.jobs == {}


def test_an_attempt_that_runs_is_not_submitted_under_another_id(stage):
    stage.submit(job("run"))
    stage.tick()
    stage.tick()
    with pytest.raises(Conflict):
        stage.ledger.mark_submitted(stage.attempt().id, "99", stage.now)
    assert stage.attempt().backend_id == "1" and stage.attempt().state == "running"


def test_clocks_set_back_by_years_hold_nothing_up(tmp_path):
    stage = Stage(tmp_path)
    later = stage.now + 5e8
    for _ in range(2):
        stage.submit(job("run"), option("near"))
    stage.now = later
    other = stage.another("gone")  # of a machine that never comes back
    stage.tick(1.0, other)
    stage.end(FAILED, "1", exit_code=1)
    stage.tick(1.0, other)
    stage.backend.down()
    stage.tick(1.0, other)
    stage.backend.up()
    stage.now = later - 5e8
    for _ in range(3):
        stage.tick(10.0)
    assert stage.job("1").state == "running" and {a.router for a in stage.ledger.attempts(under_way=True)} == {"one"}
    stage.ledger.close()


def test_tries_after_one_by_hand_are_counted_whatever_the_clock_says(stage):
    stage.submit(job("run", retries=0), option("near"))
    stage.tick()
    stage.end(FAILED, exit_code=1)
    stage.tick()
    stage.ledger.retry("1", stage.now)
    stage.now -= 1000.0
    stage.tick()
    stage.backend.jobs["2"] = replace(stage.backend.jobs["2"], state="lost")
    stage.tick()
    stage.tick(1e6)
    assert [a.number for a in stage.router.reconcilers["slurm"].earlier(stage.attempt(3))] == [2]


def test_a_job_that_nothing_it_can_pay_for_is_left_to_is_parked(stage):
    stage.submit(job("run", budget=1.0), option("near", 600.0, usd_hour=3.6), option("far", 600.0, usd_hour=3.6))
    stage.tick()
    stage.backend.set("1", started=stage.now)
    stage.now += 500.0
    stage.end(FAILED, exit_code=1)
    stage.tick()
    assert stage.job().state == "failed" and "0.60 USD" in stage.job().reason and "budget" in stage.job().reason


def test_a_job_with_checkpoints_goes_on_while_what_is_left_can_be_paid_for(stage):
    stage.submit(job("run", budget=1.0, checkpoint=restartable(every=10.0)), option("near", 600.0, usd_hour=3.6))
    stage.tick()
    stage.backend.set("1", started=stage.now)
    stage.now += 500.0
    stage.end(FAILED, exit_code=1)
    stage.tick()
    assert stage.job().state == "pending"


def test_files_of_an_attempt_need_no_hard_links(stage, monkeypatch, tmp_path):
    import os

    def refused(*arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    assert (
        revoke_claim(tmp_path / "a", "one")
        and revoke_claim(tmp_path / "a", "two")
        and not list((tmp_path / "a").glob(".*"))
    )
    stage.submit(job("run"))
    stage.tick()
    launch = stage.backend.launches["1"]
    before = (launch.folder / "launch.json").read_bytes()
    write_launch(launch.folder, b"another")
    assert (launch.folder / "launch.json").read_bytes() == before
    assert not bury_after_claim(tmp_path / "b")


def bury_after_claim(folder):
    folder.mkdir()
    (folder / "claim").write_text('{"by": "someone", "at": 1.0}')
    return revoke_claim(folder, "one")


def test_pools_of_one_backend_that_is_down_leave_the_others_alone(tmp_path):
    bad, good = Scripted("slurm"), Scripted("ray")
    stage = Stage(tmp_path, [pool("near", backend="slurm"), pool("far", backend="ray")], {"slurm": bad, "ray": good})
    stage.submit(job("run"), option("near", 1.0), option("far", 100.0))
    bad.fails["submit"] = BackendDown("hangs")
    stage.tick()
    bad.down()
    block(stage)
    for _ in range(30):
        stage.tick(20.0)
    assert stage.attempt().state == "intended" and RUNNING not in {a.state for a in stage.ledger.attempts()}
    block(stage, False)
    for _ in range(30):
        stage.tick(20.0)
    assert [(a.pool, a.state) for a in stage.ledger.attempts("1")] == [("near", "refused"), ("far", "running")]
    stage.ledger.close()

"""One tick after another on a real ledger: what backends do on bad days, and what becomes of the jobs."""

from itertools import pairwise

import pytest
from route_backend import Scripted
from route_cases import job, option, pool, restartable, submission

from chipwise.route.backend import (
    CANCELLED,
    FAILED,
    LOST,
    PENDING,
    RUNNING,
    SUCCEEDED,
    AttemptStatus,
    BackendDown,
    BackendRefused,
)
from chipwise.route.job import Variant
from chipwise.route.launch import claim_of, revoke_claim
from chipwise.route.ledger import LedgerError, open_ledger
from chipwise.route.policies import policy_named
from chipwise.route.router import Router, RouterOptions, identity, run
from chipwise.route.router.status import status_at
from patience import PATIENCE_S

TWO = (Variant("tpu", "tpu", 1, command=("tpu-program",)), Variant("gpu", "gpu", 1, command=("gpu-program",)))


class Stage:
    """A ledger, backends, a clock and a router."""

    def __init__(self, folder, pools=None, backends=None, policy="fastest", queues=False):
        self.folder, self.now, self.passed = folder, 1_000_000.0, 0.0
        self.ledger = open_ledger(str(folder / "ledger.db"))
        self.pools = pools or [pool("near", backend="slurm"), pool("far", backend="slurm")]
        self.backends = backends or {"slurm": Scripted("slurm", queues=queues)}
        self.backend = next(iter(self.backends.values()))
        self.policy = policy
        self.router = self.another("one")

    def another(self, name, **more):
        return Router(
            self.ledger,
            self.backends,
            self.pools,
            policy_named(self.policy),
            lambda: self.now,
            name=name,
            folders=dict.fromkeys(self.backends, self.folder / "state"),
            options=RouterOptions(self.policy, seed=1, monotonic=lambda: self.passed, **more),
        )

    def submit(self, a_job, *options):
        return self.ledger.submit([submission(a_job, *options)], self.now)[0]

    def tick(self, seconds=1.0, router=None):
        self.now += seconds
        self.passed += seconds
        return (router or self.router).tick()

    def job(self, job_id="1"):
        return self.ledger.job(job_id)

    def attempt(self, number=1, job_id="1"):
        return self.ledger.attempts(job_id)[number - 1]

    def path(self, attempt):
        return self.folder / "state" / "attempts" / attempt

    def end(self, state, backend_id=None, **more):
        """The backend shows that its job has ended."""
        backend_id = backend_id or list(self.backend.jobs)[-1]
        self.backend.set(backend_id, state=state, ended=self.now, **more)


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path)
    yield made
    assert made.ledger.check() == []
    made.ledger.close()


def kinds(stage, job_id="1"):
    return [event.kind for event in stage.ledger.events(job_id)]


def test_a_job_is_decided_submitted_seen_and_done(stage):
    stage.submit(job("run"), option("near", 10.0), option("far", 20.0))
    first = stage.tick()
    assert first.started == [stage.attempt().id] and stage.attempt().pool == "near" and stage.job().state == "running"
    stage.backend.set("1", started=stage.now)
    stage.tick()
    assert stage.attempt().state == "running"
    stage.now += 3600
    stage.end(SUCCEEDED, exit_code=0)
    assert stage.tick().ended == [(stage.attempt().id, "succeeded")]
    assert stage.job().state == "succeeded" and stage.job().spent == pytest.approx(3.6, rel=0.01)
    assert stage.tick().open_jobs == 0


def test_the_launch_is_on_disk_before_the_backend_hears_of_it(stage):
    stage.submit(job("run", "it"))
    stage.backend.fails["submit"] = BackendDown("no")
    stage.tick()
    assert (stage.path(stage.attempt().id) / "launch.json").exists() and stage.attempt().state == "intended"


@pytest.mark.thorough
def test_a_backend_that_is_down_is_left_alone_longer_each_time_and_keeps_its_state(stage):
    stage.submit(job("run"))
    stage.tick()
    stage.tick()
    stage.backend.down("connection refused")
    tries = []
    for _ in range(400):
        before = len(stage.backend.calls)
        stage.tick()
        if len(stage.backend.calls) > before:
            tries.append(stage.now)
    gaps = [b - a for a, b in pairwise(tries)]
    assert len(tries) < 14 and gaps[-1] > 50 > gaps[0]
    row = status_at(stage.ledger, stage.now).backends[0]
    assert not row.ok and row.error == "connection refused" and row.next_try > stage.now and row.failures == len(tries)
    assert stage.attempt().state == "running" and stage.job().state == "running"
    stage.backend.up()
    stage.now = row.next_try
    assert stage.tick().up == ["slurm"] and status_at(stage.ledger, stage.now).backends[0].ok


@pytest.mark.parametrize("method", ["list", "capacity"])
def test_a_backend_that_answers_nonsense_does_not_stop_the_others(tmp_path, method):
    bad, good = Scripted("slurm"), Scripted("ray")
    stage = Stage(tmp_path, [pool("near", backend="slurm"), pool("far", backend="ray")], {"slurm": bad, "ray": good})
    stage.submit(job("run"), option("near", 1.0), option("far", 100.0))
    bad.fails[method] = KeyError("no such field")
    report = stage.tick()
    assert report.down == {"slurm": "KeyError: 'no such field'"} and stage.attempt().pool == "far"
    stage.ledger.close()


def test_a_job_whose_backend_does_not_answer_for_long_goes_elsewhere_and_never_runs_twice(tmp_path):
    bad, good = Scripted("slurm"), Scripted("ray")
    stage = Stage(tmp_path, [pool("near", backend="slurm"), pool("far", backend="ray")], {"slurm": bad, "ray": good})
    stage.submit(job("run"), option("near", 1.0), option("far", 100.0))
    bad.fails["submit"] = BackendDown("hangs")
    stage.tick()
    bad.down()
    for _ in range(200):
        stage.tick()
    assert [(a.pool, a.state) for a in stage.ledger.attempts("1")] == [("near", "refused"), ("far", "running")]
    assert "does not answer" in stage.attempt(1).reason
    assert claim_of(stage.path(stage.attempt(1).id)).by.startswith("ended by ")  # a late submission finds it taken
    stage.ledger.close()


def test_a_variant_that_fails_at_start_gives_way_to_the_next_with_its_own_command(stage):
    stage.submit(job(variants=TWO), option("near", 1.0, "tpu"), option("far", 100.0, "gpu"))
    stage.tick()
    stage.end(FAILED, exit_code=1)
    stage.tick(5.0)
    stage.tick(5.0)
    assert [(a.pool, a.variant) for a in stage.ledger.attempts("1")] == [("near", "tpu"), ("far", "gpu")]
    assert stage.backend.launches["2"].variant.command == ("gpu-program",)
    assert "failed last" in stage.ledger.decisions("1")[-1].decision.reason


def test_the_same_failing_pool_is_never_tried_twice_in_a_row_while_there_is_another(stage):
    stage.submit(job("run", retries=5), option("near", 1.0), option("far", 100.0))
    for _ in range(40):
        stage.tick(60.0)
        for backend_id, seen in list(stage.backend.jobs.items()):
            if seen.state == RUNNING:
                stage.end(FAILED, backend_id, exit_code=3)
    pools = [a.pool for a in stage.ledger.attempts("1")]
    assert len(pools) == 6 and all(a != b for a, b in pairwise(pools))
    assert stage.job().state == "failed" and "6 attempts failed and 5 retries" in stage.job().reason


def test_a_refusal_is_no_fault_of_the_job_and_leads_elsewhere(stage):
    stage.submit(job("run"), option("near", 1.0), option("far", 100.0))
    stage.backend.fails["submit"] = BackendRefused("no such partition")
    report = stage.tick()
    assert (
        report.refused == [stage.attempt().id]
        and stage.job().failures == 0
        and "no such partition" in stage.job().reason
    )
    stage.backend.up()
    stage.tick(2.0)
    assert stage.attempt(2).pool == "far"


def test_attempts_that_come_to_nothing_are_bounded_and_wait_longer(stage):
    stage.submit(job("run", retries=0), option("near", 1.0))
    waits = []
    for _ in range(60):
        stage.tick(301.0)
        stage.end(LOST, reason="NODE_FAIL")
        stage.tick(0.1)
        waits.append(stage.job().not_before - stage.now)
        if stage.job().state == "failed":
            break
    assert waits[:4] == pytest.approx([1.0, 2.0, 4.0, 8.0]) and max(waits) == pytest.approx(300.0)
    assert len(stage.ledger.attempts("1")) == 21 and "21 attempts in a row" in stage.job().reason
    stage.ledger.retry("1", stage.now)
    stage.tick(1.0)
    assert stage.job().state == "running"


def test_a_lost_attempt_goes_on_from_its_checkpoint(stage):
    stage.submit(job("run", checkpoint=restartable(every=10.0)), option("near", 100.0), option("far", 150.0))
    stage.tick()
    stage.backend.set("1", started=stage.now)
    stage.tick()
    stage.now += 37
    stage.end(LOST, reason="NODE_FAIL")
    stage.tick()
    assert stage.job().done == pytest.approx(0.3) and stage.job().state == "pending"
    stage.tick(2.0)
    assert stage.attempt(2).pool == "far"
    (stage.path(stage.attempt(2).id) / "progress").write_text("0.75")  # the program knows better
    stage.end(LOST)
    stage.tick()
    assert stage.job().done == pytest.approx(0.75)


def test_a_job_that_is_cancelled_is_stopped_on_its_backend(stage):
    stage.submit(job("run"))
    stage.tick()
    stage.ledger.ask_cancel("1", stage.now)
    assert stage.tick().stopped == ["1"]
    stage.tick()
    assert stage.job().state == "cancelled" and stage.attempt().state == "cancelled"


def test_one_that_can_not_be_stopped_is_told_again_and_holds_up_nobody(stage):
    stage.submit(job("run"), option("near", 10.0))
    stage.tick()
    stage.ledger.ask_cancel("1", stage.now)
    stage.backend.fails["cancel"] = BackendDown("the server said no")
    stage.submit(job("run"), option("far", 10.0))
    report = stage.tick()
    assert list(report.quarantined) == [f"attempt {stage.attempt().id}"] and report.up == ["slurm"] and not report.down
    assert "can't be stopped: the server said no" in report.quarantined[f"attempt {stage.attempt().id}"]
    assert stage.attempt(1, "2").id in report.started and stage.ledger.backends()[0].ok
    del stage.backend.fails["cancel"]
    assert stage.tick().stopped == ["1"]


def test_a_value_that_the_ledger_does_not_hold_is_its_attempts_trouble_alone(stage, monkeypatch):
    stage.submit(job("run"), option("near", 10.0))
    stage.submit(job("run"), option("far", 10.0))
    stage.tick()
    real, first = stage.ledger.observe, stage.attempt().id

    def observe(attempt, status, now):
        if attempt == first:
            raise LedgerError("db", "integer out of range", "nothing was written", values=True)
        return real(attempt, status, now)

    monkeypatch.setattr(stage.ledger, "observe", observe)
    for backend_id in list(stage.backend.jobs):
        stage.backend.set(backend_id, started=stage.now)
    report = stage.tick()
    assert list(report.quarantined) == [f"attempt {first}"] and stage.attempt(1, "2").state == "running"


def test_a_job_cancelled_before_it_is_submitted_never_is(stage):
    stage.submit(job("run"))
    stage.backend.fails["submit"] = BackendDown("no")
    stage.tick()
    stage.ledger.ask_cancel("1", stage.now)
    stage.backend.up()
    stage.tick(10.0)
    assert stage.job().state == "cancelled" and stage.backend.jobs == {}
    assert (
        not revoke_claim(stage.path(stage.attempt().id), "x")
        or claim_of(stage.path(stage.attempt().id)).by == "ended by one"
    )


def test_a_job_that_someone_stopped_on_the_backend_is_parked_and_says_so(stage):
    stage.submit(job("run"))
    stage.tick()
    stage.end(CANCELLED, reason="CANCELLED by 0")
    stage.tick()
    assert stage.job().state == "failed" and "by someone else: CANCELLED by 0" in stage.job().reason


def test_a_preempted_job_waits_again_without_blame(stage):
    stage.submit(job("run", checkpoint=restartable()))
    stage.tick()
    stage.tick()
    stage.ledger.ask_stop(stage.attempt().id, "preempt", stage.now)
    stage.tick()
    assert stage.tick(0.1).ended == [(stage.attempt().id, "preempted")]
    assert stage.job().failures == 0 and len(stage.ledger.attempts("1")) == 2


def test_a_job_that_has_spent_its_budget_is_stopped_and_fails(stage):
    stage.submit(job("run", budget=1.0), option("near", 500.0, usd_hour=3.6))
    stage.tick()
    assert stage.backend.launches["1"].time_limit == pytest.approx(1000.0)
    stage.backend.set("1", started=stage.now)
    stage.tick()
    for _ in range(50):
        assert stage.tick(20.0).stopped == []
    assert stage.attempt().seen == pytest.approx(1000.0)
    assert stage.tick().stopped == ["1"] and stage.attempt().stop == "budget"
    stage.tick()
    assert stage.job().state == "failed" and "budget of 1 USD is spent" in stage.job().reason


@pytest.mark.parametrize("days", [10, -10])
def test_a_clock_that_is_set_spends_no_budget(stage, days):
    stage.submit(job("run", budget=1.0), option("near", 500.0, usd_hour=3.6))
    stage.tick()
    stage.backend.set("1", started=stage.now)
    stage.tick()
    stage.now += days * 86_400
    for _ in range(5):
        assert stage.tick(20.0).stopped == []
    stage.now -= days * 86_400
    stage.tick()
    stage.end("succeeded")
    stage.tick()
    assert stage.job().state == "succeeded" and stage.job().spent == pytest.approx(0.1, rel=0.1)


def test_time_for_which_a_router_was_away_is_not_time_it_saw(stage):
    stage.submit(job("run"), option("near", 500.0, usd_hour=3.6))
    stage.tick()
    stage.tick()
    stage.backend.set("1", state="running", started=stage.now)
    stage.tick()
    before = stage.attempt().seen
    stage.tick(10.0)
    stage.tick(86_400.0)
    assert stage.attempt().seen - before == pytest.approx(10.0)


def test_an_end_that_a_program_invented_costs_what_was_seen(stage):
    stage.submit(job("run"), option("near", 500.0, usd_hour=3.6))
    stage.tick()
    stage.backend.set("1", state="running", started=stage.now)
    for _ in range(100):
        stage.tick(10.0)
    stage.backend.set("1", state="succeeded", started=stage.now, ended=stage.now)
    stage.tick()
    assert stage.job().spent == pytest.approx(1.0, rel=0.02)


def test_the_backends_time_limit_counts_as_a_failure(stage):
    stage.submit(job("run", retries=0))
    stage.tick()
    stage.end(CANCELLED, reason="time limit of 60 s")
    stage.tick()
    assert stage.job().state == "failed" and stage.attempt().state == "failed"


def test_an_intended_attempt_is_found_on_the_backend_and_adopted(stage):
    stage.submit(job("run"))
    real = stage.ledger.mark_submitted
    stage.ledger.mark_submitted = lambda *a: (_ for _ in ()).throw(
        KeyboardInterrupt
    )  # killed right after the submission
    with pytest.raises(KeyboardInterrupt):
        stage.tick()
    stage.ledger.mark_submitted = real
    assert stage.attempt().state == "intended"
    stage.tick(router=stage.another("one"))
    assert stage.attempt().state == "running" and len(stage.backend.jobs) == 1


def test_an_intended_attempt_that_the_backend_does_not_know_is_submitted(stage):
    stage.submit(job("run"))
    stage.backend.fails["submit"] = BackendDown("no")
    stage.tick()
    stage.backend.up()
    stage.tick(10.0, stage.another("one"))
    assert stage.attempt().state == "submitted" and stage.attempt().number == 1


def test_of_two_jobs_with_one_attempt_the_one_with_the_claim_stays(stage):
    stage.submit(job("run"))
    stage.tick()
    attempt = stage.attempt().id
    stage.backend.launches["x"] = stage.backend.launches["1"]
    stage.backend.jobs["x"] = AttemptStatus(attempt, "x", RUNNING)
    (stage.path(attempt) / "claim").write_text('{"by": "x", "at": 1.0}')
    assert stage.tick().stopped == ["1"]
    assert stage.attempt().backend_id == "x" and stage.attempt().state == "running"
    stage.end(SUCCEEDED, "x", exit_code=0)
    stage.tick()
    assert stage.job().state == "succeeded"


def test_a_job_that_left_because_another_has_the_claim_is_not_the_attempts_end(stage):
    stage.submit(job("run"))
    stage.tick()
    attempt = stage.attempt().id
    (stage.path(attempt) / "claim").write_text(f'{{"by": "elsewhere", "at": {stage.now}}}')
    stage.end(FAILED, "1", exit_code=79)
    stage.tick()
    assert stage.attempt().state in ("submitted", "running")
    for _ in range(3):
        stage.tick(20.0)
    assert stage.attempt().state == "lost"  # who claimed it is nowhere to be found


def test_an_attempt_that_its_backend_forgot_is_told_by_its_folder_or_lost(stage):
    stage.submit(job("run"))
    stage.submit(job("run"))
    stage.tick()
    stage.tick()
    first = stage.attempt(1, "1").id
    (stage.path(first) / "claim").write_text('{"by": "1", "at": 1.0}')
    (stage.path(first) / "end").write_text('{"by": "1", "exit_code": 0, "started": 1.0, "ended": 2.0}')
    stage.backend.jobs.clear()
    stage.tick()
    assert stage.job("1").state == "succeeded" and stage.job("2").state == "running"
    for _ in range(2):
        stage.tick(20.0)
    assert stage.attempt(1, "2").state == "lost"


def test_what_runs_though_the_ledger_has_ended_it_is_stopped(stage):
    stage.submit(job("run"))
    stage.tick()
    stage.end(SUCCEEDED, exit_code=0)
    stage.tick()
    stage.backend.launches["9"] = stage.backend.launches["1"]
    stage.backend.jobs = {"9": AttemptStatus(stage.attempt().id, "9", RUNNING)}
    assert stage.tick().stopped == ["9"]


def test_an_attempt_that_the_ledger_does_not_know_is_left_alone_and_told(stage):
    stage.backend.launches["9"] = None
    stage.backend.jobs["9"] = AttemptStatus("elsewhere-1-1", "9", PENDING)
    assert stage.tick().unknown == ["elsewhere-1-1"] and stage.backend.jobs["9"].state == PENDING


def test_another_router_takes_over_when_a_lease_runs_out_and_not_before(stage):
    stage.submit(job("run"))
    stage.tick()
    other = stage.another("two")
    stage.end(SUCCEEDED, exit_code=0)
    stage.tick(10.0, other)
    assert stage.job().state == "running"
    stage.tick(25.0, other)
    assert stage.job().state == "succeeded" and "taken over" in kinds(stage)


def test_a_router_leaves_attempts_in_pools_it_does_not_know_to_those_that_do(stage):
    stage.submit(job("run"), option("near"))
    stage.tick()
    stage.pools = stage.pools[1:]
    other = stage.another("two")
    assert stage.tick(100.0, other).orphaned == [stage.attempt().id] and stage.attempt().router == "one"
    stage.end(SUCCEEDED, exit_code=0)
    stage.tick(100.0, other)
    assert stage.job().state == "running"
    stage.tick()
    assert stage.job().state == "succeeded"


def test_two_routers_never_fill_a_pool_twice(stage):
    for _ in range(10):
        stage.submit(job("run"), option("near"))
    one, two = stage.router, stage.another("two")
    real = stage.ledger.decide

    def between(*arguments):
        stage.ledger.decide = real
        two.tick()  # decides while the first has made up its mind
        return real(*arguments)

    stage.ledger.decide = between
    one.tick()
    assert sum(s.state == RUNNING for s in stage.backend.jobs.values()) == 2 and len(stage.ledger.attempts()) == 2


def test_chips_of_unknown_jobs_are_not_ours(stage):
    stage.backend.foreign["near"] = 2
    stage.submit(job("run"), option("near", 1.0), option("far", 500.0))
    stage.tick()
    assert stage.ledger.attempts() == []  # it waits: a minute for near is better than far
    for _ in range(60):
        stage.tick(10.0)
    assert stage.attempt().pool == "far"  # near has been full for longer than that would take


def test_no_job_starts_in_a_drained_pool(stage):
    stage.ledger.drain("near", True, "maintenance", stage.now)
    stage.submit(job("run"), option("near", 1.0), option("far", 1000.0))
    assert stage.tick().pool_chips["near"].note == "drained"
    assert stage.attempt().pool == "far"


@pytest.mark.parametrize("policy", ["fastest", "cheapest", "max-throughput-per-dollar", "max-min-fair"])
@pytest.mark.thorough
@pytest.mark.parametrize("drained", [True, False])
def test_what_runs_in_a_pool_that_is_drained_or_whose_backend_is_away_goes_on(tmp_path, policy, drained):
    backends = {"slurm": Scripted("slurm"), "ray": Scripted("ray")}
    stage = Stage(tmp_path, [pool("near", backend="slurm"), pool("far", backend="ray")], backends, policy)
    stage.submit(job("run", checkpoint=restartable()), option("near", 5000.0), option("far", 9000.0))
    stage.tick()
    assert stage.attempt().pool == "near"
    stage.tick(1000.0)
    if drained:
        stage.ledger.drain("near", True, "maintenance", stage.now)
    else:
        stage.backend.down("connection refused")
    for _ in range(5):
        stage.tick(200.0)
    assert stage.attempt().state == "running" and not stage.attempt().stop and len(stage.ledger.attempts()) == 1
    stage.ledger.close()


def test_a_job_whose_pools_are_all_full_waits_with_the_reason(stage):
    for _ in range(5):
        stage.submit(job("run"), option("near", 100.0), option("far", 120.0))
    stage.tick()
    waiting = stage.ledger.jobs(state="pending")
    assert len(waiting) == 1 and "waits" in waiting[0].reason


def test_a_full_pool_with_a_queue_of_its_own_gets_the_next_job_alone(tmp_path):
    stage = Stage(tmp_path, [pool("near", backend="slurm")], queues=True)
    stage.backend.foreign["near"] = 2
    stage.backend.state = PENDING
    for _ in range(3):
        stage.submit(job("run"), option("near", 100.0))
    for _ in range(5):
        stage.tick()
    assert len(stage.backend.jobs) == 1
    assert "the backend's own queue" in stage.ledger.decisions(stage.ledger.attempts()[0].job_id)[-1].decision.reason
    stage.ledger.close()


def test_a_job_that_a_backend_leaves_pending_moves_to_a_pool_with_room(tmp_path):
    stage = Stage(tmp_path, queues=True)
    stage.backend.foreign = {"near": 2, "far": 2}
    stage.backend.state = PENDING
    stage.backend.starts = {"near": stage.now + 10.0, "far": stage.now + 1e6}
    stage.submit(job("run"), option("near", 10.0), option("far", 20.0))
    stage.tick()
    assert stage.attempt().pool == "near"
    stage.backend.foreign, stage.backend.starts, stage.backend.state = {"near": 2}, {"near": stage.now + 1e6}, RUNNING
    for _ in range(10):
        stage.tick(20.0)
    assert [(a.pool, a.state) for a in stage.ledger.attempts("1")] == [("near", "preempted"), ("far", "running")]
    assert "run elsewhere" in stage.attempt(1).reason
    stage.ledger.close()


def test_ledger_trouble_ends_the_loop_at_once(stage):
    def broken(*arguments, **more):
        raise LedgerError("here", "disk full", "make room")

    stage.submit(job("run"))
    real, stage.ledger.take = stage.ledger.take, broken
    with pytest.raises(LedgerError, match="disk full"):
        run(stage.router, 0.01)
    stage.ledger.take = real


def test_the_loop_leaves_when_idle_once_or_told(stage):
    stage.submit(job("run"))
    assert run(stage.router, 0.01, once=True) == 1
    stage.end(SUCCEEDED, exit_code=0)
    assert run(stage.router, 0.01, until_idle=True) == 1 and stage.ledger.routers()[0].stopped is not None
    stage.router.stopping.set()
    assert run(stage.router, 0.01) == 0


def test_a_router_that_is_told_to_stop_hands_nothing_more_over(stage):
    for _ in range(4):
        stage.submit(job("run"), option("near"), option("far"))
    submit = stage.backend.submit

    def last(launch):
        stage.router.stopping.set()
        return submit(launch)

    stage.backend.submit = last
    stage.tick()
    assert sorted(a.state for a in stage.ledger.attempts()) == ["intended"] * 3 + ["submitted"]
    stage.backend.submit = submit
    stage.tick(router=stage.another("one"))
    assert len(stage.backend.jobs) == 4


def test_a_router_that_comes_back_has_the_place_it_had(tmp_path):
    first, second = identity(tmp_path), identity(tmp_path)
    assert first.name.endswith("-1") and second.name.endswith("-2")
    first.release()
    again = identity(tmp_path)
    assert again.name == first.name
    again.release()
    second.release()


def test_a_router_that_was_only_slow_does_not_run_an_attempt_again(tmp_path):
    """Its lease runs out while it is about to submit; another submits and the job ends; then it wakes up."""
    from chipwise.route.backends.local.backend import LocalBackend

    folder = tmp_path / "state"
    stage = Stage(tmp_path, [pool("near")], {"local": LocalBackend(folder)})
    stage.submit(job("sh", "-c", "echo ran >> ../ran"), option("near"))
    other = stage.another("two")
    submit_all = stage.router.backends["local"].backend.submit_all

    class Slow(LocalBackend):
        def submit_all(self, launches):
            stage.now += 100.0
            until_over(stage, other)
            return submit_all(launches)

    stage.router.backends["local"].backend = Slow(folder)
    stage.tick()
    stage.tick()
    assert stage.job().state == "succeeded" and len(stage.ledger.attempts()) == 1
    assert (folder / "attempts" / "ran").read_text() == "ran\n"
    stage.ledger.close()


def test_a_router_that_was_only_slow_does_not_run_what_another_has_given_up(tmp_path):
    from chipwise.route.backends.local.backend import LocalBackend

    folder = tmp_path / "state"
    stage = Stage(tmp_path, [pool("near")], {"local": LocalBackend(folder)})
    stage.submit(job("touch", "../ran"), option("near"))
    other = stage.another("two")
    submit_all = stage.router.backends["local"].backend.submit_all

    class Slow(LocalBackend):
        def submit_all(self, launches):
            stage.now += 100.0
            stage.ledger.ask_cancel("1", stage.now)
            until_over(stage, other)
            return submit_all(launches)

    stage.router.backends["local"].backend = Slow(folder)
    stage.tick()
    for _ in range(3):
        stage.tick()
    assert stage.job().state == "cancelled" and not (folder / "attempts" / "ran").exists()
    stage.ledger.close()


def until_over(stage, router):
    import time

    until = time.monotonic() + PATIENCE_S
    while stage.ledger.open_jobs() and time.monotonic() < until:
        stage.tick(0.5, router)
        time.sleep(0.01)
    assert not stage.ledger.open_jobs()

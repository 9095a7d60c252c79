"""What the first passes of a router compute with is compiled before it takes a lease: nothing is compiled in them."""

import os
import signal
import sys
import time

import pytest
from numba.core.dispatcher import Dispatcher
from route_backend import Scripted
from route_cases import job, option, pool, restartable
from test_route_router import Stage

from chipwise.cli.router import _leaving_when_asked
from chipwise.io.jit import Compiled
from chipwise.present import progress
from chipwise.route.access import Quota, Quotas
from chipwise.route.backend import PENDING, SUCCEEDED
from chipwise.route.policies import POLICIES
from chipwise.route.router import run
from lane import share
from patience import until


def dispatchers():
    """The compiled functions of ours."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("chipwise.route")]
    named = {value for module in modules for value in vars(module).values() if isinstance(value, Compiled | Dispatcher)}
    return {value.dispatcher if isinstance(value, Compiled) else value for value in named}


def compiled():
    """The signatures of each of them."""
    return {f"{f.py_func.__module__}.{f.py_func.__name__}": {str(s) for s in f.overloads} for f in dispatchers()}


def fill(stage, count):
    """Jobs unlike each other: with and without checkpoints, deadlines and budgets, one that is long overdue."""
    for n in range(count):
        more = {"deadline": stage.now + 50.0 * n} if n % 3 else {}
        more |= {"checkpoint": restartable()} if n % 2 else {}
        more |= {"budget": 5.0} if n % 5 == 0 else {}
        stage.now += 0.01
        stage.submit(job("run", priority=1.0 + n % 2, **more), option("near", 3600.0 + n), option("far", 5000.0 - n))


@pytest.mark.sampled
@pytest.mark.parametrize("policy", share(sorted(POLICIES), 3))
@pytest.mark.parametrize("queues", [False, True])
def test_no_pass_compiles_what_was_not_compiled_before(tmp_path, policy, queues):
    pools = [pool("near", 4, backend="slurm", interruptions=0.1), pool("far", 3, backend="slurm")]
    stage = Stage(tmp_path, pools, {"slurm": Scripted("slurm", queues=queues)}, policy=policy)
    for function in dispatchers():
        function._reset_overloads()  # as in a process that has compiled nothing; what is kept on disk is read
    stage.router.planner.warm()
    before = compiled()
    assert before
    fill(stage, 1)
    stage.tick()  # one job alone
    fill(stage, 620)  # more than the queue's window
    stage.tick()
    stage.end(SUCCEEDED)
    stage.tick(3600.0)
    stage.backend.state = PENDING
    stage.backend.starts = {"near": stage.now + 500.0}
    stage.tick(90_000.0)  # all of them overdue
    for row in stage.ledger.open_jobs()[:3]:
        stage.ledger.ask_cancel(row.id, stage.now)
    stage.tick(120.0)
    after = compiled()
    assert {name: after[name] - before.get(name, set()) for name in after if after[name] != before.get(name)} == {}
    stage.ledger.close()


@pytest.mark.sampled
@pytest.mark.parametrize("policy", share(sorted(POLICIES), 3))
def test_no_pass_with_quotas_compiles_either(tmp_path, policy):
    stage = Stage(tmp_path, [pool("near", 4, backend="slurm"), pool("far", 3, backend="slurm")], policy=policy)
    stage.router = stage.another("limited", quotas=Quotas(users={"ada": Quota(chips=2)}))
    for function in dispatchers():
        function._reset_overloads()
    stage.router.planner.warm()
    before = compiled()
    for owner, count in (("ada", 1), ("ada", 6), ("bob", 6), ("ada", 620)):
        for _ in range(count):
            stage.submit(job("run", owner=owner), option("near", 3600.0), option("far", 5000.0))
        stage.tick(5.0)
    after = compiled()
    assert {name: after[name] - before.get(name, set()) for name in after if after[name] != before.get(name)} == {}
    stage.ledger.close()


def test_a_router_that_is_told_to_stop_while_it_compiles_leaves_at_once(tmp_path):
    stage = Stage(tmp_path, [pool("near")], {"slurm": Scripted("slurm")})
    stage.submit(job("run"), option("near"))

    def endless(state):
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            time.sleep(60)

    stage.router.planner.policy = endless
    with _leaving_when_asked(stage.router):
        assert run(stage.router) == 0
    assert stage.router.stopping.is_set() and not stage.router.planner.warming and not stage.router.planner.warmed
    assert stage.ledger.routers()[0].stopped is not None and stage.ledger.attempts() == []
    stage.ledger.close()


def test_the_ledger_hears_of_a_router_while_it_compiles(stage_of_one):
    beats = []
    real = stage_of_one.ledger.heartbeat
    stage_of_one.ledger.heartbeat = lambda *a, **k: beats.append(a) or real(*a, **k)
    stage_of_one.router.warm()
    assert len(beats) >= 3
    beats.clear()
    stage_of_one.router.warm()
    assert beats == []  # once is enough


@pytest.fixture
def stage_of_one(tmp_path):
    stage = Stage(tmp_path, [pool("near", backend="slurm")])
    yield stage
    stage.ledger.close()


def test_long_compiling_is_told_to_a_log_that_nobody_watches(capsys, monkeypatch):
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    told = []
    with progress.waiting("compiling", every_s=0.01):
        until(lambda: told.append(capsys.readouterr().err) or "so far" in "".join(told))
    assert "".join(told).startswith("compiling (0 s so far)\n")

"""Real programs that are stopped, or whose process is killed, go on from their checkpoints."""

import signal
import sys
import time

import pytest

from chipwise.predict.estimate import Estimate
from chipwise.route.backend import RUNNING
from chipwise.route.backends.local import processes
from chipwise.route.backends.local.backend import LocalBackend
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.launch import claim_of
from chipwise.route.ledger import NewJob, open_ledger
from chipwise.route.option import Option
from chipwise.route.policies import policy_named
from chipwise.route.pool import Pool
from chipwise.route.router import Router
from patience import PATIENCE_S

STEPS = 40
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
kept, told = Path(os.environ["CHIPWISE_CHECKPOINT"]) / "step", Path(os.environ["CHIPWISE_FOLDER"]) / "progress"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
step = int(kept.read_text()) if kept.exists() else 0
print("from step", step, flush=True)
while step < int(sys.argv[1]):
    time.sleep(0.05)
    step += 1
    for path, text in ((kept, str(step)), (told, str(step / int(sys.argv[1])))):
        draft = path.with_suffix(".new")
        draft.write_text(text)
        draft.replace(path)
"""


@pytest.mark.parametrize("how", ["preempted", "lost"])
def test_a_program_goes_on_from_its_checkpoint(tmp_path, how):
    (tmp_path / "kept").mkdir()
    command = (sys.executable, "-c", PROGRAM, str(STEPS))
    job = Job(
        "steps",
        (Variant("cpu", "cpu", 1, command=command),),
        retries=0,
        checkpoint=Checkpoint(restartable=True, every=0.1, folder=str(tmp_path / "kept")),
    )
    options = tuple(
        Option(pool, "cpu", 1, "", Estimate(2.0, 1.0, 4.0, "measured"), 1.0, 0.0) for pool in ("near", "far")
    )
    with open_ledger(str(tmp_path / "ledger.db")) as ledger:
        [number] = ledger.submit([NewJob(job, options, ())], time.time())
        backend = LocalBackend(tmp_path / "state")
        pools = [Pool(name, "local", "cpu", "cpu", 1) for name in ("near", "far")]
        router = Router(
            ledger,
            {"local": backend},
            pools,
            policy_named("fastest"),
            folders={"local": tmp_path / "state"},
            name="one",
        )
        ticked(router, lambda: [*(tmp_path / "state" / "attempts").glob("*/progress")])
        first = ledger.attempts()[0]
        progress = tmp_path / "state" / "attempts" / first.id / "progress"  # written after the step that it tells of
        ticked(router, lambda: float(progress.read_text()) >= 5 / STEPS)
        if how == "preempted":
            ledger.ask_stop(first.id, "preempt", time.time())
        else:
            claim = claim_of(tmp_path / "state" / "attempts" / first.id)
            processes.send(claim.pid, claim.start, signal.SIGKILL)
        ticked(router, lambda: not ledger.open_jobs())
        attempts = ledger.attempts()
        assert (
            [a.state for a in attempts] == [how, "succeeded"]
            and ledger.job(number).done == 1.0
            and ledger.check() == []
        )
        assert (
            how == "preempted" or attempts[1].pool != attempts[0].pool
        )  # not where it was lost, while there is another
        begun = [(tmp_path / "state" / "attempts" / a.id / "output").read_text().split()[-1] for a in attempts]
        assert begun[0] == "0" and int(begun[1]) >= 5  # nothing that was kept is done again
        kept = [e.data["done"] for e in ledger.events(number) if e.kind == "ended"]
        assert 5 / STEPS <= kept[0] < 1 and kept[1] == 1.0
        assert all(seen.state != RUNNING for seen in backend.list())


def ticked(router, true):
    until = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < until, router.ledger.totals()
        router.tick()
        time.sleep(0.02)

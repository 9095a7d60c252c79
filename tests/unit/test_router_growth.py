"""What a router keeps in memory does not grow with what it has done."""

import gc
import tracemalloc

from route_backend import Scripted
from route_cases import job, option, pool
from test_route_router import Stage

from chipwise.cli import router_log
from chipwise.cli.router_log import RouterLog
from chipwise.present.text import plain
from chipwise.route.backend import SUCCEEDED
from chipwise.route.load import Pools


class Forgetful(Scripted):
    """A backend that forgets what has ended, as real ones do."""

    def list(self):
        shown = super().list()
        self.jobs = {}
        return shown


def stage_of(tmp_path):
    backend = Forgetful("local")
    backend.state = SUCCEEDED  # it ends at once
    return Stage(tmp_path, [pool("near", 4)], {"local": backend})


def test_the_log_keeps_the_last_lines_alone_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(router_log, "KEPT_LINES", 5)
    stage = stage_of(tmp_path)
    log = RouterLog(stage.router, Pools(tuple(stage.pools), tmp_path), 2.0, quiet=True)
    for n in range(20):
        log.say(f"line {n}")
    shown = "\n".join(plain(block) for block in log.blocks())
    assert len(log.lines) == 5 and log.said == 21
    assert shown.splitlines() == ["(16 lines before these are not kept)", *(f"line {n}" for n in range(15, 20))]
    stage.ledger.close()


def test_memory_does_not_grow_with_passes_and_ended_jobs(tmp_path, monkeypatch):
    """Objects that stay after passes with ends: none, once all that has a bound has reached it."""
    monkeypatch.setattr(router_log, "KEPT_LINES", 20)
    stage = stage_of(tmp_path)
    log = RouterLog(stage.router, Pools(tuple(stage.pools), tmp_path), 2.0, quiet=True)

    def passes(count):
        for _ in range(count):
            stage.submit(job("true"), option("near"))
            log.tick(stage.tick())
            stage.backend.launches.clear()
            stage.backend.calls.clear()

    def size():
        gc.collect()
        return sum(s.size for s in tracemalloc.take_snapshot().filter_traces(OURS).statistics("filename"))

    passes(60)
    tracemalloc.start()
    try:
        passes(30)
        before = size()
        passes(150)
        grown = size() - before
    finally:
        tracemalloc.stop()
        assert stage.ledger.totals()["jobs"]["succeeded"] > 200
        stage.ledger.close()
    assert grown < 150 * 300, f"{grown / 150:.0f} bytes a pass"  # an ended job that stays is 480 and more


OURS = [tracemalloc.Filter(True, "*/chipwise/*")]

"""Programs that put into their own attempt's folder whatever could hold up, fill or end a router; others must not notice."""

import subprocess
import time
import unicodedata

import chaos
import pytest
from hostile_jobs import HOSTILE, job

from chipwise.route.ledger import open_ledger
from patience import PATIENCE_S, until

pytestmark = pytest.mark.service

POOLS = """
folder: {folder}
pools:
  - {{name: near, backend: local, chip: cpu, count: 2}}
"""


def test_programs_of_all_kinds_at_once_stop_nobody(tmp_path):
    others_go_on(HOSTILE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_what_a_program_leaves_in_its_folder_stops_nobody(what, tmp_path):
    others_go_on([what], tmp_path)


def others_go_on(kinds, tmp_path):
    (tmp_path / "pools.yaml").write_text(POOLS.format(folder=tmp_path / "state"), encoding="utf-8")
    url = str(tmp_path / "ledger.db")
    with open_ledger(url) as ledger:
        hostile = ledger.submit([job(what, HOSTILE[what]) for what in kinds], time.time())
        innocent = ledger.submit(chaos.jobs(tmp_path / "logs", 2, [chaos.option("near", 0.1)], (0.2,)), time.time())
    words = ("--pools", tmp_path / "pools.yaml", "--ledger", url, "--policy", "fastest", "--interval", "0.1s")
    with (tmp_path / "said").open("wb") as out:
        router = subprocess.Popen(
            chaos.command("router", "run", *words), stdout=out, stderr=subprocess.STDOUT, env=chaos.environment()
        )
    try:
        with open_ledger(url) as ledger:

            def settled():
                first = [ledger.attempts(one)[:1] for one in hostile]
                return router.poll() is not None or (
                    {ledger.job(one).state for one in innocent} == {"succeeded"}
                    and all(attempts and attempts[0].ended for attempts in first)
                )

            until(settled, lambda: (tmp_path / "said").read_text("utf-8"), step=0.1)
            assert router.poll() is None, (tmp_path / "said").read_text("utf-8")
            assert {ledger.job(one).state for one in innocent} == {"succeeded"}
            firsts = [ledger.attempts(one)[0] for one in hostile]
            assert {first.state for first in firsts} <= {"failed", "lost", "succeeded"}, firsts
            assert ledger.backends()[0].ok, ledger.backends()
    finally:
        router.terminate()
        said = (tmp_path / "said").read_text("utf-8")
        assert router.wait(PATIENCE_S) == 0, said
    assert not [c for c in said if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"]
    assert not [line for line in said.splitlines() if line.startswith("04:00:00 job 99")]

"""The lanes of the tests themselves: what runs where, what a change calls for, and what is too expensive."""

import os
import subprocess
import sys
import tomllib

import pytest

import lane
from scratch import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from slow_tests import TABLE, called_for

SLOW = tomllib.loads((ROOT / TABLE).read_text(encoding="utf-8"))
LIMITED = """
import sys
sys.path.insert(0, {tests!r})
import lane
lane.CPU_LIMIT_S = 0.2
from conftest_of_chipwise import pytest_runtest_call, pytest_runtest_makereport, pytest_runtest_setup
"""
SPENDS = """
import time, pytest

def spend():
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass

def test_cheap(): pass
def test_waits(): time.sleep(0.5)
def test_expensive(): spend()
@pytest.mark.slow
def test_marked(): spend()
"""


def test_a_test_that_takes_more_cpu_than_it_may_fails_unless_it_is_marked_slow(tmp_path):
    (tmp_path / "conftest_of_chipwise.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "conftest.py").write_text(LIMITED.format(tests=str(ROOT / "tests")))
    (tmp_path / "test_it.py").write_text(SPENDS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\n")
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", str(tmp_path)]
    environment = {**os.environ, "PYTEST_XDIST_WORKER": "gw0"}  # no scratch folder of its own
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED test_it.py::test_expensive" in done.stdout and "mark it slow" in done.stdout
    assert "1 failed, 3 passed" in done.stdout


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/unit/test_a.py::test_b[c]", "tests/unit/test_a.py"),
        ("tests/e2e/test_docs.py::test_c[check.md: chipwise check a:b]", "tests/e2e/test_docs.py::check.md"),
        ("tests/property/test_a.py::test_b[c]", "tests/property/test_a.py::test_b[c]"),
    ],
)
def test_tests_that_share_what_they_start_go_to_one_process(nodeid, scope):
    assert lane.scope(nodeid) == scope


def test_shards_are_a_partition(request):
    items = request.session.items
    scopes = [lane.shard(items, f"{number}/3") for number in (1, 2, 3)]
    assert set.union(*scopes) == {lane.scope(item.nodeid) for item in items}
    assert sum(map(len, scopes)) == len(set.union(*scopes))


@pytest.mark.parametrize("part", ["0/3", "4/3"])
def test_a_shard_that_is_none_is_refused(part):
    with pytest.raises(pytest.UsageError, match="expected a part such as 1/3"):
        lane.shard([], part)


def test_a_change_calls_for_its_own_slow_tests_within_the_budget():
    run, beyond = called_for(SLOW, ["src/chipwise/launch/vllm.py"])
    launched = ["tests/e2e/test_launch_parsers.py", "tests/e2e/test_launch_starts.py"]
    assert [row["tests"] for row in run] == [launched] and not beyond
    run, beyond = called_for(SLOW, [TABLE])
    assert len(run) + len(beyond) == len(SLOW["row"]) and beyond
    assert sum(row["minutes"] for row in run) <= SLOW["budget_minutes"]
    assert called_for(SLOW, ["README.md"]) == ([], [])


@pytest.mark.parametrize("row", SLOW["row"], ids=lambda row: row["tests"][0])
def test_the_table_of_slow_tests_names_files_that_are_there_and_have_some(row):
    for path in row["changed"]:
        assert (ROOT / path).exists(), path
    assert all("slow" in (ROOT / path).read_text(encoding="utf-8") for path in row["tests"])

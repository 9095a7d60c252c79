"""A job that its backend starts again: what a signal ended goes on, what ended by itself stays ended."""

import json
import os
import subprocess
import sys

import pytest
from route_cases import launch

from chipwise.route.backends import shim
from patience import PATIENCE_S


def shimmed(made, by="7", **variables):
    """The shim as a backend starts it; its status."""
    line = [sys.executable, "-I", "-S", shim.__file__, str(made.folder), by]
    return subprocess.run(
        line, env={"PATH": os.environ["PATH"], **variables}, capture_output=True, check=False, timeout=PATIENCE_S
    ).returncode


def read(made, name):
    return json.loads((made.folder / name).read_text())


def leave(made, **end):
    """The claim and the end of an earlier start."""
    (made.folder / "claim").write_text(json.dumps({"by": "7", "at": 1.0, "restarts": 1}))
    if end:
        (made.folder / "end").write_text(
            json.dumps({"by": "7", "started": 1.0, "ended": 2.0, "told": 0, "reason": "", **end})
        )


@pytest.mark.parametrize(
    "end",
    [{"exit_code": 143, "told": 15}, {"exit_code": 1, "told": 15}, {"exit_code": 137}, {}],
    ids=["told", "told, and left with 1", "killed", "without an end"],
)
def test_what_a_signal_ended_goes_on(tmp_path, end):
    made = launch(tmp_path, "sh", "-c", "echo again")
    leave(made, **end)
    assert shimmed(made) == 0 and (made.folder / "output").read_text() == "again\n"
    assert read(made, "end")["exit_code"] == 0 and read(made, "claim")["restarts"] == 2


@pytest.mark.parametrize("code", [0, 3])
def test_what_ended_by_itself_stays_ended(tmp_path, code):
    made = launch(tmp_path, "sh", "-c", "echo again")
    leave(made, exit_code=code)
    assert shimmed(made) == code and not (made.folder / "output").exists() and read(made, "claim")["restarts"] == 1


def test_what_must_run_once_is_not_started_again(tmp_path):
    made = launch(tmp_path, "sh", "-c", "echo run")
    assert shimmed(made, CHIPWISE_ONCE="1") == 0
    for end in ({"exit_code": 143, "told": 15}, {}):
        (made.folder / "end").unlink(missing_ok=True)
        leave(made, **end)
        assert shimmed(made, CHIPWISE_ONCE="1") == shim.ONCE
    assert (made.folder / "output").read_text() == "run\n"


def test_a_start_that_was_overtaken_writes_no_end(tmp_path):
    take = "import json, sys; json.dump({'by': '7', 'pid': 1, 'host': 'another', 'at': 2.0}, open('claim', 'w'))"
    made = launch(tmp_path, sys.executable, "-c", take)
    assert shimmed(made) == 0 and not (made.folder / "end").exists() and read(made, "claim")["host"] == "another"


def test_a_backends_words_come_before_the_programs(tmp_path):
    made = launch(tmp_path, "echo", "a  b")
    (made.folder / "before.json").write_text(
        json.dumps({"argv": ["env", "X=$(id)", "sh", "-c", 'echo "$X"; exec "$@"', "sh"]})
    )
    assert shimmed(made) == 0 and (made.folder / "output").read_text() == "$(id)\na  b\n"
    (made.folder / "claim").unlink()
    (made.folder / "before.json").write_text("[")
    assert shimmed(made) == shim.UNREADABLE

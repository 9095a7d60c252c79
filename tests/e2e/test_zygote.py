"""A command of the tests that is given up is ended with everything that it has started."""

import os
import subprocess
from pathlib import Path

import pytest
from zygote import Zygote

from patience import until

HANGS = """
import subprocess
from pathlib import Path

child = subprocess.Popen(["sleep", "600"], start_new_session=True)
Path("pid").write_text(str(child.pid))
child.wait()
"""


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_that_is_given_up_is_ended_with_all_that_it_has_started(tmp_path):
    zygote, pid = Zygote(), tmp_path / "pid"
    (tmp_path / "hangs.py").write_text(HANGS)
    limit_s = 5.0
    while not pid.exists():  # given up before it began, on a busy machine
        with pytest.raises(subprocess.TimeoutExpired):
            zygote.run(["numerics", "hangs.py"], tmp_path, dict(os.environ), limit_s)
        limit_s *= 2
    assert zygote.process is None
    until(lambda: not running(int(pid.read_text())), "what the command started lives on")

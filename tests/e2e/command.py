"""Runs the command line as people do: another process, its exit status, stdout and stderr."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "examples" / "llama-3.1-8b-pretrain.yaml")


def chipwise(*arguments, cwd=ROOT, env=None):
    """The finished process of `chipwise ARGUMENTS`."""
    line = [sys.executable, "-m", "chipwise", *map(str, arguments)]
    return subprocess.run(line, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)


def good(*arguments, **more):
    """The output of a command that must succeed and say nothing on stderr."""
    done = chipwise(*arguments, **more)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout

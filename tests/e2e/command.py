"""Runs the command line as people do: another process, its exit status, stdout and stderr."""

import io
import os
import re
import subprocess
import sys
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from zygote import Zygote

from patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "examples" / "llama-3.1-8b-pretrain.yaml")


ZYGOTE = Zygote()
ANNOUNCED = re.compile(r"chipwise: compiling for this machine|checking .* s so far")


def chipwise(*arguments, cwd=ROOT, env=None):
    """The finished process of `chipwise ARGUMENTS`."""
    words, variables = list(map(str, arguments)), os.environ if env is None else env
    return ZYGOTE.run(words, cwd, variables, PATIENCE_S) or chipwise_alone(*words, cwd=cwd, env=variables)


def chipwise_alone(*arguments, cwd=ROOT, env=None):
    """The same in a process that shares nothing with others, not even how strings are hashed."""
    line = [sys.executable, "-m", "chipwise", *map(str, arguments)]
    return subprocess.run(line, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@contextmanager
def running(*arguments, cwd=ROOT, env=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """`chipwise ARGUMENTS` while it runs; whatever happens, it has ended after the block."""
    line = [sys.executable, "-m", "chipwise", *map(str, arguments)]
    process = subprocess.Popen(line, cwd=cwd, env=env, stdout=stdout, stderr=stderr, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(text):
    """The lines on stderr without those that announce a compile, which a cold cache needs."""
    return [line for line in text.splitlines() if not ANNOUNCED.match(line)]


def good(*arguments, **more):
    """The output of a command that must succeed and say nothing on stderr but that something is compiled."""
    done = chipwise(*arguments, **more)
    assert (done.returncode, said(done.stderr)) == (0, []), done.stderr
    return done.stdout


def chipwise_here(*arguments, cwd=ROOT, env=None):
    """The same without another process, where that would add nothing but the time in which Python starts."""
    from chipwise.cli.main import run

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    words = [str(word) for word in arguments]
    with (
        chdir(cwd),
        patch.dict(os.environ, os.environ if env is None else env, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = run(words)
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode("utf-8"))
    return subprocess.CompletedProcess(words, status, *said)


def good_here(*arguments, **more):
    """The same without another process."""
    done = chipwise_here(*arguments, **more)
    assert (done.returncode, said(done.stderr)) == (0, []), done.stderr
    return done.stdout

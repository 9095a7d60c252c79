"""Commands without the second in which Python starts and imports: each runs in a fork of a process that has all loaded.

What a command does is as in a process of its own: its arguments, folder, environment, streams, exit status and end. As a
script it is that process: it reads requests, a line of JSON each, and answers with the exit status.
"""

import atexit
import gc
import json
import os
import pkgutil
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import defaultdict
from contextlib import suppress
from importlib import import_module
from pathlib import Path

# read when Python or a library starts: who changes these needs a process of its own
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "NUMBA_", "MPL")
HEAVY = (
    "chipwise.bench.frameworks",
    "chipwise.compiled.loaders",
    "chipwise.programs.",
    "chipwise.calibrate.__main__",
    "chipwise.compiled.worker.worker",
    "chipwise.numerics.torch",
    "chipwise.numerics.jax",
    "chipwise.numerics.presets.torch",
    "chipwise.numerics.presets.jax",
    "chipwise.route.backends.ray.",
    "chipwise.__main__",
)  # import a framework, or are programs


class Zygote:
    """The process with everything loaded; started at the first command."""

    def __init__(self):
        self.process, self.started_with = None, {}
        self.cpu_seconds = 0.0  # of all commands, and of what they waited for

    def run(self, words, cwd, env, timeout):
        """The finished `chipwise WORDS`, or None if these variables take a process of their own."""
        if self.process is None:
            self.started_with = dict(os.environ)
            self.process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
            atexit.register(self.end)
        if any(
            name.startswith(AT_START) and self.started_with.get(name) != env.get(name)
            for name in {*env, *self.started_with}
        ):
            return None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            ask = {"words": words, "cwd": str(cwd), "env": dict(env), "out": str(out), "err": str(err)}
            self.process.stdin.write(json.dumps(ask).encode() + b"\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], timeout)[0]:
                self.end()
                raise subprocess.TimeoutExpired(words, timeout)
            status, seconds = self.process.stdout.readline().split()
            self.cpu_seconds += float(seconds)
            return subprocess.CompletedProcess(words, int(status), *(path.read_bytes().decode() for path in (out, err)))

    def end(self):
        """End it, the command that it runs, and whatever that has started."""
        if self.process is not None:
            for pid in (self.process.pid, *descendants(self.process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.communicate()
            self.process = None


def descendants(pid):
    """The children of a process, and theirs."""
    children = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = entry.read_text().rpartition(")")[2].split()[1]
            children[int(parent)].append(int(entry.parent.name))
    out, queue = [], [pid]
    while queue:
        queue += (below := children[queue.pop()])
        out += below
    return out


def load():
    """Import whatever commands import, but for frameworks."""
    import chipwise
    from chipwise.catalog import load as catalog
    from chipwise.cli.main import command as verbs

    for module in pkgutil.walk_packages(chipwise.__path__, "chipwise."):
        if not module.name.startswith(HEAVY):
            import_module(module.name)
    for name in (
        "matplotlib.figure",
        "matplotlib.backends.backend_svg",
        "matplotlib.backends.backend_agg",
        "rich.table",
    ):
        import_module(name)
    assert not {"torch", "jax", "ray"} & set(sys.modules), (
        "what commands import themselves, in part in processes of their own"
    )
    catalog()
    dict(verbs().commands)  # all of them made once
    gc.collect()
    gc.freeze()  # what is loaded stays shared with every fork


def serve():
    """Answer requests until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    load()
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            os._exit(command(**json.loads(line)))
        _, status, usage = os.wait4(child, 0)
        seconds = usage.ru_utime + usage.ru_stime
        print(os.waitstatus_to_exitcode(status), seconds, file=answers, flush=True)


def command(words, cwd, env, out, err):
    """One command in this fork; its exit status."""
    from chipwise.cli.main import main

    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    random.seed()
    files = (os.devnull, os.O_RDONLY), (out, os.O_WRONLY | os.O_CREAT), (err, os.O_WRONLY | os.O_CREAT)
    for descriptor, (path, flags) in enumerate(files):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv, sys.path[0] = ["chipwise", *words], cwd
    try:
        main()
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120  # as Python leaves then
    return status


if __name__ == "__main__":
    serve()

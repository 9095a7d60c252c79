"""A real PostgreSQL of one's own: made in a temporary folder, reached through a socket there, stopped at the end."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from patience import PATIENCE_S
from scratch import short_folder

USER = "chipwise"  # as the server knows it
SERVER = "postgres"  # the system's user: PostgreSQL refuses to run as root


def binary(name):
    """A program of PostgreSQL's. Without it the tests fail: a ledger that was not tried is not known to work."""
    places = [
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
        *map(Path, os.environ["PATH"].split(":")),
    ]
    found = next((place / name for place in places if (place / name).is_file()), None)
    assert found is not None, (
        f"{name} is missing: install PostgreSQL, e.g. apt-get install postgresql (scripts/packages.sh)"
    )
    return str(found)


class PostgresServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self, folder):
        self.folder, self.data, self.process = Path(folder), Path(folder) / "data", None
        self.port = 5432  # part of the socket's name
        self.as_user = {"user": SERVER} if os.geteuid() == 0 else {}
        if self.as_user:
            shutil.chown(folder, SERVER)
        self._run("initdb", "-D", self.data, "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")

    def start(self, *settings):
        """Start it with these settings, and wait until it answers."""
        # listens on no address unless a setting says so: only those who can reach the folder can reach it
        line = [
            binary("postgres"),
            "-D",
            self.data,
            "-k",
            self.folder,
            "-c",
            "listen_addresses=",
            "-c",
            f"port={self.port}",
            "-c",
            "max_connections=40",
            *(word for setting in settings for word in ("-c", setting)),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(line, stdout=log, stderr=log, cwd=self.folder, **self.as_user)
        until = time.monotonic() + PATIENCE_S
        ready = [binary("pg_isready"), "-h", str(self.folder), "-p", str(self.port), "-U", USER, "-d", "postgres"]
        while subprocess.run(ready, capture_output=True, check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self):
        """Stop it as a power cut would: nothing is said to its clients, and it recovers when it starts again."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(3)  # SIGQUIT: immediate shutdown
            self.process.wait(PATIENCE_S)

    def kill(self):
        """Kill the server as the kernel would that has no memory left, and start it again once its processes are gone."""
        theirs = self.processes()
        self.process.kill()
        self.process.wait()
        until = time.monotonic() + PATIENCE_S
        while any(Path(f"/proc/{pid}").exists() for pid in theirs):
            assert time.monotonic() < until, theirs
            time.sleep(0.02)
        self.start()

    def processes(self):
        """All processes that the server has started."""
        return [
            int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def backends(self, name):
        """The server's processes for a database, this question's own left out."""
        query = f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        words = ["psql", "-At", "-h", self.folder, "-U", USER, "-d", "postgres", "-c", query]
        done = subprocess.run([binary(words[0]), *map(str, words[1:])], check=True, capture_output=True, text=True)
        return [int(pid) for pid in done.stdout.split()]

    @contextmanager
    def silent(self, pids, whole=False):
        """Stop backends where they are, and the server with them if wanted: connections stay open and say nothing."""
        stopped = [*pids, *([self.process.pid] if whole else ())]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def database(self, name):
        """A new database; its URL, with a password that no one asks for and no message may show."""
        self._run("createdb", "-h", self.folder, "-U", USER, name)
        return f"postgresql://{USER}:hunter2@/{name}?host={self.folder}"

    def _run(self, name, *arguments):
        subprocess.run(
            [binary(name), *map(str, arguments)], check=True, capture_output=True, cwd=self.folder, **self.as_user
        )


@contextmanager
def postgres_server():
    """A running server, stopped and taken away at the end, whatever happens."""
    folder = short_folder("pg")
    server = None
    try:
        server = PostgresServer(folder)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)

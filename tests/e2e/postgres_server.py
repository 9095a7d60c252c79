"""A real PostgreSQL of one's own: made in a temporary folder, reached through a socket there, stopped at the end."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
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
        self.as_user = {"user": SERVER} if os.geteuid() == 0 else {}
        if self.as_user:
            shutil.chown(folder, SERVER)
        self._run("initdb", "-D", self.data, "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")

    def start(self):
        """Start it, and wait until it answers."""
        # listens on no address: only those who can reach the folder can reach it
        line = [
            binary("postgres"),
            "-D",
            self.data,
            "-k",
            self.folder,
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=40",
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(line, stdout=log, stderr=log, cwd=self.folder, **self.as_user)
        until = time.monotonic() + PATIENCE_S
        ready = [binary("pg_isready"), "-h", str(self.folder), "-U", USER, "-d", "postgres"]
        while subprocess.run(ready, capture_output=True, check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self):
        """Stop it as a power cut would: nothing is said to its clients, and it recovers when it starts again."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(3)  # SIGQUIT: immediate shutdown
            self.process.wait(PATIENCE_S)

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

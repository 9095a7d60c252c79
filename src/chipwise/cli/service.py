"""chipwise service: a ledger behind a unix socket, for people who are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chipwise.cli.declare import group, option
from chipwise.cli.options import OutFile, TableJson
from chipwise.cli.router import LedgerOpt, PoolsFile

EXAMPLES = """\b
Examples:
  chipwise service run --pools pools.yaml --socket /run/chipwise/service.sock
  chipwise service whoami --ledger unix:///run/chipwise/service.sock
"""
RUN_EXAMPLES = """\b
Examples:
  chipwise service run --pools pools.yaml --socket /run/chipwise/service.sock
  chipwise service run --pools pools.yaml --socket /run/chipwise/service.sock --ledger postgresql://db.example.org/jobs
"""
WHOAMI_EXAMPLES = """\b
Examples:
  chipwise service whoami --ledger unix:///run/chipwise/service.sock
"""

app = group("service", "Let people submit and see jobs as themselves, by a unix socket.", EXAMPLES)


@app.command("run", epilog=RUN_EXAMPLES)
def run(
    pools: PoolsFile,
    socket: Annotated[
        Path, option("--socket", "PATH", "Listen on a unix socket: who connects is who the system says.")
    ],
    ledger: LedgerOpt = "",
) -> None:
    """Answer until told to stop: submissions, reads and commands, each as far as the sender's role allows.

    Roles, teams and quotas are those of `access` in the pools file, read again when it changes. Jobs
    are checked and estimated here, whatever the client says of them, and belong to who sends them.
    """
    import signal
    import threading

    from chipwise.service.service import Service, ServiceOptions

    stopping = threading.Event()
    with Service(ServiceOptions(pools, socket, ledger), _say) as service:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        _say(f"service: {service.address}; ledger {service.ledger}")
        stopping.wait()
    _say("service: stopped")


def _say(line: str) -> None:
    """One line, whatever a client wrote into it."""
    import sys
    from contextlib import suppress
    from datetime import UTC, datetime

    from chipwise.present.safe import safe

    with suppress(OSError):  # whoever reads the lines may leave: the service goes on
        sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {safe(line)}\n")
        sys.stdout.flush()


@app.command("whoami", epilog=WHOAMI_EXAMPLES)
def whoami(ledger: LedgerOpt = "", output: TableJson = "table", out: OutFile = None) -> None:
    """Who you are to a service: user, role, team, and what vouches for you."""
    from chipwise.present import output as present
    from chipwise.service import results

    present.show(results.whoami(ledger), output, out)

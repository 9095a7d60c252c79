"""How many jobs a second the ledger takes: one by one, each on the disk before the next, and many a transaction.

Run with `python benchmarks/router_ledger.py [POSTGRESQL_URL]`. Without a URL a PostgreSQL of this machine's own is
started in a temporary folder, with its own settings (fsync on), and stopped at the end.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "e2e"), str(ROOT / "tests")]

from ledger_cases import start, submission  # noqa: E402
from postgres_server import postgres_server  # noqa: E402

from chipwise.route.ledger import open_ledger  # noqa: E402

BATCH = 500
SECONDS = 3.0
TARGET = 1000  # submissions a second


def rate(step, count):
    """Things done a second, over about three seconds."""
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        step()
        done += count
    return done / (time.perf_counter() - began)


def disk(folder):
    """How often a second the disk itself keeps a page: the most that one by one can reach on it."""
    with (Path(folder) / "page").open("wb", buffering=0) as page:

        def kept():
            page.write(bytes(4096))
            os.fsync(page.fileno())

        found = rate(kept, 1)
    print(f"{'disk':11} 4 KiB written and synchronised {found:8,.0f}/s: the most that one by one can reach")


def measure(name, url):
    with open_ledger(url) as ledger:
        one = rate(lambda: ledger.submit([submission()], time.time()), 1)
        batch = [submission(f"job {i}", "") for i in range(BATCH)]
        many = rate(lambda: ledger.submit(batch, time.time()), BATCH)
        waiting = iter(ledger.jobs(state="pending", limit=400))

        def decided():
            made = ledger.decide("r", "fastest", [start(next(waiting).id)], time.time(), 30.0, {"h100": 10**9})
            ledger.mark_submitted(made[0].id, made[0].id, time.time())

        began, count = time.perf_counter(), 100
        for _ in range(count):
            decided()
        steps = count / (time.perf_counter() - began)
        began = time.perf_counter()
        changed = len(ledger.open_jobs())
        reading = changed / (time.perf_counter() - began)
        sound = ledger.check() == []
    print(
        f"{name:11} one by one {one:8,.0f}/s   {BATCH} a transaction {many:8,.0f}/s (target {TARGET:,}: "
        f"{'met' if many >= TARGET else 'MISSED'})   decided and handed over {steps:6,.0f}/s   "
        f"read back {reading:9,.0f}/s   {'sound' if sound else 'NOT SOUND'}"
    )
    return many >= TARGET and sound


def main(url=""):
    with tempfile.TemporaryDirectory() as folder:
        disk(folder)
        good = measure("SQLite", str(Path(folder) / "ledger.db"))
    if url:
        good &= measure("PostgreSQL", url)
    else:
        with postgres_server() as server:
            good &= measure("PostgreSQL", server.database("ledger"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))

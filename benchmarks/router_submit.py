"""How many jobs a second PostgreSQL takes from clients that submit one by one, each told when it is on the disk.

    python benchmarks/router_submit.py [POSTGRESQL_URL] [--clients 8] [--seconds 4]

Without a URL a PostgreSQL of this machine's own is started in a temporary folder, with its own settings (fsync on), and
stopped at the end. In the same run: the disk's own rate, one client, all clients as the ledger does it, and all clients
with the writers' lock held until the disk has answered, as it was before commits were grouped; then the last two again
with a disk that takes 5 ms (`commit_delay`). CPU milliseconds are of clients and server together: the machine's cores
over that is the most it can take.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "e2e"), str(ROOT / "tests")]

from ledger_cases import submission  # noqa: E402
from postgres_server import postgres_server  # noqa: E402

from chipwise.route.ledger import open_ledger  # noqa: E402
from chipwise.route.ledger.postgres import PostgreSQL  # noqa: E402

TARGET = 1_000  # submissions a second with eight clients


def hold_through_the_disk() -> None:
    """Let a commit wait for the disk with the writers' lock, one after the other."""
    PostgreSQL._grouped = False


def client(url: str, seconds: float, apart: bool, ready: Any, counts: Any) -> None:
    if apart:
        hold_through_the_disk()
    with open_ledger(url) as ledger:
        ledger.submit([submission()], time.time())
        [(server,)] = ledger._db.all("SELECT pg_backend_pid()")
        ready.wait()
        began, cpu, theirs, done = time.perf_counter(), time.process_time(), cpu_of(server), 0
        while time.perf_counter() - began < seconds:
            ledger.submit([submission()], time.time())
            done += 1
        spent = time.process_time() - cpu, cpu_of(server) - theirs
        counts.put((done / (time.perf_counter() - began), *spent, done))


def rate(url: str, clients: int, seconds: float, apart: bool = False) -> tuple[float, float]:
    """Submissions a second of all clients together, and CPU milliseconds of clients and server for each."""
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Barrier(clients), context.Queue()
    processes = [context.Process(target=client, args=(url, seconds, apart, ready, counts)) for _ in range(clients)]
    for process in processes:
        process.start()
    found = [counts.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    return sum(r for r, _, _, _ in found), 1e3 * sum(c + s for _, c, s, _ in found) / sum(n for _, _, _, n in found)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process; 0 where it is on another machine."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def disk(folder: str, seconds: float) -> float:
    """How often a second the disk itself keeps a page."""
    with (Path(folder) / "page").open("wb", buffering=0) as page:
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            page.seek(0)
            page.write(bytes(8192))
            os.fdatasync(page.fileno())
            done += 1
    return done / (time.perf_counter() - began)


def measure(url: str, args: argparse.Namespace) -> bool:
    """Print the figures; whether the target was met."""
    with tempfile.TemporaryDirectory() as folder:
        kept = disk(folder, 2.0)
    alone, alone_ms = rate(url, 1, args.seconds)
    print(f"disk: 8 KiB written and synchronised {kept:,.0f}/s; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"submissions one by one: 1 client {alone:,.0f}/s, {alone_ms:.2f} ms of CPU each")
    best = compared(url, args, "this disk")
    with open_ledger(url) as ledger:
        ledger._db.run("ALTER SYSTEM SET commit_siblings = 0")
        ledger._db.run("ALTER SYSTEM SET commit_delay = 5000")
        ledger._db.run("SELECT pg_reload_conf()")
        time.sleep(0.5)
        compared(url, args, "a disk that takes 5 ms")
        ledger._db.run("ALTER SYSTEM RESET ALL")
        sound = ledger.check() == []
    verdict, state = "met" if best >= TARGET else "MISSED", "sound" if sound else "NOT SOUND"
    print(f"at least {TARGET:,}/s with {args.clients} clients: {verdict}; the ledger is {state}")
    return best >= TARGET and sound


def compared(url: str, args: argparse.Namespace, where: str) -> float:
    """Print submissions a second with each commit alone and grouped; the latter."""
    before, before_ms = rate(url, args.clients, args.seconds, apart=True)
    after, after_ms = rate(url, args.clients, args.seconds)
    cores = os.cpu_count() or 1
    print(
        f"  {args.clients} clients, {where}: each commit alone {before:,.0f}/s, grouped {after:,.0f}/s, "
        f"{after / before:.2f} times as many; CPU {before_ms:.2f} and {after_ms:.2f} ms each, "
        f"which {cores} cores could do {1e3 * cores / after_ms:,.0f} times a second"
    )
    return after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="", help="of a PostgreSQL; one of its own where none is given")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    args = parser.parse_args()
    if args.url:
        return 0 if measure(args.url, args) else 1
    with postgres_server() as server:
        return 0 if measure(server.database("ledger"), args) else 1


if __name__ == "__main__":
    raise SystemExit(main())

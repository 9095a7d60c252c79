"""Records what a released chipwise leaves in its ledger, as SQL text: `python tests/ledgers/record.py CHECKOUT OUT.sql`.

Run it with a checkout of that release; its own command line does everything. The ledger then holds a job of every state,
a key, two attempts of one job, a cancellation, and a job that a router was killed over. Those before version 3 hold a
name with a mark of text direction too, which no release has taken since.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

JOBS = """
jobs:
  - {name: hello, owner: ada, key: "first, once", command: [echo, hello], estimates: {cpu: 1s}}
  - {name: fails, owner: ada, command: ["false"], estimates: {cpu: 1s}, retries: 1}
  - {name: given up, owner: ada, command: ["false"], estimates: {cpu: 1s}, retries: 0}
  - {name: cancelled, owner: bob, command: [sleep, "600"], estimates: {cpu: 10m}}
  - {name: long, owner: bob, command: [sleep, "600"], estimates: {cpu: 10m}, budget: 100}
  - {name: "waits \\u00e9", owner: bob, command: [sleep, "600"], estimates: {cpu: 10m}, deadline: 3d}
"""


def main(checkout: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        word = "engine" if (checkout / "src/chipwise/route/engines").exists() else "backend"
        (folder / "jobs.yaml").write_text(JOBS)
        (folder / "pools.yaml").write_text(
            f"folder: {folder}/attempts\n"
            f"pools: [{{name: cpu, {word}: local, chip: cpu, count: 1, price: 1, terms: owned, watts: 50}}]\n"
        )
        ledger = folder / "ledger.db"
        variables = {**os.environ, "PYTHONPATH": str(checkout / "src"), "CHIPWISE_LEDGER": str(ledger)}
        command = [sys.executable, "-m", "chipwise"]

        def run(*words: str) -> None:
            subprocess.run([*command, *words], env=variables, check=True, stdout=subprocess.DEVNULL)

        run("jobs", "submit", str(folder / "jobs.yaml"), "--pools", str(folder / "pools.yaml"))
        run("jobs", "cancel", "4")
        router = [*command, "router", "run", "--pools", str(folder / "pools.yaml"), "--policy", "cheapest"]
        process = subprocess.Popen([*router, "--interval", "0.2s"], env=variables, stdout=subprocess.DEVNULL)
        while not _running(ledger, "5"):
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        subprocess.run(["pkill", "-9", "-f", str(folder)], check=False)
        with sqlite3.connect(ledger) as db:
            text = "\n".join(db.iterdump()) + "\n"
        text = text.replace(str(folder), "/recorded").replace(os.uname().nodename, "recorded-host")
        out.write_text(text)


def _running(ledger: Path, job: str) -> bool:
    with sqlite3.connect(ledger) as db:
        return bool(db.execute("SELECT 1 FROM attempts WHERE job_id = ? AND state = 'running'", (job,)).fetchone())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

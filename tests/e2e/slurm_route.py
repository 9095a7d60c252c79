"""A ledger, a pools file and routers on a real Slurm cluster."""

import json
import subprocess
import sys

from command import ROOT, chipwise

from chipwise.route.ledger import open_ledger
from chipwise.route.ledger.records import OVER
from patience import until


class Site:
    """A team's site: its cluster, its pools file, its ledger."""

    def __init__(self, cluster, folder, v5e=8, h200=16, shapes=("2x2",)):
        self.cluster, self.folder = cluster, folder
        self.pools, self.url = folder / "pools.yaml", str(folder / "ledger.db")
        address = {"python": sys.executable}
        # JSON is YAML
        self.pools.write_text(
            json.dumps(
                {
                    "folder": str(folder / "shared"),
                    "backends": {"slurm": {"conf": str(cluster.conf), "timeout": 30}},
                    "pools": [
                        {
                            "name": "v5e",
                            "backend": "slurm",
                            "chip": "v5e",
                            "count": v5e,
                            "shapes": list(shapes),
                            "terms": "owned",
                            "price": 0.6,
                            "address": {"partition": "tpu", **address},
                        },
                        {
                            "name": "h200",
                            "backend": "slurm",
                            "chip": "h200",
                            "count": h200,
                            "terms": "owned",
                            "price": 1.8,
                            "address": {"partition": "gpu", "chips_per_node": 8, **address},
                        },
                    ],
                }
            )
        )

    def submit(self, *jobs):
        """Hand jobs in; their ids."""
        path = self.folder / "jobs.yaml"
        path.write_text(json.dumps({"jobs": list(jobs)}))
        answer = json.loads(self.said("jobs", "submit", path, "--pools", self.pools, "-o", "json"))
        return [job["id"] for job in answer["jobs"]]

    def said(self, *arguments):
        """What a command that must succeed says of the ledger."""
        done = chipwise(*arguments, "--ledger", self.url, env={**self.cluster.environment, "COLUMNS": "400"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def router(self, *more, policy="fastest"):
        """A router's process."""
        line = [
            sys.executable,
            "-m",
            "chipwise",
            "router",
            "run",
            "--pools",
            str(self.pools),
            "--policy",
            policy,
            "--ledger",
            self.url,
            "--interval",
            "0.2s",
            *more,
        ]
        log = (self.folder / "router.log").open("ab")
        with log:
            return subprocess.Popen(
                line, cwd=ROOT, env=self.cluster.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def row(self, job):
        """A job as the ledger has it."""
        with open_ledger(self.url) as ledger:
            return ledger.job(job)

    def attempts(self, job):
        """Its attempts."""
        with open_ledger(self.url) as ledger:
            return ledger.attempts(job)

    def output(self, attempt):
        """What an attempt's program printed."""
        (found,) = (self.folder / "shared").rglob(f"attempts/{attempt.id}/output")
        return found.read_text()

    def over(self, *jobs):
        """Wait until jobs are over."""
        until(lambda: all(self.row(job).state in OVER for job in jobs), lambda: f"{jobs} are not over: {self.log()}")

    def running(self, job):
        """Wait until a job runs; its attempt."""
        return until(
            lambda: next((a for a in self.attempts(job) if a.state == "running"), None),
            lambda: f"{job} does not run: {self.log()}",
        )

    def log(self):
        """The last words of the routers."""
        path = self.folder / "router.log"
        return path.read_text()[-3000:] if path.exists() else ""

    def explained(self, job):
        """What `jobs explain` says, on one line."""
        return " ".join(self.said("jobs", "explain", job).split())

"""Slurm's commands, run without a shell, each with a time-out; an answer that can't be read is no answer."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from chipwise.io.deadline import run_in_time
from chipwise.route.backend import BackendDown, BackendRefused
from chipwise.route.backends.slurm.read import (
    JOB_COLUMNS,
    NODE_COLUMNS,
    SlurmJob,
    SlurmNode,
    columns,
    jobs_from_json,
    jobs_from_table,
    line,
    nodes_from_json,
    nodes_from_table,
    nonsense,
)
from chipwise.route.backends.slurm.request import INHERITED, SCRIPT, Request, sbatch

# what says that Slurm can't answer now, in slurm_strerror's words (slurm_errno.c, 22.05 to 24.11); other errors of
# sbatch are its answer
AWAY = re.compile(
    r"contact|connect|timed? ?out|zero bytes|authenticat|credential|munge|unable to establish|temporarily|try again|"
    r"configuration source|communication|standby|not responding|incompatible versions|i/o error|unspecified error|"
    r"shutting down|no such file",
    re.IGNORECASE,
)
ANSWER = re.compile(r"(?:^|\n)(?:sbatch: error: |sbatch: |allocation failure: )(.*)")
NEVER_S = 10 * 365 * 86400.0  # Slurm takes "no limit" for one year; starts centuries away mean that it can't tell
LOCAL = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}  # words and times that don't depend on where the router runs


class Commands:
    """sbatch, squeue, sinfo and scancel of this machine."""

    excludes = True

    def __init__(self, conf: str, timeout: float) -> None:
        """`conf` is a slurm.conf; SLURM_CONF or Slurm's own place where empty."""
        path = conf or os.environ.get("SLURM_CONF", "")
        self.timeout, self._conf = timeout, {"SLURM_CONF": path} if path else {}
        self._json = {"squeue": True, "sinfo": True}  # until a command says that it has no JSON

    def jobs(self) -> Sequence[SlurmJob]:
        """The jobs of this user, in all states."""
        me = str(os.getuid())
        if self._json["squeue"] and (text := self._json_output("squeue", ["squeue", "--json"])) is not None:
            return [job for job in jobs_from_json(text, "squeue --json") if job.user == me]
        argv = ["squeue", "--noheader", "--all", "--states=all", f"--user={me}", f"--Format={columns(JOB_COLUMNS)}"]
        return jobs_from_table(self._output(argv), "squeue --Format")

    def nodes(self) -> Sequence[SlurmNode]:
        """The nodes of all partitions."""
        if self._json["sinfo"] and (text := self._json_output("sinfo", ["sinfo", "--json"])) is not None:
            nodes = nodes_from_json(text, "sinfo --json")
            if nodes is not None:
                return nodes
            self._json["sinfo"] = False
        argv = ["sinfo", "--noheader", "--all", "--Node", f"--Format={columns(NODE_COLUMNS)}"]
        return nodes_from_table(self._output(argv), "sinfo --Format")

    def submit(self, request: Request) -> str:
        """The job's id, as `sbatch --parsable` says it."""
        status, out, err = self._run(sbatch(request), request.environment, script=SCRIPT)
        if status:
            raise self._refusal("sbatch", status, err)
        match = re.fullmatch(r"([0-9]+)(;[^\n]*)?\n?", out)
        if match is None:
            raise nonsense("sbatch --parsable", out or err)
        return match[1]

    def start(self, request: Request) -> float | None:
        """What `sbatch --test-only` predicts; None where it would refuse the job or says no time."""
        argv = [word for word in sbatch(request) if word != "--dependency=singleton"]  # its start is never foretold
        argv = [argv[0], "--test-only", *argv[1:]]
        status, out, err = self._run(argv, {**request.environment, **LOCAL}, script=SCRIPT)
        if status:
            error = self._refusal("sbatch --test-only", status, err)
            if isinstance(error, BackendDown):
                raise error
            return None
        match = re.search(r"to start at ([0-9]+) ", out + err)
        start = float(match[1]) if match else None
        return None if start is None or start > time.time() + NEVER_S else start

    def cancel(self, job: str) -> None:
        """Stop a job; it is no error if it has ended."""
        status, _, err = self._run(["scancel", job], self._local())
        if status and not re.search(r"invalid job id|already complet", err, re.IGNORECASE):
            error = BackendDown if AWAY.search(err) else BackendRefused
            raise error(f"slurm: scancel: {line(err) or f'status {status}'}")

    def _local(self) -> dict[str, str]:
        return {name: os.environ[name] for name in INHERITED if name in os.environ} | LOCAL

    def _output(self, argv: Sequence[str]) -> str:
        """What a command prints, one character a byte."""
        status, out, err = self._run(argv, self._local(), "latin-1")
        if status:
            raise BackendDown(f"slurm: {argv[0]}: {line(err) or line(out) or f'status {status}'}")
        return out

    def _json_output(self, command: str, argv: Sequence[str]) -> str | None:
        """What a command prints; None where this version of it has no JSON, which is then not tried again."""
        status, out, err = self._run(argv, self._local())
        if status and re.search(r"unrecognized option|invalid option|json", err, re.IGNORECASE):
            self._json[command] = False
            return None
        if status:
            raise BackendDown(f"slurm: {' '.join(argv)}: {line(err) or line(out) or f'status {status}'}")
        return out

    def _run(
        self, argv: Sequence[str], environment: Mapping[str, str], encoding: str = "utf-8", script: str = ""
    ) -> tuple[int, str, str]:
        conf = self._conf.get("SLURM_CONF", "")
        if conf and not Path(conf).is_file():  # Slurm's commands look for it elsewhere for minutes
            raise BackendDown(f"slurm: {conf}: there is no such file (conf)")
        try:
            done = run_in_time(argv, {**environment, **self._conf}, script.encode(), self.timeout)
        except TimeoutError as late:
            raise BackendDown(f"slurm: {argv[0]}: {late}") from None
        except FileNotFoundError:
            raise BackendDown(
                f"slurm: {argv[0]}: there is no such command on this machine; it comes with Slurm's "
                "client (Debian: slurm-client)"
            ) from None
        except (OSError, ValueError) as error:
            raise BackendDown(f"slurm: {argv[0]}: {error}") from None
        return done.returncode, done.stdout.decode(encoding, "replace"), done.stderr.decode("utf-8", "replace")

    def _refusal(self, source: str, status: int, err: str) -> BackendDown | BackendRefused:
        """Whether sbatch refused the job, or could not ask."""
        answers = ANSWER.findall(err)
        if status < 0 or not answers or AWAY.search(err):
            return BackendDown(f"slurm: {source}: {line(err) or f'status {status}'}")
        words = re.sub(r"^(Batch job submission failed|allocation failure): ", "", line(answers[-1]))
        return BackendRefused(f"slurm: {words}")

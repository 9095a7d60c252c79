"""A real Slurm cluster on loopback: GPU and TPU nodes, started in a scratch folder and always stopped.

    with SlurmCluster() as cluster:
        subprocess.run(["sinfo"], env=cluster.environment)

Every daemon runs in the foreground in a process group of its own, which is recorded; jobs and their slurmstepd leave
those groups, so they are found by the log file of their node that slurmstepd keeps open, and ended with it.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chipwise.route.backends.slurm.backend import SlurmBackend
from patience import PATIENCE_S, until
from scratch import short_folder

NODES = {
    "h200-0": ("gpu", "h200", 8),
    "h200-1": ("gpu", "h200", 8),
    "v5e-0": ("tpu", "v5e", 4),
    "v5e-1": ("tpu", "v5e", 4),
}
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")

CONF = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={scratch}/run/munge.sock,cred_expire=10
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool/%n
SlurmctldPidFile={scratch}/run/ctld.pid
SlurmdPidFile={scratch}/run/%n.pid
SlurmctldLogFile={scratch}/log/ctld.log
SlurmdLogFile={scratch}/log/%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=1
SlurmdTimeout=10
SlurmctldTimeout=10
InactiveLimit=0
KillWait=5
MinJobAge={min_job_age}
MaxJobCount=20000
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu,tpu
JobRequeue=1
SlurmdParameters=config_overrides
DefMemPerCPU=1
"""


def missing():
    """What of Slurm is not installed here."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [name for name in NEEDED if shutil.which(name, path=path) is None]


def free_ports(count):
    """Ports of 127.0.0.1 that nobody had a moment ago."""
    held = []
    try:
        for _ in range(count):
            held.append(socket.socket())
            held[-1].bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


@dataclass
class SlurmCluster:
    """A cluster of `nodes` (name -> kind of gres, type, count), with partitions gpu, tpu and any."""

    nodes: dict = field(default_factory=lambda: dict(NODES))
    min_job_age: int = 300
    extra: str = ""  # more lines of slurm.conf
    daemons: dict = field(default_factory=dict, init=False)  # name -> Popen, each the leader of its process group
    scratch: Path = field(init=False)

    def __post_init__(self):
        self.scratch = short_folder("slurm")  # other users reach the configuration and the socket of munge
        for folder in ("state", "spool", "log", "run", "dev", "jobs"):
            (self.scratch / folder).mkdir()
        for node in self.nodes:
            (self.scratch / "spool" / node).mkdir()
        self.conf = self.scratch / "slurm.conf"
        sbin = [p for p in ("/usr/sbin", "/sbin") if p not in os.environ.get("PATH", "").split(os.pathsep)]
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "SQUEUE", "SINFO"))},
            "SLURM_CONF": str(self.conf),
            "PATH": os.pathsep.join([os.environ.get("PATH", ""), *sbin]),
        }

    # life

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Start munged, slurmctld and every slurmd; all nodes are idle when this returns."""
        self._configure()
        key = self.scratch / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        run = self.scratch / "run"
        run.chmod(0o755)  # munged refuses a folder that others may write
        self._daemon(
            "munged",
            [
                "munged",
                "--foreground",
                "--force",
                f"--key-file={key}",
                f"--socket={run}/munge.sock",
                f"--pid-file={run}/munged.pid",
                f"--log-file={self.scratch}/log/munged.log",
                f"--seed-file={run}/munged.seed",
            ],
        )
        until(lambda: (run / "munge.sock").exists(), "munged made no socket")
        self._daemon("slurmctld", ["slurmctld", "-D"])
        for node in self.nodes:
            self.start_node(node, wait=False)
        self.wait_for_nodes()

    def stop(self):
        """Stop every daemon, every job, and remove the folder. Never raises for what has ended already."""
        for node in self.nodes:
            self._kill_steps(node)
        for name in reversed(list(self.daemons)):
            self._end(name)
        for node in self.nodes:
            self._kill_steps(node)  # one that was just starting
        shutil.rmtree(self.scratch, ignore_errors=True)

    # what tests do to it

    def node_down(self, name, reason="taken down by a test"):
        """Tell Slurm that a node is down: its jobs are requeued or fail at once."""
        self.command("scontrol", "update", f"nodename={name}", "state=down", f"reason={reason}")

    def node_up(self, name):
        """Give a node back."""
        self.command("scontrol", "update", f"nodename={name}", "state=resume")

    def kill_node(self, name):
        """What a power cut does: slurmd, slurmstepd and all that they started are gone. Slurm finds out by itself."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()
        self._kill_steps(name)

    def restart(self, name):
        """Kill a daemon alone and start it again: what it has started goes on."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()
        self._daemon(name, ["slurmctld", "-D"] if name == "slurmctld" else ["slurmd", "-D", "-N", name])

    def forget_jobs(self):
        """Kill all daemons before the controller has saved its jobs, and start it again, not yet those of nodes.

        Those would kill what runs and is known no more.
        """
        for name in ("slurmctld", *self.nodes):
            daemon = self.daemons.pop(name)
            daemon.kill()
            daemon.wait()
        for saved in (self.scratch / "state").glob("job_state*"):
            saved.unlink()
        self._daemon("slurmctld", ["slurmctld", "-D"])
        until(lambda: "UP" in self.command("scontrol", "ping", check=False), "the controller does not answer")

    def resume_drained(self):
        """What an administrator does when nodes refuse jobs whose numbers a controller that was killed gave before."""
        for line in self.command("sinfo", "--noheader", "--Node", "--format=%N %E", check=False).splitlines():
            node, _, reason = line.partition(" ")
            if "Duplicate jobid" in reason:
                self.command("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def start_node(self, name, wait=True):
        """Start the slurmd of a node."""
        if name not in self.daemons:
            self._daemon(name, ["slurmd", "-D", "-N", name])
        if wait:
            self.wait_for_nodes([name])

    def wait_for_nodes(self, names=None):
        """Wait until nodes take jobs."""
        wanted = set(names or self.nodes)

        def ready():
            for name, daemon in self.daemons.items():
                if daemon.poll() is not None:
                    log = self.scratch / "log" / f"{name}.out"
                    raise RuntimeError(f"{name} ended with {daemon.returncode}: {log.read_text()[-2000:]}")
            done = subprocess.run(
                ["sinfo", "-h", "-N", "-o", "%N %T"], env=self.environment, capture_output=True, text=True
            )
            states = dict(line.split() for line in done.stdout.splitlines())
            return wanted <= {n for n, state in states.items() if state in ("idle", "mixed", "allocated")}

        until(ready, f"nodes {sorted(wanted)} are not ready")

    def command(self, *argv, check=True):
        """Run one of Slurm's commands; what it printed."""
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        if check and done.returncode:
            raise RuntimeError(f"{argv}: {done.stderr}")
        return done.stdout

    def cancel_all(self):
        """End every job, and wait until the queue is empty."""
        self.command("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name, check=False)
        until(lambda: not self.command("squeue", "-h").strip(), "jobs did not end")

    # inside

    def _configure(self):
        ports = free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        user = pwd.getpwuid(os.getuid()).pw_name
        lines = [
            CONF.format(
                name=f"pools{os.getpid()}",
                host=host,
                user=user,
                scratch=self.scratch,
                port=ports[0],
                min_job_age=self.min_job_age,
            )
            + self.extra.replace("{scratch}", str(self.scratch))
        ]
        gres = []
        for (node, (kind, of, count)), port in zip(self.nodes.items(), ports[1:], strict=True):
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=20000 "
                f"Gres={kind}:{of}:{count} Feature={kind},{of}"
            )
            for i in range(count):
                (self.scratch / "dev" / f"{of}_{i}").touch()
            gres.append(f"NodeName={node} Name={kind} Type={of} File={self.scratch}/dev/{of}_[0-{count - 1}]")
        for kind in sorted({kind for kind, _, _ in self.nodes.values()}):
            of_kind = ",".join(n for n, (k, _, _) in self.nodes.items() if k == kind)
            lines.append(f"PartitionName={kind} Nodes={of_kind} MaxTime=INFINITE State=UP")
        lines.append("PartitionName=any Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
        self.conf.write_text("\n".join(lines) + "\n")
        (self.scratch / "gres.conf").write_text("\n".join(gres) + "\n")
        (self.scratch / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")

    def _daemon(self, name, argv):
        out = (self.scratch / "log" / f"{name}.out").open("ab")
        with out:
            self.daemons[name] = subprocess.Popen(
                argv,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                start_new_session=True,
            )

    def _end(self, name):
        daemon = self.daemons.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            daemon.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()

    def _kill_steps(self, node):
        """Kill each slurmstepd of a node with all its descendants."""
        log = str(self.scratch / "log" / f"{node}.log")
        for _ in range(20):  # a step that is starting forks until it is stopped
            parents, steps = {}, set()
            mine = {d.pid for d in self.daemons.values()}
            for entry in Path("/proc").iterdir():
                if not entry.name.isdigit():
                    continue
                with suppress(OSError, ValueError, IndexError):
                    parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    if int(entry.name) not in mine and any(
                        str(fd.readlink()) == log for fd in (entry / "fd").iterdir()
                    ):
                        steps.add(int(entry.name))
            grown = True
            while grown:
                more = {p for p, parent in parents.items() if parent in steps} - steps
                steps |= more
                grown = bool(more)
            steps -= {os.getpid(), *mine}
            if not steps:
                return
            for blow in (signal.SIGSTOP, signal.SIGKILL):  # all at once: a parent still alive would write of its child
                for pid in steps:
                    with suppress(ProcessLookupError):
                        os.kill(pid, blow)
            time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster():
    """A cluster for the tests of a file."""
    if missing():
        pytest.fail(f"{', '.join(missing())} not installed: run make packages")
    with SlurmCluster() as started:
        yield started


@pytest.fixture
def backend(cluster, tmp_path):
    """A backend on an emptied cluster, with a ledger's folder of its own; it doesn't see the jobs of earlier tests."""
    made = backend_on(cluster, tmp_path)
    jobs = made.link.jobs
    before = {job.id for job in jobs()}
    made.link.jobs = lambda: [job for job in jobs() if job.id not in before]
    yield made
    cluster.cancel_all()
    for node in cluster.nodes:
        cluster.start_node(node, wait=False)
        cluster.command("scontrol", "update", f"nodename={node}", "state=resume", check=False)
    cluster.wait_for_nodes()


def backend_on(cluster, folder, **settings):
    """A backend whose attempts lie under `folder`."""
    return SlurmBackend("u", lambda attempt: folder / "attempts" / attempt, {"conf": str(cluster.conf), **settings})

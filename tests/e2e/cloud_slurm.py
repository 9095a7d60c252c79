"""A real Slurm cluster from the files of `chipwise deploy write --target slurm`, with a stand-in for the cloud.

slurm.conf, nodes.conf, gres.conf, topology.conf and the programs are used as written. What one machine can't have is
changed: site.conf (folders of the test), an address and a port for each node, device files, cgroups. The cloud is
`cloud.py`: it starts a slurmd for each node of a machine, has stockouts, is slow, and takes machines back.
"""

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from command import good
from slurm_cluster import SlurmCluster, free_ports

# a machine: a file with the process groups of its nodes. `placement` is the argument that a stockout names
CLOUD = """\
#!{python}
import json, os, signal, subprocess, sys, time
from pathlib import Path

folder, action, placement, *more = Path("{folder}"), *sys.argv[1:]
machines = folder / "machines" / placement
machines.mkdir(parents=True, exist_ok=True)
if action == "list":
    print("\\n".join(sorted(path.name for path in machines.iterdir())))
    sys.exit()
machine, *nodes = more
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([action, placement, machine]) + "\\n")
if action == "create":
    if placement in (folder / "stockout").read_text().split():
        sys.exit("ERROR: (gcloud) code: ZONE_RESOURCE_POOL_EXHAUSTED: no more capacity in the zone")
    (machines / machine).write_text("[]")
    if (folder / "silent").exists():
        sys.exit()
    groups = []
    for node in nodes[0].split(","):
        log = (folder / (node + ".out")).open("ab")
        groups.append(subprocess.Popen(["slurmd", "-D", "-b", "-N", node], cwd="/", start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log).pid)
    (machines / machine).write_text(json.dumps(groups))
else:
    if not (machines / machine).exists():
        sys.exit("ERROR: NOT_FOUND: machine")
    for group in json.loads((machines / machine).read_text()):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass
    (machines / machine).unlink()
"""
SITE = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={scratch}/run/munge.sock,cred_expire=120
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool/%n
SlurmctldLogFile={scratch}/log/ctld.log
SlurmdLogFile={scratch}/log/%n.log
SlurmctldPidFile={scratch}/run/ctld.pid
SlurmdPidFile={scratch}/run/%n.pid
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SlurmdTimeout=30
KillWait=5
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
ResumeProgram={power}/resume
SuspendProgram={power}/suspend
ResumeFailProgram={power}/resume_fail
"""
# seconds of the written files: a test doesn't wait for minutes
SHORT = {"SuspendTimeout": 3, "ResumeTimeout": 60, "SuspendTime": 5}


@dataclass
class CloudSlurm(SlurmCluster):
    """The cluster of a tree. No node is up when it has started."""

    tree: Path = field(kw_only=True)
    times: dict = field(default_factory=dict, kw_only=True)  # of the configuration, seconds
    wait_s: tuple = field(default=(3, 30), kw_only=True)  # of a pool that failed

    def __post_init__(self):
        self.nodes = {}
        super().__post_init__()
        self.cloud, self.power = self.scratch / "cloud", self.scratch / "power"

    def start(self):
        """Start munged and slurmctld."""
        super().start()
        self.slurm_answers()

    def slurm_answers(self):
        """Wait for the controller."""
        from patience import until

        until(lambda: "UP" in self.command("scontrol", "ping", check=False), "the controller does not answer")

    def stop(self):
        """Take the machines away, too."""
        for placement in (self.cloud / "machines").glob("*") if (self.cloud / "machines").exists() else ():
            for machine in placement.iterdir():
                self.take(machine.name)
        for out in self.cloud.glob("*.out"):
            self._kill_steps(out.stem)
        super().stop()

    # what tests do to the cloud

    def stockout(self, *placements):
        """In these placements nothing is to be had."""
        (self.cloud / "stockout").write_text(" ".join(placements))

    def take(self, machine):
        """The cloud takes a machine back, as spot machines are."""
        for path in (self.cloud / "machines").glob(f"*/{machine}"):
            with suppress(ValueError):
                for group in json.loads(path.read_text()):
                    with suppress(ProcessLookupError):
                        os.killpg(group, signal.SIGKILL)
            path.unlink()

    def machines(self):
        """The machines there are."""
        return sorted(path.name for path in (self.cloud / "machines").glob("*/*"))

    def calls(self):
        """What the cloud was asked for."""
        path = self.cloud / "calls"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []

    def sync(self):
        """What the timer does every minute."""
        return subprocess.run([self.power / "sync"], env=self.environment, capture_output=True, text=True, check=True)

    def states(self):
        """The states of every node."""
        table = self.command("sinfo", "--noheader", "--Node", "--Format=NodeList:128,StateComplete:128")
        return {line.split()[0]: set(line.split()[1].rstrip("*").split("+")) for line in table.splitlines()}

    # inside

    def _configure(self):
        conf = self.scratch
        nodes = self._nodes()
        host = socket.gethostname().split(".")[0]
        port, *ports = free_ports(1 + len(nodes))
        for source in (self.tree / "slurm").iterdir():
            (conf / source.name).write_text(source.read_text())
        for program in (self.tree / "power").iterdir():
            self.power.mkdir(exist_ok=True)
            (self.power / program.name).write_text(program.read_text())
            (self.power / program.name).chmod(program.stat().st_mode)
        user = pwd.getpwuid(os.getuid()).pw_name
        site = {"scratch": conf, "port": port, "host": host, "user": user, "power": self.power}
        (conf / "site.conf").write_text(SITE.format(cluster=f"cloud{os.getpid()}", **site))
        lines = (conf / "nodes.conf").read_text().splitlines()
        (conf / "nodes.conf").write_text("\n".join(self._short(self._addressed(lines, host, ports))) + "\n")
        (conf / "slurm.conf").write_text("\n".join(self._short((conf / "slurm.conf").read_text().splitlines())) + "\n")
        for number in range(8):
            (conf / "dev" / f"nvidia{number}").touch()
        gres = (conf / "gres.conf").read_text().replace("File=/dev/", f"File={conf}/dev/")
        (conf / "gres.conf").write_text(gres)
        (conf / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        for node in nodes:
            (conf / "spool" / node).mkdir()
        self._make_cloud()

    def _nodes(self):
        settings = json.loads((self.tree / "power" / "cloud_nodes.json").read_text())
        return [node for pool in settings["pools"].values() for nodes in pool["machines"].values() for node in nodes]

    def _addressed(self, lines, host, ports):
        """Nodes of one machine differ by their ports."""
        left, addressed = list(ports), []
        for line in lines:
            match = re.match(r"NodeName=(\S+)", line)
            if match:
                sizes = [int(last) + 1 for last in re.findall(r"\[0-(\d+)\]", match[1])]
                count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1) if sizes else 1
                mine, left = left[:count], left[count:]
                line += f" NodeHostname={host} NodeAddr=127.0.0.1 Port={','.join(map(str, mine))}"
                if count > 1:
                    line = re.sub(r"Port=(\S+)", r"Port=[\1]", line)
            addressed.append(line)
        return addressed

    def _short(self, lines):
        for key, seconds in (SHORT | self.times).items():
            lines = [re.sub(rf"\b{key}=\d+", f"{key}={seconds}", line) for line in lines]
        return [
            line + ",power_save_interval=1,power_save_min_interval=0"
            if line.startswith("SlurmctldParameters")
            else line
            for line in lines
        ]

    def _make_cloud(self):
        self.cloud.mkdir()
        program = self.cloud / "cloud.py"
        program.write_text(CLOUD.format(python=sys.executable, folder=self.cloud))
        program.chmod(0o755)
        self.stockout()
        path = self.power / "cloud_nodes.json"
        settings = json.loads(path.read_text())
        for name, pool in settings["pools"].items():
            places = [f"{name}-{zone}" for zone in ("a", "b")]
            pool["placements"] = [
                {
                    "name": place,
                    "create": [str(program), "create", place, "{machine}", "{nodes}"],
                    "remove": [str(program), "remove", place, "{machine}"],
                    "list": [str(program), "list", place],
                }
                for place in places
            ]
        path.write_text(json.dumps(settings))
        site = {
            "values": dict.fromkeys(settings["site"], "stand-in"),
            "state": str(self.scratch / "cloud_nodes"),
            "environment": {"PATH": self.environment["PATH"], "SLURM_CONF": str(self.conf)},
            "wait_s": list(self.wait_s),
        }
        (self.power / "site.json").write_text(json.dumps(site))


def written(folder, pools, *more):
    """The tree of a pools file."""
    source = folder / "wanted.yaml"
    source.write_text(json.dumps({"pools": pools}))
    good("deploy", "write", source, "--target", "slurm", "--to", folder / "tree", *more)
    return folder / "tree"

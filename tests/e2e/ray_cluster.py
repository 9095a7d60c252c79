"""A real Ray cluster of several nodes on loopback, in a process of its own that ends with whoever started it.

As a script: `python ray_cluster.py PORT NODES`, NODES in JSON; then commands as lines: `kill NAME`, `add NAME`, `stop`.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from inspect import signature
from pathlib import Path

import pytest

from scratch import short_folder

HOST = "127.0.0.1"
TRIES = 4
START_S = 100  # seconds; a loaded machine takes tens, and what has died by then never comes


def free_port() -> int:
    """A port that nobody has, below those that the kernel gives to connections: it is still free when Ray wants it."""
    while True:
        port = random.randrange(15_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


class RayCluster:
    """Starts the cluster; `address` is its head's."""

    def __init__(self, nodes: dict, port: int | None = None) -> None:
        for left in reversed(range(TRIES)):
            try:
                return self._start(nodes, port)
            except RuntimeError as error:  # Ray's nodes give up by themselves where the machine is too busy
                if not left:
                    pytest.skip(f"Ray's own cluster does not start here, {TRIES} times: {str(error)[-200:]!r}")
        return None

    def _start(self, nodes: dict, port: int | None) -> None:
        self.port = port or free_port()
        self.address = f"{HOST}:{self.port}"
        self.scratch = str(short_folder("r"))
        Path(self.scratch, "ray").mkdir()  # Ray's default folder, into which it writes but which it does not make
        self.log = Path(self.scratch, "cluster.log").open("wb")  # noqa: SIM115
        env = os.environ | {
            "RAY_TMPDIR": self.scratch,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEDUP_LOGS": "0",
            "NODE_KEY_WORD": "from the node",
            "NODE_OTHER_WORD": "of another job",
            "NODE_TOKEN": "of nobody",
            "NODE_PLAIN": "for all",
            # asks a node that is gone five times in 5 s, not 15; one that is slow has as long as before
            "RAY_health_check_period_ms": "1000",
            # agents that take longer than 30 s to register, as beside compilers, take their raylet with them
            "RAY_agent_register_timeout_ms": str(1000 * START_S),
            "RAY_raylet_start_wait_time_s": str(START_S),  # 10 s is too short beside a compiler's threads
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        }  # or Ray takes the machine's outer address for 127.0.0.1
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(self.port), json.dumps(nodes), self.scratch],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=env,
            start_new_session=True,
        )
        try:
            self.pids = self._answer()
        except Exception:
            self.stop()  # what had been started by then
            raise

    def say(self, *words: str) -> dict:
        """One command; what it answers."""
        self.process.stdin.write((" ".join(words) + "\n").encode())
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("no Ray: " + Path(self.log.name).read_text(errors="replace")[-2000:])
        return json.loads(line)

    def stop(self) -> None:
        """Stop every process of it, whatever state it is in."""
        with suppress(Exception):
            self.say("stop")
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in strays(self.scratch):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()
        subprocess.run(["rm", "-rf", self.scratch], check=False)


def strays(scratch: str) -> list[int]:
    """Processes that name the cluster's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if scratch.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def main(port: int, nodes: dict, scratch: str) -> None:
    """Start, obey, stop."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from ray._private import services
    from ray._raylet import DASHBOARD_AGENT_LISTEN_PORT_NAME, persist_port
    from ray.cluster_utils import Cluster

    common = {"node_ip_address": HOST, "temp_dir": scratch, "object_store_memory": 80 * 2**20}
    agents = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")

    def ports():
        """A raylet that has to learn the ports of its agents from them dies if they take over 15 s to start."""
        return {name: free_port() for name in agents}

    start_raylet = services.start_raylet

    def raylet_with_port(*words, **options):
        """Start a raylet that finds the one port that Ray 2.60 does not tell it where it looks for it."""
        session, node = (
            signature(start_raylet).bind(*words, **options).arguments[name] for name in ("session_dir", "node_id")
        )
        persist_port(session, node, DASHBOARD_AGENT_LISTEN_PORT_NAME, options["dashboard_agent_listen_port"])
        return start_raylet(*words, **options)

    services.start_raylet = raylet_with_port
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 2,
            "include_dashboard": False,
            "gcs_server_port": port,
            "ray_client_server_port": free_port(),
            **ports(),
            **common,
        },
    )
    running = {}

    def add(name):
        running[name] = cluster.add_node(
            wait=False, num_cpus=2, **nodes[name], **ports(), **{k: v for k, v in common.items() if k != "temp_dir"}
        )

    for name in nodes:
        add(name)
    cluster.wait_for_nodes(START_S)
    head = cluster.head_node.all_processes

    def say(**more):
        print(json.dumps(more), file=answers, flush=True)

    say(gcs=head["gcs_server"][0].process.pid, client=cluster.head_node._ray_params.ray_client_server_port)
    for line in sys.stdin:
        command, _, name = line.strip().partition(" ")
        if command == "stop":
            break
        if command == "kill":  # as a machine dies: nothing is said to anybody
            cluster.remove_node(running.pop(name), allow_graceful=False)
        elif command == "add":
            add(name)
            cluster.wait_for_nodes(START_S)
        say(done=command)
    with suppress(Exception):
        cluster.shutdown()
    say(done="stop")


if __name__ == "__main__":
    started = time.time()
    main(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])

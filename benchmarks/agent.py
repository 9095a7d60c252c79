"""What the agent takes of a node, what it costs a program beside it, and how well it tells a run's energy.

    python benchmarks/agent.py [--seconds 60] [--blocks 20]

The agent reads host, kernel log and eight GPUs every second, serves its page and keeps what it reads. Where there is a
GPU, that one counts as eight; a program of products in bf16 runs on it in blocks, with the agent and with it stopped
(SIGSTOP) in turn, and the integral of the power that was kept is held against the GPU's own counter of energy.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from chipwise.bench.nvml import library_of_nvidia
from chipwise.bench.reading import Unreadable
from chipwise.io.endpoint import Endpoint
from chipwise.observe.agent.agent import Agent, keep
from chipwise.observe.agent.host import HostLoad
from chipwise.observe.agent.instrument import Instrument
from chipwise.observe.agent.kernel_log import KernelLog
from chipwise.observe.agent.nvidia import NvidiaGpus
from chipwise.observe.agent.page import page
from chipwise.observe.store.store import open_store

DEVICES, SCRAPE_S = 8, 10.0
BLOCK_S = 1.0  # of a program's steps: the agent looks once in it
SETTLE_S = 5.0
WIDTH = 8192  # of the products


class Eight:
    """NVML whose node has eight GPUs: the one that is here, each time."""

    def __init__(self, library: Any) -> None:
        self._nv, self._number = library, 0

    def nvmlDeviceGetCount(self) -> int:
        """How many it says there are."""
        return DEVICES

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        """The one."""
        self._number = index
        return self._nv.nvmlDeviceGetHandleByIndex(0)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        """The one."""
        return self._nv.nvmlDeviceGetHandleByIndex(0)

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        """A name of its own."""
        return f"GPU-{self._number}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nv, name)


def run_agent(path: str) -> None:
    """The agent itself, until it is stopped."""
    instruments: list[Instrument] = [HostLoad()]
    for make in (KernelLog, lambda: NvidiaGpus(Eight(library_of_nvidia()))):
        try:
            instruments.append(make())
        except Unreadable as reason:
            print(reason, file=sys.stderr)
    with open_store(path) as store, Agent(instruments, [], 1.0, "n1") as agent:
        endpoint = Endpoint("127.0.0.1:0", "", lambda: page(agent.look()[0]))
        endpoint.start()
        print(endpoint.port, len(instruments) == 3, flush=True)
        keep(agent, store, 1.0, None, lambda words: None)


def spent(pid: int) -> float:
    """CPU seconds of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """The most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def program() -> Callable[[], float]:
    """A step on the GPU, which gives the seconds that it took by the GPU's own clock."""
    import torch

    a, b = (torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def step() -> float:
        begin.record()
        for _ in range(4):
            torch.mm(a, b)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    return step


def block(step: Callable[[], float]) -> list[float]:
    """The steps of a block."""
    until = time.monotonic() + BLOCK_S
    times = []
    while time.monotonic() < until:
        times.append(step())
    return times


def slowdown(pid: int, blocks: int) -> tuple[float, float]:
    """A step with the agent over one without it, as a median of pairs of blocks; and the same without it twice."""
    step = program()
    begin = time.monotonic()
    while time.monotonic() - begin < SETTLE_S:
        step()
    with_it, without = [], []
    for _ in range(blocks):
        os.kill(pid, signal.SIGSTOP)
        before = median(block(step))
        os.kill(pid, signal.SIGCONT)
        beside = median(block(step))
        os.kill(pid, signal.SIGSTOP)
        after = median(block(step))
        os.kill(pid, signal.SIGCONT)
        with_it.append(beside / ((before + after) / 2))
        without.append(after / before)
    return median(with_it), median(without)


def energies(path: str, since: int) -> tuple[float, float, int] | None:
    """Joules by the integral of power and by the counter, of what was kept from one moment on, and its seconds."""
    with open_store(path) as store:
        power = store.values("device_power", "n1", "GPU-0", since, 2**40)
        counter = store.values("device_energy", "n1", "GPU-0", since, 2**40)
    renewed = [two for one, two in pairwise(counter) if two.mean != one.mean]  # the counter is not read in every look
    if len(renewed) < 2:
        return None
    begin, end = renewed[0].at, renewed[-1].at
    within = [one for one in power if begin <= one.at <= end]
    joules = sum((one.mean + two.mean) / 2 * (two.at - one.at) for one, two in pairwise(within))
    return joules, renewed[-1].mean - renewed[0].mean, end - begin


def record(path: str, since: int, file: str) -> None:
    """What was kept of one GPU from a moment on, as CSV."""
    with open_store(path) as store:
        rows = [
            (value.at - since, series, value.mean)
            for series in sorted({newest.series for newest in store.newest(since) if newest.device == "GPU-0"})
            for value in store.values(series, "n1", "GPU-0", since, 2**40)
        ]
    Path(file).write_text("second,series,value\n" + "".join(f"{at},{name},{value!r}\n" for at, name, value in rows))


def watched(seconds: float, pid: int, port: str) -> None:
    """Let the agent run and be scraped."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read()
        time.sleep(min(SCRAPE_S, max(0.0, until - time.monotonic())))


def load(seconds: float) -> subprocess.Popen[bytes]:
    """A program of bursts and pauses on the GPU, as training is: power that does not stand still."""
    code = (
        "import sys, time, torch; a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16); "
        f"end = time.time() + {seconds}\n"
        "n = 0\n"
        "while time.time() < end:\n"
        "    for _ in range(40): torch.mm(a, a)\n"
        "    torch.cuda.synchronize(); n += 1; time.sleep(0.3 * (n % 3))\n"
    )
    return subprocess.Popen([sys.executable, "-c", code])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--record", metavar="FILE", help="keep what was read of the GPU beside the load")
    parser.add_argument("--agent", metavar="STORE", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.agent:
        return run_agent(given.agent)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/telemetry.db"
        agent = subprocess.Popen([sys.executable, __file__, "--agent", path], stdout=subprocess.PIPE, text=True)
        assert agent.stdout is not None
        try:
            port, gpu = agent.stdout.readline().split()
            has_gpu = gpu == "True"
            began, cpu, since = time.monotonic(), spent(agent.pid), int(time.time()) + 1
            busy = load(given.seconds) if has_gpu else None
            watched(given.seconds, agent.pid, port)
            share = (spent(agent.pid) - cpu) / (time.monotonic() - began)
            what = f"{DEVICES} GPUs at 1 s" if has_gpu else "host and kernel at 1 s (no GPU here)"
            print(f"agent, {what}: {share:.2%} of a core, {resident_mib(agent.pid):.0f} MiB")
            if busy is not None:
                busy.wait()
                if given.record:
                    record(path, since, given.record)
                pair = energies(path, since)
                if pair is not None:
                    integral, counted, length = pair
                    error = integral / counted - 1
                    print(f"energy of {length} s: integral {integral:.0f} J, counter {counted:.0f} J ({error:+.2%})")
                ratio, noise = slowdown(agent.pid, given.blocks)
                print(f"a step beside the agent over one without it: {ratio:.5f} (without it twice: {noise:.5f})")
        finally:
            agent.kill()
            agent.wait()


if __name__ == "__main__":
    main()

"""The agent: instruments read in threads of their own, so that one that hangs or fails does not stop the others."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.bench.reading import Unreadable
from chipwise.errors import ChipwiseError
from chipwise.io.closing import Closing
from chipwise.observe.agent.amd import amd_gpus
from chipwise.observe.agent.host import HostLoad
from chipwise.observe.agent.instrument import Instrument, Measurement
from chipwise.observe.agent.kernel_log import KernelLog
from chipwise.observe.agent.notices import CloudNotices
from chipwise.observe.agent.nvidia import NvidiaGpus
from chipwise.observe.agent.tpu_runtime import tpu_instrument
from chipwise.observe.exporters import Sample

if TYPE_CHECKING:
    from chipwise.observe.store.store import TelemetryStore

KINDS: dict[str, Callable[[], Instrument]] = {
    "nvidia": NvidiaGpus,
    "amd": amd_gpus,
    "tpu": tpu_instrument,
    "host": HostLoad,
    "kernel": KernelLog,
    "notices": CloudNotices,
}
STALE = 3.0  # times an instrument's interval after which what it said last is no longer so
LEAST_STALE_S = 10.0
LEAST_INTERVAL_S = 0.1  # drivers renew their figures no sooner
FIRST_LOOK_S = 5.0  # until what has not been read yet is left out of the first page
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class State:
    """An instrument, and why it says nothing where it doesn't."""

    name: str
    measurements: int = 0
    devices: int = 0
    problem: str = ""


class Watch:
    """One instrument, read again and again in a thread."""

    def __init__(self, instrument: Instrument, interval_s: float) -> None:
        self.name = instrument.name
        self._instrument = instrument
        self._every_s = max(interval_s, instrument.every_s)
        self._newest: tuple[float, Sequence[Measurement]] = (float("-inf"), ())
        self._problem = ""
        self._stop, self.looked = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"chipwise-{self.name}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading, and let go of the instrument unless it hangs: then the process ends with it."""
        self._stop.set()
        self._thread.join(timeout=LEAST_STALE_S)

    def newest(self) -> tuple[Sequence[Measurement], str]:
        """What it says, and why it says nothing where that is so."""
        at, measurements = self._newest
        if self._problem:
            return (), self._problem
        if time.monotonic() - at > max(STALE * self._every_s, LEAST_STALE_S):
            return (), "it does not answer" if self.looked.is_set() else "it has not answered yet"
        return measurements, ""

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self._newest = (time.monotonic(), self._instrument.read())
                self._problem = ""
            except Exception as error:  # whatever a driver's library raises must not end the other instruments
                self._problem = str(error) or type(error).__name__
            self.looked.set()
            due = max(due + self._every_s, time.monotonic())
            self._stop.wait(max(0.0, due - time.monotonic()))
        self._instrument.close()


class Agent(Closing):
    """All instruments of a node, being read."""

    def __init__(
        self, instruments: Sequence[Instrument], absent: Sequence[State], interval_s: float, host: str
    ) -> None:
        self.host, self._absent = host, list(absent)
        self._watches = [Watch(instrument, interval_s) for instrument in instruments]
        for watch in self._watches:
            watch.start()
        deadline = time.monotonic() + FIRST_LOOK_S
        for watch in self._watches:
            watch.looked.wait(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        """Stop reading."""
        for watch in self._watches:
            watch.stop()

    def look(self) -> tuple[list[Sample], list[State]]:
        """What all instruments say now, and how each does. One that says nothing is a sample too."""
        samples: list[Sample] = []
        states: list[State] = []
        for watch in self._watches:
            measurements, problem = watch.newest()
            samples += [Sample(m.series, self.host, m.device, m.labels, m.value) for m in measurements]
            devices = {m.device for m in measurements if m.device}
            states.append(State(watch.name, len(measurements), len(devices), problem))
            up = Sample("instrument_up", self.host, "", (("instrument", watch.name),), float(not problem))
            samples.append(up)
        return samples, [*states, *self._absent]


def instruments(names: Sequence[str]) -> tuple[list[Instrument], list[State]]:
    """The instruments that there are, and the others with the reason."""
    there: list[Instrument] = []
    absent: list[State] = []
    for name in names:
        try:
            there.append(KINDS[name]())
        except Unreadable as reason:
            absent.append(State(name, problem=str(reason)))
    return there, absent


def this_host() -> str:
    """The name that other exporters on this machine give it."""
    return socket.gethostname()


def keep(
    agent: Agent, store: TelemetryStore | None, interval_s: float, rounds: int | None, tell: Tell
) -> tuple[list[Sample], list[State]]:
    """Keep what an agent says every so often, so many times or until stopped; what it said last.

    An instrument, or a store, that fails is told when it begins to and when it is back.
    """
    failing: dict[str, str] = {}
    done = 0
    due = time.monotonic()
    while True:
        samples, states = agent.look()
        problems = {state.name: state.problem for state in states if state.problem}
        if store is not None:
            try:
                store.write(samples, int(time.time()))
                store.roll_up(int(time.time()))
            except ChipwiseError as error:
                problems["store"] = str(error)
        for name, problem in problems.items():
            if name not in failing:
                tell(f"{name}: {problem}")
        for name in failing:
            if name not in problems:
                tell(f"{name} answers again")
        failing = problems
        done += 1
        if rounds is not None and done >= rounds:
            return samples, states
        due = max(due + interval_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))

"""What this machine has: compilers, and what a node can be observed with; each with why it can't be used."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.bench.reading import Unreadable
from chipwise.compiled.doctor import Diagnosis, diagnose
from chipwise.observe.agent.agent import KINDS
from chipwise.present.blocks import Block, Text
from chipwise.present.columns import Column, record, table
from chipwise.present.result import Result
from chipwise.present.safe import safe

ENERGY = "energy"
TELLS = {
    "nvidia": "power, energy, use, memory, heat, clocks and errors of NVIDIA GPUs, by NVML",
    "amd": "power, use, memory, heat, clocks and errors of AMD GPUs, by amdsmi or the kernel",
    "tpu": "use and memory of TPU chips, by libtpu (with throttling and links) or their programs' metric service",
    "host": "cores, memory, disks and network, by /proc",
    ENERGY: "energy of the host's packages, by the kernel's RAPL counters",
    "kernel": "Xids, errors of memory, buses and links, programs killed for memory, by /dev/kmsg",
    "notices": "maintenance, preemption, termination, by the cloud's metadata service",
}
_RAPL = "sys/class/powercap"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentState:
    """An instrument, and why it can't be read here; empty where it can."""

    name: str
    problem: str


INSTRUMENTS: list[Column[InstrumentState]] = [
    Column("instrument", lambda s: s.name, "instrument", words=True, help="as `observe agent --only` has it"),
    Column(
        "readable", lambda s: not s.problem, "readable", lambda s: "no" if s.problem else "yes", words=True, help="here"
    ),
    Column("tells", lambda s: TELLS[s.name], "tells", words=True, help="of what"),
    Column("problem", lambda s: s.problem, "problem", lambda s: safe(s.problem) or "–", words=True, help="why not"),
]


@dataclass(frozen=True, slots=True, repr=False)
class Examination(Result):
    """The compilers of this machine, and its instruments."""

    VERB: ClassVar[str] = "doctor"
    compilers: Diagnosis
    instruments: tuple[InstrumentState, ...]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**self.compilers.record(), "instruments": [record(INSTRUMENTS, state) for state in self.instruments]}

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: one row a compiler."""
        return self.compilers.flat_rows()

    def blocks(self) -> list[Block]:
        """For people."""
        return [*self.compilers.blocks(), Text("Instruments", True), table(INSTRUMENTS, self.instruments)]


def examine(require: str | None = None) -> Examination:
    """Look at what is installed and what can be read; `require` names compilers that must be usable."""
    compilers = diagnose(require)
    with ThreadPoolExecutor(max_workers=len(TELLS)) as pool:  # some wait for somebody who does not answer
        problems = list(pool.map(_problem, TELLS))
    states = tuple(InstrumentState(name=name, problem=problem) for name, problem in zip(TELLS, problems, strict=True))
    return Examination(compilers, states)


def _problem(name: str) -> str:
    """Why an instrument can't be read; empty where it can."""
    if name == ENERGY:
        return energy_problem()
    try:
        KINDS[name]().close()
    except Unreadable as reason:
        return str(reason)
    except Exception as error:  # whatever a driver's library raises is that instrument's problem alone
        return str(error) or type(error).__name__
    return ""


def energy_problem(root: Path = Path("/")) -> str:
    """Why the energy of the host can't be read; empty where it can."""
    counters = sorted((root / _RAPL).glob("*/energy_uj"))
    if not counters:
        return f"no counters in {root / _RAPL}"
    if not any(os.access(counter, os.R_OK) for counter in counters):
        return f"{counters[0]} is for root alone"
    return ""

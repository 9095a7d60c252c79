"""What makes a run fit the chips asked for: another stack, bf16 optimizer state, recomputation; no more chips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from chipwise.catalog import Accelerators, Stack, load
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.stacks import holds_base, runs_on
from chipwise.errors import Refusal
from chipwise.layout.enumerate import enumerate_layouts
from chipwise.layout.evaluate import memory_need
from chipwise.predict.setup import set_up, stack_of
from chipwise.workload.model import Workload

MOST = 3  # remedies that a refusal names


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change of a run, as flags of the command line and as keys of the workload file."""

    changes: tuple[tuple[str, str], ...]  # key of `train`, value
    workload: Workload
    stack: Stack

    @property
    def flags(self) -> str:
        """The change as people type it."""
        return " ".join(f"--{key.replace('_', '-')} {value}" for key, value in self.changes)


def remedies(
    workload: Workload, acc: Accelerators, calibration: Calibration, stack: Stack, limit: float
) -> list[Remedy]:
    """The smallest changes with which some layout takes at most `limit` bytes a chip; none that need another."""
    out: list[Remedy] = []
    for remedy in _changes(workload, acc, stack):
        if any(set(one.changes) <= set(remedy.changes) for one in out):
            continue
        if _fits(remedy, acc, calibration, limit):
            out.append(remedy)
        if len(out) == MOST:
            break
    return out


def _changes(workload: Workload, acc: Accelerators, stack: Stack) -> Iterator[Remedy]:
    """Single changes, then pairs of them."""
    train = workload.train
    states = [] if train.state_precision == "bf16" else [(("state_precision", "bf16"), {"state_precision": "bf16"})]
    ways = [] if train.recompute == "auto" else [(("recompute", "auto"), {"recompute": "auto"})]
    small = train.lora_rank and not train.lora_base and holds_base(stack, "nf4", acc.chip)
    bases = [(("lora_base", "nf4"), {"lora_base": "nf4"})] if small else []
    others = [other for other in load().stacks.values() if _takes(other, acc, stack)]
    stacks = sorted(others, key=lambda other: len(other.parallel.axes))  # the simplest that has the memory first
    for key, change in (*ways, *bases, *states):
        yield Remedy(changes=(key,), workload=_changed(workload, change), stack=stack)
    for other in stacks:
        yield Remedy(changes=(("stack", other.id),), workload=workload, stack=other)
    for key, change in (*states, *ways):
        for other in stacks:
            yield Remedy(changes=(("stack", other.id), key), workload=_changed(workload, change), stack=other)


def _changed(workload: Workload, change: dict[str, Any]) -> Workload:
    return replace(workload, train=replace(workload.train, **change))


def _takes(other: Stack, acc: Accelerators, stack: Stack) -> bool:
    return other.id != stack.id and "train" in other.work and runs_on(other, acc.chip)


def _fits(remedy: Remedy, acc: Accelerators, calibration: Calibration, limit: float) -> bool:
    stack = stack_of(remedy.workload, acc.chip, remedy.stack)
    try:
        legal = enumerate_layouts(remedy.workload.model, remedy.workload.train, acc, stack.parallel)
        work = set_up(remedy.workload, acc, calibration, stack)
    except Refusal:  # it can't train this at all
        return False
    return any(float(memory_need(work, grid).min()) <= limit for grid in legal.grids)

"""A workload at a place: everything the layouts of a training step are timed with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from chipwise.catalog import Accelerators, Chip, Stack, find_stack, load
from chipwise.catalog.calibration import Calibration
from chipwise.errors import Refusal, UnknownName
from chipwise.ops.table import OpTable, build
from chipwise.predict.components import Components, Site, components
from chipwise.predict.correction import Array, learnt_factors
from chipwise.predict.layouts import Layout, Layouts
from chipwise.predict.memory import MemoryUse, memory
from chipwise.predict.schedule import Breakdown, StepCoefficients, schedule
from chipwise.predict.site import labels, site, stack_for, step_coefficients
from chipwise.predict.training import TrainCosts, costs
from chipwise.workload.model import Workload


@dataclass(frozen=True, slots=True)
class Bench:
    """A workload at a place: everything layouts are timed with."""

    ops: OpTable
    site: Site
    costs: TrainCosts
    global_batch: float
    coefficients: StepCoefficients
    factors: Callable[[Sequence[Layout]], Array]  # what published steps near layouts taught

    def components(self, layouts: Layouts) -> Components:
        """Raw times of one step."""
        c = self.costs
        return components(self.ops, self.site, layouts, self.global_batch, c.frozen, c.trained,
                          c.optimizer_bytes)

    def schedule(self, parts: Components) -> Breakdown:
        """Time of one step by cause."""
        return schedule(parts, self.coefficients)

    def memory(self, layouts: Layouts) -> MemoryUse:
        """Bytes per chip by class."""
        c, s = self.costs, self.site
        return memory(self.ops, s.numerics, s.traits, layouts, self.global_batch, c.states, c.state_bytes,
                      c.trained, c.frozen, s.devices)


def bench(workload: Workload, acc: Accelerators, calibration: Calibration,
          stack: Stack | None = None) -> Bench:
    """Set up a workload on chips under a stack (the chip's usual one unless named)."""
    train = workload.train
    stack = stack_of(workload, acc.chip, stack)
    if not acc.chip.trains:
        raise Refusal(f"{acc.chip.id} does not train", "its software runs inference only")
    names = labels(acc.chip, stack, train.precision)
    return Bench(
        build(workload.model, train.sequence),
        site(acc, train.precision, calibration, stack, train.state_precision),
        costs(train, workload.model), float(train.global_batch), step_coefficients(calibration.step, names),
        partial(learnt_factors, calibration, workload, acc, stack, stack.release),
    )


def named_stack(workload: Workload) -> Stack | None:
    """The stack a workload names; None where it names none."""
    text = workload.train.stack
    if not text:
        return None
    named = find_stack(text)
    if named is None or "train" not in named.work:
        raise UnknownName("stack", text, [s.id for s in load().stacks.values() if "train" in s.work])
    return named


def stack_of(workload: Workload, chip: Chip, stack: Stack | None = None) -> Stack:
    """The stack given, the one the workload names, or the chip's usual one."""
    return stack or named_stack(workload) or stack_for(chip, workload.model.family)

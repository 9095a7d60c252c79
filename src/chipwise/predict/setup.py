"""A workload at a place: everything the layouts of a training step are timed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from chipwise.catalog import Accelerators, Chip, Stack, load, parse, training_stack
from chipwise.catalog.calibration import Bench, Calibration
from chipwise.catalog.stacks import holds_base
from chipwise.catalog.telemetry_files import TelemetryGroup
from chipwise.errors import Refusal
from chipwise.ops.operations import OpTable
from chipwise.ops.table import build
from chipwise.predict.learn.bench_match import BenchMatch, Finder, bench_at, finder
from chipwise.predict.learn.gp import Array
from chipwise.predict.learn.launch_cost import LaunchCost, launch_times, measured_siblings
from chipwise.predict.learn.step_residuals import StepFactors
from chipwise.predict.model.components import Components, ExecutionTarget, components
from chipwise.predict.model.layouts import RECOMPUTE, Layout, Layouts
from chipwise.predict.model.memory import MemoryUse, memory
from chipwise.predict.model.schedule import COLLECTIVES, Breakdown, StepCoefficients, schedule
from chipwise.predict.model.training import TrainCosts, costs
from chipwise.predict.site import execution_target, labels, stack_for, step_coefficients
from chipwise.workload.model import Workload


@dataclass(frozen=True, slots=True)
class Correction:
    """What is learned of a step: a factor on the formulas, the measurement it is from, what was refused."""

    factor: float
    match: BenchMatch | None = None
    refused: str = ""  # what would have made the step faster than physics allows


@dataclass(frozen=True, slots=True)
class Setup:
    """A workload at a place: everything layouts are timed with."""

    ops: OpTable
    target: ExecutionTarget
    costs: TrainCosts
    global_batch: float
    coefficients: StepCoefficients
    published: StepFactors  # by published steps near layouts
    measured: Finder | None = None  # what was measured of the chip itself, where it is to be used
    launches: LaunchCost | None = None  # as measured on another chip, where that is in `coefficients`
    telemetry: TelemetryGroup | None = None  # what one's own runs of such programs took

    def components(self, layouts: Layouts) -> Components:
        """Raw times of one step."""
        return components(self.ops, self.target, layouts, self.global_batch, self.costs)

    def schedule(self, parts: Components) -> Breakdown:
        """Time of one step by cause."""
        return schedule(parts, self.coefficients)

    def seconds(self, layouts: Sequence[Layout]) -> Array:
        """Seconds of one step of each layout: the formulas' times its factor, as `corrections` has it."""
        product = Layouts.of(layouts)
        totals = np.broadcast_to(self.schedule(self.components(product)).total, len(layouts))
        return totals * [correction.factor for correction in self.corrections(layouts, totals)]

    def corrections(self, layouts: Sequence[Layout], totals: Array) -> list[Correction]:
        """What is learned of layouts: measurements of the chip where there are some, else published steps.

        `totals` are the formulas' seconds of each.

        A factor that would make a step shorter than its FLOPs take at the dense peak is refused, and the next one
        counts: published steps instead of measurements, the formulas alone instead of published steps.
        """
        if not layouts:
            return []
        published = self.published(layouts)
        out = []
        for layout, factor, total in zip(layouts, published, totals, strict=True):
            least = self.math_seconds(layout.chips) / float(total)  # the smallest factor that physics allows
            match = None if self.measured is None else self.measured(layout)
            refused = ""
            if match is not None:
                measured = 1 + (match.factor - 1) * self.local(layout)
                if measured >= least:
                    out.append(self._observed(Correction(measured, match), least))
                    continue
                refused = f"measurements ({match.step.because})"
            if factor < least:
                refused, factor = refused or "published steps nearby", max(1.0, least)
            out.append(self._observed(Correction(float(factor), None, refused), least))
        return out

    def _observed(self, correction: Correction, least: float) -> Correction:
        """The correction times what runs took against it; without that, where physics does not allow it."""
        if self.telemetry is None:
            return correction
        factor = correction.factor * self.telemetry.factor
        if factor < least:
            return replace(correction, refused=correction.refused or "runs observed")
        return replace(correction, factor=factor)

    def corrected(self, layouts: Layouts, seconds: Array, wires: Array | None = None) -> Array:
        """The formulas' steps of a product of layouts times their factors, as `corrections` has them one by one.

        `wires` are the seconds of collectives among them, where the chip was measured.
        """
        chips = int(layouts.dp[0] * layouts.pp[0] * layouts.tp[0] * layouts.cp[0])
        least = self.math_seconds(chips)
        factors = self.published.over(layouts)
        out = seconds if factors is None else seconds * factors
        out = np.where(out < least, np.maximum(seconds, least), out)
        times = 1.0 if self.telemetry is None else self.telemetry.factor
        if self.measured is None or wires is None:
            return np.where(out * times < least, out, out * times)
        sizes, index = np.unique(layouts.key_micro_batch, return_inverse=True)
        matches = [
            [self.measured(Layout(micro_batch=float(size), recompute=RECOMPUTE[int(mode)])) for size in sizes]
            for mode in layouts.recompute.ravel()
        ]
        factor = np.array([[np.nan if match is None else match.factor for match in row] for row in matches])
        measured = seconds + (factor[:, index[layouts.key]] - 1) * (seconds - wires)
        out = np.where(measured >= least, measured, out)  # false where nothing was measured
        return np.where(out * times < least, out, out * times)

    def math_seconds(self, chips: int) -> float:
        """The model's FLOPs of one step at the dense peak of the training precision."""
        return self.model_flops * self.global_batch / (chips * self.target.low.peak)

    @property
    def model_flops(self) -> float:
        """FLOPs that the maths of one sequence needs: forward, and twice that backward (once if frozen)."""
        return self.ops.flops_forward * (2.0 if self.costs.frozen else 3.0)

    def local(self, layout: Layout) -> float:
        """The share of a step that a chip spends on its own, and not on what travels between chips."""
        times = self.schedule(self.components(Layouts.of([layout])))
        wires = sum(float(np.ravel(getattr(times, name))[0]) for name in COLLECTIVES)
        return 1 - wires / float(np.ravel(times.total)[0])

    def memory(self, layouts: Layouts) -> MemoryUse:
        """Bytes per chip by class."""
        return memory(self.ops, self.target, layouts, self.global_batch, self.costs)


def set_up(workload: Workload, acc: Accelerators, calibration: Calibration, stack: Stack | None = None) -> Setup:
    """Set up a workload on chips under a stack (the chip's usual one unless named)."""
    train = workload.train
    stack = stack_of(workload, acc.chip, stack)
    if not acc.chip.trains:
        raise Refusal(f"{acc.chip.id} does not train", "its software runs inference only")
    base = train.lora_base
    if base and not holds_base(stack, base, acc.chip):
        raise Refusal(*_no_base(stack, base, acc.chip))
    names = labels(acc.chip, stack, train.precision)
    made = Setup(
        build(workload.model, train.sequence),
        execution_target(acc, train.precision, calibration, stack, train.state_precision),
        costs(train, workload.model),
        float(train.global_batch),
        step_coefficients(calibration.training.step, names),
        StepFactors(calibration, workload, acc, stack, stack.release),
        telemetry=telemetry_at(workload, acc.chip, stack, calibration),
    )
    if not calibration.bench.used:
        return made
    formula = partial(_formula, acc.chip, calibration, stack)
    measured = finder(calibration.bench, workload, acc, stack, formula)
    launches = None if measured is not None else _launch_cost(workload, acc.chip, calibration, stack)
    if launches is None:
        return replace(made, measured=measured)
    slower = replace(made.coefficients, launch_s=made.coefficients.launch_s * launches.times)
    return replace(made, coefficients=slower, launches=launches)


def telemetry_at(workload: Workload, chip: Chip, stack: Stack, calibration: Calibration) -> TelemetryGroup | None:
    """What one's own runs of such programs took, where it was learned beside this very calibration."""
    group = calibration.telemetry.of(chip.id, stack.id, program_of(workload))
    return group if group is not None and group.base == base_of(chip, stack, calibration) else None


def base_of(chip: Chip, stack: Stack, calibration: Calibration) -> str:
    """The dates of all that a prediction rests on but telemetry: a factor on one is none on another."""
    measured = bench_at(calibration.bench, chip.id, stack.bench) if calibration.bench.used and stack.bench else None
    return calibration.training.date + (f", bench {measured.date}" if measured is not None else "")


def program_of(workload: Workload) -> str:
    """Runs whose errors are alike: family of models, precision, and whether adapters alone are trained."""
    lora = "/lora" if workload.train.lora_rank else ""
    experts = "-moe" if workload.model.experts else ""
    return f"{workload.model.family}{experts}/{workload.train.precision}{lora}"


def _launch_cost(workload: Workload, chip: Chip, calibration: Calibration, stack: Stack) -> LaunchCost | None:
    """What launches take by measurements of other chips; None where published steps of such models say it."""
    if not stack.bench or workload.model.family in calibration.training.intervals.get("models", ()):
        return None
    plain = replace(calibration, bench=Bench(used=False))
    one = Layout(micro_batch=1)
    for name in measured_siblings(calibration.bench, chip.id, stack.bench):
        there = parse(f"{name}:1")
        formula = partial(_formula, there.chip, calibration, stack)
        find = finder(calibration.bench, workload, there, stack, formula)
        match = None if find is None else find(one)
        if match is None:
            continue
        alone = replace(workload, train=replace(workload.train, global_batch=1))
        work = set_up(alone, there, plain, stack)
        parts = work.components(Layouts.of([one]))

        def step(times: float, work: Setup = work, parts: Components = parts) -> float:
            k = work.coefficients
            return float(np.ravel(schedule(parts, replace(k, launch_s=k.launch_s * times)).total)[0])

        times = launch_times(step, step(1.0) * match.factor)
        if times is not None:
            return LaunchCost(times, name)
    return None


def _formula(chip: Chip, calibration: Calibration, stack: Stack, workload: Workload, layout: Layout) -> float:
    """Seconds of a step on one chip by formulas alone."""
    work = set_up(workload, parse(f"{chip.id}:1"), replace(calibration, bench=Bench(used=False)), stack)
    return float(np.ravel(work.schedule(work.components(Layouts.of([layout]))).total)[0])


def named_stack(workload: Workload) -> Stack | None:
    """The stack a workload names; None where it names none."""
    return training_stack(workload.train.stack)


def stack_of(workload: Workload, chip: Chip, stack: Stack | None = None) -> Stack:
    """The stack given, the one the workload names, or the chip's usual one."""
    train = workload.train
    return (
        stack or named_stack(workload) or stack_for(chip, workload.model.family, train.lora_rank > 0, train.lora_base)
    )


def _no_base(stack: Stack, base: str, chip: Chip) -> tuple[str, str]:
    """That a stack does not train beside a base of 4 bits on a chip, and what does."""
    others = [s.id for s in load().stacks.values() if holds_base(s, base, chip)]
    plain = "--lora-base bf16 holds it in 16 bits"
    unlock = f"--stack {' or '.join(others)} does; {plain}" if others else f"{plain}, or a GPU"
    return f"{stack.name} on {chip.id} trains no adapters beside a base held in {base}", unlock

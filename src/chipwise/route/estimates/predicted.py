"""The prediction of a job's workload on the chips of a pool, cached by workload, chips and layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from math import ceil, prod
from typing import Any

from chipwise.catalog import Accelerators, load
from chipwise.catalog.calibration import Calibration, load_calibration
from chipwise.catalog.economics import Economics, economics
from chipwise.catalog.stacks import runs_on, where
from chipwise.cost.checkpoint import state, write_seconds
from chipwise.errors import DoesNotFit, InputError, NoLayout, Refusal
from chipwise.io.clock import day_of_asking
from chipwise.knowledge import Knowledge
from chipwise.layout import search
from chipwise.layout.named import read_layout
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.energy import watts
from chipwise.predict.prediction import Prediction, predict
from chipwise.predict.setup import named_stack
from chipwise.prices import listed
from chipwise.route.estimates.checked import Checked, check_program, check_reference
from chipwise.route.job import Job, Variant
from chipwise.route.load.jobs import varied
from chipwise.route.pool import Pool
from chipwise.units import GIGA
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

Progress = Callable[[str, str, float], None]  # the chips, the stage, and seconds since it began


@dataclass(frozen=True, slots=True)
class Predicted:
    """A run that nothing interrupts."""

    seconds: Estimate
    layout: str = ""
    write_s: float = 0.0  # to write a checkpoint
    share: float = 1.0  # of a busy chip's watts that it draws on average
    watts: float | None = None  # of the whole job, where given
    note: str = ""


@dataclass(slots=True)
class Predictor:
    """Predictions by workload, chips and layout, kept. With `check` programs are compiled where they weren't yet."""

    calibration: Calibration = field(default_factory=load_calibration)
    know: Economics = field(default_factory=economics)
    check: bool = False
    progress: Progress | None = None
    today: date = field(default_factory=day_of_asking)
    cache: dict[Any, Predicted | Refusal] = field(default_factory=dict)

    def predicted(self, job: Job, variant: Variant, pool: Pool, chips: int, topology: str) -> Predicted:
        """The prediction, or a `Refusal`."""
        key = (
            job.workload,
            variant.chips if not topology else chips,
            topology,
            pool.chip,
            pool.cloud,
            variant.layout,
            variant.batch,
            variant.precision,
            variant.program,
            variant.flags,
            variant.name if variant.layout or variant.program else "",
        )  # named in the refusal
        if key not in self.cache:
            try:
                self.cache[key] = self._predicted(job, variant, pool, topology)
            except Refusal as refusal:
                self.cache[key] = refusal
        outcome = self.cache[key]
        if isinstance(outcome, Refusal):
            raise type(outcome)(outcome.reason, outcome.unlock)
        return outcome

    def _predicted(self, job: Job, variant: Variant, pool: Pool, topology: str) -> Predicted:
        acc = accelerators(pool, variant.chips, topology)
        workload = varied(job.workload, variant.batch, variant.precision)
        if isinstance(workload, ServingWorkload):
            return self._served(workload, acc)
        p = self._trained(workload, acc, variant)
        check = (
            check_program(variant, acc, self.calibration, self.check, self.progress)
            if variant.program
            else (check_reference(p, variant, self.calibration, self.check, self.progress))
        )
        notes = [check.note, _slice(variant, acc)]
        duration, share = p.duration, p.watts / watts(acc.chip, 1.0, self.calibration.power)
        if check.step is not None:
            duration = check.step.scaled(workload.train.steps)
        hosts = max(1, ceil(acc.count / acc.chip.fabric.host_chips))
        rates = (self.know.value(f"checkpoint_gb_s_{what}", pool.cloud or "owned") * GIGA for what in ("node", "all"))
        return Predicted(
            duration,
            str(p.layout),
            write_seconds(state(workload).total, hosts, *rates),
            share,
            note="; ".join(part for part in notes if part),
        )

    def _trained(self, workload: Workload, acc: Accelerators, variant: Variant) -> Prediction:
        """The best layout, or that of the variant where it fits."""
        stack = named_stack(workload)
        if stack is not None and not runs_on(stack, acc.chip):
            raise Refusal(f"{stack.name} does not run on {acc.chip.id}", f"it runs on {where(stack)}")
        if not variant.layout:
            best = search(workload, acc, self.calibration, stack).best.layout
            return predict(workload, acc, best, self.calibration, stack)
        try:
            layout = read_layout(variant.layout, workload, acc, self.calibration, stack)
        except InputError as e:
            named = e.field.replace("layout", f"variants.{variant.name}.layout", 1)
            raise Refusal(f"{named}: {e.value!r} does not work on {acc}; expected {e.accepted}") from None
        except NoLayout as e:
            raise NoLayout(e.reason.replace("layout", f"variants.{variant.name}.layout", 1), e.unlock) from None
        p = predict(workload, acc, layout, self.calibration, stack)
        if not p.fits:
            raise DoesNotFit(
                f"{workload.name} does not fit on {acc} with {layout}",
                "the best layout is searched where none is named",
            )
        return p

    def _served(self, workload: ServingWorkload, acc: Accelerators) -> Predicted:
        """An offline job on as many replicas as the chips hold."""
        from chipwise.compare.decision import Refused
        from chipwise.compare.serving.comparer import ServingComparer
        from chipwise.compare.terms import Candidate, Terms

        endless = replace(workload, serve=replace(workload.serve, deadline_s=0.0))  # the job's own deadline counts
        knowledge = Knowledge(self.calibration, listed(), self.know, self.today)
        comparer = ServingComparer.of(endless, Terms(objective="time"), knowledge)
        if self.progress is not None:
            self.progress(str(acc), "simulating what its replicas answer", 0.0)
        row = comparer.evaluate(Candidate(acc.chip, acc))
        if isinstance(row, Refused):
            raise Refusal(row.reason, row.unlock)
        return Predicted(row.seconds, f"{row.split} x {row.fleet.replicas}")


def accelerators(pool: Pool, chips: int, topology: str) -> Accelerators:
    """The chips that a program sees: those of its slice, else those that it asked for.

    >>> str(accelerators(Pool("v5e", "local", "v5e", "tpu", 8), 3, "2x2"))
    'v5e:2x2'
    """
    chip = load().chips[pool.chip]
    if topology:
        shape = tuple(int(axis) for axis in topology.split("x"))
        return Accelerators(chip, prod(shape), shape)
    legal = load().slices.get(pool.chip)
    if legal is None:
        return Accelerators(chip, chips)
    shape = legal.shape_for(chips) or ()
    if not shape:
        raise Refusal(
            f"{chips} chips of {chip.id} form no slice that could be timed", "shapes of the pool, or an estimate for it"
        )
    return Accelerators(chip, chips, shape)


def _slice(variant: Variant, acc: Accelerators) -> str:
    return f"runs on the whole slice of {acc.count}" if acc.count != variant.chips else ""


__all__ = ["Checked", "Predicted", "Predictor", "accelerators"]

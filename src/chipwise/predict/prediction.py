"""The answer for one workload on one set of chips with one layout: time, memory, energy, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import exp

import numpy as np

from chipwise.catalog import Accelerators, Chip, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.catalog.telemetry_files import TelemetryGroup
from chipwise.predict.estimate import Estimate, step_estimate
from chipwise.predict.learn.bench_match import BenchMatch, bench_at
from chipwise.predict.learn.image_intervals import image_intervals
from chipwise.predict.learn.launch_cost import LaunchCost
from chipwise.predict.model.energy import power_in_words, watts
from chipwise.predict.model.layouts import Layout, Layouts
from chipwise.predict.model.memory import RESERVE
from chipwise.predict.model.schedule import COLLECTIVES, Breakdown
from chipwise.predict.setup import program_of, set_up, stack_of, telemetry_at
from chipwise.predict.site import OVERLAPS
from chipwise.units import format_count
from chipwise.workload.model import BASES, PICTURES, Workload
from chipwise.workload.params import lora_params

ROUNDING = 1e-9
COMPUTE = ("matmul", "expert", "attention", "stream", "recompute")


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """What running `workload` on `accelerators` with `layout` takes."""

    workload: Workload
    accelerators: Accelerators
    stack: Stack
    layout: Layout
    step: Estimate  # seconds
    bound_s: float  # the longer of the maths at the dense peak and the wires: no schedule is faster
    math_s: float  # model FLOPs at the chip's dense peak
    parts: dict[str, float]  # seconds of the step by cause, adding up to the step
    calibration_factor: float  # on the formulas' step: by published steps nearby, or by measurements of the chip
    hidden_s: float  # collectives hidden behind compute
    memory: dict[str, float]  # bytes per chip by class
    capacity: float  # bytes a chip can allocate
    watts: float  # one chip, mean
    assumptions: tuple[str, ...]
    measured: bool = False  # the factor is from measurements of the chip

    def __repr__(self) -> str:
        return f"<Prediction {self.workload.name!r} on {self.accelerators} as {self.layout}: {self.step.value:.3g} s>"

    def __post_init__(self) -> None:
        """No path makes a step that is faster than physics allows."""
        if self.step.value < self.bound_s * (1 - ROUNDING) or self.mfu > 1 + ROUNDING:
            raise AssertionError(
                f"{self.workload.name} on {self.accelerators} with {self.layout}: a step of {self.step.value:g} s is "
                f"under its bound of {self.bound_s:g} s"
            )

    @property
    def fits(self) -> bool:
        """Whether the bookkeeping leaves the runtime its reserve of the chip's usable memory."""
        return self.memory["total"] <= self.capacity * (1 - RESERVE)

    @property
    def tokens_per_s(self) -> Estimate:
        """Tokens (or images, videos) a second of all chips together."""
        return self.step.inverted(self.units_per_step)

    @property
    def units_per_step(self) -> float:
        """Tokens of a step, or images or videos."""
        t = self.workload.train
        return float(t.global_batch if t.samples_unit in PICTURES else t.tokens_per_step)

    @property
    def mfu(self) -> float:
        """Model FLOPs over the dense peak of the training precision."""
        return self.math_s / self.step.value

    @property
    def duration(self) -> Estimate:
        """Seconds of the whole run."""
        return self.step.scaled(self.workload.train.steps)

    @property
    def kwh(self) -> Estimate:
        """Energy of the chips over the whole run (servers and cooling not included)."""
        return self.duration.scaled(self.watts * self.accelerators.count / 3.6e6)


def predict(
    workload: Workload, acc: Accelerators, layout: Layout, calibration: Calibration, stack: Stack | None = None
) -> Prediction:
    """Predict one training step, and the run it is part of."""
    stack = stack_of(workload, acc.chip, stack)
    work = set_up(workload, acc, calibration, stack)
    layouts = Layouts.of([layout])
    times = work.schedule(work.components(layouts))
    parts = {f.name: float(np.ravel(getattr(times, f.name))[0]) for f in fields(Breakdown)}
    total, hidden = parts.pop("total"), parts.pop("hidden")
    (correction,) = work.corrections([layout], np.ravel(times.total))
    factor, match = correction.factor, correction.match
    parts = {name: seconds * factor for name, seconds in parts.items()}
    total, hidden = total * factor, hidden * factor
    math_s = work.math_seconds(acc.count)
    bound = max(math_s, hidden + sum(parts[name] for name in COLLECTIVES))
    total = max(total, bound)  # rounding alone: a correction that breaks the bound was refused
    beside = image_intervals(calibration.bench, workload.train, acc.chip, stack)
    step = step_estimate(total, bound, acc.chip, workload, stack, calibration, work.published.nearest(layout), beside)
    if match is not None:
        step = measured_estimate(step, match, acc.count).at_least(bound)
    if work.telemetry is not None and not correction.refused:
        step = observed_estimate(step, work.telemetry, acc.chip.id).at_least(bound)
    if correction.refused:
        because = f"{step.because}; {correction.refused} would make it faster than the chip's peak and do not count"
        step = replace(step, because=because)
    busy = min(1.0, sum(parts[k] for k in COMPUTE) / total)
    return Prediction(
        workload,
        acc,
        stack,
        layout,
        step,
        bound,
        math_s,
        parts,
        factor,
        hidden,
        work.memory(layouts).at(0),
        acc.chip.usable_bytes,
        watts(acc.chip, busy, calibration.power),
        (*assumptions(workload, acc, stack, layout, calibration), *launches_in_words(work.launches)),
        match is not None,
    )


def measured_estimate(step: Estimate, match: BenchMatch, chips: int) -> Estimate:
    """A step with the interval of measurements; of many chips, with the interval that published steps gave."""
    because = match.step.because if match.exact else f"{match.step.because}, as the nearest step on one chip"
    if chips > 1:
        return replace(step, because=f"{step.because}; a chip's own part: {because}")
    scale = step.value / match.step.value
    evidence = "measured" if match.exact else "modelled"
    return replace(match.step.scaled(scale), evidence=evidence, because=because)


def observed_estimate(step: Estimate, group: TelemetryGroup, chip: str) -> Estimate:
    """A step with the interval that one's own runs gave; its value has their factor already."""
    low, high = exp(group.low - group.log_factor), exp(group.high - group.log_factor)
    because = f"{group.runs} runs of your own of such programs on {chip}, the last of {group.date}"
    return replace(
        step, low=step.value * low, high=step.value * high, evidence="modelled", because=because, distance=None
    )


def collectives(p: Prediction, calibration: Calibration) -> dict[str, dict[str, float]]:
    """Seconds of each kind of collective on the wire: exposed, and hidden behind compute.

    The whole time on the wire is that of the same step with every overlap switched off. A compiled step knows what
    it hides in one sum, booked with the sharded weights.
    """
    if p.step.evidence == "compiled":
        return {
            kind: {"exposed": p.parts[kind], "hidden": p.hidden_s if kind == "shard" else 0.0}
            for kind in COLLECTIVES
            if kind in p.parts
        }
    work = set_up(p.workload, p.accelerators, calibration, p.stack)
    alone = replace(work, coefficients=replace(work.coefficients, **dict.fromkeys(OVERLAPS, 0.0)))
    times = alone.schedule(alone.components(Layouts.of([p.layout])))
    out = {}
    for kind in COLLECTIVES:
        whole = float(np.ravel(getattr(times, kind))[0]) * p.calibration_factor
        out[kind] = {"exposed": p.parts[kind], "hidden": max(whole - p.parts[kind], 0.0)}
    return out


def step_in_words(workload: Workload) -> str:
    """What a step trains on."""
    t = workload.train
    if t.samples_unit in PICTURES:
        return f"{t.global_batch:,} {workload.model.pictures}"
    return f"{t.global_batch:,} sequences of {t.sequence:,} tokens, {format_count(t.global_batch * t.sequence)} in all"


def assumptions(
    workload: Workload, acc: Accelerators, stack: Stack, layout: Layout, calibration: Calibration
) -> tuple[str, ...]:
    """What was taken for granted, in words."""
    train, chip = workload.train, acc.chip
    fabric = chip.fabric
    island = f"{fabric.domain} chip{'s' * (fabric.domain > 1)} on {fabric.name or fabric.kind}"
    said = [
        f"software: {stack.name}" + ("" if train.stack else " (assumed: none was named)"),
        f"precision {train.precision}, {train.optimizer} with {train.state_precision} state",
        *_wide_in_words(workload, chip),
        *lora_in_words(workload),
        *(
            []
            if acc.count == 1
            else [
                f"network: {fabric.scale_out * 8 / 1e9:.0f} Gb/s a chip beyond "
                + (f"the slice {'x'.join(map(str, acc.shape))}" if acc.shape else island)
            ]
        ),
        f"calibration of {calibration.training.date} on {calibration.training.rows:,} published rows",
        *uncalibrated_in_words(stack, calibration),
        *measured_in_words(workload, acc, stack, calibration),
        *observed_in_words(workload, acc, stack, calibration),
        *power_in_words([chip], calibration.power),
        "energy: chips only; servers, cooling and the network come on top",
    ]
    words = {
        "usable_bytes": "usable memory",
        "tdp_w": "power",
        "idle_w": "idle power",
        "peak." + train.precision: f"{train.precision} peak",
    }
    guessed = [text for f, text in words.items() if f in chip.figures and chip.figures[f].note.startswith("assumed")]
    if guessed:
        said.append(f"{chip.id}: {', '.join(guessed)} not published, assumed; see `chipwise chips {chip.id}`")
    if workload.model.experts:
        said.append("experts: tokens spread evenly, none dropped")
    return tuple(said)


def uncalibrated_in_words(stack: Stack, calibration: Calibration) -> list[str]:
    """That no published step was run with a stack, so that it is taken to be as the chip's other software."""
    effects = calibration.training.step
    if not effects or any(f"stack:{stack.id}" in table for table in effects.values()):
        return []
    return [f"{stack.name}: no published step of it is known; efficiency as calibrated for its family of chips"]


def measured_in_words(workload: Workload, acc: Accelerators, stack: Stack, calibration: Calibration) -> list[str]:
    """That the chip was measured under another stack, where that is so and none was named."""
    usual = calibration.bench.used and not workload.train.stack and not stack.bench
    if not usual or bench_at(calibration.bench, acc.chip.id, "torch") is None:
        return []
    return [f"{acc.chip.id} was measured with PyTorch: the stack `pytorch` predicts from that"]


def observed_in_words(workload: Workload, acc: Accelerators, stack: Stack, calibration: Calibration) -> list[str]:
    """What one's own runs say, or why they don't count; nothing where there are none."""
    group = calibration.telemetry.of(acc.chip.id, stack.id, program_of(workload))
    if group is None:
        return []
    if telemetry_at(workload, acc.chip, stack, calibration) is None:
        what = (
            f"runs observed on {acc.chip.id} to {group.date} do not count: they were held against another calibration"
        )
        return [f"{what} ({group.base}); `chipwise calibrate telemetry` learns from them again"]
    times = f"{group.factor:.3g} times what is published says"
    return [f"{group.runs} runs of your own on {acc.chip.id}, to {group.date}: {times}"]


def launches_in_words(launches: LaunchCost | None) -> list[str]:
    """That the host's time was measured beside another chip; nothing where the formulas have it."""
    if launches is None:
        return []
    return [f"waiting for the host: {launches.times:.2g} times the formulas', as measured with {launches.chip}"]


def _wide_in_words(workload: Workload, chip: Chip) -> list[str]:
    """Why products of 4-byte numbers take more than their matrix units' rate says; nothing for other precisions."""
    precision, wide = workload.train.precision, chip.peak.get("bf16") or chip.peak.get("fp16")
    if precision not in ("fp32", "tf32") or chip.family != "gpu" or not workload.model.heads or not wide:
        return []
    rate = chip.peak.get(precision)
    products = f"products at {rate / wide:.2g} of 16 bits' peak, " if rate else ""
    return [
        f"{precision}: {products}tensors of 4 bytes, and attention whose scores pass through memory, since fused"
        " kernels take 16 bits; bf16 has none of this"
    ]


def lora_in_words(workload: Workload) -> list[str]:
    """What is trained where base weights are frozen; nothing where all weights are."""
    train = workload.train
    if not train.lora_rank:
        return []
    trained = lora_params(workload.model, train.lora_rank, train.lora_targets)
    lora = f"LoRA of rank {train.lora_rank} on {train.lora_targets}: {trained:,} parameters trained, the rest frozen"
    return [lora, *_base_in_words(workload)]


def _base_in_words(workload: Workload) -> list[str]:
    """What a frozen base is held in, where that or what it is published in has 4 bits."""
    base, stored, precision = workload.train.lora_base, workload.model.native_precision, workload.train.precision
    if base:
        return [
            f"QLoRA: frozen linear layers held in {base}, made {precision} once in every pass; the embedding and the"
            f" output layer in {precision}; no published step has such a base, so intervals are those of LoRA"
        ]
    return [f"frozen base held in {precision}, published in {stored}: --lora-base {stored}"] if stored in BASES else []

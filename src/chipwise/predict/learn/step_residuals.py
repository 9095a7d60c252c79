"""What the step model still misses, from published steps: a smooth factor, 1 far away from them.

A Gaussian process over sizes and names. Its covariance is a product over sizes, so that the factors of all layouts of
a search come from one small matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from chipwise.catalog import Accelerators, Chip, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.predict.learn.gp import Array, Points, Prior, Rbf
from chipwise.predict.model.layouts import RECOMPUTE, Layout, Layouts
from chipwise.predict.site import RELEASE, architecture
from chipwise.workload.model import Workload

# Scales of the sizes (octaves, years, stages) and penalties of unlike names, chosen by cross-validation over
# whole groups of rows (`make calibration` prints the errors), 2026-11-15.
NAME_PENALTY = (2.0, 0.7, 1.2, 0.6, 2.0, 2.0, 2.0)  # stack, chip, design, precision, experts, LoRA, family
# Standard deviation and largest value of the correction, as logarithms
PRIOR = Prior(Rbf(penalties=NAME_PENALTY), amplitude=0.2, limit=0.5)
SIZES = (
    "d_model",
    "layers",
    "sequence",
    "micro_batch",
    "tp",
    "pp",
    "cp",
    "ep",
    "chips",
    "release",
    "head_dim",
    "recompute",
    "zero",
)


def step_sizes(workload: Workload, chips: int, layout: Layout, release: float) -> list[float]:
    """The numbers a step is compared by, on comparable scales."""
    m, t = workload.model, workload.train
    head = m.d_model / m.heads if m.heads else 64.0
    return [
        round(v, 3)
        for v in (
            log2(max(m.d_model, 1)) / 1.5,
            log2(max(m.layers, 1)),
            log2(t.sequence) / 1.5,
            log2(max(layout.micro_batch, 0.1)) / 1.5,
            log2(layout.tp),
            log2(layout.pp),
            log2(layout.cp),
            log2(layout.ep) / 1.5,
            log2(chips) / 3,
            (release - RELEASE) / 0.7,
            log2(head),
            (0.0, 1.0, 2.0, 3.0)[RECOMPUTE.index(layout.recompute)],
            layout.zero / 1.5,
        )
    ]


def step_names(workload: Workload, chip: Chip, stack: Stack | None) -> list[str]:
    """The names a step is compared by."""
    m, t = workload.model, workload.train
    return [
        stack.id if stack else "",
        chip.id,
        architecture(chip),
        t.precision,
        "moe" if m.experts else "dense",
        "lora" if t.lora_rank else "",
        m.family,
    ]


def step_factors(
    calibration: Calibration,
    workload: Workload,
    acc: Accelerators,
    stack: Stack | None,
    release: float,
    layouts: Sequence[Layout],
) -> Array:
    """The factors on the steps of some layouts at a place; 1 where the calibration has none."""
    known = calibration.training.step_residuals
    if known is None:
        return np.ones(len(layouts))
    sizes = [tuple(step_sizes(workload, acc.count, layout, release)) for layout in layouts]
    places = {size: place for place, size in enumerate(dict.fromkeys(sizes))}  # many share them
    wanted = Points(np.array(list(places)), np.array([step_names(workload, acc.chip, stack)]))
    factors = np.exp(PRIOR.mean_at(wanted, Points(known.sizes, known.names), known.weights))
    return np.asarray(factors[[places[size] for size in sizes]])


def nearest(
    calibration: Calibration, workload: Workload, acc: Accelerators, stack: Stack | None, release: float, layout: Layout
) -> float:
    """How alike the nearest published step is that the calibration was fitted to: 1 for the same, falling to 0."""
    residuals = calibration.training.step_residuals
    if residuals is None or not residuals.weights.any():
        return 0.0
    fitted = Points(residuals.sizes, residuals.names).take(residuals.weights != 0)
    names = np.array([step_names(workload, acc.chip, stack)])
    here = Points(np.array([step_sizes(workload, acc.count, layout, release)]), names)
    return float(PRIOR.covariance(here, fitted).max())


FELT = 1e-8  # of the logarithm of a step: what a published step has to give to count where many layouts are ranked


@dataclass(frozen=True, slots=True)
class StepFactors:
    """The factors on the steps of a workload at a place, for single layouts or for a product of them."""

    calibration: Calibration
    workload: Workload
    accelerators: Accelerators
    stack: Stack | None
    release: float

    def __call__(self, layouts: Sequence[Layout]) -> Array:
        """The factor of each layout."""
        return step_factors(self.calibration, self.workload, self.accelerators, self.stack, self.release, layouts)

    def nearest(self, layout: Layout) -> float:
        """How alike the nearest published step is to a layout's."""
        return nearest(self.calibration, self.workload, self.accelerators, self.stack, self.release, layout)

    def over(self, layouts: Layouts) -> Array | None:
        """The factors of layouts that broadcast to (states, recomputations, rows), shaped so; None where all are 1."""
        known = self.calibration.training.step_residuals
        if known is None:
            return None
        base = np.array(step_sizes(self.workload, self.accelerators.count, Layout(), self.release))
        names = np.array(step_names(self.workload, self.accelerators.chip, self.stack))
        penalty = (np.asarray(known.names) != names) @ np.array(NAME_PENALTY)
        varied = [SIZES.index(name) for name in ("micro_batch", "tp", "pp", "cp", "ep", "recompute", "zero")]
        apart = np.delete(known.sizes - base, varied, axis=1)
        weights = PRIOR.amplitude**2 * known.weights * np.exp(-0.5 * (apart**2).sum(axis=1) - penalty)
        felt = np.abs(weights) > FELT  # steps further off move no layout by more than rounding
        if not felt.any():
            return None
        weights, known_sizes = weights[felt], known.sizes[felt]

        def near(size: str, values: Array) -> Array:
            """The factor of the covariance that a size gives, (value, published step)."""
            column = known_sizes[:, SIZES.index(size)]
            distinct, index = np.unique(np.round(values, 3), return_inverse=True)
            return np.asarray(np.exp(-0.5 * (distinct[:, None] - column[None, :]) ** 2)[index])

        x = layouts
        keys = weights * near("micro_batch", np.log2(np.maximum(x.key_micro_batch, 0.1)) / 1.5)
        keys *= near("tp", np.log2(x.key_tp)) * near("cp", np.log2(x.key_cp)) * near("ep", np.log2(x.key_ep) / 1.5)
        pps, pp_index = np.unique(x.pp, return_inverse=True)
        zeros, zero_index = np.unique(x.zero.ravel(), return_inverse=True)
        rest = near("zero", zeros / 1.5)[:, None, None] * near("recompute", x.recompute.ravel().astype(float))[:, None]
        rest = rest * near("pp", np.log2(pps))
        # so small that the threads of a matrix product would cost more than they save
        mean = np.einsum("rp,kp->rk", rest.reshape(-1, len(weights)), keys)
        mean = np.clip(mean, -PRIOR.limit, PRIOR.limit)
        factors = np.exp(mean).reshape(*rest.shape[:-1], len(keys))
        flat = factors[zero_index].reshape(len(zero_index), rest.shape[1], -1)
        return np.asarray(np.take(flat, pp_index * len(keys) + x.key, axis=2))

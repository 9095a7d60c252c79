"""From the compiler's cycles to tables: a formula for each chip, a smooth factor over shapes, and how well both do.

A row's cycles are compared with the formula of `predict.model.systolic`. What remains is fitted by a Gaussian process
over log2 of the sizes, in part common to all chips, and kept as a grid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_fits import least
from chipwise.calibrate.tpu_rows import Row
from chipwise.calibrate.tpu_shapes import swept
from chipwise.catalog import Chip, load
from chipwise.catalog.compilers import Sweep, tpu_compilers
from chipwise.errors import Refusal
from chipwise.predict.learn.gp import Points, Prior
from chipwise.predict.model.precision import peak_of
from chipwise.predict.model.shapes import Products
from chipwise.predict.model.systolic import (
    LANES,
    LOWEST,
    POINTS,
    SUBLANES,
    UNIT,
    CycleTable,
    factor_at,
    formula,
    table_from,
    tiles,
)

Array = NDArray[np.float64]

IN_BYTES = {"bf16": 2.0, "fp32": 4.0, "int8": 1.0, "fp8": 1.0}
FITTED = ("share", "fill", "drain", "start", "step", "reads", "writes")
START = np.array((0.93, 32.0, 64.0, 4_000.0, 10_000.0, 0.7, 0.4))
LOW = np.array((0.5, 1.0, 1.0, 200.0, 300.0, 0.15, 0.1))
HIGH = np.array((1.0, 600.0, 600.0, 12_000.0, 200_000.0, 1.2, 1.2))
PRIOR = np.array((0.3, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5))
LENGTH = 1.6  # octaves over which factors stay alike
SIGNAL, NOISE = 0.02, 0.005  # variances of the smooth part and of the rest
COMMON = 0.5  # of both is the same on all chips
OFFSET = 0.02  # variance of what a class of products (precision, order, kind) differs by as a whole
FOLDS, SEED = 5, 7
PLAIN, CONV = "bf16", "conv"
LABELS = (PLAIN, "int8", "fp8", "fp32", "tn", "nt", "batched", "attention", CONV)


def sweep_of(chip: str) -> Sweep:
    """What a chip's compiler was seen to do."""
    compiler = tpu_compilers().get(chip)
    if compiler is None or compiler.sweep is None:
        raise Refusal(f"nothing is known of what the compiler of {chip} keeps on chip", "compilers.toml says it")
    return compiler.sweep


def label(row: Row) -> str:
    """The class a product belongs to: its precision where it is plain, else what is special about it."""
    if row.kind != "matmul":
        return row.kind
    if float(row.batch) > 1:
        return "batched"
    return row.dtype if row.order == "nn" else row.order


def rate(chip: Chip, dtype: str) -> float:
    """FLOP a cycle and device at the dense peak, that of bf16 where the dtype has none."""
    peak = peak_of(chip, dtype) or chip.peak["bf16"]
    return peak / chip.clock_hz / chip.devices


def products_of(rows: Sequence[Row]) -> Products:
    """Rows as arrays. Of a convolution every tap's channels are padded, and its images are read once."""
    batch, m, n, k = np.array([row.sizes for row in rows]).T
    in_bytes = np.array([IN_BYTES[row.dtype] for row in rows])
    left = in_bytes.copy()
    for i, row in enumerate(rows):
        if row.window:
            images, side, channels, _, kernel, _ = (float(x) for x in row.window.split("x"))
            if channels > SUBLANES:  # fewer are laid out with the taps
                k[i] = kernel**2 * np.ceil(channels / LANES) * LANES
            left[i] *= images * side**2 * channels / float(tiles(m[i], k[i]))
    return Products(m, n, k, batch, left, in_bytes)


def log_cycles(table: CycleTable, rows: Sequence[Row]) -> Array:
    """Log of the cycles of rows of one chip by the formula."""
    chip = load().chips[rows[0].chip]
    peak = np.array([rate(chip, row.dtype) for row in rows])
    room = np.array([table.room_tuned if row.options else table.room for row in rows])
    ragged = sweep_of(chip.id).ragged
    table = replace(table, ragged=np.array([ragged.get(row.dtype, 1.0) for row in rows]))
    bandwidth = chip.bandwidth / chip.devices / chip.clock_hz
    return np.asarray(np.log(formula(table, peak, bandwidth, chip.mxu, products_of(rows), room)))


def observed(rows: Sequence[Row]) -> Array:
    """Log of the compiler's cycles."""
    return np.log([row.cycles for row in rows])


def fit_formula(rows: Sequence[Row]) -> CycleTable:
    """The figures of a chip."""
    sweep, target = sweep_of(rows[0].chip), observed(rows)

    def table(x: Array) -> CycleTable:
        values: dict[str, Any] = dict(zip(FITTED, (float(v) for v in x), strict=True))
        return CycleTable(**values, room=sweep.prefetch_bytes, room_tuned=sweep.prefetch_bytes_recipe)

    def residual(x: Array) -> Array:
        prior = (np.log(x) - np.log(START)) / PRIOR
        return np.concatenate((log_cycles(table(x), rows) - target, 0.02 * prior))

    return table(least(residual, START, LOW, HIGH))


CHIP, LABEL = 0, 1  # columns of names, which are codes


def points_of(rows: Sequence[Row]) -> Points:
    """Where rows lie: log2 of m, n and k, chip and class."""
    return Points(_at(rows), np.array([(swept().index(row.chip), LABELS.index(label(row))) for row in rows]))


def points_on(sizes: Array, chip: str, name: str) -> Points:
    """Points of one chip and class."""
    return Points(sizes, np.tile((swept().index(chip), LABELS.index(name)), (len(sizes), 1)))


def _at(rows: Sequence[Row]) -> Array:
    return np.asarray(np.log2(np.array([row.sizes[1:] for row in rows])))


def _covariance(a: Points, b: Points) -> Array:
    square = ((a.sizes[:, None, :] - b.sizes[None, :, :]) ** 2).sum(-1) / LENGTH**2
    kin = COMMON + (1 - COMMON) * (a.names[:, CHIP][:, None] == b.names[:, CHIP][None, :])
    labels, others = a.names[:, LABEL][:, None], b.names[:, LABEL][None, :]
    conv = LABELS.index(CONV)  # windows make another shape of them: they tell nothing of plain products
    alike = (labels == conv) == (others == conv)
    covariance: Array = (SIGNAL * np.exp(-0.5 * square) * alike + OFFSET * (labels == others)) * kin
    return covariance


PROCESS = Prior(_covariance)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Formulas by chip and the process over what they leave."""

    formulas: dict[str, CycleTable]
    points: Points
    alpha: Array

    def factors(self, sizes: Array, chip: str, name: str) -> Array:
        """Log of the factor on the formula."""
        return PROCESS.mean_at(points_on(sizes, chip, name), self.points, self.alpha)


def fit(rows: Sequence[Row]) -> Fitted:
    """Formulas and process, on these rows of several chips."""
    formulas: dict[str, CycleTable] = {}
    left: list[Array] = []
    ordered: list[Row] = []
    for chip in sorted({row.chip for row in rows}):
        mine = [row for row in rows if row.chip == chip]
        formulas[chip] = fit_formula([row for row in mine if label(row) != CONV])
        left.append(observed(mine) - log_cycles(formulas[chip], mine))
        ordered += mine
    points = points_of(ordered)
    alpha = PROCESS.fit(points, np.clip(np.concatenate(left), -1.0, 1.0), np.full(len(ordered), NOISE))
    return Fitted(formulas, points, alpha)


def kept(rows: Sequence[Row]) -> dict[str, Any]:
    """By chip what a calibration keeps: the formula, the grid of factors, and what classes differ by."""
    fitted = fit(rows)
    grid = np.array(list(product(*(low + np.arange(n) for low, n in zip(LOWEST, POINTS, strict=True)))))
    out: dict[str, Any] = {}
    for chip, table in fitted.formulas.items():
        mine = [row for row in rows if row.chip == chip]
        classes = {}
        for name in sorted({label(row) for row in mine} - {PLAIN}):
            near = _at([row for row in mine if label(row) == name])
            more = fitted.factors(near, chip, name) - fitted.factors(near, chip, PLAIN)
            classes[name] = round(float(np.mean(more)), 4)
        out[chip] = {
            "formula": {name: float(f"{getattr(table, name):.5g}") for name in (*FITTED, "room", "room_tuned")},
            "factors": [round(v / UNIT) for v in fitted.factors(grid, chip, PLAIN).tolist()], "classes": classes,
            "ragged": dict(sweep_of(chip).ragged),
            "rows": dict(sorted(Counter(f"{row.kind}/{row.dtype}" for row in mine).items())),
            "versions": sorted({f"jax {row.jax}, libtpu {row.libtpu}" for row in mine}),
        }  # fmt: skip
    return out


def table_cycles(entry: Mapping[str, Any], rows: Sequence[Row]) -> Array:
    """The cycles of rows of one chip by what a calibration keeps of it."""
    table, p = table_from(entry, PLAIN, 1.0), products_of(rows)
    more = np.array([entry["classes"].get(label(row), 0.0) for row in rows])
    return np.asarray(np.exp(log_cycles(table, rows) + factor_at(table.factors, p.m, p.n, p.k) + more))


def held_out(rows: Sequence[Row]) -> dict[str, Any]:
    """Errors on shapes that no chip showed the fit: a fifth of them at a time, every one once."""
    shapes = sorted({row.key for row in rows})
    order = np.random.default_rng(SEED).permutation(len(shapes))
    fold = {shapes[j]: i % FOLDS for i, j in enumerate(order)}
    errors: dict[str, list[float]] = {}
    for left in range(FOLDS):
        for chip, entry in kept([row for row in rows if fold[row.key] != left]).items():
            mine = [row for row in rows if row.chip == chip and fold[row.key] == left]
            if mine:
                ratio = table_cycles(entry, mine) / np.array([row.cycles for row in mine])
                errors.setdefault(chip, []).extend(float(e) for e in np.abs(ratio - 1))
    every = [e for some in errors.values() for e in some]
    by_chip = {chip: _summary(some) for chip, some in errors.items()}
    return {**_summary(every), "shapes": len(shapes), "folds": FOLDS, "seed": SEED, "chips": by_chip}


def _summary(errors: Sequence[float]) -> dict[str, float]:
    return {"rows": len(errors), "median": round(float(np.median(errors)), 4), "mean": round(float(np.mean(errors)), 4)}


def usable(rows: Sequence[Row]) -> list[Row]:
    """Rows for which the compiler gave cycles."""
    return [row for row in rows if row.cycles > 0]


def tables(rows: Sequence[Row]) -> dict[str, Any]:
    """What a calibration keeps of every chip, and the errors on shapes held out."""
    return {"chips": kept(rows), "held_out": held_out(rows)}


def tables_in_words(sweep: Mapping[str, Any]) -> list[str]:
    """The tables in words."""
    held_out = sweep["held_out"]
    count = sum(sum(entry["rows"].values()) for entry in sweep["chips"].values())
    lines = [f"TPU compiler: {count} products on {len(sweep['chips'])} chips; each fifth of the shapes held out: "
             f"median error {held_out['median']:.1%}, mean {held_out['mean']:.1%}"]  # fmt: skip
    for chip, some in held_out["chips"].items():
        lines.append(f"  {chip}: {some['rows']} held out, median {some['median']:.1%}, mean {some['mean']:.1%}")
    return lines


def corrections(kernels: Mapping[str, Any], compiled: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds of published products over the compiler's, by chip; 1 where none is published.

    The compilers of v6e and v7x meet published products within a few per cent at the clocks they assume themselves,
    so that the others are taken at their word, not given those generations' figures.
    """
    swept = compiled.get("tables", {}).get("chips", {})
    return {chip: {"cycles": kernels[chip]["bf16"]["cycles"]} for chip in swept}

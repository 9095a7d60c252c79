"""The bench calibration of a chip applied to a training step: a factor on the formulas, or the measurement itself.

A workload's counterpart is the point that `bench` would measure of it: one micro-batch on one chip, with the optimizer
states and the passes that the bench program has. How far the formulas are from that point is how far they are taken to
be from the workload, as far as the chip itself goes; what travels between chips is left to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import log2, sqrt

from chipwise.catalog import Accelerators, Chip, Stack
from chipwise.catalog.calibration import Bench
from chipwise.errors import InputError, Refusal
from chipwise.ops.point import Point
from chipwise.ops.work import IMAGE
from chipwise.predict.estimate import Estimate
from chipwise.predict.learn.bench_calibration import BenchCalibration, bench_calibration
from chipwise.predict.learn.points import point_id, predict_point
from chipwise.predict.model.layouts import Layout
from chipwise.workload.cnn import resnet_convs
from chipwise.workload.model import Model, Workload

STATES = {"bf16": "bf16", "fp16": "bf16", "fp32": "fp32", "tf32": "fp32"}  # of a bench point, by its precision
FARTHEST = 2.0  # octaves of the work of an image between a size that was measured and one that it stands for
UNGATED = 2 / 3  # a feed-forward of two matrices has as many parameters as a gated one of this width


@dataclass(frozen=True, slots=True)
class BenchMatch:
    """What measurements say of a workload's counterpart on one chip, beside what formulas say of it."""

    step: Estimate
    formula_s: float
    exact: bool  # the workload is that point, and the point was measured

    @property
    def factor(self) -> float:
        """How much slower than by formulas."""
        return self.step.value / self.formula_s


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The bench point nearest to a workload, the point as a workload, and whether the two are one."""

    point: Point
    workload: Workload
    same: bool


Formula = Callable[[Workload, Layout], float]  # seconds of a step on one chip
Finder = Callable[[Layout], BenchMatch | None]


@cache
def bench_at(bench: Bench, chip: str, framework: str) -> BenchCalibration | None:
    """What was measured of a chip through a framework, by the user or by us; its files are read once."""
    return bench_calibration(bench, chip, framework)


def finder(bench: Bench, workload: Workload, acc: Accelerators, stack: Stack, formula: Formula) -> Finder | None:
    """What measurements say of layouts of a workload; None where the chip wasn't measured under such a stack."""
    calibration = bench_at(bench, acc.chip.id, stack.bench) if stack.bench else None
    if calibration is None:
        return None
    matches: dict[tuple[float, bool, bool], BenchMatch | None] = {}

    def find(layout: Layout) -> BenchMatch | None:
        near = counterpart(workload, layout, stack.compiled)
        if near is None:
            return None
        key = (layout.micro_batch, near.point.remat, near.same)
        if key not in matches:
            matches[key] = _match(near, acc.chip, calibration, formula)
        match = matches[key]
        whole = layout.chips == 1 and workload.train.global_batch == layout.micro_batch
        return match if match is None or whole else replace(match, exact=False)

    return find


def _match(near: Counterpart, chip: Chip, bench: BenchCalibration, formula: Formula) -> BenchMatch | None:
    alone = Layout(micro_batch=near.point.sizes["b"], recompute="full" if near.point.remat else "none")
    seconds = formula(near.workload, alone)
    try:
        if near.point.kind != "vit_train":
            step = predict_point(near.point, chip, bench)
            return BenchMatch(step, seconds, near.same and point_id(near.point) in bench.measured)
        return _scaled_match(near, alone, chip, bench, formula)
    except Refusal:  # no such kernels or steps were measured
        return None


def _scaled_match(
    near: Counterpart, alone: Layout, chip: Chip, bench: BenchCalibration, formula: Formula
) -> BenchMatch | None:
    """The nearest size of a vision transformer that was measured, scaled by what formulas say of both sizes.

    Its steps are fitted to the images alone, so that another size is another fit: up to `FARTHEST` octaves of work an
    image away, in an interval that widens on the way. The batches that are compared have the same work, so that what
    kernels take beside it weighs as much in both. Under the smallest batch that was measured the fit has nothing to
    hold on to (the host's time doesn't fall with the batch): that batch is scaled, too.
    """
    seconds = formula(near.workload, alone)
    batch = near.point.sizes["b"]
    best: BenchMatch | None = None
    nearest = FARTHEST
    for sizes in measured_sizes(bench, near.point.kind):
        more = _work(near.point.sizes) / _work(sizes)
        octaves = abs(log2(more))
        if octaves > nearest or (best is not None and octaves == nearest):
            continue
        alike = max(smallest_batch(bench, near.point, sizes), round(batch * more))
        point = replace(near.point, sizes={**sizes, "b": alike})
        model, train = _resized(near.workload.model, sizes), replace(near.workload.train, global_batch=alike)
        known = formula(replace(near.workload, model=model, train=train), replace(alone, micro_batch=alike))
        step, nearest = predict_point(point, chip, bench), octaves
        exact = near.same and octaves == 0 and point_id(point) in bench.measured
        best = BenchMatch(_widened(step, seconds / known, octaves), seconds, exact)
    return best


def _work(sizes: Mapping[str, int]) -> float:
    """Weights that an image passes times its tokens: what its FLOPs are proportional to."""
    d = sizes["d"]
    return float(sizes["layers"] * (4 * d * d + 2 * d * sizes["f"] + 2 * sizes["s"] * d) * sizes["s"])


def measured_sizes(bench: BenchCalibration, kind: str) -> list[dict[str, int]]:
    """The sizes of models, less the batch, that points of a kind were measured of."""
    found: dict[tuple[tuple[str, int], ...], None] = {}
    for name in bench.measured:
        words = name.split()
        if words[0] == kind:
            pairs = (word.partition("=") for word in words[2:] if "=" in word)
            found[tuple((key, int(value)) for key, _, value in pairs if key != "b")] = None
    return [dict(sizes) for sizes in found]


def smallest_batch(bench: BenchCalibration, point: Point, sizes: Mapping[str, int]) -> int:
    """The smallest batch that was measured of a size in the precision of a point; 1 where none was."""
    batches = []
    for name in bench.measured:
        words = name.split()
        found = dict(word.split("=") for word in words[2:] if "=" in word)
        batch = int(found.pop("b", 1))
        if words[:2] == [point.kind, point.dtype] and found == {key: str(value) for key, value in sizes.items()}:
            batches.append(batch)
    return min(batches, default=1)


def _resized(m: Model, sizes: dict[str, int]) -> Model:
    """A vision transformer of other sizes; its patches are what gives so many tokens of an image."""
    patch = round(m.image / sqrt(sizes["s"] - 1)) if sizes["s"] != m.image_tokens else m.patch
    heads, width = sizes["h"], sizes["d"]
    return replace(
        m,
        layers=sizes["layers"],
        d_model=width,
        heads=heads,
        kv_heads=heads,
        head_dim=width // heads,
        d_ff=sizes["f"],
        patch=patch,
    )


def _widened(step: Estimate, ratio: float, octaves: float) -> Estimate:
    """A step of another size by the modeled ratio, in an interval wider by as many times as there are octaves."""
    if octaves == 0:
        return step
    low, high = (step.low / step.value) ** (1 + octaves), (step.high / step.value) ** (1 + octaves)
    value = step.value * ratio
    because = f"{step.because}, scaled {ratio:.3g}x to this size by the model"
    return Estimate(value, value * low, value * high, "modelled", because)


def counterpart(workload: Workload, layout: Layout, compiled: bool) -> Counterpart | None:
    """The point that `bench` would measure of one micro-batch; None where it has no such program."""
    m, t = workload.model, workload.train
    if t.lora_rank or m.experts or m.latent or t.precision not in STATES or layout.micro_batch % 1:
        return None
    try:
        kind, sizes = _sizes(m, t.sequence)
    except InputError:  # heads that don't divide the width, or patches that don't divide the image
        return None
    if not kind:
        return None
    b = int(layout.micro_batch)
    remat = layout.recompute == "full" and kind == "train"
    optimizer = "sgd" if kind == "resnet50_train" else "adamw"
    point = Point("predict", kind, t.precision, {"b": b, **sizes}, compiled, remat)
    states = STATES[t.precision]
    alone = replace(workload, train=replace(t, global_batch=b, optimizer=optimizer, state_precision=states))
    same = (
        t.optimizer == optimizer
        and t.state_precision == states
        and _alike(m, kind)
        and layout.recompute in ("none", "full" if kind == "train" else "none")
    )
    return Counterpart(point, alone, same)


def _sizes(m: Model, sequence: int) -> tuple[str, dict[str, int]]:
    """The kind of point that a model is, with its sizes; "" where it is none."""
    if m.family == "decoder" and m.causal and m.ssm is None:
        if m.d_model % m.heads:
            raise InputError("heads", m.heads, f"a divisor of d_model({m.d_model})")
        f = m.d_ff if m.gated else round(m.d_ff * UNGATED)
        return "train", {
            "s": sequence,
            "layers": m.layers,
            "d": m.d_model,
            "h": m.heads,
            "hk": m.kv_heads,
            "f": f,
            "vocab": m.vocab,
        }
    if m.family == "vit" and m.image == IMAGE:
        return "vit_train", {"s": m.image_tokens, "layers": m.layers, "d": m.d_model, "h": m.heads, "f": m.d_ff}
    if m.family == "cnn" and m.convs == tuple(resnet_convs([3, 4, 6, 3], bottleneck=True, image=IMAGE)):
        return "resnet50_train", {}
    return "", {}


def _alike(m: Model, kind: str) -> bool:
    """Whether the bench program computes this very model."""
    if kind != "train":
        return True
    plain = not (
        m.tied
        or m.parallel_block
        or m.qkv_bias
        or m.out_bias
        or m.bias
        or m.qk_norm
        or m.window
        or m.learned_positions
        or m.mtp_layers
        or m.sinks
        or m.head_bias
    )
    return plain and m.gated and m.norm_params == 1 and m.norms_per_layer == 2 and m.head_dim * m.heads == m.d_model

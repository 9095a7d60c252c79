"""The whole study: train by every recipe, compare with fp32, and say of each precision whether it is safe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.errors import InputError
from chipwise.numerics import view
from chipwise.numerics.compare import INCONCLUSIVE, MARGIN, SAFE, UNSAFE, Compared, Margins, compared, margins
from chipwise.numerics.engine import Engine
from chipwise.numerics.programs import LEAST_STEPS, MOST_STEPS, STEPS, Program
from chipwise.numerics.recipes import DYNAMIC_SCALE, STATIC_SCALE, Recipe, of_precision
from chipwise.numerics.runs import Run
from chipwise.numerics.training import Shown, train_all
from chipwise.present.result import Result

SEEDS = 5
QUICK_SEEDS, QUICK_STEPS = 3, 40


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How a program is studied; `steps` None: as many as the program says."""

    seeds: int = SEEDS
    steps: int | None = None
    static: float = STATIC_SCALE  # the scale of fp16 with static loss scaling
    share: float = MARGIN  # how much more final loss still counts as the same
    emulate: bool = False  # round in software even where the hardware has the precision

    @classmethod
    def read(
        cls, seeds: int | None = None, steps: int | None = None, quick: bool = False, **more: Any
    ) -> StudySettings:
        """The settings with defaults for what is not given; fewer seeds and steps of a `quick` study.

        >>> StudySettings.read(quick=True, steps=20)
        StudySettings(seeds=3, steps=20, static=1024.0, share=0.02, emulate=False)
        """
        settings = cls(
            seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS,
            steps if steps is not None else QUICK_STEPS if quick else None,
            **more,
        )
        settings.check(settings.steps if settings.steps is not None else LEAST_STEPS)
        return settings

    def check(self, steps: int) -> None:
        """Refuse what no test can be made of; `steps` as they will be."""
        if not 2 <= self.seeds <= 1000:
            raise InputError("seeds", self.seeds, "a whole number from 2 to 1000: a test needs pairs")
        if not LEAST_STEPS <= steps <= MOST_STEPS:
            raise InputError("steps", steps, f"a whole number from {LEAST_STEPS} to {MOST_STEPS:,}")
        if not 1 < self.static <= 2**30:
            raise InputError("loss_scale", self.static, "a number above 1 and up to 2^30, such as 1024")
        if not 0 < self.share < 1:
            raise InputError("margin", self.share, "a share above 0 and below 1, such as 0.02")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a precision: `status` is safe, safe with ..., unsafe, inconclusive or not decided."""

    precision: str
    status: str
    words: str


@dataclass(frozen=True, slots=True, repr=False)
class Study(Result):
    """A program trained by each recipe, compared with fp32, and a verdict for each precision."""

    VERB: ClassVar[str] = "numerics"
    program: Program
    software: str
    device: str
    weights: int
    seeds: int
    steps: int
    static: float
    share: float
    margins: Margins
    reference: tuple[Run, ...]
    compared: tuple[Compared, ...]
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]

    record = view.study_record
    blocks = view.blocks
    flat_rows = view.flat_rows


def study(
    program: Program,
    recipes: Sequence[Recipe],
    settings: StudySettings | None = None,
    shown: Shown = lambda done, total, what: None,
) -> Study:
    """Train a program by each recipe over the same seeds and compare with fp32."""
    settings = settings or StudySettings()
    seeds, static, share = settings.seeds, settings.static, settings.share
    steps = program.steps if settings.steps is None else settings.steps
    settings.check(steps)
    engine = _engine(program, settings.emulate)
    runs = train_all(engine, program, recipes, seeds, steps, static, shown)
    reference = runs["fp32"]
    m = margins(reference, share)
    rows = tuple(
        compared(recipe, runs[recipe.name], reference, m, engine.native(recipe))
        for recipe in recipes
        if recipe.low is not None
    )
    precisions = list(dict.fromkeys(row.recipe.precision for row in rows))
    rests_on = basis(m, seeds, steps)
    verdicts = tuple(
        verdict([row for row in rows if row.recipe.precision == name], static, rests_on) for name in precisions
    )
    return Study(
        program,
        engine.software,
        engine.device,
        engine.weights,
        seeds,
        steps,
        static,
        share,
        m,
        reference,
        rows,
        verdicts,
        _notes(engine, recipes, m, program),
    )


def _engine(program: Program, emulate: bool) -> Engine:
    if program.framework == "torch":
        from chipwise.numerics.torch_engine import TorchEngine

        return TorchEngine(program, emulate)
    from chipwise.numerics.jax_engine import JaxEngine

    return JaxEngine(program, emulate)


def basis(m: Margins, seeds: int, steps: int) -> str:
    """What "safe" rests on: the margin, and how few steps have shown it."""
    few = f"; only {steps} steps of {seeds} seeds: train longer before you rely on it" if steps < STEPS else ""
    return f"within a margin of {m.asked / m.scale:.1%} of fp32's loss{few}"


def verdict(rows: Sequence[Compared], static: float = STATIC_SCALE, rests_on: str = "") -> Verdict:
    """What is said of a precision: its plainest recipe if that is safe, else what makes it safe, else why not.

    `rests_on` is what "safe" rests on, in words.
    """
    plain, helped = rows[0], rows[1:]
    precision = plain.recipe.precision
    if plain.status == SAFE:
        return Verdict(precision, SAFE, rests_on)
    good = [row for row in helped if row.status == SAFE]
    if good:
        if precision == "fp16":
            scales = {"static": f"static {static:,.0f}", "dynamic": f"dynamic from {DYNAMIC_SCALE:,.0f}"}
            with_ = f"loss scaling ({' or '.join(scales[row.recipe.scaling] for row in good)})"
        else:
            with_ = "fp32 master weights"
        without = f"{plain.status} without: {plain.why}"
        return Verdict(precision, f"safe with {with_}", f"{rests_on}; {without}" if rests_on else without)
    unsure = [row for row in rows if row.status == INCONCLUSIVE]
    if unsure:
        last = unsure[-1]
        status = (
            "not decided: the seeds spread more than the margin" if last.noisy else "inconclusive: more seeds needed"
        )
        return Verdict(precision, status, f"{last.recipe.name}: {last.why}")
    return Verdict(precision, UNSAFE, f"{rows[-1].recipe.name}: {rows[-1].why}")


def _notes(engine: Engine, recipes: Sequence[Recipe], m: Margins, program: Program) -> tuple[str, ...]:
    low = [recipe for recipe in recipes if recipe.low is not None]
    rounded = [recipe.name for recipe in low if not engine.native(recipe)]
    native = [recipe.name for recipe in low if engine.native(recipe)]
    out = []
    if rounded:
        which = "low precision is" if not native else f"{', '.join(rounded)}:"
        out.append(f"{which} emulated by rounding on the {engine.device}; accumulations are fp32")
    if native:
        out.append(f"{', '.join(native)}: native on {engine.device}; every tenth step is held against fp32 gradients")
    if m.first_mean - m.final_mean <= 0.05 * abs(m.first_mean):
        out.append("fp32's own loss hardly falls in these steps: train longer before you trust a verdict")
    for precision in dict.fromkeys(recipe.precision for recipe in low):
        out += [f"{recipe.name}: {recipe.words}" for recipe in of_precision(recipes, precision)]
    return tuple(out)

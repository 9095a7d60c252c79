"""Train a program by each recipe over the same seeds: same weights at the start, same batches, same order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chipwise.errors import InputError
from chipwise.numerics.engine import Engine
from chipwise.numerics.programs import Program, calling
from chipwise.numerics.recipes import LossScale, Recipe
from chipwise.numerics.runs import Run

GIVE_UP = 20  # steps skipped in a row: the scale is not what is wrong
Shown = Callable[[int, int, str], None]


def train_all(
    engine: Engine, program: Program, recipes: Sequence[Recipe], seeds: int, steps: int, static: float, shown: Shown
) -> dict[str, tuple[Run, ...]]:
    """Runs by the name of the recipe, one for each seed."""
    out: dict[str, tuple[Run, ...]] = {}
    done, total = 0, len(recipes) * seeds
    for recipe in recipes:
        runs = []
        for seed in range(seeds):
            shown(done, total, f"{recipe.name}, seed {seed}")
            runs.append(train(engine, program, recipe, seed, steps, static))
            done += 1
            if recipe.low is None and not math.isfinite(runs[-1].final):
                where = f"its loss is not finite from step {runs[-1].died}" if runs[-1].died is not None else "it isn't"
                raise InputError("program", program.name, f"one whose loss stays finite in fp32 ({where}, seed {seed})")
        out[recipe.name] = tuple(runs)
    return out


def train(engine: Engine, program: Program, recipe: Recipe, seed: int, steps: int, static: float) -> Run:
    """One seed by one recipe."""
    with calling(program):
        engine.begin(recipe, seed)
    # frameworks double the scale after 2,000 good steps, which a short run never reaches
    scale = LossScale(recipe.scaling, static, grow_after=min(2_000, max(10, steps // 3)))
    losses, norms, scales, bad = [], [], [], []
    died = None
    for step, batch in enumerate(_batches(program, seed, steps)):
        with calling(program):
            backward = engine.backward(batch, scale.value, step)
            while step == 0 and scale.dynamic and not backward.finite and scale.value > 1:
                scale.update(False)  # a first step is tried again: in a long run the steps spent here are nothing
                backward = engine.backward(batch, scale.value, step)
        losses.append(backward.loss)
        norms.append(backward.gradient_norm if backward.finite else math.nan)
        scales.append(scale.value)
        if not backward.finite:
            bad.append(step)
        if backward.finite or not scale.dynamic:
            engine.update()
        scale.update(backward.finite)
        if _dead(bad, step, scale.dynamic, backward.loss):
            died = bad[-GIVE_UP] if scale.dynamic else bad[0]
            break
    rest = (math.nan,) * (steps - len(losses))
    return Run(
        recipe.name, seed, (*losses, *rest), (*norms, *rest), (*scales, *rest), tuple(bad), died, engine.counts()
    )


def _dead(bad: list[int], step: int, dynamic: bool, loss: float) -> bool:
    """Whether nothing finite can come any more: weights took infinite gradients, or every step is skipped."""
    if dynamic:
        return len(bad) >= GIVE_UP and bad[-GIVE_UP:] == list(range(step - GIVE_UP + 1, step + 1))
    return bool(bad) and not math.isfinite(loss)


def _batches(program: Program, seed: int, steps: int) -> Iterator[Any]:
    """As many batches as steps; a program that gives fewer begins again."""
    given = 0
    while given < steps:
        with calling(program):
            iterator, before = iter(program.batches(seed)), given
        while given < steps:
            with calling(program):
                try:
                    batch = next(iterator)
                except StopIteration:
                    break
            yield batch
            given += 1
        if given == before:
            raise InputError("program", program.name, f"batches(seed) that gives batches (seed {seed} gave none)")

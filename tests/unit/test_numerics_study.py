"""Verdicts from made-up runs: no framework needed."""

import math

import pytest

from chipwise.errors import InputError
from chipwise.numerics.compare import INCONCLUSIVE, SAFE, UNSAFE, cause, compared, margins
from chipwise.numerics.optimizers import Optimizer, read
from chipwise.numerics.programs import calling, load
from chipwise.numerics.recipes import RECIPES, LossScale, chosen
from chipwise.numerics.runs import Count, Run
from chipwise.numerics.study import basis, verdict

BY_NAME = {recipe.name: recipe for recipe in RECIPES}
STEPS = 50


def runs(name, finals, counts=None):
    """Runs whose loss falls from 10 in a straight line to a final loss."""
    return tuple(
        Run(name, seed, tuple(10 + (final - 10) * min(1, i / 40) for i in range(STEPS)), (), (), (), None, counts or {})
        for seed, final in enumerate(finals)
    )


REFERENCE = runs("fp32", [1.00, 1.05, 0.95, 1.02, 0.98])
MARGINS = margins(REFERENCE, 0.02)


def against(name, shifts, counts=None):
    made = runs(name, [run.final + shift for run, shift in zip(REFERENCE, shifts, strict=True)], counts)
    return compared(BY_NAME[name], made, REFERENCE, MARGINS, False)


def test_the_margin_is_a_share_of_the_fall_or_the_spread_over_seeds():
    assert MARGINS.scale == pytest.approx(9.0) and MARGINS.final == pytest.approx(0.18)
    wide = margins(runs("fp32", [1.0, 2.0, 3.0]), 0.02)
    assert wide.final == wide.final_spread == pytest.approx(1.0)


def test_the_same_loss_is_safe_and_a_higher_one_is_not():
    assert against("bf16", [0.01, -0.01, 0.0, 0.02, 0.0]).status == SAFE
    assert against("bf16", [3.0, 3.1, 2.9, 3.0, 3.0]).status == UNSAFE


def test_a_lower_loss_is_safe():
    assert against("bf16", [-0.1, -0.12, -0.11, -0.1, -0.1]).status == SAFE


def test_a_spread_too_wide_for_the_seeds_is_inconclusive_and_says_how_many_would_tell():
    row = against("bf16", [0.30, -0.20, 0.35, 0.25, -0.10])
    assert row.status == INCONCLUSIVE and row.seeds_needed > 5
    assert f"about {row.seeds_needed} seeds would tell" in row.why
    assert verdict([row]).status == "inconclusive: more seeds needed"


def test_a_loss_that_is_not_finite_is_unsafe_and_names_the_layer():
    dead = Run("fp16", 1, (10.0,) * 30 + (math.nan,) * 20, (), (), (30,), 30, {("fc", "activations"): Count(9, 0, 7)})
    row = compared(BY_NAME["fp16"], (*REFERENCE[:4], dead), REFERENCE, MARGINS, False)
    assert row.status == UNSAFE and row.final is None
    assert row.why == "the loss is not finite from step 30 on in 1 of 5 seeds; activations of fc grow beyond 65,504"


def test_fp16_that_needs_scaling_says_which_and_why():
    lost = {("fc", "gradients"): Count(100, 97), ("out", "gradients"): Count(100, 3)}
    bad, good = against("fp16", [3.0, 3.1, 2.9, 3.0, 3.0], lost), [0.01, -0.01, 0.0, 0.02, 0.0]
    said = verdict([bad, against("fp16+static", [3.0, 3.1, 2.9, 3.0, 3.0]), against("fp16+dynamic", good)])
    assert said.status == "safe with loss scaling (dynamic from 65,536)"
    assert "unsafe without" in said.words and "97.0% of the gradients of fc round to 0" in said.words


def test_a_cause_is_named_only_where_values_are_lost():
    assert "rounding errors add up" in cause(BY_NAME["bf16"], {("fc", "gradients"): Count(1000, 2)})
    assert "half a unit in the last place" in cause(BY_NAME["bf16"], {("fc", "updates"): Count(10, 9)})


def test_a_dynamic_scale_halves_at_once_and_doubles_after_a_run_of_good_steps():
    scale = LossScale("dynamic", 1024.0, grow_after=3)
    scales = []
    for finite in (False, False, True, True, True, True):
        scale.update(finite)
        scales.append(scale.value)
    assert scales == [32768.0, 16384.0, 16384.0, 16384.0, 32768.0, 32768.0]
    fixed = LossScale("static", 512.0, grow_after=1)
    fixed.update(False)
    assert fixed.value == 512.0


def test_adamw_takes_steps_of_the_learning_rate_at_first():
    adam = Optimizer(learning_rate=0.1)
    new, update, _ = adam.update(1.0, 1e-3, adam.start(0.0), adam.corrections(1), lambda x: x)
    assert update == pytest.approx(0.1, rel=1e-4) and new == pytest.approx(0.9, rel=1e-4)


def test_momentum_and_weight_decay_add_up():
    sgd = Optimizer("sgd", 0.1, momentum=0.9, weight_decay=0.5)
    new, _, state = sgd.update(2.0, 1.0, (1.0,), (1, 1), lambda x: x)
    assert state == (1.9,) and new == pytest.approx(2.0 - 0.1 * (1.9 + 1.0))


@pytest.mark.parametrize(
    "given",
    [
        {"name": "lion"},
        {"rate": 1},
        {"learning_rate": 0},
        {"beta1": 1.0},
        3,
        {"momentum": -0.1},
        {"learning_rate": "fast"},
    ],
)
def test_an_optimizer_that_cannot_be_used_is_refused(given):
    with pytest.raises(InputError, match=r"program\.optimizer"):
        read(given, "program.optimizer")


def test_fp32_is_always_the_reference():
    assert [recipe.name for recipe in chosen("fp8, FP16")] == ["fp32", "fp16", "fp16+static", "fp16+dynamic", "fp8"]


NOISY = runs("fp32", [1.0, 2.0, 3.0, 1.5, 2.5])


def test_a_loss_beyond_the_margin_and_within_the_spread_of_seeds_is_not_decided():
    m = margins(NOISY, 0.02)
    assert m.asked < 0.4 < m.final
    made = runs("bf16", [run.final + shift for run, shift in zip(NOISY, [0.4, 0.41, 0.39, 0.4, 0.4], strict=True)])
    row = compared(BY_NAME["bf16"], made, NOISY, m, False)
    assert row.status == INCONCLUSIVE and row.noisy and "fp32's own seeds spread by" in row.why
    said = verdict([row])
    assert said.status == "not decided: the seeds spread more than the margin"
    near = runs("bf16", [run.final + 0.001 for run in NOISY])
    assert compared(BY_NAME["bf16"], near, NOISY, m, False).status == SAFE


def test_a_safe_verdict_names_its_margin_and_few_steps():
    row = against("bf16", [0.01, -0.01, 0.0, 0.02, 0.0])
    assert verdict([row], rests_on=basis(MARGINS, 5, 100)).words == "within a margin of 2.0% of fp32's loss"
    assert "only 40 steps of 3 seeds: train longer" in verdict([row], rests_on=basis(MARGINS, 3, 40)).words


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("def model(key): return None", "expected model(): a PyTorch program defines model()"),
        ("def init(): return {}", "a JAX program init(seed), loss(params, batch) and batches(seed)"),
    ],
)
def test_a_function_of_other_arguments_is_the_programs_own_mistake(lines, said, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(f"{lines}\ndef loss(m, b): return 0.0\ndef batches(seed): return []\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(str(path))
    assert said in str(caught.value)


def test_whatever_a_program_raises_is_its_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def model(): pass\ndef loss(m, b): pass\ndef batches(seed): return []\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"code that runs .AttributeError"), calling(load(str(path))):
        raise AttributeError("'NoneType' object has no attribute 'backward'")

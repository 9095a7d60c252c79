"""Fitting what serving stacks add to their kernels."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.serving import (
    MOST_ENTRIES,
    NAMES,
    NEAR,
    as_effects,
    linear,
    predicted,
    prepare,
    ratios,
    sizes,
    solve,
    solve_without,
)
from chipwise.calibrate.serving_run import calibrate_serving, read, write
from chipwise.catalog.calibration import load_calibration
from chipwise.serving.residuals import PRIORS, fit, points
from chipwise.validate.score import published

pytestmark = pytest.mark.slow

ROOT = published()[0].parents[1]


@pytest.fixture(scope="module")
def some():
    rows = read(ROOT)
    return rows[::40] + [r for r in rows if r.chip.family == "tpu"]


@pytest.fixture(scope="module")
def seen(some):
    o, kept = prepare(some, load_calibration(bench=False))
    nothing = np.zeros((len(NAMES), len(o.names)))
    return o, kept, nothing, ratios(o, kept, nothing, load_calibration(bench=False))


def test_no_effects_are_the_priors(seen):
    o, _, nothing, _ = seen
    assert np.allclose(sizes(o, nothing), sizes(o, nothing)[0])


def test_fitting_explains_more_than_the_priors_do(seen):
    o, _, nothing, ratio = seen
    effects = solve(o, np.arange(len(o.row)), ratio)
    before, after = (np.abs(np.log(predicted(o, e, ratio) / o.observed)).mean() for e in (nothing, effects))
    assert after < 0.9 * before
    assert np.array_equal(effects, solve(o, np.arange(len(o.row)), ratio))  # the same every time


def test_a_refit_without_some_rows_is_what_the_others_alone_would_give(seen):
    o, _, _, ratio = seen
    every = np.arange(len(o.row))
    around = linear(o, ratio, solve(o, every, ratio))
    for left in (every[::50], every[: len(every) // 3]):  # a few, a third
        refit = solve_without(o, left, ratio, around, 8)
        alone = solve(o, np.setdiff1d(every, left), ratio)
        apart = np.abs(np.log(predicted(o, refit, ratio) / predicted(o, alone, ratio)))
        assert np.quantile(apart, MOST_ENTRIES) < NEAR  # as near as it says, for nearly all


def test_an_effect_that_is_there_is_found(seen):
    """Times made twice as long in everything a prompt does: the coefficient moves there, as far as its prior lets it."""
    o, _, nothing, ratio = seen
    made = replace(o, observed=predicted(o, nothing, ratio))
    truth = nothing.copy()
    truth[NAMES.index("prompt"), o.names.index("stack:vllm@online")] = 0.1
    told = replace(made, observed=predicted(o, truth, ratio))
    found = solve(told, np.arange(len(o.row)), ratio)
    still, moved = (sizes(o, e)[:, NAMES.index("prompt")] for e in (nothing, found))
    vllm = o.marks[:, o.names.index("stack:vllm@online")] > 0
    assert (moved / still)[vllm].mean() > 1.02
    assert np.abs(solve(made, np.arange(len(o.row)), ratio)).max() < 1e-3


def test_effects_are_written_by_name(seen):
    o, _, nothing, _ = seen
    nothing = nothing.copy()
    nothing[0, 0] = 0.25
    assert as_effects(o.names, nothing)[NAMES[0]] == {o.names[0]: 0.25}


def test_a_row_teaches_those_near_it_and_no_others():
    near = ([5.0, 10.0, 10.0, 2.0, 0.0, 0.0], "80x8192x64x0", "vllm|blackwell|fp8|closed")
    far = ([5.0, 10.0, 10.0, 2.0, 0.0, 0.0], "61x7168x128x256", "sglang|hopper|fp4|closed")
    at = points([near, far])
    assert PRIORS["tpot"].covariance(at, at)[0, 1] == 0 and PRIORS["tpot"].covariance(at, at)[0, 0] == pytest.approx(
        1.0
    )
    weights = fit("tpot", at.take([0]), np.array([0.2]))
    told = PRIORS["tpot"].mean_at(at, at.take([0]), weights)
    assert 0.15 < told[0] < 0.2 and told[1] == 0


def test_the_file_holds_refits_without_each_source_and_model(some, tmp_path):
    said = []
    content = calibrate_serving(some[::3], load_calibration(bench=False), "2026-01-02", said.append)
    main, refits = write(content, tmp_path)
    assert main.name == "2026-01-02.serving.json" and "without" not in json.loads(main.read_text())
    without = json.loads(gzip.decompress(refits.read_bytes()))["without"]
    assert "NVIDIA/TensorRT-LLM" in without and any(name.startswith("model ") for name in without)
    assert "google/jetstream-pytorch" in without
    assert any("by source left out" in line for line in said)

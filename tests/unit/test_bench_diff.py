"""Two files compared: real changes are called, scatter is not, and what could not be compared is listed."""

import numpy as np
import pytest
from bench_files import EVERYTHING, bench_file, spread, timed
from bench_numpy import copy, gemm

from chipwise.bench.diff import diff
from chipwise.bench.measurement import Measurement


def noisy(middle, seed, count=21):
    return list(middle * (1 + 0.02 * np.random.default_rng(seed).standard_normal(count)))


def test_a_file_does_not_differ_from_itself():
    found = diff(EVERYTHING, EVERYTHING)
    assert {each.verdict for each in found.changes} == {"same"} and not found.lost and not found.notes
    assert len(found.changes) == 6  # the usable ones


def test_a_change_beyond_the_scatter_is_called_and_scatter_is_not():
    before = bench_file(*(timed(gemm(64 + i), *noisy(1e-3, i)) for i in range(20)))
    after = bench_file(
        *(timed(gemm(64 + i), *noisy(1e-3 * (1.1 if i == 7 else 0.8 if i == 8 else 1.0), 100 + i)) for i in range(20))
    )
    found = diff(before, after)
    called = {each.before.point.sizes["m"]: each.verdict for each in found.changes if each.verdict != "same"}
    assert called == {71: "slower", 72: "faster"}
    slower = next(each for each in found.changes if each.verdict == "slower")
    assert slower.low < 1.1 < slower.high and slower.percent == pytest.approx(10, abs=2) and slower.q < 0.01
    assert found.regressions(5) == (slower,) and found.regressions(15) == ()


def test_few_samples_say_nothing():
    found = diff(bench_file(timed(gemm(), 1.0, 1.0, 1.0)), bench_file(timed(gemm(), 2.0, 2.0, 2.0)))
    assert found.changes[0].verdict == "unknown" and found.changes[0].q is None and found.regressions() == ()


def test_frameworks_are_matched_and_lost_points_are_listed():
    before = bench_file(
        timed(gemm(), *spread(1.0)), timed(gemm(), *spread(9.0), framework="jax"), timed(copy(), *spread(1.0))
    )
    after = bench_file(timed(gemm(), *spread(1.0)), Measurement(gemm(), "jax", "oom", reason="full"))
    found = diff(before, after)
    assert [each.before.framework for each in found.changes] == ["torch"]
    assert [(each.key.framework, each.before, each.after) for each in found.lost] == [
        ("jax", "ok", "oom"),
        ("torch", "ok", ""),
    ]


def test_what_else_differs_is_told():
    found = diff(
        EVERYTHING, bench_file(frameworks={"torch": {"torch": "2.14.0"}}, environment={"os": "Linux", "cores": 4})
    )
    assert found.notes[:1] == ("torch: torch 2.13.0, then 2.14.0",) and "environment cores: 8, then 4" in found.notes

"""What holds for every fleet and every stream of requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from serving_cases import cases
from serving_reference import reference

from chipwise.serving.simulate import simulate

FEW = settings(max_examples=60)


@settings(max_examples=300)
@given(cases())
def test_equals_stepping_iterations_one_by_one(case):
    requests, fleet = case
    run = simulate(requests, fleet)
    asked, replicas = reference(requests, fleet)
    for name in ("arrival", "start", "first", "finish"):
        expected = [getattr(q, name) for q in asked]
        np.testing.assert_allclose(getattr(run, f"{name}_s"), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert run.preempted.tolist() == [q.preempted for q in asked]
    totals = run.totals
    np.testing.assert_allclose(totals.busy_s.sum(0), [r.busy for r in replicas], rtol=1e-9)
    np.testing.assert_allclose(totals.kv_block_s.sum(0), [r.block_s for r in replicas], rtol=1e-9)
    assert totals.iterations.sum(0).tolist() == [r.iterations for r in replicas]
    assert totals.prompt_tokens.sum(0).tolist() == [r.prompt_tokens for r in replicas]
    assert run.peak_blocks.tolist() == [r.most_blocks for r in replicas]
    gaps = np.concatenate([np.diff(q.tokens_at) for q in asked])
    assert totals.gaps.sum() == run.gap_counts.sum() == len(gaps)
    assert totals.gap_s.sum() == pytest.approx(gaps.sum(), rel=1e-9)
    shift = fleet.prefill.replicas if fleet.prefill else 0
    last = np.where(run.replica < 0, run.prefilled_by, run.replica + shift)
    assert last.tolist() == [q.replica for q in asked]

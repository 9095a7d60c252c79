"""Small runs that can be followed by hand."""

import subprocess
import sys

import numpy as np
import pytest

from chipwise.errors import DoesNotFit, InputError
from chipwise.serving.requests import given
from chipwise.serving.simulate import Fleet, Prefill, simulate
from chipwise.serving.step_times import EngineConfig, StepTimeTable

ONE = StepTimeTable(np.ones(101))  # every iteration a second


def run(at, inputs, outputs, fleet, **more):
    return simulate(
        given(None if at is None else np.array(at, float), np.array(inputs), np.array(outputs), **more), fleet
    )


def test_an_iteration_takes_what_its_formula_says():
    step_times = StepTimeTable(np.arange(101) * 1.0, context_s=0.5, pair_s=0.25, sequence_s=10.0)
    one = run([0], [4], [3], Fleet(step_times, 10))
    prompt = 4 + 0.25 * 4 * 2 + 10
    assert one.first_s[0] == prompt
    assert one.finish_s[0] == prompt + (1 + 0.5 * 4 + 10) + (1 + 0.5 * 5 + 10)


def test_a_prompt_rides_along_with_decoding():
    one = run([0, 1.5], [10, 10], [5, 1], Fleet(ONE, 100))
    assert one.start_s.tolist() == [0, 2]
    assert one.finish_s.tolist() == [5, 3]


def test_prompts_first_and_alone():
    one = run([0, 1.5], [10, 10], [5, 1], Fleet(ONE, 100, EngineConfig(mixed=False)))
    assert one.finish_s.tolist() == [6, 3]
    assert one.gap_s.sum() == 5  # the gap that the other prompt made longer counts
    assert one.gaps.sum() == 4


def test_a_long_prompt_is_cut_or_waits():
    cut = run([0, 0], [15, 5], [1, 1], Fleet(ONE, 100, EngineConfig(most_tokens=10)))
    assert cut.first_s.tolist() == [2, 2]
    whole = run([0, 0], [15, 5], [1, 1], Fleet(ONE, 100, EngineConfig(most_tokens=10, chunked=False)))
    assert whole.first_s.tolist() == [1, 2]


def test_a_prompt_beyond_the_table_takes_longer():
    step_times = StepTimeTable(np.arange(11) * 1.0)
    assert run([0], [30], [1], Fleet(step_times, 100, EngineConfig(chunked=False))).first_s[0] == pytest.approx(30)


def test_the_newest_is_thrown_out_and_done_again():
    # blocks of one token: 2 + 2 prompts and a step of both fit into 6, a second step does not
    one = run([0, 0], [2, 2], [4, 4], Fleet(ONE, 6, EngineConfig(block=1)))
    assert one.preempted.tolist() == [0, 1]
    assert one.finish_s.tolist() == [4, 6]  # again with 4 tokens at 4: its third token at 5, the last at 6
    assert one.totals.prompt_tokens.sum() == 2 + 2 + 4
    assert one.peak_blocks.tolist() == [6]


def test_reserving_never_throws_out():
    one = run([0, 0], [2, 2], [4, 4], Fleet(ONE, 6, EngineConfig(block=1, reserve=True)))
    assert not one.preempted.any()
    assert one.finish_s.tolist() == [4, 8]


def test_users_wait_for_their_answer():
    one = run(None, [1] * 5, [2] * 5, Fleet(ONE, 100), users=2)
    assert one.arrival_s.tolist() == [0, 0, 2, 2, 4]
    assert one.finish_s.tolist() == [2, 2, 4, 4, 6]


def test_the_least_loaded_gets_it_and_the_first_of_equals():
    fleet = Fleet(ONE, 100, replicas=3)
    one = run([0, 0, 0, 0.5, 1.5], [1] * 5, [9, 9, 1, 9, 9], fleet)
    assert one.replica.tolist() == [0, 1, 2, 0, 2]  # at 1.5 the third is idle
    assert run([0] * 4, [1] * 4, [1] * 4, Fleet(ONE, 100, replicas=3, router="round_robin")).replica.tolist() == [
        0,
        1,
        2,
        0,
    ]


def test_a_known_prefix_is_not_computed():
    times = StepTimeTable(np.arange(101) * 1.0)
    more = {"shared": np.array([8, 8, 8]), "group": np.array([0, 0, 1])}
    one = run([0, 20, 40], [10, 10, 10], [1, 1, 1], Fleet(times, 100), **more)
    assert (one.first_s - one.arrival_s).tolist() == [10, 2, 10]
    fleet = Fleet(times, 100, replicas=2, router="prefix")
    there = run([0, 0, 20, 20], [10] * 4, [1] * 4, fleet, shared=np.full(4, 8), group=np.array([0, 1, 1, 0]))
    assert there.replica.tolist() == [0, 1, 1, 0]
    assert (there.first_s - there.arrival_s).tolist() == [10, 10, 2, 2]


def test_prompts_elsewhere_and_the_cache_travels():
    prefill = Prefill(StepTimeTable(np.full(101, 2.0)), 100, transfer_s_per_token=0.1, transfer_latency_s=0.5)
    one = run([0, 0], [10, 10], [3, 1], Fleet(ONE, 100, prefill=prefill))
    assert one.first_s.tolist() == [2, 2]
    assert one.finish_s.tolist() == [2 + 1.5 + 2, 2]
    assert one.prefilled_by.tolist() == [0, 0]
    assert one.replica.tolist() == [0, -1]  # one token: nothing to decode
    assert one.gap_s.sum() == 3.5  # the transfer is part of the first gap


def test_a_cache_too_small_for_one_request():
    with pytest.raises(DoesNotFit, match=r"stores 100 tokens = 7 blocks of 16, a replica's cache has 6"):
        run([0], [90], [11], Fleet(ONE, 6))
    with pytest.raises(DoesNotFit, match="prefill replica"):
        run([0], [90], [11], Fleet(ONE, 7, prefill=Prefill(ONE, 5)))


@pytest.mark.parametrize(
    "fleet",
    [
        Fleet(ONE, 10, replicas=0),
        Fleet(ONE, 10, router="random"),
        Fleet(StepTimeTable(np.zeros(5)), 10),
        Fleet(ONE, 10, EngineConfig(most_sequences=0)),
        Fleet(ONE, 10, use=np.ones(3)),
    ],
)
def test_nonsense_is_refused(fleet):
    with pytest.raises(InputError):
        run([0], [1], [1], fleet)


def test_the_compiler_is_imported_for_a_simulation_alone():
    line = "import chipwise, sys, chipwise.serving.measures; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line]).returncode == 0

import numpy as np
import pytest

from chipwise.serving.measures import measure, spread
from chipwise.serving.requests import given
from chipwise.serving.simulate import Fleet, simulate
from chipwise.serving.step_times import EngineConfig, StepTimeTable
from chipwise.workload.serve import Arrival, Bound, Lengths, Serve

STEP_TIMES = StepTimeTable(np.full(1025, 0.01), watts_idle=100.0, watts_busy=300.0)
SERVE = Serve(Lengths.fixed(100), Lengths.fixed(11), Arrival("poisson", rate=2.0))


def test_an_idle_system_has_its_service_times():
    found = measure(simulate(SERVE, Fleet(STEP_TIMES, 1000), count=4000, rate=0.1))
    assert found.tpot is not None and found.itl is not None
    assert found.itl.p50.value == found.itl.p99.value == pytest.approx(0.01)
    assert found.tpot.mean.value == pytest.approx(0.01)
    assert found.ttft.p50.value == pytest.approx(0.01)
    assert found.e2e.p50.value == pytest.approx(0.11)
    assert found.busy == pytest.approx(0.1 * 0.11, rel=0.1)
    assert found.token_rate.value == pytest.approx(11 * found.request_rate.value, rel=0.01)
    assert found.joules_per_token == pytest.approx((100 + 200 * found.busy) / found.token_rate.value, rel=1e-6)


def test_use_lies_between_idle_and_busy_watts():
    half = measure(simulate(SERVE, Fleet(STEP_TIMES, 1000, use=np.full(1025, 0.5)), count=500))
    full = measure(simulate(SERVE, Fleet(STEP_TIMES, 1000), count=500))
    idle = 100 / full.token_rate.value
    assert half.joules_per_token - idle == pytest.approx((full.joules_per_token - idle) / 2)


def test_goodput_counts_requests_within_every_bound():
    # three at a time in one slot: they wait 0, 0.11 and 0.22 s
    at = np.repeat(np.arange(100.0), 3)
    requests = given(at, np.full(300, 100), np.full(300, 11))
    run = simulate(requests, Fleet(STEP_TIMES, 1000, EngineConfig(most_sequences=1)))
    bounds = (Bound("ttft", 50, 0.13), Bound("tpot", 99, 0.0101))
    found = measure(run, bounds)
    assert found.good == pytest.approx(2 / 3, rel=0.01)
    assert found.goodput == pytest.approx(2.0, rel=0.05)
    assert found.holds  # half of them are within 0.13 s
    assert [kept.seconds for kept in found.slo_checks] == pytest.approx([0.12, 0.01])
    late = measure(run, (Bound("ttft", 90, 0.13),))
    assert not late.holds and not late.slo_checks[0].holds
    assert measure(run, (Bound("itl", 99, 0.0101), Bound("e2e", 99, 0.34))).holds
    assert not measure(run, (Bound("itl", 50, 0.0099),)).holds


def test_more_than_leaves_is_said():
    fleet = Fleet(STEP_TIMES, 1000, EngineConfig(most_sequences=4))  # 4 / 0.11 s
    over = measure(simulate(SERVE, fleet, count=5000, rate=45.0))
    assert "queue grows" in over.saturated and not over.holds
    assert over.request_rate.value == pytest.approx(4 / 0.11, rel=0.03)
    under = measure(simulate(SERVE, fleet, count=5000, rate=25.0))
    assert under.saturated == "" and under.settled


def test_a_run_too_short_to_fill_the_system_is_not_settled():
    """Nothing waits, but the first of the long answers is not yet out when the last request comes."""
    requests = given(np.arange(300.0) / 100, np.full(300, 10), np.full(300, 1000))
    found = measure(simulate(requests, Fleet(STEP_TIMES, 100_000, EngineConfig(most_sequences=1000))))
    assert found.saturated == "" and not found.settled


def test_one_token_has_no_gaps():
    requests = given(np.arange(50.0), np.full(50, 10), np.zeros(50))
    found = measure(simulate(requests, Fleet(STEP_TIMES, 1000)), (Bound("tpot", 99, 1e-9), Bound("itl", 99, 1e-9)))
    assert found.tpot is None and found.itl is None
    assert found.holds and found.good == 1.0


def test_an_offline_job_counts_whole():
    requests = given(None, np.full(40, 100), np.full(40, 11))
    run = simulate(requests, Fleet(STEP_TIMES, 1000, EngineConfig(most_sequences=10)))
    found = measure(run)
    assert found.requests == 40
    assert found.request_rate.value == pytest.approx(40 / run.end_s)
    assert found.busy == 1.0
    assert found.little == pytest.approx(found.in_system)


def test_a_closed_loop_keeps_its_users_busy():
    requests = given(None, np.full(400, 100), np.full(400, 11), users=8)
    found = measure(simulate(requests, Fleet(STEP_TIMES, 1000)))
    assert found.requests == 360
    assert found.request_rate.value == pytest.approx(8 / 0.11, rel=0.05)
    assert found.in_system == pytest.approx(8, rel=0.05)


def test_a_single_request_can_be_measured():
    found = measure(simulate(given(np.array([3.0]), np.array([10]), np.array([3])), Fleet(STEP_TIMES, 10)))
    assert found.requests == 1
    assert found.e2e.p99.value == pytest.approx(0.03)
    assert found.token_rate.value == pytest.approx(100.0)


def test_intervals_hold_what_they_claim():
    """Of 400 samples of exponential values about 90 % hold the true mean and the true percentile."""
    stream = np.random.default_rng(5)
    means = medians = tails = 0
    for _ in range(400):
        found = spread(stream.standard_exponential(2000))
        means += found.mean.low <= 1 <= found.mean.high
        medians += found.p50.low <= np.log(2) <= found.p50.high
        tails += found.p99.low <= np.log(100) <= found.p99.high
    assert 340 <= means <= 385
    assert 340 <= medians <= 395
    assert 340 <= tails <= 398


def test_intervals_know_that_requests_depend_on_each_other():
    stream = np.random.default_rng(6)
    noise = stream.standard_normal(4000)
    slow = np.convolve(noise, np.ones(50), "same") / np.sqrt(50)
    tight, wide = spread(stream.permutation(slow)), spread(slow)
    assert wide.mean.high - wide.mean.low > 3 * (tight.mean.high - tight.mean.low)
    assert wide.p50.high - wide.p50.low > 2 * (tight.p50.high - tight.p50.low)

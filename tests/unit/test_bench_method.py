"""One point: checked, warmed up, sampled; what goes wrong is marked and never raised."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from bench_numpy import BROKEN, HUGE, WRONG, NumpyFramework, copy, gemm

from chipwise.bench.frameworks.interface import Case
from chipwise.bench.measurement import Watched
from chipwise.bench.method import BUDGETS, Budget, Sampled, drift, measure, sample, summarize, warm_up

BUDGET = BUDGETS["tiny"]


class Window:
    def watched(self, calls, seconds):
        return Watched(samples=calls)


class Watcher:
    @contextmanager
    def window(self):
        yield Window()


class Scripted(NumpyFramework):
    """Samples take the seconds of a script, one after another; the work is real."""

    def __init__(self, *seconds):
        super().__init__()
        self.script, self.firsts = list(seconds), []

    def sample(self, call, calls, first):
        super().sample(call, 1, first)
        self.firsts.append((first, calls))
        return self.script[len(self.firsts) % len(self.script)] * calls


def test_a_product_is_measured_with_its_work_and_its_error():
    found = measure(NumpyFramework(), gemm(), BUDGET, Watcher())
    assert found.status in ("ok", "unstable") and found.framework == "numpy"
    assert found.flops == 2 * 64**3 and found.error < 1e-6
    assert BUDGET.few_samples <= found.seconds.samples <= BUDGET.most_samples  # few on a busy machine
    assert found.seconds.low <= found.seconds.p25 <= found.seconds.median <= found.seconds.p75 <= found.seconds.high
    assert len(found.seconds.samples_s) == found.seconds.samples and list(found.seconds.samples_s) == sorted(
        found.seconds.samples_s
    )
    assert found.watched.samples == found.seconds.samples * found.seconds.calls


@pytest.mark.parametrize(
    "point, status, words",
    [
        (gemm(WRONG), "failed", "wrong result: relative error 1 against a wider precision; fp32 is allowed 0.0001"),
        (gemm(BROKEN), "failed", "RuntimeError: something broke"),
        (gemm(dtype="fp8"), "unsupported", "numpy has no fp8"),
        (copy(HUGE), "oom", "more than this device has"),
    ],
)
def test_what_goes_wrong_is_a_status_with_a_reason(point, status, words):
    found = measure(NumpyFramework(), point, BUDGET, Watcher())
    assert (found.status, found.seconds) == (status, None) and words in found.reason and "\n" not in found.reason


def test_a_framework_says_which_exceptions_mean_memory():
    class Full(NumpyFramework):
        def build(self, point):
            raise MemoryError("no room")

    assert measure(Full(), gemm(), BUDGET, Watcher()).status == "oom"


def test_a_result_that_is_no_number_is_wrong():
    class Nan(NumpyFramework):
        def build(self, point):
            return replace(super().build(point), check=lambda: float("nan"))

    found = measure(Nan(), gemm(), BUDGET, Watcher())
    assert found.status == "failed" and found.error is None and "nan" in found.reason


def test_an_interrupt_is_not_swallowed():
    class Impatient(NumpyFramework):
        def build(self, point):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(Impatient(), gemm(), BUDGET, Watcher())


def test_scattered_samples_are_taken_twice_and_marked():
    framework = Scripted(3e-3, 4e-3)
    found = measure(framework, gemm(), BUDGET, Watcher())
    assert found.status == "unstable" and not found.usable and "interquartile range" in found.reason
    assert found.seconds is not None


def test_steady_samples_are_ok():
    found = measure(Scripted(3e-3, 3.01e-3), gemm(), BUDGET, Watcher())
    assert found.status == "ok" and found.usable and found.reason == ""


def test_a_drift_is_seen_where_the_quartiles_are_close():
    slowing = (*(1.0,) * 3, *(1.04,) * 4, *(1.12,) * 3)
    assert summarize(slowing, 1).spread < 0.10 and drift(slowing) == pytest.approx(0.12)
    assert Sampled(slowing, 1, Watched()).doubt == "the samples drift: the last third is 12% slower"


def test_short_calls_are_put_together_until_a_sample_is_long_enough():
    framework = Scripted(1e-5)
    case = framework.build(gemm())
    calls, used = warm_up(framework, case, Budget(0.01, 0.0))
    assert calls * 1e-5 >= 2e-3 and calls < 500
    assert used == sum(calls for _, calls in framework.firsts)


def test_every_call_takes_the_next_set_of_inputs():
    framework = Scripted(3e-3)
    _, after = sample(framework, framework.build(gemm()), 5, Budget(9.0, 0.0, most_samples=7), Watcher(), 100)
    assert [first for first, _ in framework.firsts] == [100, 105, 110, 115, 120, 125, 130] and after == 135


def test_long_calls_get_few_samples():
    class Slow(NumpyFramework):
        def sample(self, call, calls, first):
            import time

            time.sleep(0.02)
            return 0.02

    seen, _ = sample(Slow(), Case(lambda i: None), 1, Budget(0.01, 0.0), Watcher(), 0)
    assert len(seen.seconds) == 3

"""Demand by what ran: trends whose intervals hold, peaks, and windows of runs that a plan can meet."""

import numpy as np
import pytest

from chipwise.observe.demand.demand_file import Frame, WorkloadDemand, demand_text
from chipwise.observe.demand.history import calendar, peak_of
from chipwise.observe.demand.records import Case, Expected, Kind, Month, Past, Trend, month_index
from chipwise.observe.demand.trend import GROWTH, trend_of

HISTORIES = 250
FIRST = month_index(2026, 1)


def history(amounts, share=1.0):
    return [Month(index=FIRST + n, share=share, amount=amount) for n, amount in enumerate(amounts)]


@pytest.mark.parametrize(("months", "runs"), [(3, 8.0), (8, 30.0), (24, 4.0)])
def test_runs_of_a_demand_that_is_known_lie_in_the_interval(months, runs):
    rng = np.random.default_rng([months, int(runs)])
    inside = grown = 0
    for _ in range(HISTORIES):
        growth = rng.normal(0, GROWTH)
        truth = runs * np.exp(growth * np.arange(months + 12))
        trend = trend_of(history(rng.poisson(truth[:months])), Kind.RUNS, FIRST + months, 12)
        last = trend.months[-1]
        inside += last.low <= truth[-1] <= last.high
        grown += trend.growth_low <= np.expm1(growth) <= trend.growth_high
    assert 0.84 <= inside / HISTORIES <= 0.97 and 0.84 <= grown / HISTORIES <= 0.97


@pytest.mark.parametrize("months", [2, 12])
def test_rates_of_a_demand_that_is_known_lie_in_the_interval(months):
    rng = np.random.default_rng(months)
    inside = 0
    for _ in range(HISTORIES):
        growth = rng.normal(0, GROWTH)
        truth = 20 * np.exp(growth * np.arange(months + 6))
        seen = truth[:months] * np.exp(rng.normal(0, 0.1, months))
        last = trend_of(history(seen), Kind.SERVICE, FIRST + months, 6).months[-1]
        inside += last.low <= truth[-1] <= last.high
    assert 0.84 <= inside / HISTORIES <= 0.98


def test_a_short_history_is_wide_and_a_long_one_tells_growth():
    short = trend_of(history([10]), Kind.RUNS, FIRST + 1, 12)
    long = trend_of(history(10 * 1.08 ** np.arange(24)), Kind.RUNS, FIRST + 24, 12)
    width = [trend.months[-1].high / trend.months[-1].low for trend in (short, long)]
    assert width[0] > 2.5 * width[1] and short.growth_low < -0.05 < 0.05 < short.growth_high
    assert long.growth == pytest.approx(0.08, abs=0.02)
    assert long.months[-1].value == pytest.approx(10 * 1.08**35, rel=0.35)


def test_nothing_seen_asks_for_nearly_nothing():
    trend = trend_of(history([0, 0, 0, 0, 0, 0]), Kind.RUNS, FIRST + 6, 3)
    assert trend.months[0].value < 0.2


def test_peaks_are_hours_of_the_day_and_need_several_days():
    day = [50.0] * 8 + [200.0] * 10 + [50.0] * 6
    hours = {100_000 * 24 + hour: day[hour % 24] for hour in range(24 * 5)}
    peak = peak_of(hours)
    assert (peak.begin, peak.end) == (8, 18) and peak.times == pytest.approx(200 / np.mean(day))
    assert peak_of(dict.fromkeys(range(24 * 5), 1.0)) is None
    assert peak_of({hour: day[hour % 24] for hour in range(24 * 2)}) is None
    night = [200.0] * 4 + [50.0] * 17 + [200.0] * 3
    late = peak_of({hour: night[hour % 24] for hour in range(24 * 4)})
    assert (late.begin, late.end) == (21, 4)


def test_months_count_by_the_share_that_was_seen():
    first = 1_767_225_600.0  # 2026-01-01
    (january, february) = calendar(first + 15.5 * 86400, first + 45 * 86400)
    assert january[0] == FIRST and january[3] == pytest.approx(0.5) and february[3] == pytest.approx(0.5)


def text_of(amounts, seconds=None, months=6, case=Case.LIKELY, kind=Kind.RUNS):
    past = Past(name="job", kind=kind, workload={"model": "gpt2", "train": {}}, months=history([1]), jobs=1,
                chip_hours=1.0, run_seconds=seconds)  # fmt: skip
    expected = [Expected(index=FIRST + n, value=a, low=a / 2, high=2 * a) for n, a in enumerate(amounts)]
    trend = Trend(months=expected, growth=0.0, growth_low=0.0, growth_high=0.0)
    frame = Frame(name="x", case=case, source="jobs", day="2026-01-01", first=FIRST, months=months, pools=(), chips=())
    return demand_text([WorkloadDemand(past=past, trend=trend)], frame)


def settings(text):
    return [line.split("train: ")[1] for line in text.splitlines() if "train: {" in line and "- name" not in line]


def test_runs_become_windows_of_alike_months():
    assert settings(text_of([4.0] * 6)) == ["{runs: 4, every: 1, start: 2026-01, deadline: 2026-06}"]
    assert settings(text_of([4.0] * 6, case=Case.HIGH)) == ["{runs: 8, every: 1, start: 2026-01, deadline: 2026-06}"]
    assert settings(text_of([2.0] * 3 + [3.0] * 3)) == [
        "{runs: 2, every: 1, start: 2026-01, deadline: 2026-03}",
        "{runs: 3, every: 1, start: 2026-04, deadline: 2026-06}",
    ]
    assert settings(text_of([0.7] * 6)) == ["{runs: 2, every: 3, start: 2026-01, deadline: 2026-06}"]
    assert settings(text_of([0.01] * 6)) == []


def test_runs_that_one_after_another_would_not_end_in_time_have_lanes():
    lanes = settings(text_of([5.0] * 6, seconds=10 * 86400))
    assert lanes == ["{runs: 2, every: 1, start: 2026-01, deadline: 2026-06}"] * 2 + [
        "{runs: 1, every: 1, start: 2026-01, deadline: 2026-06}"
    ] or [int(lane[7]) for lane in lanes] == [2, 2, 1]

"""Watts by telemetry: what is work and what idling, and intervals that hold over devices and days."""

import numpy as np
import pytest

from chipwise.catalog import load
from chipwise.observe.rates.posterior import power_rate
from chipwise.observe.rates.power import DAY, Drawn, Use, Windows, share_held, used_for
from chipwise.predict.model.energy import watts

H100 = load().chips["h100"]
HISTORIES = 300
NOBODY = share_held([], 8)


def history(rng, devices, days, mean=480.0):
    """Devices differ by 5 %, days by what runs on them by 10 %, and moments by noise that is not told."""
    of_devices, of_days = rng.normal(0, 0.05, devices), rng.normal(0, 0.10, days)
    drawn = Drawn()
    for device in range(devices):
        for day in range(days):
            hours = rng.uniform(2, 20)
            joules = mean * (1 + of_devices[device] + of_days[day] + rng.normal(0, 0.02)) * hours * 3600
            drawn.cells[("node", str(device)), day] = [joules, hours * 3600]
    drawn.began, drawn.ended = 0.0, days * DAY
    return drawn


@pytest.mark.parametrize(("devices", "days"), [(8, 5), (4, 30), (64, 14)])
def test_the_mean_lies_in_its_interval(devices, days):
    rng = np.random.default_rng([devices, days])
    inside = 0
    for _ in range(HISTORIES):
        rate = power_rate(history(rng, devices, days), Use.WORK, H100)
        inside += rate.low <= 480.0 <= rate.high
    assert 0.85 <= inside / HISTORIES <= 0.97


def test_little_is_wide_and_much_is_believed():
    rng = np.random.default_rng(3)
    one = power_rate(history(rng, 1, 1, 300.0), Use.WORK, H100)
    few = power_rate(history(rng, 8, 7, 300.0), Use.WORK, H100)
    many = power_rate(history(rng, 64, 60, 300.0), Use.WORK, H100)
    assert one.high / one.low > few.high / few.low > many.high / many.low
    assert many.value == pytest.approx(300.0, rel=0.05) and many.high / many.low < 1.1
    assert one.assumed.value == watts(H100, 1.0) and one.low < 300.0 < one.high
    idle = power_rate(history(rng, 16, 30, 90.0), Use.IDLE, H100)
    assert idle.name == "chip_idle_watts.h100" and idle.value == pytest.approx(90.0, rel=0.1)


def every(seconds, *values):
    return Windows(np.arange(len(values)) * float(seconds), np.array(values, dtype=float))


def test_windows_at_the_edge_of_work_are_left_out():
    busy = every(300, 0, 0, 0, 0.9, 0.9, 0.9, 0.9, 0, 0, 0)
    power = every(300, *([80] * 3), 400, 500, 500, 400, *([80] * 3))
    work, idle = used_for(power, busy, NOBODY)
    assert list(np.flatnonzero(work)) == [4, 5] or list(np.flatnonzero(work)) == []
    assert not (work & idle).any() and set(power.mean[work]) <= {500.0} and set(power.mean[idle]) == {80.0}


def test_a_pause_of_a_job_that_holds_all_chips_is_work():
    busy = every(10, *([1.0] * 30), *([0.0] * 60), *([1.0] * 30))
    power = every(10, *([600.0] * 30), *([120.0] * 60), *([600.0] * 30))
    work, idle = used_for(power, busy, share_held([(-100.0, 5000.0, 8)], 8))
    assert work.all() and not idle.any()
    work, idle = used_for(power, busy, share_held([(-100.0, 5000.0, 4)], 8))
    assert idle.any() and not work.all()


def test_what_nobody_tells_counts_for_neither():
    power, silent = every(300, *([100.0] * 20)), Windows(np.array([]), np.array([]))
    work, idle = used_for(power, silent, share_held([(0.0, 6000.0, 4)], 8))
    assert not work.any() and not idle.any()
    work, idle = used_for(power, silent, NOBODY)
    assert not work.any() and idle.all()


def test_energy_over_gaps_is_not_made_up():
    windows = Windows(np.array([0.0, 10.0, 20.0, 9000.0, 9010.0]), np.full(5, 100.0))
    assert windows.seconds.max() == 15.0
    assert np.isnan(windows.where(np.array([5000.0]))).all() and windows.where(np.array([12.0])) == 100.0

"""What costs assume, moved by what was met: as far as there is of it, and with honest intervals."""

import numpy as np
import pytest

from chipwise.catalog.economics import economics
from chipwise.observe.rates.posterior import POINTS, prior, rate_of, weekly
from chipwise.observe.rates.records import Exposure, Figure

HISTORIES = 600
RATES = [(Figure.FAILURES, "owned"), (Figure.INTERRUPTIONS, "aws"), (Figure.INTERRUPTIONS, "gcp")]


def assumed(figure, cloud=""):
    return economics()(figure, cloud)


def exposure(figure, hours, count, cloud="", weeks=()):
    return Exposure(figure=figure, cloud=cloud, hours=hours, count=count, began=0.0, ended=1.0, weeks=list(weeks))


@pytest.mark.parametrize("hours", [0.0, 1e3, 1e6])
@pytest.mark.parametrize(("figure", "cloud"), RATES)
def test_rates_drawn_as_assumed_lie_in_their_intervals(figure, cloud, hours):
    rng = np.random.default_rng([int(hours), len(cloud)])
    assumption = assumed(figure, cloud)
    truths = prior(assumption).at(rng.standard_normal(HISTORIES))
    rates = [rate_of(exposure(figure, hours, rng.poisson(truth * hours), cloud), assumption) for truth in truths]
    inside = np.mean([rate.low <= truth <= rate.high for rate, truth in zip(rates, truths, strict=True)])
    assert 0.85 <= inside <= 0.95


@pytest.mark.parametrize("weeks", [4, 26, 104])
def test_shares_drawn_as_assumed_lie_in_their_intervals(weeks):
    rng = np.random.default_rng(weeks)
    assumption = assumed(Figure.UTILIZATION)
    truths = np.minimum(prior(assumption).at(rng.standard_normal(HISTORIES)), 0.999)
    inside = 0
    for truth in truths:
        used = 168 * rng.beta(8 * truth, 8 * (1 - truth), weeks)  # weeks differ by 0.16 at one half
        met = exposure(Figure.UTILIZATION, 168.0 * weeks, used.sum(), weeks=[(168.0, share) for share in used])
        rate = rate_of(met, assumption)
        inside += rate.low <= truth <= rate.high
    assert 0.85 <= inside / HISTORIES <= 0.97


@pytest.mark.parametrize(("figure", "cloud"), [*RATES, (Figure.UTILIZATION, "")])
def test_nothing_met_answers_the_assumption_and_little_hardly_moves_it(figure, cloud):
    assumption = assumed(figure, cloud)
    nothing = rate_of(exposure(figure, 0.0, 0.0, cloud), assumption)
    assert (nothing.low, nothing.value, nothing.high) == (assumption.low, assumption.value, assumption.high)
    if figure is not Figure.UTILIZATION:
        little = rate_of(exposure(figure, 1e-3, 0, cloud), assumption)
        assert little.value == pytest.approx(assumption.value, rel=1e-3)
        assert (little.low, little.high) == pytest.approx((assumption.low, assumption.high), rel=5e-3)


def test_much_is_believed_however_far_it_is_from_what_was_assumed():
    many = rate_of(exposure(Figure.INTERRUPTIONS, 1e4, 20_000, "aws"), assumed(Figure.INTERRUPTIONS, "aws"))
    assert many.value == pytest.approx(2.0, rel=0.02) and many.high / many.low == pytest.approx(1.023, abs=0.005)
    none = rate_of(exposure(Figure.FAILURES, 1e7, 0, "owned"), assumed(Figure.FAILURES))
    assert none.high < 5e-6 and none.low < none.value < none.high


def test_weeks_that_are_alike_say_more():
    alike = exposure(Figure.UTILIZATION, 1.0, 1.0, weeks=[(100.0, 70.0)] * 20)
    apart = exposure(Figure.UTILIZATION, 1.0, 1.0, weeks=[(100.0, 100.0)] * 14 + [(100.0, 0.0)] * 6)
    assert weekly(alike)[0] == weekly(apart)[0] == pytest.approx(0.7)
    assert weekly(alike)[1] > 10 * weekly(apart)[1] > 100
    used = rate_of(alike, assumed(Figure.UTILIZATION))
    assert used.value == pytest.approx(0.7, abs=0.02) and used.high - used.low < 0.1
    whole = rate_of(exposure(Figure.UTILIZATION, 1.0, 1.0, weeks=[(100.0, 100.0)] * 8), assumed(Figure.UTILIZATION))
    assert 0.75 < whole.value <= 1.0 and POINTS > 0

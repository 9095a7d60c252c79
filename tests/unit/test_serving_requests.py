from dataclasses import replace

import numpy as np
import pytest

from chipwise.errors import InputError
from chipwise.serving.requests import draw, given
from chipwise.workload.serve import Arrival, Lengths, Serve, Trace

CHAT = Serve(Lengths(((0.1, 50.0), (0.9, 2000.0))), Lengths(((0.1, 10.0), (0.9, 500.0))), Arrival("poisson", rate=4.0))


def test_a_rate_changes_no_length():
    slow, fast = draw(CHAT, 1000, 3), draw(CHAT, 1000, 3, rate=8.0)
    np.testing.assert_array_equal(slow.input, fast.input)
    np.testing.assert_array_equal(slow.output, fast.output)
    np.testing.assert_allclose(slow.arrival_s, 2 * fast.arrival_s)
    np.testing.assert_allclose(slow.at_rate(8.0).arrival_s, fast.arrival_s)


def test_a_longer_run_begins_with_the_shorter_one():
    short, long = draw(CHAT, 100, 3), draw(CHAT, 1000, 3)
    np.testing.assert_array_equal(short.arrival_s, long.arrival_s[:100])
    np.testing.assert_array_equal(short.output, long.output[:100])


def test_another_seed_is_another_stream():
    assert draw(CHAT, 100, 1).arrival_s[0] != draw(CHAT, 100, 2).arrival_s[0]


@pytest.mark.parametrize("burstiness", [0.0, 0.25, 1.0, 4.0])
def test_gaps_vary_as_asked(burstiness):
    bursty = replace(CHAT, arrival=Arrival("bursty", rate=10.0, burstiness=burstiness))
    gaps = np.diff(draw(bursty, 200_000).arrival_s)
    assert gaps.mean() == pytest.approx(0.1, rel=0.02)
    assert (gaps.std() / gaps.mean()) ** 2 == pytest.approx(burstiness, rel=0.05, abs=1e-9)


def test_a_trace_starts_again_and_stretches():
    trace = Trace("seen", np.array([5.0, 6.0, 8.0]), np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 0.0]))
    serve = replace(CHAT, arrival=Arrival("trace"), trace=trace)
    seen = draw(serve)
    assert seen.arrival_s.tolist() == [0.0, 1.0, 3.0]
    assert seen.output.tolist() == [4, 5, 1]
    assert draw(serve, 5).arrival_s.tolist() == [0.0, 1.0, 3.0, 4.5, 5.5]
    assert draw(serve, rate=2 * seen.rate).arrival_s.tolist() == [0.0, 0.5, 1.5]


def test_closed_and_offline_have_no_times():
    closed = draw(replace(CHAT, arrival=Arrival("closed", users=7)), 50)
    assert (closed.kind, closed.users, closed.rate) == ("closed", 7, 0.0)
    assert draw(replace(CHAT, arrival=Arrival("closed", users=7)), 50, users=9).users == 9
    offline = draw(replace(CHAT, arrival=Arrival("offline"), requests=123))
    assert (offline.kind, len(offline)) == ("offline", 123)
    with pytest.raises(InputError, match="rate"):
        offline.at_rate(3.0)


def test_a_prefix_leaves_one_token_to_compute():
    hit = draw(replace(CHAT, prefix_hit=1.0), 100, groups=5)
    assert np.all(hit.shared == hit.input - 1)
    assert set(hit.group.tolist()) == set(range(5))
    assert np.all(draw(CHAT, 100).group == -1)


@pytest.mark.parametrize(
    "change",
    [
        {"arrival": Arrival("poisson")},
        {"arrival": Arrival("closed")},
        {"arrival": Arrival("trace")},
        {"arrival": Arrival("hourly")},
        {"arrival": Arrival("bursty", rate=1.0, burstiness=-1.0)},
    ],
)
def test_nonsense_is_refused(change):
    with pytest.raises(InputError):
        draw(replace(CHAT, **change), 10)


def test_arrays_must_agree():
    with pytest.raises(InputError):
        given(np.array([0.0, 1.0]), np.array([1.0]), np.array([1.0]))
    with pytest.raises(InputError):
        given(np.array([1.0, 0.0]), np.ones(2), np.ones(2))
    with pytest.raises(InputError):
        given(None, np.array([]), np.array([]))

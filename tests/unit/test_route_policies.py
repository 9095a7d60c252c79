"""What each policy wants, on cases small enough to work out by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from route_views import HOUR, board_of, candidate, option, pool, view_of

from chipwise.errors import ChipwiseError, InputError, UnknownName
from chipwise.route.allocate import allocate
from chipwise.route.cluster_state import ClusterState, PolicyDecision
from chipwise.route.policies import POLICIES, check_weights, describe, policy_named, policy_names
from chipwise.route.policies.risk import in_time, run_quantile
from chipwise.route.policies.sharing import max_min_shares

FAST, SLOW = pool("fast", 8, 4.0), pool("slow", 8, 1.0)
POOLS = (FAST, SLOW)


def decided(policy: str, candidates, pools=POOLS, now=0.0, free=None, running=(), weights=None, **more):
    board = board_of(pools, candidates)
    room = {p.name: p.count for p in pools} if free is None else dict(free)
    for job, where, since in running:
        board.started(job, where, since)
        room[where] -= board.option(job, where).chips
    view = view_of(board, pools, now, room, weights=weights)
    return {(d.job, d.kind): d for d in allocate(view, policy_named(policy)(view), board.option, **more)}


def both(fast: float, slow: float, **more):
    return [option(FAST, fast, **more), option(SLOW, slow, **more)]


def test_fastest_takes_the_earliest_end_and_cheapest_the_fewest_dollars():
    job = candidate("a", both(1, 3))
    assert decided("fastest", [job])["a", "start"].pool == "fast"
    assert decided("cheapest", [job])["a", "start"].pool == "slow"


def test_fastest_takes_the_slower_pool_exactly_when_the_wait_is_longer():
    long, job = candidate("long", [option(FAST, 10, 8)]), candidate("a", both(1, 3, chips=8))
    assert decided("fastest", [long, job], running=[("long", "fast", 0.0)])["a", "start"].pool == "slow"
    assert decided("fastest", [long, job], now=8.5 * HOUR, running=[("long", "fast", 0.0)])["a", "wait"].pool == "fast"


def test_cheapest_waits_for_the_cheap_pool_and_says_what_the_other_costs():
    full = candidate("full", [option(SLOW, 5, 8)])
    found = decided("cheapest", [full, candidate("a", both(1, 3))], running=[("full", "slow", 0.0)])["a", "wait"]
    assert found.pool == "slow"
    assert "3 USD" in found.reason and "4 USD" in found.reason and "waits" in found.reason
    assert found.scores["fast"]["usd"] == pytest.approx(4.0)


GPU, TPU = pool("gpu", 8, 3.0), pool("tpu", 16, 1.2)


def twenty(tpu_hours: float = 25 / 60, count: int = 20, **more):
    """Jobs of 4 chips that cost 2 USD in either pool: 10 minutes in one, 25 in the other."""
    return [candidate(str(i), [option(GPU, 1 / 6, 4), option(TPU, tpu_hours, 4)], **more) for i in range(1, count + 1)]


@pytest.mark.parametrize("policy", ["cheapest", "cheapest-within-deadline"])
@pytest.mark.parametrize("deadline", [inf, 40 * HOUR])
@pytest.mark.parametrize("tpu_hours", [25 / 60, 26 / 60])  # at the same price, and at 4 % more
def test_no_pool_idles_beside_a_queue_at_about_the_same_price(policy, deadline, tpu_hours):
    found = decided(policy, twenty(tpu_hours, deadline=deadline), (GPU, TPU))
    starts = [d.pool for (_, kind), d in found.items() if kind == "start"]
    assert sorted(starts) == ["gpu"] * 2 + ["tpu"] * 4  # 8 and 16 chips by 4: every chip is used
    waits = {d.pool for (_, kind), d in found.items() if kind == "wait"}
    assert waits == {"gpu", "tpu"}  # those left line up for both, by their ends
    last = found["20", "wait"]
    assert "taken by other jobs" in last.reason and "starts now" not in last.reason


@pytest.mark.parametrize("policy", ["cheapest", "cheapest-within-deadline"])
def test_of_pools_at_about_the_same_price_the_earliest_end_is_taken(policy):
    for first, second in (((GPU, 1 / 6), (TPU, 25 / 60)), ((GPU, 1 / 6), (TPU, 24.5 / 60))):  # equal, and 2 % cheaper
        job = candidate("a", [option(first[0], first[1], 4), option(second[0], second[1], 4)])
        assert decided(policy, [job], (GPU, TPU))["a", "start"].pool == "gpu"
    dear = candidate("a", [option(GPU, 1 / 6, 4), option(TPU, 20 / 60, 4)], deadline=40 * HOUR)  # 20 % cheaper
    assert decided(policy, [dear], (GPU, TPU))["a", "start"].pool == "tpu"


def test_a_job_waits_beside_a_free_pool_that_takes_more_than_twice_as_long():
    slow = pool("slow", 8, 0.2)
    jobs = [candidate("full", [option(FAST, 1, 8)]), candidate("a", [option(FAST, 1, 8), option(slow, 20, 8)])]
    at = {"running": [("full", "fast", 0.0)], "pools": (FAST, slow)}
    assert decided("cheapest", jobs, **at)["a", "wait"].pool == "fast"  # 2 h to the end against 20, at the same price


def test_a_running_job_does_not_move_to_a_pool_at_about_the_same_price():
    job = candidate("a", [option(GPU, 1 / 6, 4), option(TPU, 25 / 60, 4)], restartable=True, every=60.0)
    assert not decided("cheapest", [job], (GPU, TPU), now=60.0, running=[("a", "tpu", 0.0)])


def test_waiting_for_a_cheaper_pool_costs_what_an_hour_of_delay_does():
    full = candidate("full", [option(SLOW, 5, 8)])
    job = candidate("a", both(1, 1))  # 1 USD after 5 h, or 4 USD now
    at = {"running": [("full", "slow", 0.0)]}
    assert decided("cheapest", [full, job], **at)["a", "wait"].pool == "slow"
    found = decided("cheapest-within-deadline", [full, job], **at)["a", "start"]
    assert found.pool == "fast" and "an hour until its end counts 5 USD" in found.reason
    assert decided("cheapest-within-deadline", [full, job], weights={"delay": 0.5}, **at)["a", "wait"].pool == "slow"
    due = candidate("a", both(1, 1), deadline=40 * HOUR)  # a deadline says what delay costs: nothing before it
    assert decided("cheapest-within-deadline", [full, due], **at)["a", "wait"].pool == "slow"


@pytest.mark.parametrize("delay", [-1.0, inf])
def test_a_delay_without_a_price_is_refused(delay):
    with pytest.raises(InputError, match=r"weights.delay"):
        decided("cheapest-within-deadline", twenty(), (GPU, TPU), weights={"delay": delay})


def test_weights_are_those_of_the_policies_named():
    check_weights(["cheapest-within-deadline"], ["delay"])
    check_weights(["balanced", "cheapest-within-deadline"], ["delay", "cost"])
    with pytest.raises(InputError, match="one of delay"):
        check_weights(["cheapest-within-deadline"], ["cost"])
    with pytest.raises(InputError, match="cheapest has none"):
        check_weights(["cheapest"], ["delay"])


def test_least_energy_looks_at_joules_alone():
    options = [option(FAST, 1, watts=900.0), option(SLOW, 3, watts=100.0)]
    assert decided("least-energy", [candidate("a", options)])["a", "start"].pool == "slow"


def test_a_deadline_is_met_as_cheaply_as_the_stated_confidence_allows():
    sure = candidate("a", both(1, 3), deadline=3.9 * HOUR, confidence=0.9)  # the 90th percentile of slow is 3.57 h
    surer = candidate("a", both(1, 3), deadline=3.9 * HOUR, confidence=0.99)
    assert decided("cheapest-within-deadline", [sure])["a", "start"].pool == "slow"
    assert decided("cheapest-within-deadline", [surer])["a", "start"].pool == "fast"


def test_a_deadline_that_nothing_meets_gets_the_likeliest_pool_and_the_probability():
    found = decided("cheapest-within-deadline", [candidate("a", both(1, 3), deadline=1.1 * HOUR)])["a", "start"]
    assert found.pool == "fast"
    assert "no pool meets its deadline with 90%" in found.reason
    assert "fast, does with 76%" in found.reason  # ln 1.1 / (ln 1.25 / 1.645) = 0.703 standard deviations


def test_a_job_whose_deadline_forbids_the_wait_goes_to_the_dearer_pool():
    full = candidate("full", [option(SLOW, 5, 8)])
    urgent, easy = candidate("a", both(1, 1), deadline=4 * HOUR), candidate("a", both(1, 1), deadline=40 * HOUR)
    at = {"running": [("full", "slow", 0.0)]}
    assert decided("cheapest-within-deadline", [full, urgent], **at)["a", "start"].pool == "fast"
    assert decided("cheapest-within-deadline", [full, easy], **at)["a", "wait"].pool == "slow"


def test_interruptions_of_spot_chips_make_a_deadline_less_likely():
    spot = pool("spot", 8, 1.0, terms="spot", interruptions=0.2)
    # 0.6 interruptions to be expected, half the run each: sqrt(0.1357^2 + 0.6 * 0.5^2) = 0.410, ln 1.25 / 0.410 = 0.544
    for places, expected in (((FAST, SLOW), 0.95), ((FAST, spot), 0.707)):
        board = board_of(places, [candidate("a", [option(places[1], 3)], deadline=3.75 * HOUR)])
        chance = in_time(view_of(board, places), np.array([0]))[0, 1]
        assert chance == pytest.approx(expected, abs=1e-3)


def test_a_quantile_is_the_inverse_of_the_probability():
    board = board_of(POOLS, [candidate("a", both(1, 3), deadline=inf, confidence=c) for c in (0.3,)])
    view = view_of(board, POOLS)
    within = run_quantile(view)[0, 0]
    board.replace(candidate("a", both(1, 3), deadline=float(within), confidence=0.3))
    assert in_time(view_of(board, POOLS), np.array([0]))[0, 0] == pytest.approx(0.3, abs=1e-6)


def test_throughput_per_dollar_leaves_no_pool_idle_while_waiting_costs_more():
    jobs = [candidate(f"j{k}", both(1, 3, chips=8), arrival=float(k)) for k in range(3)]
    found = decided("max-throughput-per-dollar", jobs)
    assert {found["j0", "start"].pool, found["j1", "start"].pool} == {"fast", "slow"}


def test_weights_decide_what_balanced_prefers_and_bad_ones_are_refused():
    board = board_of(POOLS, [candidate("a", both(1, 3))])
    for weights, best in (
        ({"cost": 1, "time": 0, "energy": 0, "risk": 0}, 1),
        ({"cost": 0, "time": 1, "energy": 0}, 0),
    ):
        assert POLICIES["balanced"](view_of(board, POOLS, weights=weights)).score[0].argmin() == best
    for weights in ({"cost": -1.0}, {"time": float("nan")}, dict.fromkeys(("cost", "time", "energy", "risk"), 0.0)):
        with pytest.raises(InputError, match="weights"):
            POLICIES["balanced"](view_of(board, POOLS, weights=weights))


def test_max_min_fair_gives_each_job_the_pool_it_is_better_in():
    wide = (pool("a", 1), pool("b", 1))
    jobs = [
        candidate("x", [option(wide[0], 1), option(wide[1], 4)]),
        candidate("y", [option(wide[0], 1), option(wide[1], 1)]),
    ]
    shares = max_min_shares(view_of(board_of(wide, jobs), wide))
    assert shares[0, 0] > 0.9 and shares[1, 1] > 0.9


def test_fair_policies_order_by_the_shares_that_are_still_in_force():
    board = board_of(POOLS, [candidate("x", both(1, 3)), candidate("y", both(1, 3))])
    shares = np.array([[0.0, 1.0], [1.0, 0.0]])
    wishes = POLICIES["max-min-fair"](view_of(board, POOLS, shares=shares))
    assert wishes.shares is shares
    assert wishes.order[0].argmin() == 1 and wishes.order[1].argmin() == 0


def test_whoever_was_served_less_than_its_share_goes_first():
    board = board_of(POOLS, [candidate("x", both(1, 3)), candidate("y", both(1, 3))])
    board.started("x", "fast", 0.0)
    board.stopped("x", 1000.0)
    wishes = POLICIES["finish-time-fair"](view_of(board, POOLS, 2000.0, shares=np.full((2, 2), 0.5)))
    assert wishes.order[1, 0] < wishes.order[0, 0]


def test_every_policy_has_a_name_a_line_and_an_answer_for_no_jobs():
    assert set(POLICIES) <= set(policy_names())
    for name in POLICIES:
        assert describe(name).endswith(".")
        board = board_of(POOLS, [])
        view = view_of(board, POOLS)
        wishes = policy_named(name)(view)
        assert wishes.score.shape == (0, 2)
        assert allocate(view, wishes) == []


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_job_that_can_run_nowhere_is_left_waiting(name):
    found = decided(name, [candidate("none", []), candidate("a", both(1, 3))])
    assert found["none", "wait"].reason.startswith("can't run in any pool")
    assert ("a", "start") in found


def test_an_unknown_policy_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean cheapest"):
        policy_named("cheapst")
    for name in ("no.such.module:function", "os:no_such_function", "os:sep"):
        with pytest.raises(InputError, match="policy"):
            policy_named(name)


def test_a_policy_of_ones_own_is_found_by_entry_point_and_by_path(tmp_path, monkeypatch):
    (tmp_path / "dearest_policy.py").write_text(
        "from chipwise.route.cluster_state import PolicyDecision\n\n"
        "def dearest(view):\n    'The most dollars.'\n    return PolicyDecision(-view.usd, view.arrival, 'USD')\n"
    )
    info = tmp_path / "dearest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dearest\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[chipwise.policies]\ndearest = dearest_policy:dearest\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "dearest" in policy_names()
    assert describe("dearest") == "The most dollars."
    for name in ("dearest", "dearest_policy:dearest"):
        assert decided(name, [candidate("a", both(1, 3))])["a", "start"].pool == "fast"


def answers(wishes):
    def own(view: ClusterState):
        if isinstance(wishes, Exception):
            raise wishes
        return wishes(view) if callable(wishes) else wishes

    return own


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"score": 1}, "dict in place of a PolicyDecision"),
        (ZeroDivisionError("division by zero"), "failed: ZeroDivisionError: division by zero"),
        (lambda v: PolicyDecision(np.zeros((2, 2)), v.arrival, "USD"), r"score has the shape \(2, 2\)"),
        (lambda v: PolicyDecision(np.full(v.usd.shape, np.nan), v.arrival, "USD"), "score holds NaN"),
        (lambda v: PolicyDecision(-v.usd * np.inf, v.arrival, "USD"), "score holds -inf"),
        (lambda v: PolicyDecision([[1.0, 2.0]], v.arrival, "USD"), "score is list, not an array"),
        (lambda v: PolicyDecision(v.usd.astype(str), v.arrival, "USD"), "not numbers"),
        (lambda v: PolicyDecision(v.usd, v.arrival, "USD", wait=-1.0), "wait holds numbers below 0"),
        (lambda v: PolicyDecision(v.usd, v.arrival, 3), "unit is int, not text"),
    ],
)
def test_a_policy_that_answers_nonsense_is_named(wishes, words, monkeypatch):
    import sys
    import types

    module = types.ModuleType("nonsense_policy")
    module.own = answers(wishes)
    monkeypatch.setitem(sys.modules, "nonsense_policy", module)
    view = view_of(board_of(POOLS, [candidate("a", both(1, 3))]), POOLS)
    with pytest.raises(ChipwiseError, match=f"nonsense_policy:own.*{words}"):
        policy_named("nonsense_policy:own")(view)


def test_a_price_too_small_to_divide_by_counts_as_none_in_the_balance():
    from chipwise.route.policies.balanced import _weighed

    usd, score, ones = np.array([[5e-324, 3.0], [0.0, 0.0], [2.0, 3.0]]), np.empty((3, 2)), np.ones((3, 2))
    for weights in ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)):
        _weighed(0.0, weights, ones, ones, usd, usd, ones, score, np.empty(3))
        assert score.tolist() == [[1.0, 2.0], [1.0, 1.0], [1.0, 1.5]]

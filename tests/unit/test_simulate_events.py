"""The replay, worked by hand: queues, checkpoints, spot chips taken away, failed nodes, refusals."""

import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from chipwise.predict.estimate import Estimate
from chipwise.route.cluster_state import Decision
from chipwise.route.job import Checkpoint, Job, Variant
from chipwise.route.option import Infeasible, Option
from chipwise.route.policies import POLICIES
from chipwise.route.pool import Pool
from chipwise.route.simulate.arrivals import Arrival, Trace
from chipwise.route.simulate.events import ReplayOptions, replay
from chipwise.route.simulate.measures import jain, measure
from chipwise.route.simulate.policy_scheduler import PolicyScheduler
from chipwise.route.simulate.random_events import RandomEvents

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "property"))
from simulate_schedulers import Fifo

POOL = Pool("h100", "local", "h100", "gpu", 8, usd_per_chip_hour=3.0, watts_chip=1000.0)


def arrival(name, at, seconds, chips=8, pool=POOL, checkpoint=None, deadline=inf, budget=inf, spread=0.0):
    job = Job(
        name, (Variant("gpu", "gpu", chips),), checkpoint=checkpoint or Checkpoint(), deadline=deadline, budget=budget
    )
    time = Estimate(seconds, seconds * (1 - spread), seconds * (1 + spread), "given")
    option = Option(pool.name, "gpu", chips, "", time, chips * pool.usd_per_chip_hour, chips * pool.watts_chip)
    return Arrival(name, at, job, (option,))


def run(*arrivals, pool=POOL, chance=None, desk=None):
    trace = Trace("t", "jobs", tuple(arrivals), (pool,))
    return replay(trace, desk or Fifo((pool,)), ReplayOptions(chance or RandomEvents()))


def test_two_jobs_in_a_queue():
    outcome = run(arrival("a", 0.0, 3600.0, deadline=4000.0), arrival("b", 600.0, 1800.0, deadline=4000.0))
    figures = measure(outcome)
    assert [f.end for f in outcome.fates] == [3600.0, 5400.0]
    assert (figures.avg_jct_s, figures.makespan_s, figures.avg_wait_s) == (4200.0, 5400.0, 1500.0)
    assert figures.cost_usd == pytest.approx(8 * 3.0 * 1.5) and figures.energy_kwh == pytest.approx(8 * 1.5)
    assert (figures.deadlines, figures.deadline_misses, figures.utilization) == (2, 1, 1.0)
    assert figures.worst_slowdown == pytest.approx(4800 / 1800)
    assert figures.fairness == pytest.approx(jain([1.0, 1800 / 4800]))


def test_a_job_that_can_run_nowhere_is_refused_at_once_with_the_reason():
    nowhere = replace(arrival("x", 5.0, 60.0), options=(), infeasible=(Infeasible("h100", "gpu", "does not fit"),))
    outcome = run(arrival("a", 0.0, 3600.0), nowhere)
    assert outcome.fates[1].refused == "h100 (gpu): does not fit" and outcome.fates[1].end is None
    assert (measure(outcome).completed, measure(outcome).refused) == (1, 1)


def test_a_job_that_no_pool_runs_within_its_budget_is_refused_at_once():
    desk = Fifo((POOL,))
    outcome = run(arrival("a", 0.0, 3600.0, budget=5.0), desk=desk)
    assert outcome.fates[0].refused == "costs $24.00 at least; its budget is $5.00" and not desk.known


def test_a_power_cap_that_never_feeds_a_job_refuses_it():
    capped = replace(POOL, power_cap=4000.0)
    desk = Fifo((capped,), {"h100": 4})
    outcome = run(arrival("a", 0.0, 60.0), arrival("b", 0.0, 60.0, chips=4), pool=capped, desk=desk)
    assert "its power cap feeds 4" in outcome.fates[0].refused and outcome.fates[1].end == 60.0


class StopOnce(Fifo):
    """Stops the job that runs when another arrives, and gives the newcomer its chips."""

    moves = True

    def decide(self, now):
        if len(self.waiting) == 1 and self.at and "b" in self.waiting:
            return [Decision("a", "stop"), Decision("b", "start", "h100", "gpu")]
        return super().decide(now)


def test_a_preempted_job_goes_on_from_its_checkpoint():
    keep = Checkpoint(True, 600.0, restart=60.0)
    outcome = run(arrival("a", 0.0, 3600.0, checkpoint=keep), arrival("b", 1500.0, 300.0), desk=StopOnce((POOL,)))
    # 1500 s: two checkpoints, 300 s are lost; b until 1800; then 60 s of restart and the 2400 s that are left
    assert outcome.fates[1].end == 1800.0 and outcome.fates[0].end == pytest.approx(1800 + 60 + 2400)
    figures = measure(outcome)
    assert figures.preemptions == 1 and figures.lost_chip_s == pytest.approx(8 * (300 + 60))
    assert figures.cost_usd == pytest.approx(24 * (1500 + 300 + 2460) / 3600)


def test_a_job_without_checkpoints_starts_over_when_it_is_stopped():
    outcome = run(
        arrival("a", 0.0, 3600.0, checkpoint=Checkpoint(True)), arrival("b", 1500.0, 300.0), desk=StopOnce((POOL,))
    )
    assert outcome.fates[0].end == pytest.approx(1800 + 3600)


def test_without_a_seed_spot_chips_are_not_taken_away():
    spot = replace(POOL, terms="spot", interruptions=2.0)
    assert run(arrival("a", 0.0, 7200.0, pool=spot), pool=spot).fates[0].end == 7200.0


def test_spot_chips_are_taken_away_as_often_as_the_pool_says():
    spot = replace(POOL, terms="spot", interruptions=0.05, count=100)
    keep = Checkpoint(True, 60.0)
    outcome = run(
        *(arrival(f"j{i}", 0.0, 36_000.0, chips=1, pool=spot, checkpoint=keep) for i in range(100)),
        pool=spot,
        chance=RandomEvents(3),
    )
    stops = measure(outcome).interruptions
    assert 30 <= stops <= 75  # 50 on average, of a Poisson distribution
    assert measure(outcome).completed == 100


def test_drawn_times_lie_in_their_interval_nine_times_in_ten():
    chance, time = RandomEvents(1), Estimate(100.0, 70.0, 180.0, "modelled")
    drawn = [chance.seconds(time, f"j{i}", "p") for i in range(2000)]
    assert 0.87 <= sum(70 <= s <= 180 for s in drawn) / 2000 <= 0.93
    assert 0.46 <= sum(s < 100 for s in drawn) / 2000 <= 0.54
    assert drawn == [chance.seconds(time, f"j{i}", "p") for i in range(2000)]
    assert drawn != [RandomEvents(2).seconds(time, f"j{i}", "p") for i in range(2000)]


def test_failed_nodes_stop_jobs_and_come_back():
    pool = replace(POOL, count=64, unit=8)
    keep = Checkpoint(True, 60.0, restart=30.0)
    outcome = run(
        *(arrival(f"j{i}", 0.0, 36_000.0, pool=pool, checkpoint=keep) for i in range(8)),
        pool=pool,
        chance=RandomEvents(None, 0.1, 600.0),
    )
    figures = measure(outcome)
    assert figures.completed == 8 and figures.node_failures > 0 and figures.interruptions > 0
    assert figures.avg_jct_s > 36_000


def test_of_two_policies_both_meet_the_same_luck():
    one, two = (run(arrival("a", 0.0, 3600.0, spread=0.3), chance=RandomEvents(5)) for _ in range(2))
    assert one.fates == two.fates and one.fates[0].end != 3600.0


def test_nothing_completed_has_no_times():
    nowhere = replace(arrival("x", 5.0, 60.0), options=(), infeasible=(Infeasible("h100", "gpu", "no"),))
    figures = measure(run(nowhere))
    assert figures.avg_jct_s is None and figures.makespan_s is None and figures.fairness is None
    assert figures.cost_usd == 0.0 and figures.utilization == 0.0


def test_a_policy_that_never_starts_a_job_leaves_it_refused_with_its_name():
    class Never(Fifo):
        name = "never"

        def decide(self, now):
            return []

    outcome = run(arrival("a", 0.0, 60.0), desk=Never((POOL,)))
    assert outcome.fates[0].refused == "never never starts it: it stands in the queue"


def test_a_job_that_always_loses_its_chips_before_a_checkpoint_is_parked_with_the_reason():
    spot = replace(POOL, terms="spot", interruptions=5.0)
    outcome = run(
        arrival("long", 0.0, 100 * 3600.0, pool=spot),
        arrival("b", 9e5, 1.0, pool=spot),
        pool=spot,
        chance=RandomEvents(1),
    )
    assert len([r for r in outcome.runs if r.job == 0]) == 21 and outcome.fates[0].end is None
    assert outcome.fates[0].refused == "failed: 21 runs in a row lost their chips before a checkpoint, the last in h100"
    alone = measure(run(arrival("long", 0.0, 100 * 3600.0, pool=spot), pool=spot, chance=RandomEvents(1)))
    assert alone.makespan_s is None and 0.99 < alone.utilization <= 1.0 and alone.cost_usd > 0
    assert outcome.fates[1].end == 9e5 + 1.0 and (measure(outcome).completed, measure(outcome).refused) == (1, 1)


def test_losses_that_keep_work_never_park_a_job():
    spot = replace(POOL, terms="spot", interruptions=5.0)
    keep = Checkpoint(True, 30.0, restart=1.0)
    outcome = run(arrival("long", 0.0, 100 * 3600.0, pool=spot, checkpoint=keep), pool=spot, chance=RandomEvents(1))
    assert outcome.fates[0].end is not None and len(outcome.runs) > 100


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("keep", [Checkpoint(True), Checkpoint(True, 3600.0, restart=60.0), Checkpoint(True, 10.0)])
def test_two_jobs_that_have_waited_too_long_do_not_stop_each_other_for_ever(name, keep):
    long = 3 * 86_400.0  # each waits for longer than place's patience while the other runs
    jobs = arrival("a", 0.0, long, checkpoint=keep), arrival("b", 1.0, long, checkpoint=keep)
    outcome = run(*jobs, desk=PolicyScheduler(name, POLICIES[name], (POOL,)))
    figures = measure(outcome)
    assert figures.completed == 2
    assert figures.makespan_s < 2 * long + 1.01 * 86_400  # work repeated: a day at the most, or what shares may waste


def test_a_restarted_job_is_not_stopped_before_its_checkpoint_for_a_share():
    keep = Checkpoint(True, 3600.0, restart=60.0)
    jobs = [arrival(name, 0.0, 43_200.0, checkpoint=keep) for name in "ab"]
    outcome = run(*jobs, desk=PolicyScheduler("max-min-fair", POLICIES["max-min-fair"], (POOL,)))
    stopped = [r for r in outcome.runs if r.how == "preempted"]
    assert stopped and all(r.end - r.start - r.lost >= 3600.0 for r in stopped)

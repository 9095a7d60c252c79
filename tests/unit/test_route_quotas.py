"""Quotas of users and teams: refused at submission, waited for at the start, and nobody else is held up by them."""

from dataclasses import replace

import pytest
from route_cases import job, option, pool, submission
from test_route_router import Stage

from chipwise.errors import InputError
from chipwise.route.access import Quota, Quotas
from chipwise.route.backend import SUCCEEDED
from chipwise.route.cluster_state import Decision
from chipwise.route.ledger.actor import Actor
from chipwise.route.ledger.records import NewJob

ADA = Quotas(users={"ada": Quota(chips=2)})
HOUR = 3600.0


def of(owner, name="train", at="near", chips=1, seconds=HOUR, usd=0.0, team=""):
    a_job = job(name=name, owner=owner)
    new = submission(a_job, option(at, chips=chips, seconds=seconds, usd_hour=usd * HOUR / seconds))
    return NewJob(new.job, new.options, new.infeasible, team)


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path, [pool("near", 16, backend="slurm")])
    yield made
    made.ledger.close()


def limited(stage, quotas):
    stage.router = stage.another("limited", quotas=quotas)
    return stage


def states(stage):
    return {row.id: row.state for row in stage.ledger.jobs()}


def test_a_user_holds_no_more_chips_than_the_quota_and_others_go_on(stage):
    limited(stage, ADA)
    stage.ledger.submit([of("ada") for _ in range(5)] + [of("bob") for _ in range(3)], stage.now)
    for _ in range(3):
        stage.tick()
    running = [row.job.owner for row in stage.ledger.jobs(state="running")]
    assert running.count("ada") == 2 and running.count("bob") == 3


def test_the_reason_names_the_quota_and_what_is_held(stage):
    limited(stage, ADA)
    stage.ledger.submit([of("ada") for _ in range(3)], stage.now)
    for _ in range(3):
        stage.tick()
    [waiting] = stage.ledger.jobs(state="pending")
    assert waiting.reason == "quota of user ada: 2 of 2 chips held now, and it needs 1 chip: waits"


def test_quotas_hold_after_the_ledger_was_away(stage):
    limited(stage, ADA)
    stage.router.forget()
    stage.ledger.submit([of("ada") for _ in range(3)], stage.now)
    for _ in range(3):
        stage.tick()
    [waiting] = stage.ledger.jobs(state="pending")
    assert waiting.reason == "quota of user ada: 2 of 2 chips held now, and it needs 1 chip: waits"


def test_a_job_starts_once_another_of_its_user_has_ended(stage):
    limited(stage, ADA)
    stage.ledger.submit([of("ada") for _ in range(3)], stage.now)
    for _ in range(2):
        stage.tick()
    stage.backend.set("1", state=SUCCEEDED, started=stage.now - 1, ended=stage.now)
    for _ in range(3):
        stage.tick()
    assert sorted(states(stage).values()) == ["running", "running", "succeeded"]


def test_a_team_shares_its_quota(stage):
    limited(stage, Quotas(teams={"vision": Quota(chips=3)}))
    both = [of(owner, team="vision") for owner in ("ada", "bob") for _ in range(2)]
    stage.ledger.submit([*both, of("eve")], stage.now)
    for _ in range(3):
        stage.tick()
    running = stage.ledger.jobs(state="running")
    assert sum(row.team == "vision" for row in running) == 3
    assert sum(row.job.owner == "eve" for row in running) == 1


def test_thousands_of_one_user_do_not_stand_before_the_others(stage):
    """More than a window of the queue: they would fill it for ever."""
    limited(stage, ADA)
    stage.ledger.submit([of("ada") for _ in range(700)], stage.now)
    for _ in range(2):
        stage.tick()
    stage.now += 1
    stage.ledger.submit([of("bob")], stage.now)
    for _ in range(3):
        stage.tick()
    assert [row.job.owner for row in stage.ledger.jobs(state="running")].count("bob") == 1


def test_dollars_of_the_month_count_what_ended_and_what_runs(stage):
    limited(stage, Quotas(users={"ada": Quota(usd=10.0)}))
    stage.ledger.submit([of("ada", usd=6.0), of("ada", usd=6.0)], stage.now)
    for _ in range(3):
        stage.tick()
    assert sorted(states(stage).values()) == ["pending", "running"]
    [waiting] = stage.ledger.jobs(state="pending")
    assert "$6.00 of $10.00 used this month" in waiting.reason
    stage.backend.set("1", state=SUCCEEDED, started=stage.now - 2 * HOUR, ended=stage.now)
    for _ in range(3):
        stage.tick()
    spent = stage.ledger.jobs(state="succeeded")[0].spent
    assert spent > 4 and sorted(states(stage).values()) == ["pending", "succeeded"]


def test_a_new_month_begins_at_nothing(stage):
    limited(stage, Quotas(users={"ada": Quota(usd=10.0)}))
    stage.ledger.submit([of("ada", usd=6.0), of("ada", usd=6.0)], stage.now)
    for _ in range(2):
        stage.tick()
    stage.backend.set("1", state=SUCCEEDED, started=stage.now - HOUR, ended=stage.now)
    for _ in range(2):
        stage.tick()
    assert sorted(states(stage).values()) == ["pending", "succeeded"]
    stage.tick(32 * 86_400.0)
    for _ in range(2):
        stage.tick()
    assert sorted(states(stage).values()) == ["running", "succeeded"]


def test_two_routers_do_not_exceed_a_quota_together(stage):
    """Each plans by what it saw; what the other has started meanwhile is counted in the transaction."""
    limited(stage, ADA)
    stage.ledger.submit([of("ada") for _ in range(4)], stage.now)
    stage.tick()
    late = Decision("3", "start", "near", "cpu", scores={"near": {"chips": 1}})
    assert stage.ledger.decide("two", "fastest", [late], stage.now, 30.0, {"near": 16}, ADA) == []
    assert len(stage.ledger.attempts(under_way=True)) == 2
    assert len(stage.ledger.decide("two", "fastest", [late], stage.now, 30.0, {"near": 16})) == 1  # but for the quota


# at submission


def test_a_job_that_needs_more_chips_than_its_quota_is_refused_by_name(stage):
    with pytest.raises(InputError) as refused:
        stage.ledger.submit([of("ada", chips=3)], stage.now, quotas=ADA)
    assert str(refused.value) == (
        "job train: chips of user ada: 3 is not accepted; expected at most 2 chips at once, by its quota"
    )
    assert stage.ledger.jobs() == []


def test_a_submission_that_costs_more_than_is_left_this_month_is_refused(stage):
    quotas = Quotas(each_user=Quota(usd=10.0, chip_hours=100))
    stage.ledger.submit([of("ada", usd=6.0)], stage.now, quotas=quotas)
    stage.tick()
    with pytest.raises(InputError, match=r"usd of user ada: '\$6.00' is not accepted; expected at most \$4.00"):
        stage.ledger.submit([of("ada", usd=6.0)], stage.now, quotas=quotas)
    stage.ledger.submit([of("bob", usd=6.0)], stage.now, quotas=quotas)
    with pytest.raises(InputError, match=r"chip_hours of user eve: '200 chip-hours'"):
        stage.ledger.submit([of("eve", chips=2, seconds=100 * HOUR)], stage.now, quotas=quotas)


def test_a_job_without_an_owner_counts_for_who_submitted_it(stage):
    with pytest.raises(InputError, match="chips of user ada"):
        stage.ledger.submit([of("", chips=3)], stage.now, Actor("test", "ada", "submitter"), ADA)


@pytest.mark.parametrize("quota", [Quota(chip_hours=1.5), Quota(usd=1.5)], ids=["chip-hours", "dollars"])
def test_two_routers_do_not_exceed_what_a_month_allows_together(stage, quota):
    """Both have counted, and neither has heard of the other's start."""
    quotas = Quotas(users={"ada": quota})
    stage.ledger.submit([of("ada", usd=1.0) for _ in range(2)], stage.now)
    for name in ("one", "two"):
        stage.ledger.heartbeat(name, "host", 1, "fastest", stage.now)
    starts = {n: [Decision(n, "start", "near", stage.ledger.job(n).options[0].variant)] for n in ("1", "2")}
    begun = [
        stage.ledger.decide(r, "fastest", starts[n], stage.now, 30.0, {"near": 16}, quotas)
        for r, n in (("one", "1"), ("two", "2"))
    ]
    assert [len(attempts) for attempts in begun] == [1, 0]


def test_a_job_that_was_submitted_before_costs_no_quota_again(stage):
    """A client that heard no answer sends the same key once more."""
    quotas = Quotas(users={"ada": Quota(usd=1.0)})
    new = of("ada", usd=1.0)
    new = NewJob(replace(new.job, key="once"), new.options, new.infeasible)
    first = stage.ledger.submit([new], stage.now, quotas=quotas)
    limited(stage, quotas)
    stage.tick()
    assert stage.ledger.submit([new], stage.now, quotas=quotas) == first
    with pytest.raises(InputError):
        stage.ledger.submit([of("ada", "another", usd=1.0)], stage.now, quotas=quotas)


@pytest.mark.parametrize("began", [1.0, 1e12], ids=["in 1970", "to come"])
def test_chip_hours_are_those_that_were_seen_whatever_a_program_wrote(stage, began):
    quotas = Quotas(users={"ada": Quota(chip_hours=100.0)})
    stage.ledger.submit([of("ada", chips=2)], stage.now)
    limited(stage, quotas)
    stage.tick()
    stage.backend.set("1", state="running", started=stage.now)
    for _ in range(180):
        stage.tick(20.0)
    stage.backend.set("1", state=SUCCEEDED, started=began, ended=began)
    stage.tick()
    assert stage.job().state == "succeeded"
    used = stage.ledger.usage(quotas, stage.now)["user ada"]
    assert used.chip_hours == pytest.approx(2.0, rel=0.02)


def test_a_clock_that_is_set_uses_no_chip_hours(stage):
    quotas = Quotas(users={"ada": Quota(chip_hours=100.0)})
    stage.ledger.submit([of("ada", chips=1, seconds=60.0)], stage.now)
    limited(stage, quotas)
    stage.tick()
    stage.backend.set("1", state="running", started=stage.now)
    stage.tick()
    assert stage.ledger.usage(quotas, stage.now + 10 * 86_400)["user ada"].chip_hours < 1.0

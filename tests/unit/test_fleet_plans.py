"""Plans worked out by hand: what is rented, held and bought, what runs where, and what is paid when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.fleet.plan import FleetPlan
from chipwise.fleet.planner import plan
from chipwise.fleet.problem import Block, Exclusive, Limit, Option, Period, Pool, Problem, Run, Service, Supply

ALL_DAY = (Block("all", 1.0),)
MONTHS = tuple(Period(f"2027-{m:02}", 730.0) for m in range(1, 13))
CLOUD = Pool("cloud", "h100", "gpu", 8)
ONDEMAND = Supply("on demand", "cloud", "ondemand", 10.0)
YEAR = Supply("1 year", "cloud", "year1", 6.0, term=12)


def solved(problem: Problem) -> FleetPlan:
    found = plan(problem, gap=0.0, threads=1)
    assert found is not None
    return found


def service(load: float, months: int = 12, carries: float = 1.0, **more: object) -> Service:
    return replace(Service("s", ((load,),) * months, (("cloud", carries),)), **more)  # type: ignore[arg-type]


def test_a_steady_load_is_committed_where_a_year_costs_less() -> None:
    # 3 units for 12 x 730 h: 262,800 $ on demand at 10 $, 157,680 $ committed at 6 $
    found = solved(Problem(MONTHS, ALL_DAY, (CLOUD,), (ONDEMAND, YEAR), services=(service(3.0),)))
    assert found.usd == pytest.approx(3 * 12 * 730 * 6.0)
    assert found.units("1 year") == (3,) * 12
    assert found.units("on demand") == (0,) * 12
    assert found.utilization() == pytest.approx(1.0)


def test_a_commitment_that_outlasts_the_plan_is_paid_in_full_or_in_part_as_asked() -> None:
    half = MONTHS[:6]
    problem = Problem(half, ALL_DAY, (CLOUD,), (ONDEMAND, YEAR), services=(service(3.0, 6),))
    # in full: 12 months at 6 $ are dearer than 6 at 10 $
    assert solved(problem).usd == pytest.approx(3 * 6 * 730 * 10.0)
    assert solved(replace(problem, prorate=True)).usd == pytest.approx(3 * 6 * 730 * 6.0)
    dear = replace(problem, supplies=(replace(ONDEMAND, usd_per_unit_hour=13.0), YEAR))
    found = solved(dear)
    assert found.after() == pytest.approx(3 * 6 * 730 * 6.0)
    assert sum(found.by_period()) == pytest.approx(3 * 6 * 730 * 6.0)


def test_units_by_the_hour_follow_the_day() -> None:
    blocks = (Block("base", 2 / 3), Block("peak", 1 / 3))
    load = ((1.0, 3.0),) * 12
    found = solved(Problem(MONTHS, blocks, (CLOUD,), (ONDEMAND,), services=(Service("s", load, (("cloud", 1.0),)),)))
    assert found.usd == pytest.approx(12 * 730 * 10.0 * (2 / 3 * 1 + 1 / 3 * 3))
    assert found.units("on demand") == (3,) * 12


def test_loads_take_whole_units_with_their_headroom() -> None:
    problem = Problem(MONTHS[:1], ALL_DAY, (CLOUD,), (ONDEMAND,), services=(service(2.0, 1),))
    assert solved(problem).units("on demand") == (2,)
    assert solved(replace(problem, services=(service(2.0, 1, spare_share=0.1),))).units("on demand") == (3,)
    assert solved(replace(problem, services=(service(2.0, 1, spare_units=2),))).units("on demand") == (4,)
    assert solved(replace(problem, services=(service(3.0, 1, carries=2.0, spans=(("cloud", 4),)),))).units(
        "on demand"
    ) == (8,)


def test_a_run_pays_for_its_hours_alone_and_moves_into_free_commitments() -> None:
    run = Run("r", 0, 1, (Option("cloud", "on demand", 4, 100.0),))
    assert solved(Problem(MONTHS[:2], ALL_DAY, (CLOUD,), (ONDEMAND,), (run,))).usd == pytest.approx(4 * 100 * 10.0)
    there = Supply("contract", "cloud", "existing", 5.0, existing=(4, 4))
    held = replace(run, options=(*run.options, Option("cloud", "", 4, 100.0)))
    found = solved(Problem(MONTHS[:2], ALL_DAY, (CLOUD,), (ONDEMAND, there), (held,)))
    assert found.usd == pytest.approx(2 * 730 * 4 * 5.0)
    assert [r.option.supply for r in found.running] == [""]


def test_a_run_needs_its_whole_gang_at_once() -> None:
    there = Supply("contract", "cloud", "existing", 5.0, existing=(3, 3))
    run = Run("r", 0, 1, (Option("cloud", "", 4, 100.0),))
    assert plan(Problem(MONTHS[:2], ALL_DAY, (CLOUD,), (there,), (run,))) is None


def test_two_runs_share_units_in_a_period_only_in_one_queue() -> None:
    there = Supply("contract", "cloud", "existing", 5.0, existing=(4,))
    runs = tuple(Run(name, 0, 0, (Option("cloud", "", 4, 300.0),), queue="q") for name in "ab")
    problem = Problem(MONTHS[:1], ALL_DAY, (CLOUD,), (there,), runs)
    assert plan(problem) is not None
    assert plan(replace(problem, runs=tuple(replace(r, queue="") for r in runs))) is None
    longer = tuple(replace(r, options=(Option("cloud", "", 4, 400.0),)) for r in runs)
    assert plan(replace(problem, runs=longer)) is None  # 800 h do not fit into 730


def test_servers_arrive_after_their_lead_and_keep_a_value() -> None:
    site = Pool("site", "h100", "gpu", 8, "home", 1_000.0, 11_000.0, 0.1, 0.5)
    own = Supply("servers", "site", "owned", capex=60_000.0, resale=50_000.0, keeps=0.9, usd_period=100.0, lead=2)
    both = Service("s", ((1.0,),) * 6, (("cloud", 1.0), ("site", 1.0)))
    found = solved(
        Problem(MONTHS[:6], ALL_DAY, (CLOUD, site), (replace(ONDEMAND, usd_per_unit_hour=50.0), own), services=(both,))
    )
    assert found.units("servers") == (0, 0, 1, 1, 1, 1)
    # 2 months rented; capex 60,000 less what 50,000 $ are worth after 4 months (0.9^4); 4 x 100 $; 11 kW at work
    by = found.by_kind()
    assert by["on demand"] == pytest.approx(2 * 730 * 50.0)
    assert by["capex"] == 60_000.0
    assert by["value left"] == pytest.approx(-50_000 * 0.9**4)
    assert by["space, upkeep, staff, interest"] == 400.0
    assert by["energy"] == pytest.approx(4 * 730 * 11 * 0.1)
    assert found.usd == pytest.approx(sum(by.values()))
    assert found.kw()[2] == pytest.approx(11.0)
    assert found.kg()[2] == pytest.approx(730 * 11 * 0.5)


def test_limits_hold_in_every_period() -> None:
    problem = Problem(MONTHS[:2], ALL_DAY, (CLOUD,), (ONDEMAND,), services=(service(3.0, 2),))
    for limit in (
        Limit("l", "units", 2),
        Limit("l", "chips", 23),
        Limit("l", "usd", 3 * 730 * 10.0 - 1),
        Limit("l", "usd", 2 * 3 * 730 * 10.0 - 1, total=True),
        Limit("l", "units", 2, periods=(1,)),
    ):
        assert plan(replace(problem, limits=(limit,))) is None
    for limit in (
        Limit("l", "units", 3),
        Limit("l", "chips", 24),
        Limit("l", "usd", 3 * 730 * 10.0),
        Limit("l", "units", 2, ("other",)),
    ):
        assert plan(replace(problem, limits=(limit,))) is not None


def test_commitments_that_shut_each_other_out_are_not_both_used() -> None:
    other = Pool("other", "v5e", "tpu", 8)
    far = Supply("far", "other", "year1", 1.0, term=12, limit=2)
    load = Service("s", ((4.0,),) * 12, (("cloud", 1.0), ("other", 1.0)))
    problem = Problem(MONTHS, ALL_DAY, (CLOUD, other), (ONDEMAND, YEAR, far), services=(load,))
    assert solved(problem).units("far") == (2,) * 12
    found = solved(replace(problem, exclusives=(Exclusive("one", (("1 year",), ("far",))),)))
    assert (max(found.units("far")) == 0) != (max(found.units("1 year")) == 0)


def test_one_family_leaves_the_other_out_but_keeps_what_exists() -> None:
    other = Pool("other", "v5e", "tpu", 8)
    problem = Problem(
        MONTHS[:1],
        ALL_DAY,
        (CLOUD, other),
        (
            ONDEMAND,
            Supply("tpus", "other", "ondemand", 1.0),
            Supply("contract", "other", "existing", 5.0, existing=(1,)),
        ),
        services=(Service("s", ((3.0,),), (("cloud", 1.0), ("other", 1.0))),),
    )
    gpus = solved(problem.only(("gpu",)))
    assert gpus.units("on demand") == (3,)
    assert gpus.by_kind()["existing"] == 730 * 5.0


def test_the_same_problem_gives_the_same_plan() -> None:
    problem = Problem(MONTHS, ALL_DAY, (CLOUD,), (ONDEMAND, YEAR), services=(service(2.4),))
    one, other = (solved(problem) for _ in range(2))
    assert (one.holdings, one.serving, one.costs) == (other.holdings, other.serving, other.costs)


@pytest.mark.parametrize("load", [1e-9, 1e-4])
def test_a_faint_load_still_takes_an_replica(load: float) -> None:
    problem = Problem(MONTHS[:1], ALL_DAY, (CLOUD,), (ONDEMAND,), services=(service(load, 1, carries=5_000.0),))
    assert solved(problem).units("on demand") == (1,)
    spare = replace(problem, services=(service(load, 1, carries=5_000.0, spare_units=2),))
    assert solved(spare).units("on demand") == (3,)


def test_what_exists_in_a_part_of_a_period_is_paid() -> None:
    there = Supply("contract", "cloud", "existing", 5.0, existing=(1, 0), idle_usd=(0.0, 1_234.0))
    found = solved(Problem(MONTHS[:2], ALL_DAY, (CLOUD,), (ONDEMAND, there), services=(service(1.0, 2),)))
    assert found.by_kind() == {"on demand": 7_300.0, "existing": 730 * 5.0 + 1_234.0}
    assert found.by_period() == (730 * 5.0, 7_300.0 + 1_234.0)


def test_runs_of_a_queue_by_the_hour_take_turns_in_a_quota() -> None:
    runs = tuple(Run(name, 0, 0, (Option("cloud", "on demand", 4, 300.0),), queue="q") for name in "ab")
    for limited in (
        Problem(MONTHS[:1], ALL_DAY, (CLOUD,), (replace(ONDEMAND, limit=4),), runs),
        Problem(
            MONTHS[:1], ALL_DAY, (CLOUD,), (ONDEMAND,), runs, limits=(Limit("quota", "chips", 32, ("on demand",)),)
        ),
    ):
        found = solved(limited)
        assert found.units("on demand") == (4,)
        assert found.usd == pytest.approx(2 * 4 * 300 * 10.0)
        assert plan(replace(limited, runs=tuple(replace(r, queue="") for r in runs))) is None


def test_the_power_that_is_said_is_of_hours_that_come_together() -> None:
    pools = tuple(Pool(name, "h100", "gpu", 8, watts_busy=10_000.0) for name in ("east", "west"))
    rented = tuple(Supply(f"{p.id} od", p.id, "ondemand", 10.0) for p in pools)
    blocks = (Block("day", 0.5), Block("night", 0.5))
    services = (Service("a", ((3.0, 1.0),), (("east", 1.0),)), Service("b", ((1.0, 3.0),), (("west", 1.0),)))
    found = solved(Problem(MONTHS[:1], blocks, pools, rented, services=services, limits=(Limit("power", "kw", 40.0),)))
    assert found.kw() == (pytest.approx(40.0),)  # 3 + 1 units of 10 kW in either half of the day

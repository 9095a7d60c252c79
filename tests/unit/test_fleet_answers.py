"""What is said around a plan: families side by side, what limits it, what has to give way, what would change it."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from chipwise.fleet import answers
from chipwise.fleet.answers import answer, binding, changes, loosened
from chipwise.fleet.mip import solve
from chipwise.fleet.model import build
from chipwise.fleet.planner import plan, read
from chipwise.fleet.problem import Block, Exclusive, Limit, Option, Period, Pool, Problem, Run, Service, Supply
from chipwise.fleet.relax import relax

MONTHS = tuple(Period(f"2027-{m:02}", 730.0) for m in range(1, 5))
GPUS, TPUS = Pool("gpus", "h100", "gpu", 8, "", 1_000, 10_000), Pool("tpus", "v5p", "tpu", 4, "", 500, 2_000)
CHEAP = Supply("v5p on demand", "tpus", "ondemand", 10.0)
DEAR = Supply("h100 on demand", "gpus", "ondemand", 30.0)
CHAT = Service("chat", ((4.0,),) * 4, (("tpus", 1.0), ("gpus", 1.0)))


def problem(**more: object) -> Problem:
    base = Problem(MONTHS, (Block("all", 1.0),), (GPUS, TPUS), (CHEAP, DEAR), services=(CHAT,))
    return replace(base, **more)  # type: ignore[arg-type]


QUOTA = Limit("quota of v5p", "chips", 8, ("v5p on demand",))


def test_one_more_unit_of_a_quota_saves_the_difference_of_the_prices() -> None:
    found = answer(problem(limits=(QUOTA,)), gap=0.0, sensitivity=False, threads=1)
    every, one = found.shadows
    # one more slice of 4 chips takes the place of an h100 node: 730 h x 20 $, in each of 4 months
    assert every.saves == pytest.approx(4 * 730 * 20.0)
    assert one.saves == pytest.approx(730 * 20.0)
    assert every.proved and one.proved
    assert one.words.startswith("4 chips more of quota of v5p in 2027-0")
    assert one.words.endswith("would save $14,600")


def test_a_quota_of_a_supply_is_loosened_like_any_other() -> None:
    limited = problem(supplies=(replace(CHEAP, limit=2), DEAR))
    ((limit, periods),) = binding(limited, 1)
    assert limit.name == "quota of v5p on demand"
    assert sorted(periods) == [0, 1, 2, 3]
    before, after = (plan(p, 0.0, threads=1) for p in (limited, loosened(limited, limit, 1.0, 2)))
    assert before and after
    assert before.usd - after.usd == pytest.approx(730 * 20.0)
    assert after.units("v5p on demand") == (2, 2, 3, 2)


def test_limits_that_do_not_bind_are_not_mentioned() -> None:
    found = answer(problem(limits=(replace(QUOTA, amount=400),)), gap=0.0, sensitivity=False, threads=1)
    assert found.shadows == ()


def test_families_stand_side_by_side_and_the_mix_is_at_least_as_good() -> None:
    found = answer(problem(limits=(QUOTA,)), gap=0.0, sensitivity=False, threads=1)
    gpu, tpu, mix = found.alternatives
    assert (gpu.name, tpu.name, mix.name) == ("GPU only", "TPU only", "best mix")
    assert gpu.plan and mix.plan
    assert gpu.plan.usd == pytest.approx(4 * 4 * 730 * 30.0)
    assert mix.plan.usd < gpu.plan.usd
    assert tpu.plan is None
    assert tpu.why == "quota of v5p: 16 chips instead of 8 chips at the most, in 4 places"


def test_a_family_that_runs_nothing_says_so() -> None:
    bare = problem(services=(replace(CHAT, carries=(("gpus", 1.0),)),))
    found = answer(bare, gap=0.0, sensitivity=False, threads=1)
    assert found.alternatives[1].why == "no TPU that can be had carries chat"


def test_sensitivity_solves_again_and_says_what_changes() -> None:
    found = answer(problem(limits=(QUOTA,)), gap=0.0, threads=1)
    by = {s.name: s for s in found.sensitivity}
    assert list(by) == ["demand +20 %", "demand -20 %", "prices +20 %", "prices -20 %"]
    assert found.plan
    up, dear = by["demand +20 %"].plan, by["prices +20 %"].plan
    assert up and dear
    assert up.usd == pytest.approx(found.plan.usd + 4 * 730 * 30.0)  # 4.8 take a fifth unit
    assert dear.usd == pytest.approx(found.plan.usd * 1.2)
    assert by["prices +20 %"].change == "the mix stays as it is"
    assert "h100 on demand" in by["demand +20 %"].change
    assert changes(found.plan, found.plan) == "the mix stays as it is"


def test_the_fewest_constraints_give_way_and_least_of_them() -> None:
    limits = (QUOTA, Limit("quota of h100", "chips", 8, ("h100 on demand",)), Limit("budget", "usd", 1e9, total=True))
    (only,) = relax(problem(limits=limits))
    assert only.name in ("quota of v5p", "quota of h100")
    assert only.amount == pytest.approx(4 if only.name == "quota of v5p" else 8)
    both = relax(problem(limits=(*limits[:2], Limit("budget", "usd", 1e5, total=True))))
    assert {r.name for r in both} >= {"budget"}
    assert len(both) == 2


def test_demand_gives_way_only_where_no_limit_would_do() -> None:
    late = Run("late", 0, 0, (Option("tpus", "v5p on demand", 1, 1_000.0),))
    (only,) = relax(problem(runs=(late,), limits=(replace(QUOTA, amount=400),)))
    assert (only.name, only.words) == ("deadline of late", "deadline of late: 270 hours of it are not done by then")
    homeless = Run("homeless", 0, 0, ())
    (only,) = relax(problem(runs=(homeless,)))
    assert only.words == "deadline of homeless: no chip that can be had runs it"


def test_exclusive_commitments_may_be_what_gives_way() -> None:
    supplies = (
        Supply("a", "gpus", "year1", 10.0, term=12, limit=2),
        Supply("b", "tpus", "year1", 10.0, term=12, limit=2),
    )
    (only,) = relax(problem(supplies=supplies, exclusives=(Exclusive("one cloud", (("a",), ("b",))),)))
    assert only.name == "one cloud"


def test_an_infeasible_demand_has_no_plan_but_says_what_to_relax() -> None:
    found = answer(problem(limits=(Limit("budget", "usd", 1000.0, total=True),)), threads=1)
    assert found.plan is None
    (only,) = found.relax
    assert only.words == "budget: $116,800 instead of $1,000"  # 4 units for 4 x 730 h at 10 $


def test_a_load_gives_way_also_where_its_spare_replicas_alone_are_too_many() -> None:
    there = Supply("contract", "gpus", "existing", 5.0, existing=(1, 1, 1, 1))
    spare = replace(CHAT, load=((0.5,),) * 4, carries=(("gpus", 1.0),), spare_units=5)
    (only,) = relax(problem(supplies=(there,), services=(spare,)))
    assert only.name == "load of chat"
    assert only.amount == pytest.approx(4.5)  # 5 replicas may fail: 5.5 wanted, 1 there


def test_a_plan_stands_where_the_time_runs_out_on_what_limits_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(of: Problem, gap: float, time_limit: float, threads: int, start: object, nodes: object) -> object:
        if start is not None:
            raise TimeoutError
        return plan(of, gap, time_limit, threads)

    monkeypatch.setattr(answers, "plan", late)
    found = answer(problem(limits=(QUOTA,)), gap=0.0, time_limit=20.0, sensitivity=False, threads=1)
    assert found.plan is not None
    assert found.shadows[0].words == (
        "what 4 chips more of quota of v5p in every period would save was not found within 10 s"
    )
    assert not any(s.proved or s.saves for s in found.shadows)


def test_a_plan_of_which_nothing_is_proved_has_a_gap_of_all_of_it() -> None:
    model = build(problem())
    solved = replace(solve(model.program, 0.0, 10.0, 1), bound=-inf)
    assert read(model, solved, 0.0).gap == 1.0

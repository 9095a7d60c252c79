"""A small planning problem, solved: what the reports of fleet plans are tested with."""

from functools import cache

from chipwise.fleet.plan import Alternative, FleetAnswer, Relaxation, Sensitivity, Shadow
from chipwise.fleet.planner import plan
from chipwise.fleet.problem import Block, Limit, Option, Period, Pool, Problem, Run, Service, Supply

MONTHS = tuple(f"{2027 + m // 12}-{m % 12 + 1:02d}" for m in range(12))
PROBLEM = Problem(
    periods=tuple(Period(name, 730.0) for name in MONTHS),
    blocks=(Block("day", 0.4), Block("night", 0.6)),
    pools=(
        Pool("h100@gcp", "h100", "gpu", 8, "us-central1", 2000, 9000, 0.0, 0.4),
        Pool("v5p@gcp", "v5p", "tpu", 4, "us-east5", 600, 2000, 0.0, 0.4),
        Pool("h100@home", "h100", "gpu", 8, "us-iowa", 3000, 11000, 0.08, 0.4),
    ),
    supplies=(
        Supply("h100 on demand", "h100@gcp", "ondemand", 32.0),
        Supply("h100 1 year", "h100@gcp", "year1", 20.0, 12),
        Supply("v5p on demand", "v5p@gcp", "ondemand", 16.8),
        Supply("v5p 3 years", "v5p@gcp", "year3", 8.0, 36),
        Supply(
            "own h100",
            "h100@home",
            "owned",
            capex=330_000.0,
            resale=320_000.0,
            keeps=0.967,
            usd_period=2500.0,
            rack_units=8,
            lead=3,
            limit=12,
        ),
    ),
    runs=(
        Run(
            "llama pre-training",
            2,
            6,
            (Option("h100@gcp", "h100 on demand", 16, 900.0), Option("v5p@gcp", "", 40, 800.0)),
            split=True,
        ),
    ),
    services=(
        Service(
            "chat <b>&",
            tuple((60.0 * 1.07**m, 25.0 * 1.07**m) for m in range(12)),
            (("h100@gcp", 8.0), ("v5p@gcp", 3.4), ("h100@home", 8.0)),
            0.1,
            1,
        ),
    ),
    limits=(Limit("quota of v5p", "units", 40, ("v5p on demand", "v5p 3 years")),),
)


@cache
def fleet_answer() -> FleetAnswer:
    """The problem's plan with everything that a report shows beside it."""
    best = plan(PROBLEM)
    assert best is not None
    gpu, tpu = plan(PROBLEM.only(("gpu",))), plan(PROBLEM.only(("tpu",)))
    more, dearer = plan(PROBLEM.scaled(demand=1.2)), plan(PROBLEM.scaled(price=1.2))
    return FleetAnswer(
        best,
        (
            Alternative("GPU only", gpu),
            Alternative("TPU only", tpu, "" if tpu else "quota of v5p"),
            Alternative("mixed", best),
        ),
        (Shadow("quota of v5p", None, 4, "units", 12_345.0, True, "4 more units of v5p would save $12,345."),),
        (
            Sensitivity("demand +20 %", more, "" if more else "infeasible", "more owned h100"),
            Sensitivity("price +20 %", dearer, "", ""),
        ),
        (),
        (("chat <b>&", "v100", "no bf16"),),
        ("prices: list prices of the catalog", "headroom: one unit"),
    )


def infeasible() -> FleetAnswer:
    """An answer without a plan."""
    return FleetAnswer(None, relax=(Relaxation("quota of v5p", 12.0, "units", "Raise the quota of v5p by 12 units."),))

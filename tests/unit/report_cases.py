"""Reports that several tests read: of a training run, a service and a fleet, made once."""

from datetime import date
from functools import cache

from report_fleet import fleet_answer

from chipwise.catalog.calibration import load_calibration
from chipwise.catalog.economics import DEFAULT_SITE, site
from chipwise.compare import Candidate, compare
from chipwise.cost import CostAssumptions, state_cost
from chipwise.knowledge import Knowledge
from chipwise.report.comparison import comparison_report
from chipwise.report.fleet import fleet_report
from chipwise.workload import load_serving, load_workload

DAY = date(2026, 11, 15)
HOSTILE = '<script>alert("x")</script> & $a$ </title></style>'


def candidates(names):
    return [Candidate.read(name) for name in names.split(",")]


def assumptions():
    return CostAssumptions(site(DEFAULT_SITE), Knowledge(today=DAY), draws=500)


@cache
def trained():
    """A comparison on a training run."""
    work = load_workload(overrides={"model": "llama-3.1-8b", "steps": 1000, "global_batch": 256, "sequence": 4096})
    return compare(
        work, candidates("h100,h200,v5p,mi300x,v7x,v100"), Knowledge(load_calibration(bench=False), today=DAY)
    )


@cache
def bills():
    """The bills of the pick and of the next."""
    found = trained()
    return tuple(
        state_cost(row, assumptions()) for row in (found.pick, next(r for r in found.rows if r is not found.pick))
    )


@cache
def training():
    return comparison_report(trained(), bills())


@cache
def served():
    """A comparison on a model that is served."""
    work = load_serving(
        overrides={
            "model": "llama-3.1-8b",
            "serve.input": 500,
            "serve.output": 100,
            "serve.arrival.rate": 5,
            "serve.slo.ttft": "2s",
        }
    )
    return compare(work, candidates("h100,v6e"), Knowledge(load_calibration(bench=False), today=DAY))


@cache
def service():
    return comparison_report(served(), (state_cost(served().pick, assumptions()),))


@cache
def fleet():
    return fleet_report(HOSTILE, fleet_answer(), Knowledge(today=DAY))


REPORTS = {"training": training, "service": service, "fleet": fleet}

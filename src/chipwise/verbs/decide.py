"""Verbs that decide: predict, layouts, compare, cost, plan_fleet, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.verbs import defaults
from chipwise.verbs.arguments import any_workload, knowledge_of, seconds_of, training_workload

if TYPE_CHECKING:
    from chipwise.compare import AnyComparison
    from chipwise.compare.edge import EdgeComparison
    from chipwise.compare.training.predict import PricedPrediction
    from chipwise.compiled.evidence import Stage
    from chipwise.cost import Costs
    from chipwise.fleet.planned import PlannedFleet
    from chipwise.knowledge import Knowledge
    from chipwise.layout.view import LayoutSearch
    from chipwise.observe.advice.view import PoolAdvice
    from chipwise.observe.demand.view import ObservedDemand
    from chipwise.report.parts import Report
    from chipwise.verbs.arguments import Progress, WorkloadLike


def predict(
    workload: WorkloadLike,
    on: str,
    *,
    layout: str | None = None,
    headroom: str | float | None = None,
    evidence: str = defaults.EVIDENCE,
    knowledge: Knowledge | None = None,
    stage: Stage | None = None,
) -> PricedPrediction:
    """Predict a training run on one set of chips: step, MFU, memory, time, energy and cost, with 90 % intervals.

    The best `layout` is searched where none is named; it leaves `headroom` percent (default: 5) of each chip's memory
    free. `evidence` is ``modelled``, ``compiled`` by the vendor's
    compiler, or ``auto``: compiled where that was done before.

    >>> from chipwise import load
    >>> run = predict(load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192), on="h100:64")
    >>> run.step.low <= run.step.value <= run.step.high, run.mfu < 1, run.step.evidence
    (True, True, 'modelled')
    """
    from chipwise.catalog import parse
    from chipwise.compare.training.predict import predict_training

    return predict_training(training_workload(workload), parse(on), layout, evidence, knowledge, stage, headroom)


def layouts(
    workload: WorkloadLike,
    on: str,
    *,
    top: int = defaults.LAYOUTS,
    headroom: str | float | None = None,
    knowledge: Knowledge | None = None,
) -> LayoutSearch:
    """Search every way to split a training run over chips that the model and its stack allow.

    The best is the simplest within 1 % of the fastest that leaves `headroom` percent (default: 5) of each chip's memory
    free.

    >>> from chipwise import load
    >>> search = layouts(load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192), on="v5p:64")
    >>> search.best.seconds <= 1.01 * search.result.front[0].seconds
    True
    """
    from chipwise.catalog import parse
    from chipwise.layout import search
    from chipwise.layout.headroom import read_headroom
    from chipwise.layout.view import LayoutSearch
    from chipwise.predict.setup import named_stack

    work, acc = training_workload(workload), parse(on)
    share, calibration = read_headroom(headroom), knowledge_of(knowledge).calibration
    return LayoutSearch(work, acc, search(work, acc, calibration, named_stack(work), top, share), share)


def compare(
    workload: WorkloadLike,
    on: str | Sequence[str] | None = None,
    *,
    chips: str | int | None = None,
    deadline: str | float | None = None,
    budget: str | float | None = None,
    by: str | None = None,
    headroom: str | float | None = None,
    disaggregate: str | None = None,
    evidence: str = defaults.EVIDENCE,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
    front: bool = False,
) -> AnyComparison:
    """Compare chips on a workload of either kind, and say what to pick, why, and what would flip it.

    `on` names chips with or without counts (default: the whole catalog); `chips`, a `deadline` and a `budget` limit
    how many are taken, together if several are given; `by` ranks by ``cost`` (default), ``time`` or ``energy``. Layouts
    of a training run leave `headroom` percent (default: 5) of each chip's memory free; with `front` the answer has cost
    against time over the counts of the best three chips. Of a service, ``disaggregate="2:6"`` gives two replicas to
    prompts for six that decode, ``"auto"`` the best number where that is better than none.

    >>> from chipwise import load
    >>> job = load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    >>> comparison = compare(job, on="h100,v5p", deadline="30d")
    >>> comparison.pick is comparison.rows[0], len(comparison.to_dict()["rows"])
    (True, 2)
    """
    from chipwise.compare import Terms, TrainingComparison, candidates
    from chipwise.compare import compare as run
    from chipwise.compiled.evidence import better_evidence, known_evidence
    from chipwise.errors import InputError
    from chipwise.workload.model import Workload

    known_evidence(evidence)
    known = knowledge_of(knowledge)
    change = better_evidence(evidence, known.calibration)
    terms = Terms.read(by, chips, deadline, budget, headroom, disaggregate, known.economics.rates())
    work = any_workload(workload)
    if front and not isinstance(work, Workload):
        raise InputError("front", work.name, "a training run: a service is sized by its SLO")
    comparison = run(work, candidates(on), known, terms, progress, change)
    return comparison.with_front() if front and isinstance(comparison, TrainingComparison) else comparison


def compare_edge(
    model: str,
    on: str | Sequence[str] | None = None,
    *,
    power: str | float | None = None,
    scenario: str | None = None,
    by: str | None = None,
    precision: str | None = None,
) -> EdgeComparison:
    """Compare edge devices on a model by its MLPerf name, each in its best power mode within `power` watts.

    `scenario` is ``single`` (latency of a stream; default), ``multi`` (8 samples a query) or ``offline``; `by` ranks by
    ``latency`` (default), ``energy`` or ``price``; `precision` is the model's own unless named.

    >>> comparison = compare_edge("resnet50", power="15W", by="energy")
    >>> all(row.mode.watts <= 15 for row in comparison.rows), comparison.pick is comparison.rows[0]
    (True, True)
    """
    from chipwise.catalog.edge_calibration import load_edge_calibration
    from chipwise.compare.edge import EdgeTerms, compare_devices

    terms = EdgeTerms.read(by, scenario, power, precision)
    return compare_devices(model, on, terms, load_edge_calibration())


def cost(
    workload: WorkloadLike,
    on: str | Sequence[str],
    *,
    chips: str | int | None = None,
    deadline: str | float | None = None,
    budget: str | float | None = None,
    headroom: str | float | None = None,
    pricing: str | None = None,
    offer: str | None = None,
    cloud: str | Sequence[str] | None = None,
    region: str | Sequence[str] | None = None,
    utilization: float | str | None = None,
    years: float = defaults.YEARS,
    site: str | None = None,
    energy_price: float | str | None = None,
    pue: float | None = None,
    grid: float | None = None,
    framework: str | None = None,
    custom_kernels: Sequence[str | int] | None = None,
    now_on: str | None = None,
    check: str | Path | None = None,
    runs: float = defaults.RUNS,
    epochs: float | None = None,
    draws: int = defaults.DRAWS,
    evidence: str = defaults.EVIDENCE,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> Costs:
    """Estimate what a workload of either kind costs under each pricing model, with the p10–p90 range of each.

    `on`, `chips`, `deadline`, `budget` and `headroom` are those of `compare`. `pricing` names pricing models
    (``"spot,3y"``),
    `offer`, `cloud` and `region` whose prices count; `utilization` is the share of committed or owned hours that is
    used, `years` how long servers are owned, `site` where they stand, with its `energy_price` (USD/kWh, or
    ``"0.14EUR"``), its `pue` and the grams of CO2 a kWh of its `grid`.
    `framework`, `custom_kernels`, `now_on` and `check` describe the program whose migration effort `runs` share.

    >>> from chipwise import load
    >>> job = load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    >>> costs = cost(job, on="h100:64", pricing="ondemand,spot", draws=100)
    >>> [option.pricing for option in costs.statements[0].options], costs.basis
    (['on demand', 'spot'], 'run')
    """
    from dataclasses import replace

    from chipwise.catalog.economics import own_site
    from chipwise.compare import Terms, candidates
    from chipwise.compiled.evidence import better_evidence, known_evidence
    from chipwise.cost import CostAssumptions, Program, chosen, cost_of, read_pricing, read_utilization

    known_evidence(evidence)
    known = knowledge_of(knowledge)
    known = replace(known, prices=chosen(known.prices, cloud, region, offer))
    assumptions = CostAssumptions(
        own_site(site, energy_price, pue, grid, known.economics),
        known,
        years,
        read_utilization(known.economics, utilization),
        Program.read(framework, custom_kernels, now_on, check),
        runs,
        epochs,
        draws,
        read_pricing(pricing),
    )
    terms = Terms.read("cost", chips, deadline, budget, headroom, rates=known.economics.rates())
    change = better_evidence(evidence, known.calibration)
    return cost_of(any_workload(workload), candidates(on) or [], assumptions, terms, progress, change)


def plan_fleet(
    demand: str | Path | Mapping[str, Any] | ObservedDemand,
    *,
    gap: float = defaults.GAP,
    time_limit: str | float = defaults.TIME_LIMIT,
    cautious: bool = False,
    sensitivity: bool = True,
    knowledge: Knowledge | None = None,
    progress: Callable[[str], None] | None = None,
) -> PlannedFleet:
    """Plan the cheapest mix of chips over time that meets a demand, with how good it is proved to be.

    `demand` is a demand file, what one holds, or the answer of `observe_demand`. The solver stops once no plan can be
    cheaper by more than `gap`, and takes at most `time_limit` for each plan; `cautious` plans by the bad end of every
    prediction's interval; `sensitivity` solves again with demand and prices up and down.

    >>> train = {"model": "llama-3.1-8b", "train": {"steps": 100, "global_batch": 256, "sequence": 4096}}
    >>> fleet = plan_fleet(
    ...     {
    ...         "start": "2027-01",
    ...         "months": 1,
    ...         "workloads": [{"name": "run", "workload": train, "train": {"chips": [16]}}],
    ...         "candidates": [{"chip": "v5e", "clouds": ["gcp"], "terms": ["ondemand"]}],
    ...     },
    ...     sensitivity=False,
    ... )
    >>> fleet.plan.gap <= 0.01, fleet.plan.usd > 0
    (True, True)
    """
    from chipwise.fleet.demand import demand_of, read_demand
    from chipwise.fleet.planned import PlanOptions, plan_demand

    known = knowledge_of(knowledge)
    options = PlanOptions(gap, seconds_of(time_limit, "time_limit"), cautious, sensitivity)
    if isinstance(demand, str | Path):
        return plan_demand(read_demand(demand, known.today), known, options, progress)
    contents = demand if isinstance(demand, Mapping) else demand.contents()
    return plan_demand(demand_of(contents, today=known.today), known, options, progress)


def report(
    workload: WorkloadLike,
    on: str | Sequence[str] | None = None,
    *,
    chips: str | int | None = None,
    deadline: str | float | None = None,
    budget: str | float | None = None,
    by: str | None = None,
    headroom: str | float | None = None,
    utilization: float | str | None = None,
    years: float | None = None,
    site: str | None = None,
    framework: str | None = None,
    time_limit: str | float | None = None,
    advice: PoolAdvice | None = None,
    evidence: str = defaults.EVIDENCE,
    knowledge: Knowledge | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Report on a workload of either kind, or on a demand file: the decision on one page, then all it rests on.

    ``.write("report.html")`` makes one HTML file that needs nothing else, ``.write("report.pdf")`` a PDF. Options are
    those of `compare` and `cost`; a demand file takes `time_limit`, and the `advice` that `observe_advice` gave, alone.

    >>> from chipwise import load
    >>> job = load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    >>> decision = report(job, on="h100:64,v5p:64")
    >>> decision.decision.headline.startswith("Pick"), len(decision.sections)
    (True, 7)
    """
    from chipwise.catalog.economics import own_site
    from chipwise.compare import Terms, candidates
    from chipwise.compiled.evidence import known_evidence
    from chipwise.cost import CostAssumptions, Program, read_utilization
    from chipwise.errors import InputError
    from chipwise.fleet.demand import is_demand, read_demand
    from chipwise.fleet.planned import PlanOptions
    from chipwise.report.build import refuse_beside_demand, report_demand, report_workload

    known_evidence(evidence)
    known = knowledge_of(knowledge)
    if isinstance(workload, str | Path) and is_demand(workload):
        compared = {"on": on, "chips": chips, "deadline": deadline, "budget": budget, "by": by, "headroom": headroom}
        billed = {"utilization": utilization, "years": years, "site": site, "framework": framework}
        refuse_beside_demand({**compared, **billed, "evidence": None if evidence == defaults.EVIDENCE else evidence})
        options = PlanOptions(time_limit=seconds_of(time_limit or defaults.TIME_LIMIT, "time_limit"))
        return report_demand(read_demand(workload, known.today), known, options, progress, advice)
    if time_limit is not None:
        raise InputError("time_limit", time_limit, "a demand file: nothing is solved for a workload")
    if advice is not None:
        raise InputError("advice", advice.ledger, "a demand file: a workload has no pools")
    used = read_utilization(known.economics, utilization)
    program = Program.read(framework)
    assumptions = CostAssumptions(
        own_site(site, know=known.economics), known, defaults.YEARS if years is None else years, used, program
    )
    terms = Terms.read(by, chips, deadline, budget, headroom, rates=known.economics.rates())
    return report_workload(any_workload(workload), candidates(on), terms, assumptions, evidence, progress)

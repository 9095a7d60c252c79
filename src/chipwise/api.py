"""The library: one function a verb. The command line, a notebook and a program call the same ones.

Arguments are as people write them: chips ``"h100:64"``, times ``"30d"``, money ``"2M"``, counts ``"1T"``. Every
function returns a frozen result with ``to_dict()`` (the JSON of the command), ``to_pandas()``, a table as text when
printed, and one as HTML in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from chipwise.route.names import DEFAULT_POLICY

if TYPE_CHECKING:
    from chipwise.bench.diff import BenchDiff
    from chipwise.bench.file import BenchFile
    from chipwise.bench.roofline import Roofline
    from chipwise.bench.run import BenchRun
    from chipwise.bench.session import BenchPlan, Event
    from chipwise.catalog import Accelerators
    from chipwise.compare import AnyComparison
    from chipwise.compare.training.predict import PricedPrediction
    from chipwise.compiled.check.check import CheckReport
    from chipwise.compiled.check.check import Progress as CheckProgress
    from chipwise.compiled.check.request import Pairs
    from chipwise.compiled.evidence import Stage
    from chipwise.knowledge import Knowledge
    from chipwise.layout.view import LayoutSearch
    from chipwise.numerics.study import Study
    from chipwise.prices.chip_view import ChipList, ChipSheet
    from chipwise.prices.view import PriceList
    from chipwise.route.simulate.run import Watcher as SimulationProgress
    from chipwise.route.simulate.view import Simulation
    from chipwise.route.submit import Submission
    from chipwise.serving.results import ServingCapacity, ServingSimulation
    from chipwise.serving.service import ServingTarget
    from chipwise.validate import Validation
    from chipwise.workload import Workload
    from chipwise.workload.preset_view import ModelList
    from chipwise.workload.serve import ServingWorkload

    AnyWorkload = Workload | ServingWorkload
    WorkloadLike = str | Path | Workload | ServingWorkload

Progress = Callable[[int, int, str], None]


def load(workload: str | Path, **changes: Any) -> AnyWorkload:
    """Load a workload of either kind: a file, a known model's name, or a Hugging Face ``config.json``.

    `changes` are those of the command line's flags: what is trained (``tokens``, ``batch``, ``sequence``...) or served
    (``input_len``, ``output_len``, ``rate``, ``ttft``...).

    >>> load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192).train.steps
    119210
    >>> load("llama-3.1-8b", input_len=1000, output_len=200, rate=10, ttft="500ms").serve.arrival.rate
    10.0
    """
    from chipwise.errors import UnknownName
    from chipwise.workload.read import FLAGS, SERVING, read_any

    known = {"model", *FLAGS, *SERVING}
    for name in changes:
        if name not in known:
            raise UnknownName("workload", name, known)
    return read_any(str(workload), {name: None if value is None else str(value) for name, value in changes.items()})


def predict(
    workload: WorkloadLike,
    on: str,
    *,
    layout: str | None = None,
    evidence: str = "modelled",
    knowledge: Knowledge | None = None,
    stage: Stage | None = None,
) -> PricedPrediction:
    """Predict a training run on one set of chips: step, MFU, memory, time, energy and cost, with 90 % intervals.

    The best `layout` is searched where none is named. `evidence` is ``modelled``, ``compiled`` by the vendor's
    compiler, or ``auto``: compiled where that was done before.

    >>> run = predict(load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192), on="h100:64")
    >>> run.step.low <= run.step.value <= run.step.high, run.mfu < 1, run.step.evidence
    (True, True, 'modelled')
    """
    from chipwise.catalog import parse
    from chipwise.compare.training.predict import predict_training

    return predict_training(_training(workload), parse(on), layout, evidence, knowledge, stage)


def layouts(workload: WorkloadLike, on: str, *, top: int = 10, knowledge: Knowledge | None = None) -> LayoutSearch:
    """Search every legal way to split a training run over chips.

    >>> search = layouts(load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192), on="v5p:64")
    >>> search.best.seconds <= search.result.top[-1].seconds
    True
    """
    from chipwise.catalog import parse
    from chipwise.layout import search
    from chipwise.layout.view import LayoutSearch
    from chipwise.predict.setup import named_stack

    work, acc = _training(workload), parse(on)
    return LayoutSearch(work, acc, search(work, acc, _known(knowledge).calibration, named_stack(work), top))


def compare(
    workload: WorkloadLike,
    on: str | Sequence[str] | None = None,
    *,
    chips: str | int | None = None,
    deadline: str | float | None = None,
    budget: str | float | None = None,
    by: str | None = None,
    evidence: str = "modelled",
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> AnyComparison:
    """Compare chips on a workload of either kind, and say what to pick, why, and what would flip it.

    `on` names chips with or without counts (default: the whole catalog); at most one of `chips`, a `deadline` and a
    `budget` says how many are taken; `by` ranks by ``cost`` (default), ``time`` or ``energy``.

    >>> job = load("llama-3.1-8b", tokens="1T", batch=1024, sequence=8192)
    >>> comparison = compare(job, on="h100,v5p", deadline="30d")
    >>> comparison.pick is comparison.rows[0], len(comparison.to_dict()["rows"])
    (True, 2)
    """
    from chipwise.compare import Terms, candidates
    from chipwise.compare import compare as run
    from chipwise.compiled.evidence import better_evidence, known_evidence

    known_evidence(evidence)
    known = _known(knowledge)
    change = better_evidence(evidence, known.calibration)
    terms = Terms.read(by, chips, deadline, budget)
    return run(_workload(workload), candidates(on), known, terms, progress, change)


def serve(
    workload: WorkloadLike,
    on: str,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    replicas: int | None = None,
    disaggregate: str | None = None,
    router: str = "least_loaded",
    max_batch: int | None = None,
    chunk: int | None = None,
    requests: int | None = None,
    curve: bool = False,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> ServingSimulation:
    """Simulate a served model at its load: TTFT, TPOT, ITL and end to end by percentile, and whether the SLO is met.

    `on` has all chips; `tp`, `pp`, `dp` and `ep` split a replica (default: the split with the largest load), as many
    `replicas` as fit, or ``disaggregate="2:6"`` for prefill and decode. `router` is ``round_robin``, ``least_loaded``
    or ``prefix``; `max_batch` sequences and a `chunk` of tokens are an iteration's limits (default: the stack's own).
    So many `requests` are simulated (default: 10,000; all of a trace or an offline job). `curve` adds latency at other
    loads, for `plot`.

    >>> chat = load("llama-3.1-8b", input_len=1000, output_len=200, rate=2, ttft="500ms")
    >>> simulation = serve(chat, on="h100:1", tp=1, requests=500)
    >>> simulation.slo_met, simulation.ttft.p50.value < simulation.ttft.p99.value < simulation.e2e.p99.value
    (True, True)
    """
    from chipwise.serving.results import simulate_service
    from chipwise.serving.sizing import ServiceRequest, read_pools
    from chipwise.serving.split import named_split

    pools = None if disaggregate is None else read_pools(disaggregate)
    request = ServiceRequest(named_split(tp, pp, dp, ep), replicas, pools, router, max_batch, chunk)
    known = _known(knowledge)
    acc, target = _target(workload, on, known)
    return simulate_service(target, acc, request, requests, known.seed, curve, progress)


def capacity(
    workload: WorkloadLike,
    on: str,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> ServingCapacity:
    """Find the largest load that chips carry within an SLO, over every split of the replicas and their settings.

    `tp`, `pp`, `dp` and `ep` try one split alone. The rate of the workload is not the load tried: it says how many
    chips it takes (`needed_chips`).

    >>> chat = load("llama-3.1-8b", input_len=1000, output_len=200, rate=20, ttft="500ms", tpot="30ms")
    >>> largest = capacity(chat, on="h100:2", tp=1)
    >>> largest.load.low <= largest.load.value <= largest.load.high, str(largest.best.service)
    (True, '2 replicas of tp=1')
    """
    from chipwise.serving.results import find_capacity
    from chipwise.serving.split import named_split

    known = _known(knowledge)
    acc, target = _target(workload, on, known)
    return find_capacity(target, acc, named_split(tp, pp, dp, ep), known.seed, progress)


@overload
def chips(name: None = None, *, knowledge: Knowledge | None = None) -> ChipList: ...


@overload
def chips(name: str, *, knowledge: Knowledge | None = None) -> ChipSheet: ...


def chips(name: str | None = None, *, knowledge: Knowledge | None = None) -> ChipList | ChipSheet:
    """List the chips known with their prices, or show everything about one, in any spelling of its name.

    >>> chips("NVIDIA H100 80GB HBM3").chip.id
    'h100'
    >>> chips("v5e").chip.figures["memory_bytes"].value / 2**30, chips("v5e").chip.figures["memory_bytes"].unit
    (16.0, 'bytes')
    >>> {"h100", "mi300x", "v5p"} <= {chip.id for chip in chips().chips}
    True
    """
    from chipwise.catalog import find_chip
    from chipwise.catalog import load as catalog
    from chipwise.prices.chip_view import ChipList, ChipSheet, priced

    known = _known(knowledge)
    if name is None:
        return ChipList(priced(catalog().chips.values(), known.prices, known.today), known.prices)
    return ChipSheet(priced([find_chip(name)], known.prices, known.today), known.prices)


def models(name: str | None = None) -> ModelList:
    """List the models known by name; with `name`, those that have it in one of their names.

    >>> models("mixtral").names
    ('mixtral-8x22b', 'mixtral-8x7b')
    """
    from chipwise.workload.preset_view import list_models

    return list_models(name)


def prices(
    on: str | Sequence[str] | None = None,
    *,
    cloud: str | Sequence[str] | None = None,
    region: str | Sequence[str] | None = None,
    terms: str | None = None,
    every: bool = False,
    knowledge: Knowledge | None = None,
) -> PriceList:
    """List offers per chip-hour, cheapest first: on demand, spot, committed for one and three years.

    `on` names chips (default: all, the cheapest of each cloud unless `every` offer is wanted); `cloud` and `region`
    narrow the list, and so do `terms` (``ondemand``, ``spot``, ``1y`` or ``3y``), which also rank it.

    >>> offers = prices("v5e", cloud="gcp", terms="spot")
    >>> offers.lines[0].spot.date, {line.cloud for line in offers.lines}
    ('2026-08-21', {'gcp'})
    """
    from chipwise.prices.view import PriceFilter, list_prices

    known = _known(knowledge)
    return list_prices(known.prices, known.today, PriceFilter(on, cloud, region, terms, every))


def check(
    program: str | Path | Workload,
    on: str | Sequence[str],
    *,
    options: Pairs = None,
    axes: str | Mapping[str, int] | None = None,
    choices: Pairs = None,
    sizes: Pairs = None,
    torch: bool | None = None,
    layout: str | None = None,
    mode: str = "train",
    tune: int = 0,
    limit_seconds: str | float | None = None,
    limit_memory: str | float | None = None,
    dump: Path | None = None,
    cached: bool = True,
    knowledge: Knowledge | None = None,
    progress: CheckProgress | None = None,
    **changes: Any,
) -> CheckReport:
    """Compile a program for chips you don't have: does it compile, does it fit, how long does it take.

    `program` is ``package.module:function``, ``file.py:function``, an exported file, or a workload with its `layout`
    (default: the best), `mode` (train, prefill or decode) and `changes`. `axes` replace the mesh, `choices` are
    keywords of the function, `sizes` those that an exported file leaves open, `options` the compiler's own; `tune` is
    how many compiles a search for faster ones may take. A compile is stopped after `limit_seconds` or at
    `limit_memory` GiB. `dump` is a folder for the optimized modules. `knowledge` is the published calibration by
    default. The command leaves with 1 where a target is not ``ok``.

    >>> report = check("llama-3.1-8b", on="h100:1", batch=8, sequence=8192)
    >>> report.ok, report.rows[0].outcome.stage
    (False, 'memory')
    """
    from chipwise.catalog.calibration import load_calibration
    from chipwise.compiled.check.request import ProgramOptions, read_request
    from chipwise.compiled.check.run import CheckSettings, read_limits, run_check

    how = ProgramOptions(options, axes, choices, sizes, torch, layout, mode, changes)
    request = read_request(program, on, how, knowledge.calibration if knowledge else load_calibration(bench=False))
    return run_check(request, CheckSettings(read_limits(limit_seconds, limit_memory), tune, dump, cached), progress)


def bench_plan(
    suite: str = "all",
    *,
    device: str = "auto",
    frameworks: str | None = None,
    size: str | None = None,
    quick: bool = False,
    seconds: str | float | None = None,
    hostname: bool = False,
) -> BenchPlan:
    """Open this machine's device through each framework, and list what `bench` would measure on it.

    `suite` is kernels, train, serve, vision, collectives or all; `device` auto, cuda, tpu, rocm or cpu; `frameworks`
    ``"torch,jax"`` (default: those installed); `size` tiny, quick (also by `quick`) or full. No point is begun after
    `seconds`. `hostname` records the machine's name.

    >>> bench_plan("kernels", size="huge")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: --suite-size: 'huge' is not accepted; expected one of tiny, quick, full
    """
    from chipwise.bench.run import read_request
    from chipwise.bench.session import plan

    return plan(read_request(suite, device, frameworks, size, quick, seconds, hostname))


def bench(
    suite: str | BenchPlan = "all",
    *,
    out: str | Path | None = None,
    progress: Callable[[Event], None] | None = None,
    **options: Any,
) -> BenchRun:
    """Measure this machine: a suite with the `options` of `bench_plan`, or a plan made by it; kept in the file `out`.

    >>> bench(suite="games")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: suite: 'games' is not accepted; expected one of all, kernels, train, serve, vision, \
collectives
    """
    from chipwise.bench.run import measure

    plan = bench_plan(suite, **options) if isinstance(suite, str) else suite
    return measure(plan, None if out is None else Path(out), progress)


def bench_show(file: str | Path, *, framework: str | None = None) -> BenchFile:
    """Read a bench file: times, rates, their share of the chip's peak; of one `framework` where it is named.

    >>> card = bench_show("examples/bench/h200-1.json.gz", framework="jax")
    >>> card.chip, {point.framework for point in card.points}
    ('h200', {'jax'})
    """
    from chipwise.bench.file import read

    measured = read(Path(file))
    return measured if framework is None else measured.of_framework(framework)


def bench_diff(before: str | Path, after: str | Path, *, fail_above: float | None = None) -> BenchDiff:
    """Compare two bench files point by point: Mann-Whitney U tests, held to 5 % false alarms by Benjamini-Hochberg.

    With `fail_above`, ``failures`` are the points significantly slower by more than so many percent.

    >>> changes = bench_diff("examples/bench/h200-1.json.gz", "examples/bench/h200-1.json.gz", fail_above=5)
    >>> {change.verdict for change in changes.changes}, changes.failures
    ({'same'}, ())
    """
    from chipwise.bench.diff import diff
    from chipwise.bench.file import read

    return diff(read(Path(before)), read(Path(after)), fail_above)


def bench_roofline(file: str | Path, *, plot: str | Path | None = None) -> Roofline:
    """The ceilings that a bench file measured, beside the catalog's; drawn to `plot`, an .svg or a .png.

    >>> card = bench_roofline("examples/bench/h200-1.json.gz")
    >>> card.measured["bf16"] < card.stated["bf16"]
    True
    """
    from chipwise.bench.file import read
    from chipwise.bench.roofline import draw, roofline

    ceilings = roofline(read(Path(file)))
    if plot is not None:
        draw(ceilings, Path(plot))
    return ceilings


def numerics(
    program: str,
    *,
    precisions: str = "fp32,bf16,fp16,fp8",
    seeds: int | None = None,
    steps: int | None = None,
    framework: str | None = None,
    quick: bool = False,
    loss_scale: float = 1024.0,
    margin: float = 0.02,
    emulate: bool = False,
    plot: str | Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Train a program in each precision over the same seeds, and say which are safe.

    `program` is ``char-transformer``, ``digits-cnn`` or a Python file of JAX or PyTorch. Final losses and curves are
    compared by paired tests; `margin` is how much more final loss still counts as the same. Low precision is emulated
    by rounding where the hardware lacks it, or where `emulate` says so. Curves are drawn to `plot`, an .svg or a .png.

    >>> numerics("char-transformer", seeds=1)
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: --seeds: '1' is not accepted; expected a whole number from 2 to 1000: a test needs pairs
    """
    from chipwise.numerics.plot import draw
    from chipwise.numerics.programs import load
    from chipwise.numerics.recipes import chosen
    from chipwise.numerics.study import StudySettings, study
    from chipwise.present import plots

    recipes = chosen(precisions)
    settings = StudySettings.read(seeds, steps, quick, static=loss_scale, share=margin, emulate=emulate)
    if plot is not None:
        plots.ready(Path(plot))
    result = study(load(program, framework), recipes, settings, progress or (lambda done, total, what: None))
    if plot is not None:
        draw(result, Path(plot))
    return result


def simulate(
    trace: str | Path,
    pools: str | Path | None = None,
    *,
    policy: str | Sequence[str] = DEFAULT_POLICY,
    seed: int | None = None,
    failures: float = 0.0,
    repair: str | float = "4h",
    speed: Mapping[str, float] | Sequence[str] | None = None,
    tick: str | float = "5min",
    weights: Mapping[str, float] | Sequence[str] | None = None,
    plot: str | Path | None = None,
    knowledge: Knowledge | None = None,
    progress: SimulationProgress | None = None,
) -> Simulation:
    """Try scheduling policies on a trace of jobs: completion times, cost, energy, deadlines, fairness, use of pools.

    `trace` is a file of jobs with their arrivals, of recorded jobs, or a folder in Gavel's form, which has its own
    pools; `policy` is ``"fastest,cheapest"``, or ``"all"``. A `seed` draws run times and spot interruptions; nodes fail
    at so many `failures` an hour each, and are back after `repair`. `speed` is that of recorded jobs on a chip,
    ``{"h100": 2.5}``; the policy is asked every `tick` at least; `weights` are those of ``balanced``. Who held which
    chips when is drawn to `plot`, an .svg or a .png.

    >>> replay = simulate("examples/traces/gavel-seed0", policy="fastest,cheapest")
    >>> fastest, cheapest = replay.measures
    >>> fastest.completed == cheapest.completed == replay.jobs, fastest.cost_usd > cheapest.cost_usd
    (True, True)
    """
    from chipwise.route.policies import check_weights, policy_list
    from chipwise.route.simulate import plots
    from chipwise.route.simulate.run import SimulationOptions, open_trace
    from chipwise.route.simulate.run import simulate as run

    names = policy_list(policy if isinstance(policy, str) else ",".join(policy))
    options = SimulationOptions.read(seed, failures, repair, tick, weights)
    check_weights(names, options.weights)
    if plot is not None:
        plots.ready(Path(plot), len(names))
    simulation = run(open_trace(Path(trace), pools, speed, knowledge, progress), names, options, progress)
    if plot is not None:
        simulation.plot(plot)
    return simulation


def submit(
    jobs: str | Path | Sequence[str | Path],
    pools: str | Path,
    *,
    ledger: str | Path = "",
    policy: str | None = None,
    compile: bool = False,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> Submission:
    """Write the jobs of job files to a ledger, all or none, and say what each would take where.

    `ledger` is a file or ``postgresql://...`` (default: your own file); `policy` is the one whose first choice is told
    (default: that of the router on the ledger). `compile` compiles programs that were not checked yet, for every pool.
    A job that can run in no pool is a `Refusal`, and nothing is written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     submission = submit("examples/jobs/hello.yaml", "examples/pools/local.yaml", ledger=f"{folder}/ledger.db")
    >>> [(job.row.state, job.first_pool) for job in submission.jobs]
    [('pending', 'cpu')]
    """
    import time

    from chipwise.route.load import read_pools
    from chipwise.route.submit import read_jobs
    from chipwise.route.submit import submit as run

    now = time.time()
    files = [jobs] if isinstance(jobs, str | Path) else jobs
    read = read_jobs([Path(file) for file in files], now)
    where = read_pools(pools, knowledge)
    return run(read, where, str(ledger), policy=policy, compile=compile, now=now, progress=progress)


def validate(
    rows: str | Path | Sequence[str | Path] | None = None,
    *,
    on: str | None = None,
    evidence: str = "modelled",
    ids: Sequence[str] | None = None,
    recompile: bool = False,
    compile_missing: bool | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Score predictions against published results: error, bias, and how often the 90 % intervals held.

    `rows` are files (default: those shipped); flat rows of measurements need the chip they are `on`. `ids` names the
    only rows to score. With `evidence` ``compiled``, TPU training rows are scored by the schedules that XLA made of
    them: kept ones, or compiled here where `compile_missing` (default: where rows are named) or `recompile` say so.
    A row in the calibration is predicted by the refit that left it out.

    >>> scores = validate("examples/bench/h200-held-out.csv", on="h200")
    >>> scores.summary["predicted"] == scores.summary["eligible"] == len(scores.rows)
    True
    """
    from chipwise.validate import validate as run

    files = [rows] if isinstance(rows, str | Path) else rows or ()
    return run([Path(file) for file in files], on, evidence, ids or (), recompile, compile_missing, progress)


def _known(knowledge: Knowledge | None) -> Knowledge:
    from chipwise.knowledge import Knowledge

    return knowledge or Knowledge.default()


def _workload(workload: WorkloadLike) -> AnyWorkload:
    return load(workload) if isinstance(workload, str | Path) else workload


def _training(workload: WorkloadLike) -> Workload:
    from chipwise.errors import InputError
    from chipwise.workload import Workload

    work = _workload(workload)
    if not isinstance(work, Workload):
        raise InputError("workload", work.name, "a workload that is trained; `serve` and `capacity` take served ones")
    return work


def _serving(workload: WorkloadLike) -> ServingWorkload:
    from chipwise.errors import InputError
    from chipwise.workload.serve import ServingWorkload

    work = _workload(workload)
    if not isinstance(work, ServingWorkload):
        raise InputError("workload", work.name, "a workload that is served; `predict` and `layouts` take trained ones")
    return work


def _target(workload: WorkloadLike, on: str, known: Knowledge) -> tuple[Accelerators, ServingTarget]:
    from chipwise.catalog import parse
    from chipwise.serving.service import serving_target

    work, acc = _serving(workload), parse(on)
    return acc, serving_target(work, acc.chip, known.calibration)

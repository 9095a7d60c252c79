"""Verbs that check and measure: check, bench, numerics, validate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.bench.diff import BenchDiff
    from chipwise.bench.file import BenchFile
    from chipwise.bench.roofline import Roofline
    from chipwise.bench.run import BenchRun
    from chipwise.bench.session import BenchPlan, Event
    from chipwise.compiled.check.check import CheckReport
    from chipwise.compiled.check.check import Progress as CheckProgress
    from chipwise.compiled.check.request import Pairs
    from chipwise.knowledge import Knowledge
    from chipwise.numerics.study import Study
    from chipwise.validate import Validation
    from chipwise.verbs.arguments import Progress
    from chipwise.workload import Workload


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
    suite_size: str | None = None,
    quick: bool = False,
    seconds: str | float | None = None,
    hostname: bool = False,
) -> BenchPlan:
    """Open this machine's device through each framework, and list what `bench` would measure on it.

    `suite` is kernels, train, serve, vision, collectives or all; `device` auto, cuda, tpu, rocm or cpu; `frameworks`
    ``"torch,jax"`` (default: those installed); `suite_size` tiny, quick (also by `quick`) or full. No point is
    begun after `seconds`. `hostname` records the machine's name.

    >>> bench_plan("kernels", suite_size="huge")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: suite_size: 'huge' is not accepted; expected one of tiny, quick, full
    """
    from chipwise.bench.run import read_request
    from chipwise.bench.session import plan

    return plan(read_request(suite, device, frameworks, suite_size, quick, seconds, hostname))


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

    >>> changes = bench_diff("examples/bench/cpu.json", "examples/bench/cpu.json", fail_above=5)
    >>> {change.ratio for change in changes.changes}, changes.failures
    ({1.0}, ())
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
    chipwise.errors.InputError: seeds: 1 is not accepted; expected a whole number from 2 to 1000: a test needs pairs
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

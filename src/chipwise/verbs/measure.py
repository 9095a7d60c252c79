"""Verbs that check a program and the predictions: check, numerics, validate; `bench` has its own module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.verbs import defaults

if TYPE_CHECKING:
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
    mode: str = defaults.MODE,
    tune: int = 0,
    limit_seconds: str | float | None = None,
    limit_memory: str | float | None = None,
    dump: Path | None = None,
    cached: bool = True,
    changes: Mapping[str, Any] | None = None,
    knowledge: Knowledge | None = None,
    progress: CheckProgress | None = None,
) -> CheckReport:
    """Compile a program for chips you don't have: does it compile, does it fit, how long does it take.

    `program` is ``package.module:function``, ``file.py:function``, an exported file, or a workload with its `layout`
    (default: the best), `mode` (train, prefill or decode) and the `changes` that `load` takes. `axes` replace the mesh,
    `choices` are keywords of the function, `sizes` those that an exported file leaves open, `options` the compiler's
    own; `tune` is how many compiles a search for faster ones may take. A compile is stopped after `limit_seconds` or at
    `limit_memory` GiB. `dump` is a folder for the optimized modules. `knowledge` is `Knowledge.published()` by default.
    The command leaves with 1 where a target is not ``ok``.

    >>> report = check("llama-3.1-8b", on="h100:1", changes={"batch": 8, "sequence": 8192})
    >>> report.ok, report.rows[0].outcome.stage
    (False, 'memory')
    """
    from chipwise.compiled.check.request import ProgramOptions, read_request
    from chipwise.compiled.check.run import CheckSettings, read_limits, run_check
    from chipwise.knowledge import Knowledge

    how = ProgramOptions(options, axes, choices, sizes, torch, layout, mode, changes or {})
    request = read_request(program, on, how, (knowledge or Knowledge.published()).calibration)
    return run_check(request, CheckSettings(read_limits(limit_seconds, limit_memory), tune, dump, cached), progress)


def numerics(
    program: str,
    *,
    precisions: str = defaults.PRECISIONS,
    seeds: int | None = None,
    steps: int | None = None,
    framework: str | None = None,
    quick: bool = False,
    loss_scale: float = defaults.LOSS_SCALE,
    margin: float = defaults.MARGIN,
    emulate: bool = False,
    plot: str | Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Train a program in each precision over the same seeds, and say which are safe.

    `program` is ``char-transformer``, ``digits-cnn`` or a Python file of JAX or PyTorch. Final losses and curves are
    compared by paired tests; `margin` is how much more final loss still counts as the same. Low precision is emulated
    by rounding where the hardware lacks it, or where `emulate` says so. Curves are drawn to `plot`, an .svg or a .png.

    >>> study = numerics("digits-cnn", precisions="bf16", seeds=2, steps=10, framework="torch")
    >>> study.seeds, study.steps, [verdict.precision for verdict in study.verdicts]
    (2, 10, ['bf16'])
    >>> numerics("digits-cnn", seeds=1)
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
    evidence: str = defaults.EVIDENCE,
    ids: Sequence[str] | None = None,
    recompile: bool = False,
    compile_missing: bool | None = None,
    knowledge: Knowledge | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Score predictions against published results: error, bias, and how often the 90 % intervals held.

    `rows` are files (default: those shipped); flat rows of measurements need the chip they are `on`. `ids` names the
    only rows to score. With `evidence` ``compiled``, TPU training rows are scored by the schedules that XLA made of
    them: kept ones, or compiled here where `compile_missing` (default: where rows are named) or `recompile` say so.
    `knowledge` is ``Knowledge.published(refits=True)`` by default: a row in the calibration is predicted by the refit
    that left it out.

    >>> scores = validate("examples/bench/h200-held-out.csv", on="h200")
    >>> scores.summary["predicted"] == scores.summary["eligible"] == len(scores.rows)
    True
    """
    from chipwise.validate import validate as run

    files = [rows] if isinstance(rows, str | Path) else rows or ()
    calibration = None if knowledge is None else knowledge.calibration
    return run(
        [Path(file) for file in files], on, evidence, ids or (), recompile, compile_missing, calibration, progress
    )

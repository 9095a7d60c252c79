"""A workload's reference program on each target: split by the layout named or the best, and other layouts to try."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import gcd

from chipwise.catalog import Accelerators
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.check.check import Question
from chipwise.compiled.check.tune import Alternative
from chipwise.compiled.job import Job, Option, Refused
from chipwise.compiled.reference import context_refusal, serving_job, training_job
from chipwise.compiled.targets import target_of
from chipwise.errors import DoesNotFit, InputError, Refusal
from chipwise.layout import search
from chipwise.layout.named import read_layout
from chipwise.predict.model.layouts import RECOMPUTE, Layout, parse_layout
from chipwise.predict.setup import named_stack
from chipwise.workload.model import Workload

_SEARCHED, _OTHERS = 200, 50  # best layouts looked through for one that the reference programs can run
_TRIED = 3  # other layouts a search over a workload tries


def reference_question(
    work: Workload,
    acc: Accelerators,
    layout: str | None,
    mode: str,
    options: Mapping[str, Option],
    calibration: Calibration,
) -> Question:
    """The question about a workload on one target; what can't be split or held is refused in place of a job."""
    target_of(acc)  # chips without a compiler are a mistake of the command, not of the workload
    try:
        if mode != "train":
            tensor = _tensor(work, acc, layout)
            train = work.train
            job = serving_job(work, acc, tensor, train.global_batch, train.sequence, mode, train.precision, options)
            return Question(acc, job, f"tp={tensor}")
        split = _layout(work, acc, layout, calibration)
        return Question(acc, training_job(work, acc, split, options=options), str(split), work)
    except DoesNotFit as error:
        return Question(acc, Refused("memory", error.reason, change=error.unlock))
    except Refusal as error:
        return Question(acc, Refused("trace", error.reason, change=error.unlock))


def _layout(work: Workload, acc: Accelerators, layout: str | None, calibration: Calibration) -> Layout:
    """The layout named, or the fastest that the reference programs can run."""
    if layout is not None:
        return read_layout(layout, work, acc, calibration, named_stack(work))
    best = search(work, acc, calibration, named_stack(work), _SEARCHED)
    plain = [option.layout for option in (best.best, *best.top) if _plain(option.layout, work)]
    return plain[0] if plain else best.best.layout


def _plain(layout: Layout, work: Workload) -> bool:
    """Whether it is split in no way that the reference programs lack, such as pipeline stages."""
    return layout.pp == 1 and not context_refusal(work, layout) and (layout.cp == 1 or layout.ep <= layout.dp)


def _tensor(work: Workload, acc: Accelerators, layout: str | None) -> int:
    """Devices that share each sequence: as `tp` says, else as many as divide the heads."""
    if layout is None:
        return gcd(target_of(acc).devices, work.model.heads)
    named = re.fullmatch(r"tp=(\d{1,6})", layout.strip())
    if not named:
        raise InputError("layout", layout, "tp=N when serving: the other devices have sequences of their own")
    return int(named[1])


def layout_alternatives(
    work: Workload, question: Question, options: Mapping[str, Option], calibration: Calibration
) -> list[Alternative]:
    """Other recomputation, then the next best splits, as far as the reference programs can run them."""
    t, m, acc = work.train, work.model, question.accelerators
    now = parse_layout(question.layout, acc.count, t.global_batch, m.heads)
    others = [replace(now, recompute=kind) for kind in RECOMPUTE if kind != now.recompute]
    best = search(work, acc, calibration, named_stack(work), _OTHERS)
    others += [option.layout for option in best.top if _plain(option.layout, work)][: _TRIED + 1]
    alternatives = []
    for layout in dict.fromkeys(others):
        if str(layout) == question.layout:
            continue
        try:
            job = training_job(work, acc, layout, options=options)
        except Refusal:
            continue  # not one the reference programs can run
        alternatives.append(Alternative("layout", {"layout": str(layout)}, _with_job(job, str(layout))))
    return alternatives[: _TRIED * 2]


def _with_job(job: Job, layout: str) -> Callable[[Question], Question]:
    def apply(question: Question) -> Question:
        kept = question.job.options if isinstance(question.job, Job) else {}
        return replace(question, job=replace(job, options={**job.options, **kept}), layout=layout)

    return apply

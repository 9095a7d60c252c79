"""A search over compiler options and the program's own choices: each alone, then the good ones together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chipwise.catalog import Accelerators
from chipwise.catalog.compilers import tpu_compilers
from chipwise.compiled.check.check import Question, Row
from chipwise.compiled.job import Compiled, Job, Option, Refused, Spec

Ask = Callable[[Question], Row]
NOISE = 0.001  # a smaller gain is not worth an option


@dataclass(frozen=True, slots=True)
class Alternative:
    """A change to a question. Only one of a `group` can hold at a time."""

    group: str
    changes: Mapping[str, Any]  # as they are shown and given on the command line
    apply: Callable[[Question], Question]


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of changes, and what came of it: seconds of a call, bytes of a device."""

    changes: Mapping[str, Any]
    groups: frozenset[str]
    seconds: float | None
    bytes: float | None
    refused: str = ""
    same: bool = False  # the module is that of the start


@dataclass(frozen=True, slots=True)
class Tuning:
    """A search on one target."""

    accelerators: Accelerators
    base: Trial
    best: Trial
    trials: tuple[Trial, ...]  # the base first
    left: int  # alternatives the limit left untried
    use: str = ""  # the command with the best set


def tune(question: Question, alternatives: Sequence[Alternative], ask: Ask, limit: int) -> Tuning:
    """Try each alternative alone, then add the good ones to each other, best first, as long as that helps.

    `limit` is how many questions may be asked, the start included. What does not fit is never the best.
    """
    first = ask(question)
    base = _trial({}, frozenset(), first, None)
    trials = [base]
    if base.seconds is None:
        return Tuning(question.accelerators, base, base, (base,), len(alternatives))
    alone: list[tuple[Trial, Alternative]] = []
    tried = 0
    for alternative in alternatives:
        if len(trials) >= limit:
            break
        trial = _trial(alternative.changes, frozenset({alternative.group}), ask(alternative.apply(question)), first)
        trials.append(trial)
        alone.append((trial, alternative))
        tried += 1
    best = _together(question, base, alone, trials, ask, first, limit)
    return Tuning(question.accelerators, base, best, tuple(trials), len(alternatives) - tried)


def _together(
    question: Question,
    base: Trial,
    alone: Sequence[tuple[Trial, Alternative]],
    trials: list[Trial],
    ask: Ask,
    first: Row,
    limit: int,
) -> Trial:
    """The best set: greedy, starting with what gained most alone."""
    good = sorted((pair for pair in alone if _faster(pair[0], base)), key=lambda pair: pair[0].seconds or 0.0)
    best, current = base, question
    for trial, alternative in good:
        if best is base:
            best, current = trial, alternative.apply(question)
            continue
        if alternative.group in best.groups or len(trials) >= limit:
            continue
        more = alternative.apply(current)
        both = _trial({**best.changes, **alternative.changes}, best.groups | {alternative.group}, ask(more), first)
        trials.append(both)
        if _faster(both, best):
            best, current = both, more
    return best


def _faster(trial: Trial, other: Trial) -> bool:
    return trial.seconds is not None and other.seconds is not None and trial.seconds < other.seconds * (1 - NOISE)


def _trial(changes: Mapping[str, Any], groups: frozenset[str], row: Row, first: Row | None) -> Trial:
    if isinstance(row.outcome, Refused):
        return Trial(changes, groups, None, None, row.outcome.reason)
    if row.step is None or row.memory is None:
        return Trial(changes, groups, None, None, "the compiled module could not be read")
    if not row.fits:
        return Trial(changes, groups, None, row.memory.total, "does not fit")
    same = (
        first is not None
        and isinstance(first.outcome, Compiled)
        and (row.outcome.schedule == first.outcome.schedule and row.outcome.memory == first.outcome.memory)
    )
    return Trial(changes, groups, row.step.value, row.memory.total, same=same)


def option_alternatives(job: Job) -> list[Alternative]:
    """Compiler options that matter on the job's generation, less those it already has."""
    compiler = tpu_compilers().get(job.target.chip)
    if compiler is None:
        return []
    alternatives = []
    for options in map(dict[str, Option], compiler.search):
        if any(job.options.get(name) != value for name, value in options.items()):
            alternatives.append(Alternative(next(iter(options)), options, _with_options(options)))
    return alternatives


def choice_alternatives(choices: Mapping[str, Sequence[Any]], chosen: Mapping[str, Any]) -> list[Alternative]:
    """What the program itself offers, less what is chosen."""
    return [
        Alternative(f"choice {name}", {name: value}, _with_choice(name, value))
        for name, values in choices.items()
        for value in values
        if chosen.get(name, values[0]) != value
    ]


def _with_options(options: Mapping[str, Option]) -> Callable[[Question], Question]:
    def apply(question: Question) -> Question:
        assert isinstance(question.job, Job)
        return replace(question, job=replace(question.job, options={**question.job.options, **options}))

    return apply


def _with_choice(name: str, value: Any) -> Callable[[Question], Question]:
    def apply(question: Question) -> Question:
        assert isinstance(question.job, Job)
        spec = question.job.spec
        data = {**spec.data, "choices": {**spec.data.get("choices", {}), name: value}}
        return replace(question, job=replace(question.job, spec=Spec(spec.kind, spec.name, data)))

    return apply

"""From the arguments of `chipwise check` to questions for the compilers, and back to a command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.catalog import Accelerators, parse
from chipwise.compiled.check.check import Question
from chipwise.compiled.check.tune import Alternative
from chipwise.compiled.job import Job, Option, Refused, Spec
from chipwise.compiled.targets import target_of
from chipwise.errors import DoesNotFit, InputError, Refusal

if TYPE_CHECKING:
    from chipwise.predict.layouts import Layout
    from chipwise.workload import Workload

MODES = ("train", "prefill", "decode")
_OPTION = re.compile(r"[A-Za-z_][\w.]*")
_OTHERS = 3  # other layouts a search over a workload tries


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A program and what is asked about it."""

    program: str
    kind: str
    questions: tuple[Question, ...]
    workload: Workload | None = None
    mode: str = "train"
    options: Mapping[str, Option] = field(default_factory=dict)
    words: tuple[str, ...] = ()  # arguments that say what the program is, for a command

    def alternatives(self, question: Question) -> list[Alternative]:
        """Recomputation and other splits of a workload."""
        if self.workload is None or self.mode != "train":
            return []
        return _workload_alternatives(self.workload, question, self.options)

    def command(self, question: Question, changes: Mapping[str, Any]) -> str:
        """The command that checks a question with `changes`."""
        layout = str(changes.get("layout", question.layout))
        words = ["chipwise", "check", self.program, "--on", str(question.accelerators), *self.words]
        words += ["--layout", layout] if layout else []
        for name, value in {**self.options, **changes}.items():
            if name != "layout":
                flag = "--option" if name.startswith("xla_") else "--choose"
                words += [flag, f"{name}={value}"]
        return shlex.join(words)


def read(
    program: str,
    on: str,
    option: Sequence[str],
    axes: str | None,
    choose: Sequence[str],
    size: Sequence[str],
    torch: bool | None,
    layout: str | None,
    mode: str,
    flags: Mapping[str, str | None],
) -> CheckRequest:
    """The questions that the arguments ask; every failure is one line."""
    from chipwise.compiled.check.resolve import program_spec

    targets = _targets(on)
    options: dict[str, Option] = dict(_pairs("--option", option))
    for name in options:
        if not _OPTION.fullmatch(name):
            raise InputError("--option", name, "the name of a compiler option")
    choices = {name: _value(value) for name, value in _pairs("--choose", choose).items()}
    sizes = {name: _whole("--size", value) for name, value in _pairs("--size", size).items()}
    mesh = {
        name: _whole("--axes", value, -1)
        for name, value in _pairs("--axes", [each for each in (axes or "").split(",") if each.strip()]).items()
    }
    if mode not in MODES:
        raise InputError("--mode", mode, f"one of {', '.join(MODES)}")
    spec = program_spec(program, Path.cwd(), torch, sizes, choices)
    if spec is None:
        named = {"--axes": axes, "--choose": choose, "--size": size, "--torch": torch}
        _only("a workload", named)
        return _workload(program, targets, layout, mode, options, flags)
    _only(
        program,
        {
            "--layout": layout,
            "--mode": None if mode == "train" else mode,
            **{f"--{flag}": value for flag, value in flags.items()},
        },
    )
    questions = tuple(Question(acc, _job(spec, acc, options, mesh)) for acc in targets)
    words = [
        word
        for flag, given in (("--axes", [axes] if axes else []), ("--choose", choose), ("--size", size))
        for each in given
        for word in (flag, each)
    ]
    return CheckRequest(program, spec.kind, questions, options=options, words=tuple(words))


def _targets(on: str) -> list[Accelerators]:
    names = [name.strip() for name in on.split(",") if name.strip()]
    if not names:
        raise InputError("--on", on, "chips such as v5e:4x4,h100:8")
    found = {str(acc): acc for acc in (parse(name) for name in names)}
    return list(found.values())


def _job(spec: Spec, acc: Accelerators, options: Mapping[str, Option], mesh: Mapping[str, int]) -> Job:
    return Job(spec, target_of(acc), options, mesh)


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(flag, each, "KEY=VALUE")
        found[name.strip()] = value.strip()
    return found


def _value(text: str) -> Any:
    """A number, true, false or null where it reads as one, else the words themselves."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _whole(flag: str, text: str, least: int = 1) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text) or int(text) < least or text == "0":
        raise InputError(flag, text, "a whole number")
    return int(text)


def _only(what: str, given: Mapping[str, Any]) -> None:
    for flag, value in given.items():
        if value:
            raise InputError(
                flag,
                value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else "given",
                f"nothing: it does not apply to {what}",
            )


def _workload(
    program: str,
    targets: Sequence[Accelerators],
    layout: str | None,
    mode: str,
    options: Mapping[str, Option],
    flags: Mapping[str, str | None],
) -> CheckRequest:
    from chipwise.workload.read import LENGTHS, read_workload

    length = any(flags.get(flag) for flag in LENGTHS)
    named = "." not in Path(program).suffix and not Path(program).exists()
    work = read_workload(program, flags if length or not named else {**flags, "steps": "1"})
    questions = tuple(_ask(work, acc, layout, mode, options) for acc in targets)
    words = [word for flag, value in flags.items() if value for word in (f"--{flag}", value)]
    words += ["--mode", mode] if mode != "train" else []
    return CheckRequest(program, "workload", questions, work, mode, options, tuple(words))


def _ask(work: Workload, acc: Accelerators, layout: str | None, mode: str, options: Mapping[str, Option]) -> Question:
    target_of(acc)  # chips without a compiler are a mistake of the command, not of the workload
    try:
        if mode != "train":
            tensor = _tensor(work, acc, layout)
            return Question(acc, _serving(work, acc, tensor, mode, options), f"tp={tensor}")
        split = _layout(work, acc, layout)
        return Question(acc, _reference(work, acc, split, options), str(split), work)
    except DoesNotFit as error:
        return Question(acc, Refused("memory", error.reason, change=error.unlock))
    except Refusal as error:
        return Question(acc, Refused("trace", error.reason, change=error.unlock))


def _layout(work: Workload, acc: Accelerators, layout: str | None) -> Layout:
    """The layout named, or the fastest that the reference programs can run."""
    from chipwise.catalog.calibration import load_calibration
    from chipwise.layout import search
    from chipwise.layout.named import read_layout
    from chipwise.predict.setup import named_stack

    if layout is not None:
        return read_layout(layout, work, acc, load_calibration(bench=False), named_stack(work))
    found = search(work, acc, load_calibration(bench=False), named_stack(work), 200)
    plain = [each.layout for each in (found.best, *found.top) if each.layout.pp == 1 and each.layout.cp == 1]
    return plain[0] if plain else found.best.layout


def _reference(work: Workload, acc: Accelerators, split: Layout, options: Mapping[str, Option]) -> Job:
    from chipwise.compiled.reference import training_job

    return training_job(work, acc, split, options=options)


def _tensor(work: Workload, acc: Accelerators, layout: str | None) -> int:
    """Devices that share each sequence: as `tp` says, else as many as divide the heads."""
    if layout is None:
        return gcd(target_of(acc).devices, work.model.heads)
    named = re.fullmatch(r"tp=(\d{1,6})", layout.strip())
    if not named:
        raise InputError("--layout", layout, "tp=N when serving: the other devices have sequences of their own")
    return int(named[1])


def _serving(work: Workload, acc: Accelerators, tensor: int, mode: str, options: Mapping[str, Option]) -> Job:
    from chipwise.compiled.reference import serving_job

    train = work.train
    return serving_job(work, acc, tensor, train.global_batch, train.sequence, mode, train.precision, options)


def _workload_alternatives(work: Workload, question: Question, options: Mapping[str, Option]) -> list[Alternative]:
    from chipwise.catalog.calibration import load_calibration
    from chipwise.layout import search
    from chipwise.predict.layouts import RECOMPUTE, parse_layout
    from chipwise.predict.setup import named_stack

    t, m, acc = work.train, work.model, question.accelerators
    now = parse_layout(question.layout, acc.count, t.global_batch, m.layers, m.heads)
    others = [replace(now, recompute=each) for each in RECOMPUTE if each != now.recompute]
    found = search(work, acc, load_calibration(bench=False), named_stack(work), 50)
    others += [each.layout for each in found.top if each.layout.pp == 1 and each.layout.cp == 1][: _OTHERS + 1]
    out = []
    for each in dict.fromkeys(others):
        if str(each) == question.layout:
            continue
        try:
            job = _reference(work, acc, each, options)
        except Refusal:
            continue  # not one the reference programs can run
        out.append(Alternative("layout", {"layout": str(each)}, _with_job(job, str(each))))
    return out[: _OTHERS * 2]


def _with_job(job: Job, layout: str) -> Any:
    def apply(question: Question) -> Question:
        kept = question.job.options if isinstance(question.job, Job) else {}
        return replace(question, job=replace(job, options={**job.options, **kept}), layout=layout)

    return apply

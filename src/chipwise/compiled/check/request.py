"""What is to be checked: a program, its targets and the compiler's options, read from how people write them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chipwise.catalog import Accelerators, parse
from chipwise.catalog.calibration import Calibration
from chipwise.compiled.check.check import Question
from chipwise.compiled.check.reference import layout_alternatives, reference_question
from chipwise.compiled.check.resolve import program_spec
from chipwise.compiled.check.tune import Alternative
from chipwise.compiled.job import Job, Option
from chipwise.compiled.targets import target_of
from chipwise.errors import InputError, UnknownName
from chipwise.workload.model import Workload
from chipwise.workload.read import FILES, FLAGS, LENGTHS, read_workload

MODES = ("train", "prefill", "decode")
_OPTION = re.compile(r"[A-Za-z_][\w.]*")

Pairs = Mapping[str, Any] | Sequence[str] | None  # {"remat": "full"} or ["remat=full"]


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program is read and compiled.

    Of a program: `axes` (the mesh), `choices` (keywords of its function), `sizes` (dimensions that an exported file
    leaves open) and whether it is PyTorch (None: as its imports tell). Of a workload: its `layout` (None: the best),
    `mode`, and `changes` as of the command line's flags. `options` are the compiler's own.
    """

    options: Pairs = None
    axes: str | Mapping[str, int] | None = None
    choices: Pairs = None
    sizes: Pairs = None
    torch: bool | None = None
    layout: str | None = None
    mode: str = "train"
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A program and the questions about it, one a target."""

    program: str
    kind: str
    questions: tuple[Question, ...]
    calibration: Calibration
    workload: Workload | None = None
    mode: str = "train"
    options: Mapping[str, Option] = field(default_factory=dict)
    words: tuple[str, ...] | None = ()  # arguments that say what the program is; None: no command names it

    def alternatives(self, question: Question) -> list[Alternative]:
        """Recomputation and other splits of a workload."""
        if self.workload is None or self.mode != "train":
            return []
        return layout_alternatives(self.workload, question, self.options, self.calibration)

    def command(self, question: Question, changes: Mapping[str, Any]) -> str:
        """The command that checks a question with `changes`; "" where the program was given as an object."""
        if self.words is None:
            return ""
        layout = str(changes.get("layout", question.layout))
        words = ["chipwise", "check", self.program, "--on", str(question.accelerators), *self.words]
        words += ["--layout", layout] if layout else []
        for name, value in {**self.options, **changes}.items():
            if name != "layout":
                flag = "--option" if name.startswith("xla_") else "--choose"
                words += [flag, f"{name}={value}"]
        return shlex.join(words)


def read_request(
    program: str | Path | Workload, on: str | Sequence[str], how: ProgramOptions, calibration: Calibration
) -> CheckRequest:
    """The questions about a program, one a target; every failure is one line."""
    targets = _targets(on)
    options: dict[str, Option] = dict(_pairs("options", how.options))
    for name in options:
        if not _OPTION.fullmatch(name):
            raise InputError("options", name, "the name of a compiler option")
    if how.mode not in MODES:
        raise InputError("mode", how.mode, f"one of {', '.join(MODES)}")
    for name in how.changes:
        if name not in ("model", *FLAGS):
            raise UnknownName("workload", name, ("model", *FLAGS))
    how = replace(how, changes={name: None if value is None else str(value) for name, value in how.changes.items()})
    if not isinstance(program, Workload):
        questions = _program(str(program), targets, how, options)
        if questions is not None:
            words = tuple(_words(axes=how.axes, choose=how.choices, size=how.sizes))
            kind = next(q.job.spec.kind for q in questions if isinstance(q.job, Job))
            return CheckRequest(str(program), kind, questions, calibration, options=options, words=words)
    _only("a workload", {"axes": how.axes, "choices": how.choices, "sizes": how.sizes, "torch": how.torch})
    work = program if isinstance(program, Workload) else _workload(str(program), how.changes)
    return CheckRequest(
        work.name if isinstance(program, Workload) else str(program),
        "workload",
        tuple(reference_question(work, acc, how.layout, how.mode, options, calibration) for acc in targets),
        calibration,
        work,
        how.mode,
        options,
        None if isinstance(program, Workload) else _workload_words(how),
    )


def _program(
    program: str, targets: Sequence[Accelerators], how: ProgramOptions, options: Mapping[str, Option]
) -> tuple[Question, ...] | None:
    """The questions about a program of the user's own; None where the text names a workload."""
    choices = {
        name: _value(value) if isinstance(value, str) else value
        for name, value in _pairs("choices", how.choices).items()
    }
    sizes = {name: _whole("sizes", value) for name, value in _pairs("sizes", how.sizes).items()}
    axes = [axis for axis in how.axes.split(",") if axis.strip()] if isinstance(how.axes, str) else how.axes
    mesh = {name: _whole("axes", value, -1) for name, value in _pairs("axes", axes).items()}
    spec = program_spec(program, Path.cwd(), how.torch, sizes, choices)
    if spec is None:
        return None
    _only(program, {"layout": how.layout, "mode": None if how.mode == "train" else how.mode, **how.changes})
    return tuple(Question(acc, Job(spec, target_of(acc), options, mesh)) for acc in targets)


def _workload(program: str, changes: Mapping[str, str | None]) -> Workload:
    """A workload; of a model known by name one step is enough."""
    length = any(changes.get(flag) for flag in LENGTHS)
    named = Path(program).suffix not in FILES and not Path(program).exists()
    return read_workload(program, changes if length or not named else {**changes, "steps": "1"})


def _workload_words(how: ProgramOptions) -> tuple[str, ...]:
    words = [word for flag, value in how.changes.items() if value for word in (f"--{flag}", value)]
    return (*words, *(["--mode", how.mode] if how.mode != "train" else []))


def _words(**given: Any) -> list[str]:
    """Options as they stand on a command line."""
    words = []
    for name, value in given.items():
        if isinstance(value, Mapping):
            pairs = [f"{key}={item}" for key, item in value.items()]
            value = ",".join(pairs) if name == "axes" else pairs
        for item in [value] if isinstance(value, str) else value or []:
            words += [f"--{name}", item]
    return words


def _targets(on: str | Sequence[str]) -> list[Accelerators]:
    names = [name.strip() for text in ([on] if isinstance(on, str) else on) for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("on", on if isinstance(on, str) else "", "chips such as v5e:4x4,h100:8")
    targets = {str(acc): acc for acc in (parse(name) for name in names)}
    return list(targets.values())


def _pairs(flag: str, given: Pairs) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    pairs = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(flag, text, "KEY=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _value(text: str) -> Any:
    """A number, true, false or null where it reads as one, else the words themselves."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _whole(flag: str, value: Any, least: int = 1) -> int:
    text = str(value)
    if not re.fullmatch(r"-?\d{1,9}", text) or int(text) < least or text == "0":
        raise InputError(flag, text, "a whole number")
    return int(text)


def _only(what: str, given: Mapping[str, Any]) -> None:
    for flag, value in given.items():
        if value:
            text = (
                value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else "given"
            )
            raise InputError(flag, text, f"nothing: it does not apply to {what}")

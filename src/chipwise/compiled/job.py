"""What to compile and what came of it, as plain data that crosses to the worker process and into the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from chipwise.compiled.targets import Target
from chipwise.errors import MissingCompiler

Option = str | bool | int
MAX_PROGRAM_BYTES = 2**30  # of a file with a module and its constants; weights are arguments of it


@dataclass(frozen=True, slots=True)
class Spec:
    """A program: `kind` is "workload", "function", "file" or "torch".

    `data` is JSON. For "function" and "torch" it has "folder", where imports start; what else it holds is for
    the loader of that kind.
    """

    kind: str
    name: str  # "package.module:function", a path, or the workload's name
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One program for one target."""

    spec: Spec
    target: Target
    options: Mapping[str, Option] = field(default_factory=dict)  # the compiler's own
    mesh: Mapping[str, int] = field(default_factory=dict)  # axis sizes; empty: the program's own

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "spec": {"kind": self.spec.kind, "name": self.spec.name, "data": dict(self.spec.data)},
            "target": asdict(self.target),
            "options": dict(self.options),
            "mesh": dict(self.mesh),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The inverse of `as_json`."""
        return cls(Spec(**data["spec"]), Target(**data["target"]), data["options"], data["mesh"])


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program the compiler accepted. Bytes are for one device."""

    job_key: str
    versions: Mapping[str, str]
    seconds: float  # wall clock of the compile
    peak_rss: int  # bytes of the worker process
    memory: Mapping[str, float]  # arguments, outputs, aliased, temporaries, code, host_*: bytes of one device
    schedule: Mapping[str, Any]  # chipwise.compiled.timing.schedule.Schedule as JSON; empty if it could not be read
    notes: tuple[str, ...] = ()
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # what the program lets a search pick
    cached: bool = False

    def as_json(self) -> dict[str, Any]:
        """Plain data; `cached` is about this answer and stays out."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cached"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Compiled:
        """The inverse of `as_json`."""
        return cls(**{**data, "notes": tuple(data["notes"])})


STAGES = ("import", "program", "trace", "export", "compile", "memory", "limit", "compiler")
_REPEATABLE = ("trace", "export", "compile", "memory")


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that did not compile: why, where, and what to change.

    At stage "compiler" nothing was tried: the target's compiler can't be used on this machine.
    """

    stage: str  # one of STAGES
    reason: str  # one line
    op: str = ""
    source: str = ""  # "file.py:12" in the user's code
    change: str = ""
    detail: str = ""  # the compiler's text or the traceback, shortened
    hbm_needed: float | None = None  # bytes of one device
    hbm_available: float | None = None
    notes: tuple[str, ...] = ()
    passing: bool = False  # may not happen again: a crash, or an error of the user's own Python

    @classmethod
    def without_compiler(cls, error: MissingCompiler) -> Refused:
        """A target whose compiler is missing here, which says nothing of the program."""
        return cls("compiler", f"{error.compiler} can't be used: {error.problem}", change=error.unlock, passing=True)

    @property
    def tried(self) -> bool:
        """Whether a compiler was asked at all."""
        return self.stage != "compiler"

    @property
    def repeatable(self) -> bool:
        """Whether the same job is refused every time, so that the answer may be kept."""
        return self.stage in _REPEATABLE and not self.passing

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Refused:
        """The inverse of `as_json`."""
        return cls(**{**data, "notes": tuple(data["notes"])})


def outcome_from_json(data: Mapping[str, Any]) -> Compiled | Refused:
    """A `Compiled` or a `Refused` from {"compiled": ...} or {"refused": ...}."""
    return Compiled.from_json(data["compiled"]) if "compiled" in data else Refused.from_json(data["refused"])


def outcome_as_json(outcome: Compiled | Refused) -> dict[str, Any]:
    """The inverse of `outcome_from_json`."""
    return {"compiled" if isinstance(outcome, Compiled) else "refused": outcome.as_json()}


def digest(data: Any) -> str:
    """A hash of JSON data that does not depend on the order of keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()

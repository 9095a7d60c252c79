"""A failure as the rules of `messages` see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from chipwise.compiled.job import Job, Refused
from chipwise.compiled.worker.source_tracker import is_package_file

_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)
_NAMED = re.compile(r'^"([^"]*)"\(#(loc\d*)\)$')
_FILE = re.compile(r'^"([^"]+)":(\d+)')


@dataclass(slots=True)
class Progressed:
    """What the worker had of a program when it failed; each is asked for only if a rule needs it."""

    lowered: Callable[[], str] = field(default=lambda: "")  # the module before optimisation, with its locations
    arguments: Callable[[], str] = field(default=lambda: "")  # the largest ones, in words


@dataclass(frozen=True)
class Case:
    """An exception, where it passed through the user's code, and the job it belongs to."""

    stage: str
    error: BaseException
    source: str  # "file.py:12", or ""
    job: Job
    progressed: Progressed = field(default_factory=Progressed)

    @cached_property
    def text(self) -> str:
        """The message."""
        return str(self.error)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the exception's class and its bases: the worker alone can import them."""
        return frozenset(base.__name__ for base in type(self.error).__mro__)

    @property
    def first_line(self) -> str:
        """The message's first line."""
        return self.text.strip().partition("\n")[0]

    def locate(self, op: str) -> str:
        """The user's line behind an operation of the lowered module, known by its name or the end of it."""
        return source_of(self.progressed.lowered(), op) if op else ""

    def refused(self, reason: str, change: str, stage: str = "", op: str = "", source: str = "") -> Refused:
        """A refusal with the parts a rule does not know filled in."""
        return Refused(stage or self.stage, reason, op=op, source=source or self.source, change=change)


def source_of(module: str, op: str) -> str:
    """The innermost line of the user's code that made `op`, from the locations of an MLIR module.

    >>> text = '#loc1 = loc("mine.py":7:4 to :9)\\n#loc2 = loc("step"(#loc1))\\n#loc3 = loc("jit(step)/sort"(#loc2))'
    >>> source_of(text, "sort"), source_of(text, "jit(step)/sort"), source_of(text, "add")
    ('mine.py:7', 'mine.py:7', '')
    """
    locations = dict(_LOCATION.findall(module))
    for text in locations.values():
        named = _NAMED.match(text)
        if named and (named[1] == op or named[1].endswith((f"/{op}", f"/jit({op})"))):
            for file, line in _files(locations, named[2]):
                if not is_package_file(file):
                    return f"{file}:{line}"
    return ""


def _files(locations: dict[str, str], name: str) -> Iterator[tuple[str, str]]:
    """Files and lines behind a location, the innermost first."""
    text = locations.get(name, "")
    file = _FILE.match(text)
    if file:
        yield file[1], file[2]
    for inner in re.findall(r"#(loc\d*)", text):
        yield from _files(locations, inner)

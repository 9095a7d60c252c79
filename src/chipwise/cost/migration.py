"""Migration effort: engineer-weeks from the framework, the kernels and what a compiler refused.

A program that runs on one family of chips needs nothing to run on another chip of it. Beyond that the weeks come from
assumptions (`migration_weeks.*`, `kernel_weeks.*`), less where `chipwise check` has compiled the program for the chip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from chipwise.catalog import Chip, find_chip
from chipwise.catalog.economics import Assumption, Economics
from chipwise.cost.migration_check import Checked, read_check
from chipwise.errors import InputError

FRAMEWORKS = ("pytorch", "jax", "tensorflow")
LANGUAGES = ("cuda", "triton", "pallas")
MOST_KERNELS = 10_000


@dataclass(frozen=True, slots=True)
class Program:
    """What is known of the program: nothing of it is guessed."""

    framework: str | None = None
    kernels: tuple[tuple[str, int], ...] = ()  # (language, how many)
    home: Chip | None = None  # where it runs today; default: an NVIDIA GPU
    checked: Checked | None = None

    @classmethod
    def read(
        cls,
        framework: str | None = None,
        kernels: Sequence[str | int] | None = None,
        now_on: str | None = None,
        check: str | Path | None = None,
    ) -> Program:
        """What is known of a program, as people write it; `check` is the file of ``chipwise check -o json``.

        >>> Program.read("jax", ["triton:2"]).kernels
        (('triton', 2),)
        """
        return cls(
            read_framework(framework),
            read_kernels(kernels),
            find_chip(now_on) if now_on else None,
            read_check(Path(check)) if check else None,
        )

    @property
    def told(self) -> bool:
        """Whether anything is known."""
        return bool(self.framework or self.kernels or self.checked)


@dataclass(frozen=True, slots=True)
class MigrationPart:
    """One part of a migration: so many times the weeks of an assumption."""

    times: float
    assumed: Assumption
    why: str


@dataclass(frozen=True, slots=True)
class Migration:
    """Engineer-weeks to bring a program to a chip, once, and the runs that share them."""

    parts: tuple[MigrationPart, ...]
    week: Assumption
    runs: float
    reasons: tuple[str, ...]  # what makes the weeks, or why there are none

    @property
    def weeks(self) -> float:
        """Engineer-weeks, the median of every part."""
        return sum(part.times * part.assumed.value for part in self.parts)

    @property
    def weeks_low(self) -> float:
        """With every part at the low end of its range."""
        return sum(part.times * part.assumed.low for part in self.parts)

    @property
    def weeks_high(self) -> float:
        """With every part at the high end of its range."""
        return sum(part.times * part.assumed.high for part in self.parts)

    @property
    def usd_run(self) -> float:
        """US dollars of one run's share."""
        return self.weeks * self.week.value / self.runs

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "weeks": self.weeks,
            "weeks_low": self.weeks_low,
            "weeks_high": self.weeks_high,
            "usd_per_week": self.week.value,
            "runs": self.runs,
            "usd_per_run": self.usd_run,
            "reasons": self.reasons,
        }


def migration(program: Program, chip: Chip, know: Economics, runs: float = 1.0) -> Migration:
    """What it takes to bring a program to a chip.

    >>> from chipwise.catalog import load
    >>> from chipwise.catalog.economics import economics
    >>> migration(Program("pytorch"), load().chips["h200"], economics()).weeks
    0
    >>> migration(Program("pytorch", (("cuda", 2),)), load().chips["v5p"], economics()).weeks
    16.0
    """
    if not 1 <= runs < inf:
        raise InputError("runs", runs, "a number of at least 1")
    week = know("engineer_week_usd")
    if not program.told:
        return Migration(
            (), week, runs, ("not counted: no framework, custom kernels or check of the program was given",)
        )
    parts, reasons = _framework(program, chip, know)
    more, why = _kernels(program, chip, know)
    return Migration((*parts, *more), week, runs, (*reasons, *why))


def kind_of(chip: Chip) -> str:
    """How a chip is programmed.

    >>> from chipwise.catalog import load
    >>> [kind_of(load().chips[name]) for name in ("h100", "mi300x", "v5e", "trainium2")]
    ['cuda', 'rocm', 'xla', 'vendor']
    """
    for kind in ("cuda", "rocm"):
        if kind in chip.programming:
            return kind
    return "xla" if chip.family == "tpu" else "vendor"


def _home(program: Program) -> str:
    if program.home is not None:
        return kind_of(program.home)
    only = {language for language, _ in program.kernels}
    return "xla" if only == {"pallas"} else "cuda"


def _framework(program: Program, chip: Chip, know: Economics) -> tuple[tuple[MigrationPart, ...], tuple[str, ...]]:
    """The program itself, without its kernels."""
    home, there = _home(program), kind_of(chip)
    said = f"it runs on {program.home.id} today" if program.home else f"it runs on {_NAMES[home]} today (assumed)"
    row = program.checked.of(chip.id) if program.checked else None
    if row is not None and row.compiles:
        return (), (f"0 weeks: `chipwise check` compiled the program for {chip.id} as it is",)
    refused = (
        []
        if row is None
        else [
            MigrationPart(1, know("migration_weeks.refusal"), f"the compiler refused it: {why}") for why in row.refusals
        ]
    )
    notes: tuple[str, ...] = ()
    if program.checked is not None and row is None:
        notes = (f"the check of the program says nothing of {chip.id}",)
    if program.framework is None:
        why = "the framework was not given, so moving the program is not counted"
        return tuple(refused), (*(_said(w) for w in refused), why, *notes)
    name = program.framework
    if name not in chip.frameworks:
        parts = [MigrationPart(1, know("migration_weeks.rewrite"), f"{chip.id} does not run {name}; {said}")]
    elif home == there:
        parts = []
        notes = (f"0 weeks for {name}: {said}, and {chip.id} is programmed alike ({there})", *notes)
    else:
        parts = [
            MigrationPart(1, know(f"migration_weeks.{_move(name, home, there)}"), f"{name} to {_NAMES[there]}; {said}")
        ]
    every = (*parts, *refused)
    return every, (*(_said(work) for work in every), *notes)


def _move(name: str, home: str, there: str) -> str:
    if "vendor" in (home, there):
        return "vendor"
    if "xla" in (home, there):
        return f"{name}-xla"
    return "cuda-rocm"


_NAMES = {"cuda": "NVIDIA GPUs", "rocm": "AMD GPUs", "xla": "TPUs", "vendor": "chips of another vendor"}


def _kernels(program: Program, chip: Chip, know: Economics) -> tuple[tuple[MigrationPart, ...], tuple[str, ...]]:
    """The kernels that were written by hand."""
    home, there = _home(program), kind_of(chip)
    parts: list[MigrationPart] = []
    reasons: list[str] = []
    row = program.checked.of(chip.id) if program.checked else None
    for language, many in program.kernels:
        if not many:
            continue
        if row is not None and row.compiles:
            reasons.append(f"0 weeks for {many} {language} kernels: the program compiled with them")
        elif home == there:
            reasons.append(f"0 weeks for {many} {language} kernels: {_NAMES[there]} run them as they are")
        else:
            known = f"kernel_weeks.{language}-rocm" if there == "rocm" and home == "cuda" else "kernel_weeks.rewrite"
            assumed = know.table.get(known) or know("kernel_weeks.rewrite")
            parts.append(
                MigrationPart(many, assumed, f"{many} {language} kernel{'s' * (many > 1)} for {_NAMES[there]}")
            )
    return tuple(parts), (*(_said(work) for work in parts), *reasons)


def _said(work: MigrationPart) -> str:
    a = work.assumed
    weeks = work.times * a.value
    return f"{weeks:g} week{'s' * (weeks != 1)} ({work.times * a.low:g} to {work.times * a.high:g}): {work.why}"


def read_framework(text: str | None) -> str | None:
    """A framework by name."""
    if text is None:
        return None
    if text.lower() not in FRAMEWORKS:
        raise InputError("framework", text, f"one of {', '.join(FRAMEWORKS)}")
    return text.lower()


def read_kernels(given: Sequence[str | int] | None) -> tuple[tuple[str, int], ...]:
    """Custom kernels as people write them: ``3`` are CUDA kernels, ``triton:2`` others.

    >>> read_kernels(["3", "triton:2"])
    (('cuda', 3), ('triton', 2))
    """
    out: dict[str, int] = {}
    for text in map(str, given or ()):
        language, colon, count = text.lower().rpartition(":")
        language = language if colon else "cuda"
        if language not in LANGUAGES or not count.isascii() or not count.isdigit() or int(count) > MOST_KERNELS:
            raise InputError("custom_kernels", text, f"a count such as 3 or triton:2 ({', '.join(LANGUAGES)})")
        out[language] = out.get(language, 0) + int(count)
    return tuple(out.items())

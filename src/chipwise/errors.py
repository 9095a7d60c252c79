"""Everything chipwise raises on purpose.

::

    ChipwiseError                 one clear line; the command line exits with 2
    ├── InputError                the user's input: names the field, the value, what is accepted
    │   ├── UnknownName           a chip, model or key we don't know, with the nearest names
    │   ├── Conflict              two things that can't be combined
    │   ├── UnitMissing           a bare number where a duration is meant
    │   ├── AmbiguousNumber       a comma that may be a decimal point: both readings
    │   ├── AmbiguousCurrency     a sign that several currencies share: all readings
    │   ├── MissingInput          things that have to be given, all in one line
    │   └── BrokenFile            a file that is empty, too large or not what it claims
    │       └── NoSuchFile        a file that is missing
    ├── MissingCompiler           an optional compiler is not installed: the command that installs it, or where to run
    └── Refusal                   no honest number exists: says why and what would unlock it
        ├── DoesNotFit            memory is short
        ├── PrecisionMissing      the chip has no such precision
        └── NoLayout              nothing legal splits the work that way
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Self


class _Nothing:
    """Stands for a value that was not given, in messages."""

    def __str__(self) -> str:
        return "nothing"


NOTHING = _Nothing()


class ChipwiseError(Exception):
    """Base of every error chipwise raises on purpose."""


class InputError(ChipwiseError):
    """Input that can't be used; the message names the field, the value and what is accepted.

    A field is a parameter of the verb, or a key of the file that was read.

    >>> str(InputError("train.global_batch", -3, "a whole number of at least 1"))
    'train.global_batch: -3 is not accepted; expected a whole number of at least 1'
    >>> str(InputError("train.sequence", NOTHING, "a whole number"))
    'train.sequence: missing; expected a whole number'
    >>> str(InputError("serve.denoise_steps", 50, "nothing: diffusion models denoise, llama-3.1-8b does not"))
    "serve.denoise_steps: can't be given (50): diffusion models denoise, llama-3.1-8b does not"
    """

    def __init__(self, field: str, value: object, accepted: str) -> None:
        self.field, self.value, self.accepted = field, value, accepted
        super().__init__(self._line().replace("\n", " "))

    def under(self, field: str) -> Self:
        """The same error of a field by another name, such as the one a file's reader knows.

        >>> str(NoSuchFile("file", "pools.yaml").under("pools"))
        "pools: no such file: 'pools.yaml'"
        """
        return self._with(field=field)

    def renamed(self, name: Callable[[str], str]) -> Self:
        """The same error with each field it names under another name, such as that of a flag.

        >>> str(Conflict("chips", "time_limit").renamed(lambda field: "--" + field.replace("_", "-")))
        "can't combine --chips with --time-limit"
        """
        return self.under(name(self.field))

    def _with(self, **changes: object) -> Self:
        changed = type(self).__new__(type(self))
        changed.__dict__.update(self.__dict__, **changes)
        changed.args = (changed._line().replace("\n", " "),)
        return changed

    def _line(self) -> str:
        if self.value is NOTHING or self.value == str(NOTHING):
            return f"{self.field}: missing; expected {self.accepted}"
        without, _, why = self.accepted.partition(": ")
        if without == str(NOTHING):
            return f"{self.field}: can't be given ({self._shown()}): {why}"
        return f"{self.field}: {self._shown()} is not accepted; expected {self.accepted}"

    def _shown(self) -> str:
        shown = repr(self.value) if isinstance(self.value, str) else str(self.value)
        # both ends: a path's file name is at its end
        return shown if len(shown) <= 80 else f"{shown[:38]}...{shown[-39:]}"


class UnknownName(InputError):
    """A name we don't know; suggests the nearest ones.

    >>> str(UnknownName("chip", "h10", ["h100", "h200", "v5e"]))
    "chip: unknown name 'h10' (did you mean h100, h200?)"
    >>> str(UnknownName("train.batch", "batch", ["global_batch", "sequence"], what="key"))
    "train.batch: unknown key 'batch' (did you mean global_batch?)"
    """

    what = "name"

    def __init__(self, field: str, value: str, known: Iterable[str], hint: str = "", what: str = "name") -> None:
        self.what = what
        names = sorted(set(known))
        near = difflib.get_close_matches(value.lower(), names, n=3, cutoff=0.5)
        if near:
            accepted = f"a known name (did you mean {', '.join(near)}?)"
        elif len(names) <= 40:
            accepted = f"one of {', '.join(names)}"
        else:
            accepted = f"a known name{hint}"
        super().__init__(field, value, accepted)

    def _line(self) -> str:
        # a name is looked up in a list: the line says it is not on it, and what is
        rest = self.accepted.removeprefix("a known name")
        rest = f"; expected {rest}" if rest == self.accepted else rest
        return f"{self.field}: unknown {self.what} {self._shown()}{rest}"


class Conflict(InputError):
    """Two parameters or keys of which one must go.

    >>> str(Conflict("chips", "deadline"))
    "can't combine chips with deadline"
    """

    def __init__(self, field: str, other: str, why: str = "") -> None:
        self.other, self.why = other, why
        super().__init__(field, NOTHING, f"nothing beside {other}")

    def renamed(self, name: Callable[[str], str]) -> Self:
        """Both fields under other names."""
        return self._with(field=name(self.field), other=name(self.other))

    def _line(self) -> str:
        return f"can't combine {self.field} with {self.other}" + (f": {self.why}" if self.why else "")


class UnitMissing(InputError):
    """A bare number where a duration of any size may be meant.

    >>> str(UnitMissing("deadline", "3"))
    'deadline: 3 what? Give a unit, such as 3h or 3d'
    """

    def __init__(self, field: str, value: str, units: tuple[str, str] = ("h", "d")) -> None:
        number = value.strip()
        super().__init__(field, number, "a unit, such as " + " or ".join(f"{number}{unit}" for unit in units))

    def _line(self) -> str:
        return f"{self.field}: {self.value} what? Give {self.accepted}"


class AmbiguousNumber(InputError):
    """A number with a comma that is no separator of thousands: it may be a decimal point.

    >>> str(AmbiguousNumber("tokens", "1,5T", ("1.5T", "15T")))
    'tokens: 1,5T: 1.5T or 15T? A comma stands only between groups of three digits'
    """

    def __init__(self, field: str, value: str, readings: tuple[str, str]) -> None:
        self.readings = readings
        super().__init__(field, value.strip(), " or ".join(readings))

    def _line(self) -> str:
        return f"{self.field}: {self.value}: {self.accepted}? A comma stands only between groups of three digits"


class AmbiguousCurrency(InputError):
    """A sign that several currencies share; each of `readings` is an amount and the currency's name.

    >>> str(AmbiguousCurrency("budget", "¥25", [("25 JPY", "Japanese yen"), ("25 CNY", "Chinese yuan")]))
    'budget: ¥25: 25 JPY (Japanese yen) or 25 CNY (Chinese yuan)?'
    """

    def __init__(self, field: str, value: str, readings: Sequence[tuple[str, str]]) -> None:
        self.readings = tuple(amount for amount, _ in readings)
        super().__init__(field, " ".join(value.split()), " or ".join(f"{amount} ({name})" for amount, name in readings))

    def _line(self) -> str:
        return f"{self.field}: {self.value}: {self.accepted}?"


class MissingInput(InputError):
    """What has to be given and wasn't; each of `fields` is one parameter, or several of which one is enough.

    >>> str(MissingInput([("batch",), ("tokens", "steps")]))
    'missing: batch, tokens or steps'
    >>> str(MissingInput([("evidence compiled",)], "recompile"))
    'recompile needs evidence compiled'
    """

    def __init__(self, fields: Sequence[Sequence[str]], needed_by: str = "") -> None:
        self.fields, self.needed_by = tuple(tuple(either) for either in fields), needed_by
        super().__init__(self.fields[0][0], NOTHING, "a value")

    def renamed(self, name: Callable[[str], str]) -> Self:
        """All fields under other names."""
        fields = tuple(tuple(name(field) for field in either) for either in self.fields)
        return self._with(field=name(self.field), fields=fields, needed_by=name(self.needed_by))

    def _line(self) -> str:
        fields = ", ".join(" or ".join(either) for either in self.fields)
        return f"{self.needed_by} needs {fields}" if self.needed_by else f"missing: {fields}"


class BrokenFile(InputError):
    """A file that is empty, too large, or not what it claims to be."""


class NoSuchFile(BrokenFile):
    """A file that is missing; `detail` says where it was looked for.

    >>> str(NoSuchFile("rows", "nowhere.csv"))
    "rows: no such file: 'nowhere.csv'"
    """

    def __init__(self, field: str, value: str, detail: str = "") -> None:
        self.detail = detail
        super().__init__(field, value, "a file that exists")

    def _line(self) -> str:
        field = "" if self.field == "file" else f"{self.field}: "
        return f"{field}no such file: {self._shown()}" + (f" ({self.detail})" if self.detail else "")


class MissingCompiler(ChipwiseError):
    """A compiler that is an optional extra is missing; the message has the command that installs it.

    >>> str(MissingCompiler("XLA for TPU", "libtpu is not installed", "pip install 'chipwise[tpu-compiler]'"))
    "XLA for TPU can't be used: libtpu is not installed; install it with: pip install 'chipwise[tpu-compiler]'"

    Where this platform can't have it, `elsewhere` says where to run instead.
    """

    def __init__(self, compiler: str, problem: str, command: str, license: str = "", elsewhere: str = "") -> None:
        self.compiler, self.problem, self.command, self.license = compiler, problem, command, license
        install = f"install it with: {command}" + (f" ({license})" if license else "") if command else ""
        self.unlock = install or elsewhere
        super().__init__(f"{compiler} can't be used: {problem}" + (f"; {self.unlock}" if self.unlock else ""))


class Refusal(ChipwiseError):
    """No honest number exists: the reason, and what would unlock one."""

    kind = "refused"

    def __init__(self, reason: str, unlock: str = "") -> None:
        self.reason, self.unlock = reason, unlock
        super().__init__(reason + (f"; {unlock}" if unlock else ""))


class DoesNotFit(Refusal):
    """The memory of the chips is too small for the work; `holds` is the smallest count of them that is not."""

    kind = "memory"

    def __init__(self, reason: str, unlock: str = "", holds: str = "") -> None:
        self.holds = holds
        super().__init__(reason, unlock)


class PrecisionMissing(Refusal):
    """The chip has no matrix units for the precision asked for."""

    kind = "precision"


class NoLayout(Refusal):
    """No legal way to split the work over these chips."""

    kind = "layout"

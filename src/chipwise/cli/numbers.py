"""Numbers of options, by the reader of all other quantities: 1,024 and 10k are read, 1,5 is asked back."""

from __future__ import annotations

from functools import partial
from typing import Any

from chipwise.errors import InputError
from chipwise.units import parse_count, parse_number, parse_share

SHARE = "SHARE"  # the placeholder of options that take a share, also as a percentage


def take_numbers(command: Any) -> Any:
    """The command, and its verbs, whose options of whole and other numbers are read so."""
    for verb in getattr(command, "commands", {}).values():
        take_numbers(verb)
    take_numbers_of(command)
    return command


def take_numbers_of(command: Any) -> None:
    """The same of the command alone."""
    for parameter in command.params:
        kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
        if kind in (int, float) and not getattr(parameter, "count", False):
            parameter.process_value = partial(_processed, parameter, kind, parameter.process_value)


def _processed(parameter: Any, kind: type, usual: Any, ctx: Any, value: Any) -> Any:
    return usual(ctx, read(parameter, kind, value) if isinstance(value, str) else value)


def read(parameter: Any, kind: type, text: str) -> float:
    """What an option's text says, within the option's bounds."""
    flag, accepted = str(max(parameter.opts, key=len)), _accepted(parameter, kind)
    if kind is float and text.strip().startswith("-"):
        raise InputError(flag, text, accepted)
    if parameter.metavar == SHARE:
        number = parse_share(text, flag)
    elif kind is float:
        number = parse_number(text, flag, accepted)
    else:
        number = parse_count(text, flag, accepted)
        if not isinstance(number, int):
            raise InputError(flag, text, accepted)
    if not _least(parameter) <= number <= _most(parameter):
        raise InputError(flag, text, accepted)
    return number


def _least(parameter: Any) -> float:
    return float("-inf") if parameter.min is None else float(parameter.min)


def _most(parameter: Any) -> float:
    return float("inf") if parameter.max is None else float(parameter.max)


def _accepted(parameter: Any, kind: type) -> str:
    what = "a share from 0 to 1, such as 0.4 or 40%" if parameter.metavar == SHARE else ""
    what = what or ("a whole number" if kind is int else "a number")
    if parameter.min is not None and parameter.max is not None:
        return f"{what} from {parameter.min:,} to {parameter.max:,}"
    if parameter.min is not None:
        return f"{what} of at least {parameter.min:,}"
    return f"{what} of at most {parameter.max:,}" if parameter.max is not None else what

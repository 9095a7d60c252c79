"""The kinds of value in job and pools files: names, argument lists, environments, durations, money, times."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from chipwise.catalog.money import ACCEPTED, parse_usd
from chipwise.workload.fields import DURATION_JSON, number_of, read, seconds_of

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"  # of pools and variants: fit for labels of every backend
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"
# one line of what terminals don't obey and what reorders no text: no C0, DEL, C1, separators of lines, direction marks
PLAIN = r"^[^\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*$"
MOST_CHIPS = 1_000_000
DURATION = "a duration such as 90s, 12h or 3d"
TIME = "a duration after submission such as 12h, or a time with its zone such as 2027-01-31T18:00Z"
QUOTED = 'text in quotes, such as "1e-3": YAML keeps a number and not how it was written'
ARGUMENTS = "a list such as [python, train.py]; no shell reads it"


class BadPart(ValueError):
    """A part of a list that can't be used."""

    def __init__(self, index: int, value: Any, accepted: str) -> None:
        self.index, self.value = index, value
        super().__init__(accepted)


def _duration(value: Any) -> float:
    return seconds_of(value, DURATION)


def _moment(value: Any) -> float | str:
    """Seconds after submission, or an ISO time that says its zone."""
    if isinstance(value, str) and re.match(r"\d{4}-", value.strip()):
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(TIME) from None
        if when.tzinfo is None:
            raise ValueError(TIME)
        return value.strip()
    return seconds_of(value, TIME)


def _money(value: Any) -> float:
    usd = read(lambda amount: parse_usd(amount, accepted=ACCEPTED), value, ACCEPTED)
    if usd <= 0:
        raise ValueError("more than 0 US dollars")
    return usd


def _arguments(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(ARGUMENTS)
    out = []
    for i, part in enumerate(value):
        if part is None or isinstance(part, bool):
            word = "null" if part is None else str(part).lower()
            raise BadPart(i, "nothing" if part is None else part, f'text: quote what YAML reads otherwise ("{word}")')
        if isinstance(part, float):
            raise BadPart(i, part, QUOTED)
        if not isinstance(part, str | int):
            raise BadPart(i, part, "text or a whole number: one argument each, and no shell reads it")
        text = str(part)
        if "\0" in text:
            raise ValueError("arguments without NUL characters")
        out.append(text)
    if not out[0].strip():
        raise ValueError("a program as the first of the list")
    return out


def _text(value: Any) -> str:
    """Text of a scalar: 1 and true in an environment are meant as words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        raise ValueError(QUOTED)
    if not isinstance(value, str | int):
        raise ValueError("text or a whole number")
    text = str(value)
    if "\0" in text:
        raise ValueError("text without NUL characters")
    return text


def _finite(value: Any) -> float:
    return number_of(value, "a number")


FINITE = BeforeValidator(_finite)
Name = Annotated[str, Field(strict=True, pattern=NAME)]
Title = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=PLAIN)]
Line = Annotated[str, Field(strict=True, max_length=2000, pattern=PLAIN)]
Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema({"anyOf": DURATION_JSON})]
ISO = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}(:\d{2}){0,2}.*(Z|[+-]\d{2}:?\d{2})$"
Moment = Annotated[
    float | str,
    BeforeValidator(_moment),
    WithJsonSchema({"anyOf": [*DURATION_JSON, {"type": "string", "pattern": ISO}]}),
]
Money = Annotated[
    float,
    BeforeValidator(_money),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "minLength": 1}]}),
]
Verbatim = Annotated[str, StringConstraints(strip_whitespace=False, max_length=30_000)]  # as it stands, spaces and all
Arguments = Annotated[
    list[Verbatim],
    BeforeValidator(_arguments),
    WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["string", "integer"]}}),
]
Value = Annotated[Verbatim, BeforeValidator(_text), WithJsonSchema({"type": ["string", "integer", "boolean"]})]
Variable = Annotated[str, Field(strict=True, pattern=VARIABLE)]
Chips = Annotated[int, Field(strict=True, ge=1, le=MOST_CHIPS)]
Watts = Annotated[float, Field(ge=0, le=1e9), FINITE]

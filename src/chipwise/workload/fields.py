"""The kinds of value in a workload file, as pydantic checks them: counts, numbers, durations, words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from chipwise.errors import AmbiguousCurrency, AmbiguousNumber, InputError
from chipwise.units import parse_count, parse_duration, parse_number, parse_tokens
from chipwise.workload.model import SPELLINGS

LARGEST = 10**18
LONGEST = 100 * 365.25 * 86_400.0  # seconds: a century
COUNT_TEXT = "a whole number of at least 1, such as 1024, 15T or 2.5e9"


def read(parse: Callable[[object], float], value: object, accepted: str) -> float:
    """A quantity as `chipwise.units` reads it; what pydantic is told where it can't be, with both readings of 1,5T."""
    try:
        return parse(value)
    except AmbiguousNumber as error:
        raise ValueError(f"{error.accepted}: a comma stands only between groups of three digits") from None
    except AmbiguousCurrency as error:
        raise ValueError(error.accepted) from None
    except (InputError, ValueError):
        raise ValueError(accepted) from None


def count_of(value: Any, parse: Callable[[object], float] = parse_count) -> Any:
    """Read 1024, "15T" or 2.5e9 as a whole number; leave anything else for pydantic to refuse."""
    if isinstance(value, bool) or value is None:
        raise ValueError(COUNT_TEXT)
    if isinstance(value, str) and len(value) <= 40:
        value = read(parse, value, COUNT_TEXT)
    if isinstance(value, float):
        if not math.isfinite(value) or value != int(value):
            raise ValueError(COUNT_TEXT)
        value = int(value)
    if not isinstance(value, int) or value < 1:
        raise ValueError(COUNT_TEXT)
    return value


def tokens_of(value: Any) -> Any:
    """The same of the tokens of a sequence, where 8k is 8,192."""
    return count_of(value, parse_tokens)


def number_of(value: Any, accepted: str) -> float:
    """A finite number, also where a flag gives it as text."""
    if isinstance(value, str) and "," in value:
        value = read(lambda text: parse_number(text, "", accepted), value, accepted)
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(accepted)
    return number


def precision_of(value: Any) -> Any:
    """A precision under its usual name: mxfp4 and nvfp4 are formats of fp4.

    >>> precision_of("NVFP4"), precision_of("bf16")
    ('fp4', 'bf16')
    """
    word = value.strip().lower() if isinstance(value, str) else value
    return SPELLINGS[word] if isinstance(word, str) and word in SPELLINGS else value


def seconds_of(value: Any, accepted: str) -> float:
    """Seconds of a duration above 0 and below a century; a bare number is seconds."""
    seconds = read(parse_duration, value, accepted)
    if not 0 < seconds <= LONGEST:
        raise ValueError(accepted)
    return seconds


COUNT_JSON: list[dict[str, Any]] = [
    {"type": "number", "minimum": 1, "maximum": 1e18},
    {
        "type": "string",
        "pattern": r"^([1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]+(_[0-9]+)*)(\.[0-9]+)?([eE][+]?[0-9]+)?\s*[kKmMbBgGtTpPeE]?$",
    },
]
DURATION_JSON: list[dict[str, Any]] = [
    {"type": "number", "exclusiveMinimum": 0},
    {
        "type": "string",
        "pattern": r"^([1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]+(_[0-9]+)*)?(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*[a-zA-Z]*$",
    },
]
Count = Annotated[
    int,
    BeforeValidator(count_of),
    Field(ge=1, le=LARGEST),
    WithJsonSchema({"anyOf": COUNT_JSON}),
]
Tokens = Annotated[
    int,
    BeforeValidator(tokens_of),
    Field(ge=1, le=LARGEST),
    WithJsonSchema({"anyOf": COUNT_JSON}),
]
Dim = Annotated[int, Field(strict=True, ge=1, le=10**9)]
DimOrZero = Annotated[int, Field(strict=True, ge=0, le=10**9)]
Flag = Annotated[bool, Field(strict=True)]
Label = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
FilePath = Annotated[str, Field(strict=True, min_length=1, max_length=4096)]
StackName = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]
StackRelease = Annotated[
    str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}(@[A-Za-z0-9._+-]{1,32})?$")
]


class Strict(BaseModel):
    """A section: nothing but its own keys."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)

"""The trace file, as pydantic checks it. Importing this module imports pydantic, so only `trace` does, when called."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from chipwise.errors import InputError
from chipwise.route.spec.fields import FINITE, Duration, Title
from chipwise.units import parse_duration
from chipwise.workload.fields import DURATION_JSON, LONGEST, FilePath, Strict

ARRIVAL = "a duration after the trace's start such as 0s, 90min or 2d"


def _arrival(value: Any) -> float:
    try:
        seconds = parse_duration(value)
    except InputError:
        raise ValueError(ARRIVAL) from None
    if not 0 <= seconds <= LONGEST:
        raise ValueError(ARRIVAL)
    return seconds


Since = Annotated[float, BeforeValidator(_arrival), WithJsonSchema({"anyOf": DURATION_JSON})]


class EntrySpec(Strict):
    """A job and when it arrives."""

    arrival: Since = Field(description="After the trace's start.")
    job: FilePath | dict[str, Any] = Field(description="A job file, relative to this one, or its contents.")
    name: Title | None = Field(None, description="In place of the job's.")
    owner: Title | None = Field(None, description="In place of the job's.")
    deadline: Duration | None = Field(None, description="After its arrival, in place of the job's.")
    priority: Annotated[float, Field(gt=0, le=1e6), FINITE] | None = Field(None, description="In place of the job's.")
    count: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(1, description="Number of them.")
    every: Duration | None = Field(None, description="Between two of them; default: all at once.")


class TraceSpec(Strict):
    """A trace file."""

    name: Title | None = Field(None, description="What to call it.")
    jobs: Annotated[list[EntrySpec], Field(min_length=1, max_length=10_000)] = Field(description="Jobs with arrivals.")

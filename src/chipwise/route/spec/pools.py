"""The pools file: chips that backends hand out, and how the backends are reached."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from chipwise.catalog.money import PER_HOUR, parse_usd
from chipwise.route.names import BACKENDS, backend_names
from chipwise.route.spec.access import AccessSpec
from chipwise.route.spec.fields import FINITE, Chips, Duration, Line, Name, Title, Watts
from chipwise.workload.fields import FilePath, Label, Strict, read

PRICE = "US dollars of a chip-hour, at least 0, or another currency: 2.5 or 2.30EUR"
SHAPE = r"^[1-9][0-9]{0,3}(x[1-9][0-9]{0,3}){0,2}$"
Shape = Annotated[str, Field(strict=True, pattern=SHAPE)]


def _backend(value: object) -> str:
    if value not in backend_names():
        raise ValueError(f"one of {', '.join(backend_names())}")
    return str(value)


BackendName = Annotated[str, BeforeValidator(_backend), WithJsonSchema({"type": "string", "examples": list(BACKENDS)})]


def _price(value: object) -> float:
    number = read(lambda amount: parse_usd(amount, accepted=PRICE, per=PER_HOUR), value, PRICE)
    if not 0 <= number <= 1e6:
        raise ValueError(PRICE)
    return number


Price = Annotated[
    float,
    BeforeValidator(_price),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1e6}, {"type": "string", "minLength": 1}]}),
]
Setting = bool | int | float | Line | list[Line]


class PoolSpec(Strict):
    """Chips of one kind in one place, handed out by one backend."""

    name: Name = Field(description="What to call it.")
    backend: BackendName = Field(description="Who hands its chips out.")
    chip: Label = Field(description="A chip of the catalog, or cpu.")
    count: Chips = Field(description="Chips in all.")
    unit: Chips | None = Field(
        None, description="Chips are taken in multiples of this; whole instances where the price is of such, else 1."
    )
    shapes: Literal["any"] | Annotated[list[Shape], Field(min_length=1, max_length=200)] | None = Field(
        None, description="Slices that can be had: 2x2, 2x4; any: no slices. Default: those of the catalog (TPUs)."
    )
    price: Price | None = Field(
        None, description="US dollars of a chip-hour; default: that of the price book for cloud, region and terms."
    )
    cloud: Title | None = Field(None, description="Whose chips they are.")
    region: Title | None = Field(None, description="Where.")
    terms: Literal["ondemand", "spot", "reserved", "owned"] | None = Field(
        None, description="Default: ondemand; owned on the local backend."
    )
    years: Literal[1, 3] | None = Field(None, description="Of a reservation, to find its price.")
    interruptions: Annotated[float, Field(ge=0, le=3600), FINITE] | None = Field(
        None, description="Of spot chips: a unit-hour; default: the economics'."
    )
    watts: Watts | None = Field(
        None, description="Of a busy chip with its share of server and cooling; default: by the catalog."
    )
    power_kw: Annotated[float, Field(gt=0, le=1e6), FINITE] | None = Field(None, description="Most power of the pool.")
    max_time: Duration | None = Field(None, description="Longest run that the backend allows.")
    address: dict[Label, Setting | dict[Label, Setting]] = Field(
        {},
        description="Where in the backend: partition, constraint, gres, queue, namespace, label, cwd of programs; "
        "secrets: names of the variables that jobs may be handed there.",
    )


class PoolsSpec(Strict):
    """A pools file."""

    folder: FilePath | None = Field(
        None, description="Where attempts have their folders, shared with the nodes; relative to this file."
    )
    backends: dict[BackendName, dict[Label, Setting | dict[Label, Setting]]] = Field(
        {}, description="What all pools of a backend share of their address: conf of slurm, address of ray."
    )
    delay: Annotated[float, Field(ge=0, le=1e6), FINITE] | None = Field(
        None,
        description="US dollars that an hour until the end of a job without a deadline counts, times its priority "
        "(policy cheapest-within-deadline); default: 5.",
    )
    access: AccessSpec | None = Field(
        None, description="Who may do what through the service, and the quotas of users and teams."
    )
    pools: Annotated[list[PoolSpec], Field(min_length=1, max_length=1000)] = Field(description="The pools.")

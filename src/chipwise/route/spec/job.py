"""The job file: what must run, in which variants, within which deadline and budget."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from chipwise.route.spec.fields import (
    FINITE,
    Arguments,
    Chips,
    Duration,
    Line,
    Moment,
    Money,
    Name,
    Title,
    Value,
    Variable,
    Watts,
)
from chipwise.workload.fields import COUNT_JSON, Flag, Label, Strict, count_of

MOST_JOBS = 10_000  # of a file
Size = Annotated[int, BeforeValidator(count_of), WithJsonSchema({"anyOf": COUNT_JSON})]


class RunsSpec(Strict):
    """What every variant has unless it says otherwise."""

    command: Arguments | None = Field(None, description="The program and its arguments, as a list; no shell reads it.")
    image: Title | None = Field(None, description="Container image, for backends that run those.")
    environment: dict[Variable, Value] = Field({}, description="Variables of the program; never secrets.")
    secrets: list[Variable] = Field(
        [], description="Names of variables whose values the backend fetches, where the pools file allows it."
    )
    chips: Chips | None = Field(None, description="Chips, all at once; 1 for a plain command.")


class VariantSpec(RunsSpec):
    """How the job runs on one family of chips."""

    family: Literal["gpu", "tpu", "cpu"] | None = Field(
        None, description="Of the chips; the variant's own name where that is one of them."
    )
    on: Annotated[list[Label], Field(min_length=1)] | None = Field(None, description="These chips alone.")
    layout: Label | None = Field(None, description="fsdp=8,tp=2; default: the best one.")
    batch: Size | None = Field(None, description="Global batch, in place of the workload's.")
    precision: Label | None = Field(None, description="In place of the workload's.")
    flags: list[Line] = Field([], description="For the compiler: XLA_FLAGS on GPUs, LIBTPU_INIT_ARGS on TPUs.")
    program: Title | None = Field(
        None, description="What `chipwise check` compiles: file.py:function; default: the workload's own."
    )


class GivenSpec(Strict):
    """The declared runtime of the job in a pool, on a chip or on a family."""

    time: Duration = Field(description="The whole run.")
    low: Duration | None = Field(None, description="Low end of its 90 % interval.")
    high: Duration | None = Field(None, description="High end of its 90 % interval.")
    watts: Watts | None = Field(None, description="Of the whole job.")


class DataSpec(Strict):
    """Where the data lie."""

    regions: Annotated[list[Title], Field(min_length=1)] = Field(description="Regions that hold them.")
    size: Size | None = Field(None, description="Bytes that would be moved: 500G.")
    move: Flag = Field(False, description="They may be moved, at the price of egress.")


class ConstraintSpec(Strict):
    """Where the job may run at all."""

    chips: Annotated[list[Label], Field(min_length=1)] | None = Field(None, description="These chips alone.")
    pools: Annotated[list[Name], Field(min_length=1)] | None = Field(None, description="These pools alone.")
    regions: Annotated[list[Title], Field(min_length=1)] | None = Field(None, description="These regions alone.")
    spot: Flag = Field(True, description="Chips that may be taken away will do.")
    data: DataSpec | None = Field(None, description="Where its data lie.")


class CheckpointSpec(Strict):
    """Whether the job goes on where it stopped."""

    restartable: Flag = Field(True, description="It may be stopped and started again.")
    every: Duration | None = Field(None, description="Time between checkpoints; default: it starts over.")
    folder: Title | None = Field(None, description="Where they lie; the program finds it in CHIPWISE_CHECKPOINT.")
    restart: Duration | None = Field(None, description="Time until it works again; default: the economics'.")


class JobSpec(RunsSpec):
    """A job."""

    name: Title = Field(description="What to call it.")
    owner: Title | None = Field(None, description="Whose it is.")
    workload: Label | dict[str, Any] | None = Field(
        None, description="A workload file, relative to this one, or its contents: it is predicted on every pool."
    )
    estimates: Annotated[dict[Name, Duration | GivenSpec], Field(min_length=1)] | None = Field(
        None, description="Time of the whole run by pool, chip or family (the closest counts), where not predicted."
    )
    variants: Annotated[dict[Name, VariantSpec], Field(min_length=1, max_length=50)] | None = Field(
        None, description="How it runs on each family, in the order in which they are tried: gpu, tpu, or other names."
    )
    constraints: ConstraintSpec = Field(
        default_factory=lambda: ConstraintSpec.model_validate({}), description="Where it may run at all."
    )
    deadline: Moment | None = Field(None, description="A duration after submission, or a time with its zone.")
    confidence: Annotated[float, Field(gt=0, lt=1), FINITE] = Field(
        0.9, description="Probability with which the deadline is to be met."
    )
    budget: Money | None = Field(None, description="US dollars.")
    priority: Annotated[float, Field(gt=0, le=1e6), FINITE] = Field(1.0, description="Twice as much: twice the share.")
    checkpoint: CheckpointSpec | None = Field(None, description="Whether it goes on where it stopped; default: not.")
    retries: Annotated[int, Field(strict=True, ge=0, le=100)] = Field(
        3, description="Attempts after the first that failed by their own fault."
    )
    key: Title | None = Field(None, description="Two submissions of one key are one job.")


class JobsSpec(Strict):
    """Several jobs in one file."""

    jobs: Annotated[list[JobSpec], Field(min_length=1, max_length=MOST_JOBS)] = Field(description="The jobs.")

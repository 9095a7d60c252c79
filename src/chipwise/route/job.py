"""A job: what must run, in which variants, by which deadline and budget. Plain data; `load` reads it from a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from chipwise.predict.estimate import Estimate

FAMILIES = ("gpu", "tpu", "cpu")


@dataclass(frozen=True, slots=True)
class Variant:
    """How a job runs on one family of chips. Variants stand in the order in which they are to be tried."""

    name: str  # its key in the job file: gpu, tpu, or any name of the user's
    family: str  # one of FAMILIES
    chips: int  # all at once, or none
    on: frozenset[str] = frozenset()  # these chips alone; all of the family where empty
    command: tuple[str, ...] = ()  # the program and its arguments; no shell ever sees them
    image: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()  # names of variables whose values the backend fetches; values are never kept
    layout: str = ""  # fsdp=8,tp=2; the best one where empty
    batch: int | None = None  # global batch, in place of the workload's
    precision: str = ""  # in place of the workload's
    flags: tuple[str, ...] = ()  # for the compiler: XLA_FLAGS on GPUs, LIBTPU_INIT_ARGS on TPUs
    program: str = ""  # what `chipwise check` compiles: package.module:function; empty: the workload's own


@dataclass(frozen=True, slots=True)
class DeclaredRuntime:
    """The runtime of a job as its owner declares it, where there is no workload to predict."""

    on: str  # a pool, a chip or a family; the closest match counts
    seconds: Estimate
    watts: float | None = None  # of the whole job


@dataclass(frozen=True, slots=True)
class Data:
    """Where a job's data lie, and whether they may be moved."""

    regions: tuple[str, ...]
    size: float = 0.0  # bytes
    move: bool = False


@dataclass(frozen=True, slots=True)
class Constraints:
    """Where a job may run at all."""

    chips: frozenset[str] = frozenset()  # empty: any
    pools: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    spot: bool = True  # chips that may be taken away will do
    data: Data | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Whether a job goes on where it stopped."""

    restartable: bool = False
    every: float = inf  # seconds of work between checkpoints; inf: it starts over
    folder: str = ""  # where they lie; given to the program as CHIPWISE_CHECKPOINT
    restart: float = 0.0  # seconds until it works again


@dataclass(frozen=True, slots=True)
class Job:
    """Something to run once."""

    name: str
    variants: tuple[Variant, ...]
    owner: str = ""
    workload: str = ""  # a workload file's contents as JSON; empty: `given` says what it takes
    given: tuple[DeclaredRuntime, ...] = ()
    constraints: Constraints = field(default_factory=Constraints)
    deadline: float = inf  # seconds since 1970
    confidence: float = 0.9  # probability with which the deadline is to be met
    budget: float = inf  # USD
    priority: float = 1.0  # twice the priority: half the wait counts as much, twice the share
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    retries: int = 3  # attempts after the first that failed by their own fault
    key: str = ""  # two submissions of one key are one job

    def variant(self, name: str) -> Variant:
        """The variant of that name."""
        return next(v for v in self.variants if v.name == name)

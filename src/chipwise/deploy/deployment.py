"""Machines to put up: pools of nodes at a provider, run by an engine. Plain data; `read` and `machines` make it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod

from chipwise.errors import Refusal

HOURS_A_MONTH = 730  # 8,760 hours of a year over 12, as clouds bill


class Engine(StrEnum):
    """What runs jobs on the machines."""

    KUBERNETES = "kubernetes"
    SLURM = "slurm"
    RAY = "ray"


class Provider(StrEnum):
    """Whose machines they are, by the cloud's name in the catalog."""

    GCP = "gcp"
    AWS = "aws"
    ON_PREMISES = "on-premises"


class Term(StrEnum):
    """On which terms machines are had."""

    ONDEMAND = "ondemand"
    SPOT = "spot"
    RESERVED = "reserved"
    FLEX_START = "flex-start"
    OWNED = "owned"


class Role(StrEnum):
    """What a pool is for."""

    TRAIN = "train"
    SERVE = "serve"
    ANY = "any"


class Problem(StrEnum):
    """Why a pool can't be written."""

    CHIP_NOT_OFFERED = "chip not offered"
    COUNT = "count"
    TOPOLOGY = "topology"
    TERM = "term"
    OTHER_PROVIDER = "other provider"
    SEVERAL_REGIONS = "several regions"
    NO_REGION = "no region"
    NO_ZONE = "no zone"
    NO_RESERVATION = "no reservation"
    NAME = "name"
    NOTHING = "nothing to write"


class Undeployable(Refusal):
    """A pool that can't be written for a target: which, why, and what would do."""

    kind = "deployment"

    def __init__(self, problem: Problem, pool: str, reason: str, unlock: str = "") -> None:
        self.problem, self.pool = problem, pool
        super().__init__(f"{pool}: {reason}" if pool else reason, unlock)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequest:
    """Chips that a source asks for, before machines are chosen for them."""

    name: str
    chip: str  # its name in the catalog
    chips: int  # in all
    shapes: tuple[str, ...] = ()  # slices of which one is taken; empty: any
    unit: int = 1  # chips are taken in multiples of this
    term: Term = Term.ONDEMAND
    role: Role = Role.ANY
    cloud: str = ""  # whose chips they are; empty: not said
    region: str = ""
    instance: str = ""  # the instance type of the price, where it is one
    always: int = 0  # chips that are always up
    usd_per_chip_hour: float = 0.0
    price_source: str = ""
    max_seconds: float | None = None  # longest run that is allowed
    replica_chips: int = 0  # of a service: chips of each replica
    replica_requests: float = 0.0  # of a service: requests under way in a replica that keep the SLO


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Machines of one kind on the same terms: a partition, a set of node pools, a group of workers."""

    name: str
    chip: str
    family: str  # gpu or tpu
    slices: int  # TPU slices; 1 for GPUs
    topology: str = ""  # of each slice, such as 4x4; empty for GPUs
    machine: str  # the machine type; empty for machines of one's own
    accelerator: str = ""  # what the engine calls the chip: the value of GKE's label
    host_chips: int  # chips a host
    host_cpus: int = 0
    host_memory_gib: float = 0.0
    hosts: int  # in all, at most
    min_hosts: int = 0  # always up
    term: Term
    role: Role = Role.ANY
    reservation: str = ""  # its name at the provider
    usd_per_chip_hour: float = 0.0
    price_source: str = ""
    max_seconds: float | None = None
    replica_chips: int = 0  # of a service: chips of each replica
    replica_requests: float = 0.0  # of a service: requests under way in a replica that keep the SLO
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def chips(self) -> int:
        """Chips in all."""
        return self.hosts * self.host_chips

    @property
    def slice_hosts(self) -> int:
        """Hosts of one slice; of GPUs, hosts in all."""
        return self.hosts // self.slices

    @property
    def slice_chips(self) -> int:
        """Chips that a job takes at once: a slice, or a host."""
        return prod(int(axis) for axis in self.topology.split("x")) if self.topology else self.host_chips

    @property
    def multi_host(self) -> bool:
        """Whether a slice of it spans several hosts: it starts and ends whole."""
        return bool(self.topology) and self.slice_hosts > 1

    @property
    def autoscaled(self) -> bool:
        """Whether its machines come and go with the jobs."""
        return self.min_hosts < self.hosts

    @property
    def usd_month(self) -> float:
        """What a month costs with every machine up."""
        return self.chips * self.usd_per_chip_hour * HOURS_A_MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """All that a tree of files is written of."""

    name: str
    source: str  # what it was read of, in words
    provider: Provider
    engine: Engine
    region: str = ""
    zone: str = ""
    pools: tuple[NodePool, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def usd_month(self) -> float:
        """What a month costs with every machine of every pool up."""
        return sum(pool.usd_month for pool in self.pools)

"""What workloads are sized with: the chips that can be had, and what was found so far."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chipwise.catalog import Accelerators, Chip, load
from chipwise.errors import InputError
from chipwise.fleet.market import Buying, Stock
from chipwise.fleet.problem import Pool
from chipwise.predict.estimate import Estimate
from chipwise.predict.prediction import Prediction
from chipwise.serving.capacity import Capacity
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import WorkSpec


@dataclass(frozen=True, slots=True)
class Placed:
    """A workload on a chip: the layout and prediction of a run, or the replica of a service and what it carries."""

    work: str
    accelerators: Accelerators
    layout: str
    estimate: Estimate  # seconds of a run; requests a second of a replica
    prediction: Prediction | None = None
    capacity: Capacity | None = None

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.accelerators.chip


@dataclass(slots=True)
class Sizing:
    """What workloads are sized with, and what was found."""

    buying: Buying
    cautious: bool
    stock: Stock
    placed: dict[tuple[str, str, int], Placed] = field(default_factory=dict)
    works: dict[str, str] = field(default_factory=dict)
    workloads: dict[str, Workload | ServingWorkload] = field(default_factory=dict)
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def chips(self, work: WorkSpec) -> list[Chip]:
        """Chips that can be had and may be used."""
        there = dict.fromkeys(pool.chip for pool in self.stock.pools.values() if self.stock.of(pool.id))
        return [load().chips[name] for name in there if work.chips is None or name in work.chips]

    def pools(self, chip: Chip) -> list[Pool]:
        """Pools of a chip."""
        return [p for p in self.stock.pools.values() if p.chip == chip.id and self.stock.of(p.id)]

    def estimate(self, e: Estimate, slow: bool) -> float:
        """The value to plan by; the bad end where one plans with caution."""
        return (e.high if slow else e.low) if self.cautious else e.value


def source(sizing: Sizing, i: int, work: WorkSpec) -> str:
    """The workload file's path, or its contents as text."""
    if isinstance(work.workload, str):
        return str(sizing.buying.demand.base / work.workload)
    return json.dumps(work.workload)


def within(i: int, e: InputError) -> InputError:
    """What is wrong with the workload of a demand, named by its place there."""
    return e.under(f"workloads[{i}].workload {e.field}")


def shut_out(work: str, shut: dict[tuple[str, int], Pool]) -> InputError:
    """What is wrong where quotas leave no unit of any chip that a workload fits on."""
    (where, quota), pool = next(iter(shut.items()))
    only = "the only chip" if len({p.chip for p in shut.values()}) == 1 else "one of the chips without a quota"
    return InputError(where, quota, f"at least {pool.chips} chips, one unit: {pool.chip} is {only} that {work} fits on")

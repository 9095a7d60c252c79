"""What is to be launched: a training run with its layout, or replicas of a model that is served."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from chipwise.catalog import Accelerators, Offer, Stack
from chipwise.catalog.offers import ANY
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.layouts import Layout
from chipwise.workload.model import Workload
from chipwise.workload.serve import ServingWorkload


@dataclass(frozen=True)
class TrainingRun:
    """A training run on chips, split by a layout."""

    workload: Workload
    accelerators: Accelerators
    stack: Stack
    layout: Layout
    duration: Estimate  # seconds
    offer: Offer | None = None  # what it was priced by; None: nobody lists a price
    work = "train"

    @property
    def chips(self) -> int:
        """Chips of one piece that is started: of the whole run."""
        return self.accelerators.count

    @cached_property
    def hosts(self) -> Hosts:
        """The hosts that it lies on."""
        return hosts_of(self.accelerators, self.chips, self.offer)


@dataclass(frozen=True)
class Replicas:
    """Equal replicas of a served model, with the settings of the stack's scheduler."""

    workload: ServingWorkload
    accelerators: Accelerators  # of all replicas
    stack: Stack
    replicas: int
    tp: int
    pp: int
    dp: int
    ep: int
    most_sequences: int
    most_tokens: int
    block: int
    mixed: bool  # chunks of prompts ride along with decoding
    half: str  # the chip's 16-bit format
    offer: Offer | None = None
    duration: Estimate | None = None  # of an offline job, seconds; None: a service without an end
    prefill_replicas: int = 0  # others, for prefill alone
    work = "serve"

    @property
    def chips(self) -> int:
        """Chips of one piece that is started: of a replica."""
        return self.tp * self.pp * self.dp

    @cached_property
    def hosts(self) -> Hosts:
        """The hosts that a replica lies on."""
        return hosts_of(self.accelerators, self.chips, self.offer)


Launchable = TrainingRun | Replicas


@dataclass(frozen=True, slots=True)
class Hosts:
    """Equal hosts of so many chips each; `sold`: the chips of an instance, where it is larger than what is used."""

    count: int
    chips: int
    sold: int


def hosts_of(acc: Accelerators, chips: int, offer: Offer | None) -> Hosts:
    """The hosts of so many chips, by the instance of the offer or, where it is for every size, the chip's usual host.

    >>> from chipwise.catalog import parse
    >>> hosts_of(parse("h100:64"), 64, None), hosts_of(parse("h100:4"), 4, None)
    (Hosts(count=8, chips=8, sold=8), Hosts(count=1, chips=4, sold=4))
    """
    whole = acc.chip.fabric.host_chips
    sized = offer is not None and offer.instance != ANY and acc.chip.family != "tpu"
    if offer is not None and sized and offer.chips >= 1:
        whole = int(offer.chips)
    if chips >= whole:
        return Hosts(ceil(chips / whole), whole, whole)
    return Hosts(1, chips, whole if sized else chips)

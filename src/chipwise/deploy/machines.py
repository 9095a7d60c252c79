"""Machine types of providers, and which of them a pool gets."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from math import prod

from chipwise.catalog import Slices, load
from chipwise.deploy.data_files import data_text
from chipwise.deploy.deployment import NodePool, PoolRequest, Problem, Provider, Term, Undeployable

OWN_HOST_CHIPS = 8  # of a GPU server of one's own where neither unit nor instance says: HGX and DGX have 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine type of a provider."""

    provider: str
    name: str
    chip: str
    chips: int
    accelerator: str  # what the provider's Kubernetes calls the chip
    cpus: int
    memory_gib: float
    terms: frozenset[Term]
    source: str
    date: str


@cache
def machines() -> tuple[Machine, ...]:
    """Every machine type known.

    >>> next(machine.chips for machine in machines() if machine.name == "a3-ultragpu-8g")
    8
    """
    text = data_text("machines.csv")
    return tuple(
        Machine(
            provider=row["provider"],
            name=row["machine"],
            chip=row["chip"],
            chips=int(row["chips"]),
            accelerator=row["accelerator"],
            cpus=int(row["cpus"]),
            memory_gib=float(row["memory_gib"]),
            terms=frozenset(Term(term) for term in row["terms"].split()),
            source=row["source"],
            date=row["date"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def machines_of(provider: Provider, chip: str) -> tuple[Machine, ...]:
    """A provider's machine types with a chip."""
    return tuple(machine for machine in machines() if machine.provider == provider and machine.chip == chip)


def node_pool(request: PoolRequest, provider: Provider, reservation: str = "") -> tuple[NodePool, tuple[str, ...]]:
    """The machines of a request at a provider, and what was assumed to choose them."""
    chip = load().chips.get(request.chip)
    if chip is None:
        raise Undeployable(
            Problem.CHIP_NOT_OFFERED, request.name, f"{request.chip} is no chip known", "`chipwise chips`"
        )
    if request.chips < 1:
        raise Undeployable(Problem.COUNT, request.name, f"{request.chips} chips are none", "at least one")
    if chip.family == "tpu":
        topology, slices, assumed = _slices(request)
    else:
        topology, slices, assumed = "", 1, ()
    machine = None if provider is Provider.ON_PREMISES else _machine(request, provider, topology)
    host_chips = _own_host_chips(request, topology) if machine is None else machine.chips
    if request.chips % host_chips:
        raise Undeployable(
            Problem.COUNT, request.name, f"{request.chips} chips are not whole hosts of {host_chips}", "name a multiple"
        )
    if machine is not None and request.term not in machine.terms:
        have = ", ".join(term for term in Term if term in machine.terms)
        raise Undeployable(
            Problem.TERM, request.name, f"{machine.name} is not to be had {request.term}", f"it is as {have}"
        )
    slice_hosts = prod(_axes(topology)) // host_chips if topology else 1
    always = -(-request.always // host_chips)
    return (
        NodePool(
            name=request.name,
            chip=chip.id,
            family=chip.family,
            slices=slices,
            topology=topology,
            machine="" if machine is None else machine.name,
            accelerator="" if machine is None else machine.accelerator,
            host_chips=host_chips,
            host_cpus=0 if machine is None else machine.cpus,
            host_memory_gib=0.0 if machine is None else machine.memory_gib,
            hosts=request.chips // host_chips,
            min_hosts=-(-always // slice_hosts) * slice_hosts,
            term=request.term,
            role=request.role,
            reservation=reservation,
            usd_per_chip_hour=request.usd_per_chip_hour,
            price_source=request.price_source,
            max_seconds=request.max_seconds,
            replica_chips=request.replica_chips,
            replica_requests=request.replica_requests,
        ),
        assumed,
    )


def _axes(topology: str) -> tuple[int, ...]:
    return tuple(int(axis) for axis in topology.split("x"))


def _spelled(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _slices(request: PoolRequest) -> tuple[str, int, tuple[str, ...]]:
    """The topology of each slice, how many there are, and what was assumed."""
    legal = load().slices[request.chip]
    shapes = [_legal(request, legal, shape) for shape in request.shapes]
    if not shapes:
        shapes = [shape for n in legal.chip_counts() if n <= request.chips and (shape := legal.shape_for(n))]
    whole = [shape for shape in shapes if request.chips % prod(shape) == 0]
    if not whole:
        spelled = ", ".join(map(_spelled, shapes[:6])) or "none"
        raise Undeployable(
            Problem.TOPOLOGY,
            request.name,
            f"{request.chips} chips are not whole slices of {spelled}",
            "name a multiple",
        )
    shape = max(whole, key=prod)
    slices = request.chips // prod(shape)
    if len(shapes) == 1:
        return _spelled(shape), slices, ()
    return (
        _spelled(shape),
        slices,
        (f"{request.name}: {slices} x {_spelled(shape)}, the largest slice that divides {request.chips} chips",),
    )


def _legal(request: PoolRequest, legal: Slices, text: str) -> tuple[int, ...]:
    shape = legal.canonical(_axes(text))
    if shape is None:
        near = ", ".join(_spelled(known) for known in legal.shapes)
        raise Undeployable(Problem.TOPOLOGY, request.name, f"{request.chip} has no slice {text}", f"it has {near}")
    return shape


def _machine(request: PoolRequest, provider: Provider, topology: str) -> Machine:
    """The machine type: that of the price where it fits, else the one with the most chips that divides the count."""
    sold = machines_of(provider, request.chip)
    if not sold:
        offered = sorted({machine.chip for machine in machines() if machine.provider == provider})
        raise Undeployable(
            Problem.CHIP_NOT_OFFERED,
            request.name,
            f"{provider} has no machine type with {request.chip} that is known",
            f"it has {', '.join(offered)}",
        )
    if topology:
        return _tpu_host(request, sold, topology)
    named = [machine for machine in sold if machine.name == request.instance]
    fits = [
        m
        for m in named or sold
        if request.chips % m.chips == 0 and not (m.chips % request.unit and request.unit % m.chips)
    ]
    if not fits:
        counts = ", ".join(str(n) for n in sorted({machine.chips for machine in named or sold}))
        raise Undeployable(
            Problem.COUNT,
            request.name,
            f"{request.chips} chips in multiples of {request.unit} are not whole machines of {counts} chips",
            "name a multiple",
        )
    on_terms = [machine for machine in fits if request.term in machine.terms] or fits
    most = max(machine.chips for machine in on_terms)
    return next(machine for machine in on_terms if machine.chips == most)  # of equals the first of the file


def _tpu_host(request: PoolRequest, sold: tuple[Machine, ...], topology: str) -> Machine:
    """One machine holds a slice where one is that large; else the provider's host of slices over several."""
    chips = prod(_axes(topology))
    alone = [machine for machine in sold if machine.chips == chips]
    gke = load().slices[request.chip].gke
    across = [machine for machine in sold if gke is not None and machine.chips == gke.host_chips]
    for machine in (*alone, *across):
        if chips % machine.chips == 0:
            return machine
    sizes = ", ".join(str(machine.chips) for machine in sold)
    raise Undeployable(
        Problem.TOPOLOGY, request.name, f"a {topology} is not whole machines of {sizes} chips", "name a larger slice"
    )


def _own_host_chips(request: PoolRequest, topology: str) -> int:
    """Chips of a host of one's own."""
    chip = load().chips[request.chip]
    if topology:
        gke = load().slices[request.chip].gke
        chips = prod(_axes(topology))
        one = chip.fabric.host_chips
        return chips if chips <= one else gke.host_chips if gke is not None else one
    return request.unit if request.unit > 1 else min(request.chips, chip.fabric.host_chips or OWN_HOST_CHIPS)

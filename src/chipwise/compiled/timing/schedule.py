"""An optimized module as a schedule: what runs in which order, what each thing moves and computes.

This is what is kept of a compile: small, plain data that the timing model reads again whenever it learns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from chipwise.compiled.timing.products import Product

VERSION = 1


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective: `op` is gather, scatter, reduce, exchange or permute; `data` the whole buffer of one device."""

    op: str
    data: float
    size: int  # devices of a group
    stride: int  # between its first two, in the order of the mesh
    groups: int


@dataclass(frozen=True, slots=True)
class Op:
    """One thing a device does.

    `kind` is matmul, conv, stream (bound by memory), attention, kernel (a custom one), collective, copy (between
    memories of the device), host (to or from the host), gather, sort or wait. `pair` names what a start begins and a
    wait ends.
    """

    kind: str
    name: str
    cycles: float = 0.0  # the compiler's estimate, 0 where it has none
    hbm: float = 0.0  # bytes read from and written to the device's memory
    products: tuple[Product, ...] = ()
    collective: Collective | None = None
    attention: tuple[float, ...] = ()  # batch x heads, queries, keys, head, share of the scores, products of that size
    source: str = ""
    op_name: str = ""
    pair: str = ""
    beside: str = ""  # a collective this op carries along

    @property
    def flops(self) -> float:
        """Arithmetic of the products."""
        return sum(p.flops for p in self.products)

    def as_json(self) -> dict[str, Any]:
        """Plain data, without what is empty."""
        out: dict[str, Any] = {"kind": self.kind, "name": self.name}
        for key in ("cycles", "hbm", "source", "op_name", "pair", "beside"):
            if value := getattr(self, key):
                out[key] = value
        if self.products:
            out["products"] = [astuple(p) for p in self.products]
        if self.collective:
            out["collective"] = astuple(self.collective)
        if self.attention:
            out["attention"] = self.attention
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Op:
        """The inverse of `as_json`."""
        fields = dict(data)
        fields["products"] = tuple(Product(*p) for p in data.get("products", ()))
        if "collective" in data:
            fields["collective"] = Collective(*data["collective"])
        fields["attention"] = tuple(data.get("attention", ()))
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Loop:
    """A block run `trips` times; `known` is false where the count depends on data (once is assumed)."""

    block: str
    trips: int
    known: bool = True
    name: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"loop": self.block, "trips": self.trips, "known": self.known, "name": self.name}


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several blocks: the longest is assumed."""

    blocks: tuple[str, ...]
    name: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"branch": list(self.blocks), "name": self.name}


Item = Op | Loop | Branch


@dataclass(frozen=True, slots=True)
class Schedule:
    """Blocks of items in the order they run; `entry` names the first."""

    entry: str
    blocks: Mapping[str, Sequence[Item]]
    devices: int = 1
    unknown: Mapping[str, int] = field(default_factory=dict)  # custom calls nothing is known of, and how many

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "version": VERSION,
            "entry": self.entry,
            "devices": self.devices,
            "unknown": dict(self.unknown),
            "blocks": {name: [item.as_json() for item in items] for name, items in self.blocks.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schedule:
        """The inverse of `as_json`."""
        return cls(
            data["entry"],
            {name: [_item(item) for item in items] for name, items in data["blocks"].items()},
            data["devices"],
            data["unknown"],
        )

    def ops(self) -> list[tuple[Op, float]]:
        """Every op with how many times it runs."""
        out: list[tuple[Op, float]] = []

        def visit(block: str, times: float) -> None:
            for item in self.blocks[block]:
                if isinstance(item, Op):
                    out.append((item, times))
                elif isinstance(item, Loop):
                    visit(item.block, times * item.trips)
                else:
                    for other in item.blocks:
                        visit(other, times)

        visit(self.entry, 1.0)
        return out


def _item(data: Mapping[str, Any]) -> Item:
    if "loop" in data:
        return Loop(data["loop"], data["trips"], data["known"], data["name"])
    if "branch" in data:
        return Branch(tuple(data["branch"]), data["name"])
    return Op.from_json(data)

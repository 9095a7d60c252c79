"""A pool: chips of one kind that a backend hands out. Plain data; `load` reads it from a file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

TERMS = ("ondemand", "spot", "reserved", "owned")


@dataclass(frozen=True, slots=True)
class Pool:
    """Chips of one kind in one place, handed out by one backend."""

    name: str
    backend: str  # one of `names.backend_names`
    chip: str  # its name in the catalog, or "cpu" for a pool without accelerators
    family: str  # gpu, tpu or cpu
    count: int  # chips in all
    unit: int = 1  # chips are taken in multiples of this: whole hosts
    shapes: tuple[tuple[int, str], ...] = ()  # slices that can be had: chips and their topology ("2x4"); empty: any
    usd_per_chip_hour: float = 0.0
    terms: str = "ondemand"
    price_source: str = ""  # the offer and its date, or "the pools file"
    region: str = ""
    interruptions: float = 0.0  # a unit-hour; of spot chips
    watts_chip: float = 0.0  # drawn by a busy chip with its share of the host, cooling included
    power_cap: float = inf  # watts of the whole pool
    max_seconds: float = inf  # longest run that the backend allows
    address: tuple[tuple[str, str], ...] = ()  # where in the backend: partition, gres, queue, namespace, ...
    cloud: str = ""  # whose chips they are; empty: one's own, or not said
    avoid: tuple[
        str, ...
    ] = ()  # nodes on which no job is to start: not the file's, but those of the ledger that are drained

    @property
    def spot(self) -> bool:
        """Whether its chips may be taken away."""
        return self.terms == "spot"

    def facts(self) -> dict[str, float]:
        """Every figure of the pool by its name, as policies read them: a new numeric field is one of them at once."""
        return {
            field.name: float(value)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), int | float) and not isinstance(value, bool)
        }

    def setting(self, key: str, default: str = "") -> str:
        """One part of its address."""
        return dict(self.address).get(key, default)

    def takes(self, chips: int) -> tuple[int, str] | None:
        """Chips that a job of `chips` occupies here and the topology it gets; None where it can't.

        >>> Pool("v5e", "local", "v5e", "tpu", 8, shapes=((1, "1x1"), (4, "2x2"), (8, "2x4"))).takes(3)
        (4, '2x2')
        >>> Pool("h100", "local", "h100", "gpu", 16, unit=8).takes(9)
        (16, '')
        """
        if self.shapes:
            return min(((n, shape) for n, shape in self.shapes if chips <= n <= self.count), default=None)
        held = -(-chips // self.unit) * self.unit
        return (held, "") if held <= self.count else None

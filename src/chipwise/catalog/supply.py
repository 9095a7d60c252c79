"""How many instances of a type a seller joins for one customer who has no contract: what a run can count on."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from chipwise.catalog.files import rows

# No source bounds the other sellers: the largest that any of them documents is taken, AWS's of supply.csv (2026-11-16).
USUAL_INSTANCES = 256


@dataclass(frozen=True, slots=True)
class SupplyRule:
    """The most instances of a cloud's types by patterns of their names, and by what source."""

    cloud: str
    patterns: tuple[str, ...]
    most_instances: int
    reason: str
    source: str
    date: str


@cache
def supply_rules() -> tuple[SupplyRule, ...]:
    """The rules of supply.csv; of an instance type the first that names it counts."""
    return tuple(
        SupplyRule(
            row["cloud"],
            tuple(row["instances"].lower().split("|")),
            int(row["most_instances"]),
            row["reason"],
            row["source"],
            row["date"],
        )
        for row in rows("supply.csv")
    )


@cache
def most_instances(cloud: str, instance: str) -> int:
    """Instances of a type that one run can count on; 256 where no source says.

    >>> most_instances("azure", "Standard_ND96isr_H100_v5"), most_instances("oci", "BM.GPU.H100.8")
    (100, 256)
    """
    name = instance.lower()
    return next(
        (
            rule.most_instances
            for rule in supply_rules()
            if rule.cloud == cloud and any(fnmatchcase(name, pattern) for pattern in rule.patterns)
        ),
        USUAL_INSTANCES,
    )

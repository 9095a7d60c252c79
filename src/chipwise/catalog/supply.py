"""How many instances of a type a seller joins for one customer who has no contract: what a run can count on."""

from __future__ import annotations

from functools import cache

from chipwise.catalog.type_rules import TypeRule, said_of, type_rules

# No source bounds the other sellers: the largest that any of them documents is taken, AWS's of supply.csv (2026-11-16).
USUAL_INSTANCES = 256


def supply_rules() -> tuple[TypeRule, ...]:
    """The rules of supply.csv; of an instance type the first that names it counts."""
    return type_rules("supply.csv", "most_instances")


@cache
def most_instances(cloud: str, instance: str) -> int:
    """Instances of a type that one run can count on; 256 where no source says.

    >>> most_instances("azure", "Standard_ND96isr_H100_v5"), most_instances("oci", "BM.GPU.H100.8")
    (100, 256)
    """
    return int(said_of(supply_rules(), cloud, instance) or USUAL_INSTANCES)

"""Instance types of the large clouds: which chips, and how many."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.catalog.files import rows
from chipwise.catalog.offers import ANY

N1 = "n1-"  # Google's hosts that accelerators are attached to, at a price of their own


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance type of a cloud and the chips in it."""

    cloud: str
    name: str
    chip_id: str
    chips: float
    source: str
    date: str


@cache
def instances() -> Mapping[tuple[str, str], Instance]:
    """Every instance type known, by cloud and squashed name: bills write ND96isr H100 v5 and Standard_ND96isr_H100_v5.

    >>> instances()["azure", squashed("ND96isr H100 v5")].chip_id
    'h100'
    """
    by_name: dict[tuple[str, str], Instance] = {}
    for row in (*rows("instances.csv"), *rows("offers.csv")):
        if not row["instance"].startswith("(") and row["instance"] != ANY:
            instance = Instance(
                row["cloud"], row["instance"], row["chip"], float(row["chips"]), row["source"], row["date"]
            )
            by_name.setdefault((instance.cloud, squashed(instance.name)), instance)
    return MappingProxyType(by_name)


@cache
def google_hosts() -> Mapping[str, tuple[str, ...]]:
    """Beginnings of the names of Google's hosts of an accelerator, by SkyPilot's name for it.

    >>> google_hosts()["H100-MEGA"], google_hosts()["T4"] == (N1,)
    (('a3-megagpu-',), True)
    """
    return MappingProxyType({row["accelerator"]: tuple(row["hosts"].split()) for row in rows("google_hosts.csv")})


def squashed(name: str) -> str:
    """A name as it is compared: without case, separators and Azure's Standard.

    >>> squashed("Standard_ND96isr_H100_v5"), squashed("a3-highgpu-8g")
    ('nd96isrh100v5', 'a3highgpu8g')
    """
    return re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("standard_"))

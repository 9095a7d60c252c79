"""Vendors: what is true of all their chips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.catalog.files import tables


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who makes chips: how Kubernetes counts them, and whether they can be bought."""

    id: str
    kubernetes_resource: str  # what its device plugin registers
    not_sold: str  # why no server with them can be bought; "": it can
    source: str
    date: str


@cache
def vendors() -> Mapping[str, Vendor]:
    """The vendors of the catalog's chips.

    >>> vendors()["amd"].kubernetes_resource
    'amd.com/gpu'
    """
    entries = (
        Vendor(
            id=table["id"],
            kubernetes_resource=table["kubernetes_resource"],
            not_sold=table.get("not_sold", ""),
            source=table["source"],
            date=table["date"],
        )
        for table in tables("vendors.toml", "vendor")
    )
    return MappingProxyType({vendor.id: vendor for vendor in entries})

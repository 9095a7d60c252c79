"""What Kubernetes and GKE call chips: the device plugins' resources, the labels and machines of TPU slices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.catalog.files import tables

FILE = "clusters.toml"


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    """The resource that a vendor's device plugin registers with Kubernetes."""

    vendor: str
    resource: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class GkeTpu:
    """A TPU generation on Google Kubernetes Engine."""

    chip_id: str
    accelerator: str  # the value of the label cloud.google.com/gke-tpu-accelerator
    slice_host_chips: int  # of each machine in a slice over several
    source: str
    date: str
    note: str


@cache
def device_plugins() -> Mapping[str, DevicePlugin]:
    """The device plugins, by vendor.

    >>> device_plugins()["amd"].resource
    'amd.com/gpu'
    """
    found = (
        DevicePlugin(table["id"], table["kubernetes_resource"], table["source"], table["date"])
        for table in tables(FILE, "vendor")
    )
    return MappingProxyType({each.vendor: each for each in found})


@cache
def gke_tpus() -> Mapping[str, GkeTpu]:
    """The TPUs that GKE has, by chip.

    >>> gke_tpus()["v6e"].accelerator
    'tpu-v6e-slice'
    """
    found = (
        GkeTpu(
            chip_id=table["chip"],
            accelerator=table["accelerator"],
            slice_host_chips=table["slice_host_chips"],
            source=table["source"],
            date=table["date"],
            note=table.get("note", ""),
        )
        for table in tables(FILE, "gke_tpu")
    )
    return MappingProxyType({each.chip_id: each for each in found})

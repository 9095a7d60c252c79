"""Chips, links, pods, software stacks and prices: every figure with its source and date."""

from chipwise.catalog.chip import DTYPES, Chip, Fabric, Figure, scaled, with_figures
from chipwise.catalog.designs import Design
from chipwise.catalog.instances import Instance, instances
from chipwise.catalog.load import Catalog, Network, add_chip_files, drop_chip_files, load
from chipwise.catalog.names import (
    Accelerators,
    adapter_stack,
    default_stack,
    exact_chip,
    find_chip,
    find_stack,
    parse,
    plain_stack,
    training_stack,
)
from chipwise.catalog.offers import Commitment, Offer
from chipwise.catalog.slices import Slices, wraps
from chipwise.catalog.stacks import Stack

__all__ = [
    "DTYPES",
    "Accelerators",
    "Catalog",
    "Chip",
    "Commitment",
    "Design",
    "Fabric",
    "Figure",
    "Instance",
    "Network",
    "Offer",
    "Slices",
    "Stack",
    "adapter_stack",
    "add_chip_files",
    "default_stack",
    "drop_chip_files",
    "exact_chip",
    "find_chip",
    "find_stack",
    "instances",
    "load",
    "parse",
    "plain_stack",
    "scaled",
    "training_stack",
    "with_figures",
    "wraps",
]

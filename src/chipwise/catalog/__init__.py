"""Chips, links, pods, software stacks and prices: every figure with its source and date."""

from chipwise.catalog.chip import DTYPES, Chip, Fabric, Figure, scaled, with_figures
from chipwise.catalog.load import Catalog, Network, load
from chipwise.catalog.market import cheapest, offers_for
from chipwise.catalog.names import Accelerators, default_stack, find_chip, find_stack, parse
from chipwise.catalog.offers import Offer
from chipwise.catalog.slices import Slices, wraps
from chipwise.catalog.stacks import Stack

__all__ = [
    "DTYPES",
    "Accelerators",
    "Catalog",
    "Chip",
    "Fabric",
    "Figure",
    "Network",
    "Offer",
    "Slices",
    "Stack",
    "cheapest",
    "default_stack",
    "find_chip",
    "find_stack",
    "load",
    "offers_for",
    "parse",
    "scaled",
    "with_figures",
    "wraps",
]

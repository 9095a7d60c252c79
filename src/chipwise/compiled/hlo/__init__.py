"""Reads XLA's optimized HLO text: modules, loops with their trip counts, async pairs, replica groups."""

from chipwise.compiled.hlo.asynchronous import (
    COLLECTIVES,
    Chain,
    async_pairs,
    collective_chains,
    collectives_inside,
    wrapped,
)
from chipwise.compiled.hlo.groups import replica_groups, source_target_pairs
from chipwise.compiled.hlo.lexical import NotHlo
from chipwise.compiled.hlo.loops import trip_count
from chipwise.compiled.hlo.module import Computation, Frame, Instruction, Metadata, Module
from chipwise.compiled.hlo.parser import parse
from chipwise.compiled.hlo.shape import HOST, ON_CHIP, Shape, parse_shape

__all__ = [
    "COLLECTIVES",
    "HOST",
    "ON_CHIP",
    "Chain",
    "Computation",
    "Frame",
    "Instruction",
    "Metadata",
    "Module",
    "NotHlo",
    "Shape",
    "async_pairs",
    "collective_chains",
    "collectives_inside",
    "parse",
    "parse_shape",
    "replica_groups",
    "source_target_pairs",
    "trip_count",
    "wrapped",
]

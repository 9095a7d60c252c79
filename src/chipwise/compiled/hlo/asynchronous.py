"""Which instruction ends what another started, and which collectives run hidden inside fusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.compiled.hlo.module import Computation, Instruction, Module

COLLECTIVES = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    }
)  # fmt: skip
_THROUGH = frozenset({"get-tuple-element", "bitcast", "copy", "optimization-barrier"})


@dataclass(frozen=True, slots=True)
class Chain:
    """A collective the TPU compiler spread over fusions: started by one, carried on by others beside their own work."""

    collective: Instruction
    start: str
    carriers: tuple[str, ...]
    done: str


def async_pairs(computation: Computation) -> dict[str, str]:
    """Name of each start -> name of its done, in the order of the dones.

    A start whose done lies in another computation (a loop that carries it to its next round) is left out, and so are
    collectives spread over fusions: see `collective_chains`.
    """
    pairs: dict[str, str] = {}
    for instruction in computation:
        if instruction.opcode.endswith("-done") and instruction.operands:
            start = _start_of(computation, instruction)
            if start is not None:
                pairs[start.name] = instruction.name
    return pairs


def _start_of(computation: Computation, done: Instruction) -> Instruction | None:
    """Follow the first operand back to the start, through updates."""
    kind = done.opcode.removesuffix("-done")
    begins, update = (kind + "-start", kind), kind + "-update"
    here = computation.by_name.get(done.operands[0])
    while here is not None and here.opcode not in begins:
        if (here.opcode not in _THROUGH and here.opcode != update) or not here.operands:
            return None
        here = computation.by_name.get(here.operands[0])
    return here


def wrapped(module: Module, instruction: Instruction) -> Instruction:
    """What an async start runs: the collective or the root of the computation it wraps, otherwise the start itself.

    A ``call-start`` is work of another core: TPUs with SparseCores leave collectives to them.
    """
    if instruction.opcode not in ("async-start", "call-start") or not instruction.called:
        return instruction
    inside = module.computations[instruction.called]
    return next((inner for inner in inside if inner.opcode in COLLECTIVES), inside.root)


def collectives_inside(module: Module, fusion: Instruction) -> tuple[Instruction, ...]:
    """The collectives a fusion runs as part of itself; none for most."""
    if fusion.opcode != "fusion" or not fusion.called:
        return ()
    return tuple(i for i in module.computations[fusion.called] if i.opcode in COLLECTIVES)


def collective_chains(module: Module, computation: Computation) -> tuple[Chain, ...]:
    """The collectives of `computation` that are spread over fusions, found by the chain number inside each fusion."""
    steps: dict[Any, list[tuple[Instruction, Instruction]]] = {}
    for instruction in computation:
        for collective in collectives_inside(module, instruction):
            attributes = collective.attributes.get("frontend_attributes")
            if isinstance(attributes, dict) and "chain_id" in attributes:
                steps.setdefault(attributes["chain_id"], []).append((instruction, collective))
    return tuple(
        Chain(chain[0][1], chain[0][0].name, tuple(i.name for i, _ in chain[1:-1]), chain[-1][0].name)
        for chain in steps.values()
        if len(chain) > 1
    )

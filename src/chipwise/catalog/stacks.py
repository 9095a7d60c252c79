"""Software stacks: the same chip runs differently under each. No numbers here; calibration has those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.catalog.chip import Chip


@dataclass(frozen=True, slots=True)
class Stack:
    """A software stack: what it is, where it runs, and how people write its name."""

    id: str
    name: str
    work: tuple[str, ...]  # "train", "serve"
    frameworks: tuple[str, ...]  # "pytorch", "jax", "tensorflow", "mxnet"
    families: tuple[str, ...]  # "gpu", "tpu", "other"
    aliases: tuple[str, ...]  # words that name it in free text
    default_for: tuple[str, ...]  # "train:gpu": the stack assumed when none is named
    compiled: bool  # whole-graph compilation rather than eager execution
    words: str  # what it does that matters for speed
    flash_since: float = 2022.9  # the year from which its attention is one fused kernel
    flash2: bool = False  # its attention kernels predate Hopper (FlashAttention-2)
    sequence_parallel: bool = True  # norms and residuals split along with tensor parallelism
    reduce_bytes: float = 2.0  # gradients on the wire, 16-bit training
    release: float = 2026.0  # the version people run, in years
    vendors: tuple[str, ...] = ()  # whose chips it runs on; empty: those of any
    score_bytes: float = 0.0  # held for each score of the loss; 0: as computed, and once in fp32


def runs_on(stack: Stack, chip: Chip) -> bool:
    """Whether a stack has software for a chip."""
    return chip.family in stack.families and (not stack.vendors or chip.vendor in stack.vendors)


def stack_from_table(table: dict[str, Any]) -> Stack:
    """A `Stack` from one table of stacks.toml."""
    return Stack(
        id=table["id"],
        name=table["name"],
        work=tuple(table["work"]),
        frameworks=tuple(table["frameworks"]),
        families=tuple(table["families"]),
        aliases=tuple(table["aliases"]),
        default_for=tuple(table["default_for"]),
        compiled=table["compiled"],
        words=table["words"],
        flash_since=float(table.get("flash_since", 2022.9)),
        flash2=table.get("flash2", False),
        sequence_parallel=table.get("sequence_parallel", True),
        reduce_bytes=float(table.get("reduce_bytes", 2)),
        release=float(table["release"]),
        vendors=tuple(table.get("vendors", ())),
        score_bytes=float(table.get("score_bytes", 0)),
    )

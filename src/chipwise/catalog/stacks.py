"""Software stacks: the same chip runs differently under each. Speeds come from calibration, not from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.cited import NOTHING, CitedTable, cited_table
from chipwise.catalog.serving_defaults import ServingDefaults, serving_defaults

AXES = ("tp", "pp", "vpp", "cp", "ep")  # that a stack may lack; data parallelism all have


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The axes that a stack can split a training run over."""

    axes: frozenset[str] = frozenset(AXES)
    zero: tuple[int, ...] = (0, 1, 2, 3)  # ZeRO stages
    zero_pp: int = 3  # the highest of them beside pipeline stages
    recompute: tuple[str, ...] = ()  # ways to recompute activations; (): any
    uneven: bool = True  # pipeline stages may have different numbers of layers
    source: str = ""
    date: str = ""

    def stages(self, pp: int) -> tuple[int, ...]:
        """The ZeRO stages of a run with so many pipeline stages.

        >>> Parallelism(zero=(0, 1, 3), zero_pp=1).stages(8)
        (0, 1)
        """
        return tuple(stage for stage in self.zero if pp == 1 or stage <= self.zero_pp)

    def recomputes(self, ways: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the ways to recompute activations that it has.

        >>> Parallelism(recompute=("none", "full")).recomputes(("none", "selective", "full"))
        ('none', 'full')
        """
        return tuple(way for way in ways if not self.recompute or way in self.recompute)

    def in_words(self) -> str:
        """What it has, as people write it.

        >>> Parallelism(frozenset({"tp"}), (0, 1)).in_words()
        'dp, tp, zero=0 or 1'
        """
        stages = [str(stage) for stage in self.zero]
        listed = " or ".join([", ".join(stages[:-1]), stages[-1]] if len(stages) > 1 else stages)
        return ", ".join(["dp", *(axis for axis in AXES if axis in self.axes), f"zero={listed}"])


EVERY_AXIS = Parallelism()


@dataclass(frozen=True, slots=True)
class FrozenBases:
    """The formats in which a stack holds frozen weights beside adapters (QLoRA), and the families of chips for each."""

    families: Mapping[str, tuple[str, ...]]
    source: str = ""
    date: str = ""


NO_BASES = FrozenBases(MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Releases of a stack that serve otherwise than today's: another scheduler, other programs."""

    name: str
    until: float  # the first release that is no longer of it, in years
    families: tuple[str, ...]  # of the chips on which it was other software
    source: str
    date: str
    serving: ServingDefaults | None = None  # how it served unless told otherwise


@dataclass(frozen=True, slots=True, repr=False)
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
    fused_softmax: bool = True  # before that, scaling, mask, softmax and dropout are one kernel
    flash2: bool = False  # its attention kernels predate Hopper (FlashAttention-2)
    sequence_parallel: bool = True  # norms and residuals split along with tensor parallelism
    reduce_bytes: float = 2.0  # gradients on the wire, 16-bit training
    release: float = 2026.0  # the version people run, in years
    vendors: tuple[str, ...] = ()  # whose chips it runs on; empty: those of any
    score_bytes: float = 0.0  # held for each score of the loss; 0: as computed, and once in fp32
    plain_for: tuple[str, ...] = ()  # "train:gpu": assumed for models that are no language models
    adapters_for: tuple[str, ...] = ()  # "train:gpu": assumed where adapters (LoRA) of language models are trained
    bases: FrozenBases = NO_BASES  # of 4 bits, beside those of 16
    tuned: tuple[str, ...] = ()  # families of chips for whose generations it publishes compiler flags and block sizes
    bench: str = ""  # the framework of `bench` that runs a step as this stack does; "": none
    releases: CitedTable = NOTHING  # by the beginning of a version, when it came out, in years
    serving: ServingDefaults | None = None  # where it serves
    parallel: Parallelism = EVERY_AXIS  # where it trains
    eras: tuple[Era, ...] = ()  # oldest first

    def __repr__(self) -> str:
        return f"<Stack {self.id}>"


def runs_on(stack: Stack, chip: Chip) -> bool:
    """Whether a stack has software for a chip."""
    return chip.family in stack.families and (not stack.vendors or chip.vendor in stack.vendors)


def holds_base(stack: Stack, base: str, chip: Chip) -> bool:
    """Whether a stack trains adapters on a chip beside frozen weights in a format of 4 bits."""
    return runs_on(stack, chip) and chip.family in stack.bases.families.get(base, ())


def era_of(stack: Stack, family: str) -> Era | None:
    """The era that a stack's release was of on chips of a family; None: it is as today's."""
    return next((era for era in stack.eras if family in era.families and stack.release < era.until), None)


def released(stack: Stack, family: str, release: float) -> Stack:
    """A stack as it was on chips of a family at a release, in years.

    >>> from chipwise.catalog import find_stack
    >>> released(find_stack("vllm"), "gpu", 2024.7).serving.most_sequences
    256
    """
    old = replace(stack, release=release)
    era = era_of(old, family)
    return old if era is None or era.serving is None else replace(old, serving=era.serving)


def where(stack: Stack) -> str:
    """The chips a stack runs on, in words: ``gpu chips of nvidia``."""
    chips = " and ".join(f"{family} chips" for family in stack.families)
    return f"{chips} of {' and '.join(stack.vendors)}" if stack.vendors else chips


def parallelism(table: Mapping[str, Any]) -> Parallelism:
    """A `Parallelism` from [stack.parallel] of stacks.toml."""
    return Parallelism(
        axes=frozenset(table["axes"]),
        zero=tuple(table["zero"]),
        zero_pp=table.get("zero_pp", 3),
        recompute=tuple(table.get("recompute", ())),
        uneven=table.get("uneven", True),
        source=table["source"],
        date=table["date"],
    )


def frozen_bases(table: Mapping[str, Any]) -> FrozenBases:
    """`FrozenBases` from [stack.bases] of stacks.toml."""
    families = {name: tuple(of) for name, of in table.items() if name not in ("source", "date")}
    return FrozenBases(MappingProxyType(families), table["source"], table["date"])


def era(table: Mapping[str, Any], serving: Mapping[str, Any] | None) -> Era:
    """An `Era` from [[stack.eras]] of stacks.toml, which names what its serving defaults had other than today's."""
    own = {key: value for key, value in table.items() if key not in ("name", "until", "families")}
    return Era(
        name=table["name"],
        until=float(table["until"]),
        families=tuple(table["families"]),
        source=table["source"],
        date=table["date"],
        serving=None if serving is None else serving_defaults({**serving, **own}),
    )


def stack_from_table(table: Mapping[str, Any]) -> Stack:
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
        fused_softmax=table.get("fused_softmax", True),
        flash2=table.get("flash2", False),
        sequence_parallel=table.get("sequence_parallel", True),
        reduce_bytes=float(table.get("reduce_bytes", 2)),
        release=float(table["release"]),
        vendors=tuple(table.get("vendors", ())),
        score_bytes=float(table.get("score_bytes", 0)),
        plain_for=tuple(table.get("plain_for", ())),
        adapters_for=tuple(table.get("adapters_for", ())),
        bases=frozen_bases(table["bases"]) if "bases" in table else NO_BASES,
        tuned=tuple(table.get("tuned", ())),
        bench=table.get("bench", ""),
        releases=cited_table(table.get("releases")),
        serving=serving_defaults(table["serving"]) if "serving" in table else None,
        parallel=parallelism(table["parallel"]) if "parallel" in table else EVERY_AXIS,
        eras=tuple(era(part, table.get("serving")) for part in table.get("eras", ())),
    )

"""GPU or TPU: whether predictions name the chip that really trains the same model faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from chipwise.predict.estimate import Estimate

CLEAR = 1.1  # apart by this much or more: below it a repeated run may turn the order around
FAMILIES = ("gpu", "tpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """One published step: what a chip does in it, and how long it takes and was predicted to."""

    model: str  # steps of the same one are compared
    family: str
    sequence: int
    tokens: float  # (or images) of a step, for each chip
    observed_s: float
    step: Estimate

    @property
    def rate(self) -> float:
        """Tokens/s of a chip, as published."""
        return self.tokens / self.observed_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """A clear pair; ratios are of the GPU's rate over the TPU's."""

    observed: float
    predicted: float
    sure: bool  # the intervals do not overlap
    same_sequence: bool

    @property
    def right(self) -> bool:
        """Whether the chip predicted to be faster is."""
        return (self.predicted > 1) == (self.observed > 1)

    @property
    def lost(self) -> float:
        """How much slower the chip predicted to be faster is, as a fraction of the other's rate."""
        return 0.0 if self.right else 1 - min(self.observed, 1 / self.observed)


def duels(runners: Iterable[Runner]) -> list[Duel]:
    """Every clear pair of a GPU and a TPU with the same model."""
    models: dict[str, dict[str, list[Runner]]] = defaultdict(lambda: {family: [] for family in FAMILIES})
    for runner in runners:
        if runner.family in FAMILIES:
            models[runner.model][runner.family].append(runner)
    out: list[Duel] = []
    for of in models.values():
        for gpu, tpu in product(*(of[family] for family in FAMILIES)):
            observed = gpu.rate / tpu.rate
            if max(observed, 1 / observed) < CLEAR:
                continue
            work = gpu.tokens / tpu.tokens
            low, value, high = (
                work * theirs / mine
                for theirs, mine in (
                    (tpu.step.low, gpu.step.high),
                    (tpu.step.value, gpu.step.value),
                    (tpu.step.high, gpu.step.low),
                )
            )
            same = gpu.sequence == tpu.sequence
            out.append(Duel(observed=observed, predicted=value, sure=low > 1 or high < 1, same_sequence=same))
    return out


def winners(runners: Iterable[Runner]) -> dict[str, Mapping[str, Any]]:
    """How often the winner was right: of all clear pairs, of those of one length, and where intervals are apart."""
    every = duels(runners)
    parts = {
        "all clear pairs": every,
        "of one sequence length": [duel for duel in every if duel.same_sequence],
        "intervals apart": [duel for duel in every if duel.sure],
    }
    return {name: _told(some) for name, some in parts.items() if some}


def _told(some: list[Duel]) -> dict[str, Any]:
    lost = [duel.lost for duel in some if not duel.right]
    return {
        "pairs": len(some),
        "right": sum(duel.right for duel in some),
        "share_right": sum(duel.right for duel in some) / len(some),
        "median_lost": median(lost) if lost else None,
        "most_lost": max(lost) if lost else None,
    }

"""How one replica (a replica) is split over its chips."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """Chips of one replica: `dp` groups of `tp` chips for attention, `pp` stages, experts split `ep` ways.

    >>> Split(tp=2, dp=4, ep=8).chips, Split(tp=2, dp=4, ep=8).expert_tp
    (8, 1)
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1  # attention data parallel: each group keeps the cache of its own requests
    ep: int = 1

    @property
    def chips(self) -> int:
        """Chips of the replica."""
        return self.tp * self.pp * self.dp

    @property
    def expert_tp(self) -> int:
        """Ways each expert's width is split."""
        return max(1, self.tp * self.dp // self.ep)

    def __str__(self) -> str:
        named = (("tp", self.tp), ("pp", self.pp), ("dp", self.dp), ("ep", self.ep))
        return " ".join(f"{name}={size}" for name, size in named if size > 1 or name == "tp")

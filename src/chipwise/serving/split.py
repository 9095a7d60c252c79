"""How one replica is split over its chips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.errors import InputError


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

    @property
    def axes(self) -> int:
        """Ways in which it is split; experts follow the others."""
        return (self.tp > 1) + (self.pp > 1) + (self.dp > 1)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"name": str(self), "tp": self.tp, "pp": self.pp, "dp": self.dp, "ep": self.ep}

    def __str__(self) -> str:
        named = (("tp", self.tp), ("pp", self.pp), ("dp", self.dp), ("ep", self.ep))
        return " ".join(f"{name}={size}" for name, size in named if size > 1 or name == "tp")


def named_split(tp: int | None, pp: int | None, dp: int | None, ep: int | None) -> Split | None:
    """The split of the sizes that are named, the others 1; None where none is.

    >>> str(named_split(4, None, None, None)), named_split(None, None, None, None)
    ('tp=4', None)
    """
    for name, size in {"tp": tp, "pp": pp, "dp": dp, "ep": ep}.items():
        if size is not None and size < 1:
            raise InputError(name, size, "a whole number of at least 1")
    if tp is pp is dp is ep is None:
        return None
    return Split(tp or 1, pp or 1, dp or 1, ep or 1)

"""What a framework must do to train a program step by step; the loop in training.py is the same for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from chipwise.numerics.recipes import Recipe
from chipwise.numerics.runs import Count


@dataclass(frozen=True, slots=True)
class Backward:
    """The loss and the norm of the gradients of one step, the loss scale taken out again."""

    loss: float
    gradient_norm: float
    finite: bool  # loss and every gradient


class Engine(Protocol):
    """A framework that trains one program; `begin` may be called again and again."""

    software: str  # such as PyTorch 2.13.0
    device: str  # such as CPU or NVIDIA H200

    @property
    def weights(self) -> int:
        """How many weights are trained (after `begin`)."""
        ...

    def native(self, recipe: Recipe) -> bool:
        """Whether the hardware computes in the recipe's formats; else values are rounded to them."""
        ...

    def begin(self, recipe: Recipe, seed: int) -> None:
        """Fresh weights and optimizer state."""
        ...

    def backward(self, batch: Any, scale: float, step: int) -> Backward:
        """Loss and gradients of a batch, kept for `update`."""
        ...

    def update(self) -> None:
        """One step of the optimizer with the gradients of the last `backward`."""
        ...

    def counts(self) -> dict[tuple[str, str], Count]:
        """What was lost since `begin`, by (layer, kind)."""
        ...

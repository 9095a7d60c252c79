"""AdamW by operators alone: floats, NumPy and JAX arrays and PyTorch tensors all work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AdamW:
    """AdamW (arXiv 1711.05101) in its four parts, so that a caller may round or cast what is stored between them.

    >>> rule = AdamW(0.1, beta2=0.999, weight_decay=0.0)
    >>> first, second = rule.first(0.0, 2.0), rule.second(0.0, 2.0)
    >>> round(rule.moved(1.0, rule.direction(first, second, rule.corrections(1))), 6)
    0.9
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.1

    def first(self, moment: Any, gradient: Any) -> Any:
        """The mean of the gradients."""
        return self.beta1 * moment + (1 - self.beta1) * gradient

    def second(self, moment: Any, gradient: Any) -> Any:
        """The mean of their squares."""
        return self.beta2 * moment + (1 - self.beta2) * gradient * gradient

    def corrections(self, step: Any) -> tuple[Any, Any]:
        """What both means are divided by at a step counted from 1: they began at 0."""
        return 1 - self.beta1**step, 1 - self.beta2**step

    def direction(
        self,
        first: Any,
        second: Any,
        corrections: tuple[Any, Any] | None = None,
        sqrt: Callable[[Any], Any] = lambda x: x**0.5,
    ) -> Any:
        """The step before decay and learning rate; without corrections, that of late in a run."""
        if corrections is not None:
            first, second = first / corrections[0], second / corrections[1]
        return first / (sqrt(second) + self.epsilon)

    def moved(self, weights: Any, direction: Any) -> Any:
        """The weights after the step, decayed apart from the gradients."""
        return weights - self.learning_rate * (direction + self.weight_decay * weights)

"""SGD and AdamW on one flat array of weights, rounded as a recipe stores it, and how a program asks for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from chipwise.errors import InputError, UnknownName
from chipwise.programs.optimizers import AdamW

Round = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The update rule; `momentum` is SGD's, the betas and `epsilon` AdamW's."""

    name: str = "adamw"
    learning_rate: float = 1e-3
    momentum: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    def start(self, zeros: Any) -> tuple[Any, ...]:
        """The state before the first step."""
        if self.name == "adamw":
            return (zeros, zeros)
        return (zeros,) if self.momentum else ()

    @property
    def adamw(self) -> AdamW:
        """AdamW's rule."""
        return AdamW(self.learning_rate, self.beta1, self.beta2, self.epsilon, self.weight_decay)

    def corrections(self, step: int) -> tuple[float, float]:
        """AdamW's corrections of its means' bias at a step counted from 1."""
        return self.adamw.corrections(step)

    def update(
        self, weights: Any, gradient: Any, state: tuple[Any, ...], corrections: tuple[Any, Any], to: Round
    ) -> tuple[Any, Any, tuple[Any, ...]]:
        """New weights, the update that was subtracted, and new state; `to` rounds whatever is stored.

        >>> new, update, _ = Optimizer("sgd", 0.5).update(2.0, 1.0, (), (1, 1), lambda x: x)
        >>> new, update
        (1.5, 0.5)
        """
        if self.name == "adamw":
            rule = self.adamw
            state = to(rule.first(state[0], gradient)), to(rule.second(state[1], gradient))
            direction = rule.direction(*state, corrections)
        elif self.momentum:
            direction = to(self.momentum * state[0] + gradient)
            state = (direction,)
        else:
            direction = gradient
        if self.weight_decay:
            direction = direction + self.weight_decay * weights
        update = to(self.learning_rate * direction)
        return to(weights - update), update, state


def read(given: object, field: str) -> Optimizer:
    """The optimizer a program asks for: a name, a mapping, or nothing.

    >>> read({"name": "sgd", "learning_rate": 0.1}, "optimizer").learning_rate
    0.1
    """
    if given is None:
        return Optimizer()
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        raise InputError(field, str(given), 'a name or a dictionary such as {"name": "adamw", "learning_rate": 1e-3}')
    names = [setting.name for setting in fields(Optimizer)]
    for key in given:
        if key not in names:
            raise UnknownName(field, str(key), names)
    if given.get("name", "adamw") not in ("sgd", "adamw"):
        raise InputError(f"{field}.name", given["name"], "sgd or adamw")
    for key, value in given.items():
        if key != "name" and not _fine(key, value):
            accepted = "a number above 0" if key in ("learning_rate", "epsilon") else "a number from 0, betas below 1"
            raise InputError(f"{field}.{key}", value, accepted)
    return Optimizer(**given)


def _fine(key: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return False
    return value < 1 if key in ("beta1", "beta2", "momentum") else value > 0 or key == "weight_decay"

"""Options such as ``cost=2``: a name and a number each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan

from chipwise.errors import InputError

Pairs = Mapping[str, float] | Sequence[str] | None


def read_pairs(pairs: Pairs, field: str, example: str) -> dict[str, float]:
    """Numbers of at least 0 by name, from ``{"cost": 2}`` or ``["cost=2"]``; `field` is the option they are of.

    >>> read_pairs(["cost=2", "time=0.5"], "weights", "cost=2")
    {'cost': 2.0, 'time': 0.5}
    """
    if isinstance(pairs, Mapping):
        pairs = [f"{name}={value}" for name, value in pairs.items()]
    numbers: dict[str, float] = {}
    for text in pairs or ():
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = nan
        if not name.strip() or not 0 <= number < inf:
            raise InputError(field, text, f"a name and a number of at least 0, such as {example}")
        numbers[name.strip()] = number
    return numbers

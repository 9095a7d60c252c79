"""Which instance types of which cloud are joined by a fast fabric: what a run over several hosts needs."""

from __future__ import annotations

from functools import cache
from typing import Literal

from chipwise.catalog.type_rules import TypeRule, said_of, type_rules

Joined = Literal["yes", "no", "unknown"]
WORDS: dict[str, Joined] = {"yes": "yes", "no": "no", "unknown": "unknown"}


def joined_rules() -> tuple[TypeRule, ...]:
    """The rules of joined.csv; of an instance type the first that names it counts."""
    return type_rules("joined.csv", "joined")


@cache
def joined(cloud: str, instance: str) -> Joined:
    """Whether a fast fabric joins instances of a type; unknown where no source says.

    >>> joined("aws", "p5.48xlarge"), joined("lambda", "gpu_8x_h100_sxm5"), joined("seeweb", "ECS8GPU10")
    ('yes', 'no', 'unknown')
    """
    return WORDS[said_of(joined_rules(), cloud, instance) or "unknown"]

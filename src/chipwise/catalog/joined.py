"""Which instance types of which cloud are joined by a fast fabric: what a run over several hosts needs."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

from chipwise.catalog.files import rows

Joined = Literal["yes", "no", "unknown"]
WORDS: dict[str, Joined] = {"yes": "yes", "no": "no", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class JoinedRule:
    """Instance types of a cloud by patterns of their names, whether a fast fabric joins them, and by what source."""

    cloud: str
    patterns: tuple[str, ...]
    joined: Joined
    reason: str
    source: str
    date: str

    def names(self, cloud: str, instance: str) -> bool:
        """Whether the rule is for an instance type."""
        name = instance.lower()
        return cloud == self.cloud and any(fnmatchcase(name, pattern) for pattern in self.patterns)


@cache
def joined_rules() -> tuple[JoinedRule, ...]:
    """The rules of joined.csv; of an instance type the first that names it counts."""
    return tuple(
        JoinedRule(
            row["cloud"],
            tuple(row["instances"].lower().split("|")),
            WORDS[row["joined"]],
            row["reason"],
            row["source"],
            row["date"],
        )
        for row in rows("joined.csv")
    )


@cache
def joined(cloud: str, instance: str) -> Joined:
    """Whether a fast fabric joins instances of a type; unknown where no source says.

    >>> joined("aws", "p5.48xlarge"), joined("lambda", "gpu_8x_h100_sxm5"), joined("seeweb", "ECS8GPU10")
    ('yes', 'no', 'unknown')
    """
    rule = next((rule for rule in joined_rules() if rule.names(cloud, instance)), None)
    return "unknown" if rule is None else rule.joined

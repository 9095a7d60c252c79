"""What is known of a cloud's instance types by patterns of their names, each with its reason, source and date."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from chipwise.catalog.files import rows


@dataclass(frozen=True, slots=True)
class TypeRule:
    """Instance types of a cloud, and what a source says of them."""

    cloud: str
    patterns: tuple[str, ...]
    value: str
    reason: str
    source: str
    date: str

    def names(self, cloud: str, instance: str) -> bool:
        """Whether the rule is for an instance type."""
        name = instance.lower()
        return cloud == self.cloud and any(fnmatchcase(name, pattern) for pattern in self.patterns)


@cache
def type_rules(file: str, column: str) -> tuple[TypeRule, ...]:
    """The rules of a file, whose `column` has what they say."""
    return tuple(
        TypeRule(
            row["cloud"],
            tuple(row["instances"].lower().split("|")),
            row[column],
            row["reason"],
            row["source"],
            row["date"],
        )
        for row in rows(file)
    )


def said_of(rules: tuple[TypeRule, ...], cloud: str, instance: str) -> str | None:
    """What the first rule that names an instance type says of it; None where none does."""
    return next((rule.value for rule in rules if rule.names(cloud, instance)), None)

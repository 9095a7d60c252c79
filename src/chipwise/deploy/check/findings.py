"""What a check finds: where, what is wrong, and what would do. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Defect(StrEnum):
    """A kind of finding."""

    SYNTAX = "syntax"
    UNKNOWN_ARGUMENT = "unknown argument"
    MISSING_ARGUMENT = "missing argument"
    WRONG_TYPE = "wrong type"
    UNKNOWN_REFERENCE = "unknown reference"
    TERRAFORM = "terraform"
    FORMAT = "format"
    MACHINE = "machine"
    TERM = "term"
    TOPOLOGY = "topology"
    COUNT = "count"
    RESERVATION = "reservation"
    RECLAIMED = "reclaimed"
    OLD_API = "old API"
    FIELD = "field"
    QUEUE = "queue"
    NOT_COVERED = "not covered"
    QUOTA = "quota"
    NAMESPACE = "namespace"
    ACCOUNT = "account"
    PRIORITY = "priority"
    SELECTOR = "selector"
    TOLERATION = "toleration"
    EVICTABLE = "evictable"
    IMAGE = "image"
    ROUTER = "router"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One defect."""

    defect: Defect
    file: str  # relative to the tree
    field: str
    what: str
    fix: str
    line: int = 0  # 0: not known

"""Chips side by side on one workload."""

from chipwise.compare.comparison import Comparison, compare
from chipwise.compare.flips import Flip
from chipwise.compare.rows import Refused, Row
from chipwise.compare.terms import DEFAULT_CHIPS, OBJECTIVES, Candidate, Terms, every_chip
from chipwise.compare.words import Words

__all__ = [
    "DEFAULT_CHIPS",
    "OBJECTIVES",
    "Candidate",
    "Comparison",
    "Flip",
    "Refused",
    "Row",
    "Terms",
    "Words",
    "compare",
    "every_chip",
]

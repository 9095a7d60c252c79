"""Chips side by side on one workload."""

from chipwise.compare.comparison import Comparison, compare
from chipwise.compare.terms import DEFAULT_CHIPS, OBJECTIVES, Candidate, Terms, every_chip
from chipwise.compare.training.comparer import Refused, TrainingRow
from chipwise.compare.training.flips import Flip
from chipwise.compare.training.sentences import Words

__all__ = [
    "DEFAULT_CHIPS",
    "OBJECTIVES",
    "Candidate",
    "Comparison",
    "Flip",
    "Refused",
    "Terms",
    "TrainingRow",
    "Words",
    "compare",
    "every_chip",
]

"""Chips side by side on one workload."""

from chipwise.compare.comparison import (
    AnyComparison,
    AnyRow,
    Comparison,
    ServingComparison,
    TrainingComparison,
    compare,
    comparer_of,
)
from chipwise.compare.decision import DecisionSummary, Flip, Refused
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.terms import DEFAULT_CHIPS, OBJECTIVES, Candidate, Terms, candidates, every_chip
from chipwise.compare.training.row import TrainingRow

__all__ = [
    "DEFAULT_CHIPS",
    "OBJECTIVES",
    "AnyComparison",
    "AnyRow",
    "Candidate",
    "Comparison",
    "DecisionSummary",
    "Flip",
    "Refused",
    "ServingComparison",
    "ServingRow",
    "Terms",
    "TrainingComparison",
    "TrainingRow",
    "candidates",
    "compare",
    "comparer_of",
    "every_chip",
]

"""Published measurements and how far predictions are from them."""

from chipwise.validate.report import report, scoreboard
from chipwise.validate.score import score

__all__ = ["report", "score", "scoreboard"]

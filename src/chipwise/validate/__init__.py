"""Published measurements and how far predictions are from them."""

from chipwise.validate.run import Validation, validate
from chipwise.validate.score import score
from chipwise.validate.view import scoreboard

__all__ = ["Validation", "score", "scoreboard", "validate"]

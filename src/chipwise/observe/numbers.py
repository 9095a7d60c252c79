"""Numbers as logs print them: 6,512, 1.68K, 9e+3, 38.43%, nan."""

from __future__ import annotations

import math
import re

# atomic, and begun at no other digit: else a run of digits is gone through again from each of them
NUMBER = r"(?>[-+]?(?:(?<!\d)\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<!\d)\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
_SCALED = re.compile(rf"({NUMBER})\s?([kKMGBT])?")
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}


def number(text: str) -> float | None:
    """The number that a text begins with, or None where it is none, not finite or too large.

    >>> number("6,512"), number("1.68K"), number("9e+3"), number("nan"), number("3.5 s")
    (6512.0, 1680.0, 9000.0, None, 3.5)
    """
    match = _SCALED.match(text.strip())
    if match is None:
        return None
    value = float(match[1].replace(",", "")) * _SCALES.get(match[2] or "", 1.0)
    return value if math.isfinite(value) else None


def whole(text: str) -> int | None:
    """The whole number that a text is, such as a step, or None.

    >>> whole("1,200"), whole("9e+3"), whole("0.5")
    (1200, 9000, None)
    """
    value = number(text)
    return int(value) if value is not None and value.is_integer() and 0 <= value < 1e15 else None

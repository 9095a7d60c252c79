"""The day of asking, by which prices age: today, unless CHIPWISE_TODAY names the day that an answer is made for."""

from __future__ import annotations

import os
from datetime import date

from chipwise.errors import InputError

VARIABLE = "CHIPWISE_TODAY"


def day_of_asking() -> date:
    """Today, or the day that CHIPWISE_TODAY names: by it an answer can be made again as it was.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, CHIPWISE_TODAY="2026-11-18"):
    ...     day_of_asking()
    datetime.date(2026, 11, 18)
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return date.today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(VARIABLE, text, "a day such as 2026-11-18") from None

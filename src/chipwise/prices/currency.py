"""Other currencies in US dollars, at rates that the user gives: none is built in, since they move."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from chipwise.errors import InputError
from chipwise.units import parse_number

USD = "USD"
Rates = Mapping[str, float]
NO_RATES: Rates = {}
_MOST = 1e6


def read_rates(given: Sequence[str] | None, field: str = "fx") -> dict[str, float]:
    """Rates as people write them: US dollars for one unit of another currency.

    >>> read_rates(["EUR=1.08", "jpy=0.0066"])
    {'EUR': 1.08, 'JPY': 0.0066}
    """
    rates: dict[str, float] = {}
    accepted = "a currency and US dollars for one unit of it, such as EUR=1.08"
    for text in given or ():
        named = re.fullmatch(r"\s*([A-Za-z]{3})\s*=(.+)", text)
        signed = named is not None and named[2].lstrip().startswith("-")
        rate = parse_number(named[2], field, accepted) if named is not None and not signed else 0.0
        if named is None or not 0 < rate < _MOST:
            raise InputError(field, text, accepted)
        code = named[1].upper()
        if code == USD and rate != 1.0:
            raise InputError(field, text, "another currency than USD")
        if rates.get(code, rate) != rate:
            raise InputError(field, text, f"one rate for {code}")
        rates[code] = rate
    return rates


def usd_for_one(code: str, rates: Rates, where: str) -> float:
    """US dollars for one unit of a currency; an empty code is US dollars.

    >>> usd_for_one("EUR", {"EUR": 1.08}, "own.csv line 2 currency"), usd_for_one("", {}, "own.csv line 2 currency")
    (1.08, 1.0)
    """
    if code.upper() in ("", USD):
        return 1.0
    if code.upper() not in rates:
        raise InputError(where, code, f"USD, or a rate beside it: --fx {code.upper()}=DOLLARS")
    return rates[code.upper()]

"""Currencies: what they are called, and US dollars for one unit of each, dated and with its source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.catalog.files import rows
from chipwise.errors import InputError
from chipwise.units import compact, parse_number

USD = "USD"
EXCHANGE_RATES = "CHIPWISE_FX"
Rates = Mapping[str, float]  # US dollars for one unit of a currency, by its code
MOST_USD = 1e6  # for one unit of any currency; more is the rate the other way round, or a slip
_ACCEPTED = "a currency and US dollars for one unit of it, such as EUR=1.08"


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency by its code of ISO 4217; `names` are of a unit, `minors` of a hundredth of it."""

    code: str
    name: str
    usd: float
    low: float
    high: float
    names: tuple[str, ...]
    minors: tuple[str, ...]
    source: str
    date: str


@cache
def currencies() -> Mapping[str, Currency]:
    """The currencies that are known, by code.

    >>> currencies()["EUR"].names, currencies()["GBP"].minors, len(currencies()) > 25
    (('€', 'euro', 'euros'), ('p', 'pence', 'penny'), True)
    """
    table = {}
    for row in rows("currencies.csv"):
        usd, spread = float(f"{1 / float(row['per_usd']):.6g}"), float(row["spread"])
        names, minors = tuple(row["names"].split()), tuple(row["minors"].split())
        low, high = (float(f"{usd * (1 + share):.6g}") for share in (-spread, spread))
        table[row["code"]] = Currency(
            row["code"], row["name"], usd, low, high, names, minors, row["source"], row["date"]
        )
    return MappingProxyType(table)


def read_rates(given: Sequence[str] | None, field: str = "fx") -> dict[str, float]:
    """Rates as people write them: US dollars for one unit of another currency.

    >>> read_rates(["EUR=1.08", "jpy=0.0066"])
    {'EUR': 1.08, 'JPY': 0.0066}
    """
    rates: dict[str, float] = {}
    for text in given or ():
        code, equals, number = (part.strip() for part in compact(text, field, _ACCEPTED).partition("="))
        if not equals or len(code) != 3 or not code.isascii() or not code.isalpha() or number.startswith("-"):
            raise InputError(field, text, _ACCEPTED)
        rate = parse_number(number, field, _ACCEPTED)
        if not 0 < rate < MOST_USD:
            raise InputError(field, text, _ACCEPTED)
        code = code.upper()
        if code == USD and rate != 1.0:
            raise InputError(field, text, "another currency than USD")
        if rates.get(code, rate) != rate:
            raise InputError(field, text, f"one rate for {code}")
        rates[code] = rate
    return rates


def own_rates(fx: Sequence[str] | None = None) -> dict[str, float]:
    """The rates that CHIPWISE_FX (split by commas) or, before it, `fx` names."""
    named = [rate for rate in os.environ.get(EXCHANGE_RATES, "").split(",") if rate.strip()]
    return {**read_rates(named, EXCHANGE_RATES), **read_rates(fx)}


def exchange_rates(fx: Sequence[str] | None = None) -> dict[str, float]:
    """US dollars for one unit of every currency that is known, and of those that CHIPWISE_FX or `fx` names.

    >>> exchange_rates(["EUR=1.2"])["EUR"], exchange_rates()["USD"]
    (1.2, 1.0)
    """
    return {**{code: currency.usd for code, currency in currencies().items()}, **own_rates(fx)}


def usd_for_one(code: str, rates: Rates, where: str) -> float:
    """US dollars for one unit of a currency; an empty code is US dollars.

    >>> usd_for_one("eur", {"EUR": 1.08}, "own.csv line 2 currency"), usd_for_one("", {}, "own.csv line 2 currency")
    (1.08, 1.0)
    """
    if code.upper() in ("", USD):
        return 1.0
    if code.upper() not in rates:
        raise InputError(where, code, f"a currency that is known, or a rate for it: --fx {code.upper()}=DOLLARS")
    return rates[code.upper()]


def rate_note(code: str, rates: Rates) -> str:
    """The rate that an amount was taken at, with whose it is; nothing of US dollars.

    >>> rate_note("EUR", {"EUR": 1.08}), rate_note("USD", {})
    ('EUR at 1.08 USD as given', '')
    """
    code = code.upper()
    if code in ("", USD):
        return ""
    listed = currencies().get(code)
    whose = f"of {listed.date}" if listed is not None and rates[code] == listed.usd else "as given"
    return f"{code} at {rates[code]:g} USD {whose}"

"""Amounts of money as people write them, in any currency that is known: the one reader of flags, files and Python.

A bare number is US dollars. What names two currencies (``¥``, ``kr``) is asked back with all readings. Everything
is done in one go over the text, which is short: `compact` refuses what is longer than any amount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from chipwise.catalog.currencies import USD, Rates, currencies, exchange_rates, rate_note
from chipwise.errors import AmbiguousCurrency, AmbiguousNumber, InputError
from chipwise.units import compact, parse_scaled

ACCEPTED = (
    "an amount of at least 0 in US dollars such as 1000, $1,000 or 2.5k, or in another currency: 900EUR, £25, 80 cents"
)
PER_HOUR = dict.fromkeys(
    ("h", "hr", "hour", "chip-h", "chip-hour", "chip hour", "gpu-h", "gpu-hour", "gpu hour", "gpuh", "chiph"), 1.0
)
PER_KWH = {"kwh": 1.0, "mwh": 1e-3}
NOTHING_ELSE: Mapping[str, float] = {}
_SCALES = "kmbgt"
_MINOR = 0.01


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of a currency.

    >>> str(Amount(0.14, "EUR")), Amount(10.0, "EUR").usd({"EUR": 1.1})
    ('0.14 EUR', 11.0)
    """

    value: float
    currency: str = USD

    def __str__(self) -> str:
        return f"{repr(self.value).removesuffix('.0')} {self.currency}"

    def usd(self, rates: Rates) -> float:
        """The same in US dollars."""
        return self.value if self.currency == USD else self.value * rates[self.currency]

    def note(self, rates: Rates) -> str:
        """What was written and its rate, for whoever reads dollars; nothing of US dollars."""
        return "" if self.currency == USD else f"{self.value:,.10g} {rate_note(self.currency, rates)}"


@cache
def _names() -> Mapping[str, tuple[tuple[str, float], ...]]:
    """Every name of a unit or of its hundredth, in small letters: the currencies that it may mean, and the share."""
    names: dict[str, dict[tuple[str, float], None]] = {}
    for currency in currencies().values():
        for name in (currency.code, *currency.names):
            names.setdefault(name.casefold(), {})[currency.code, 1.0] = None
        for minor in currency.minors:
            names.setdefault(minor.casefold(), {})[currency.code, _MINOR] = None
            names.setdefault(f"{currency.code} {minor}".casefold(), {})[currency.code, _MINOR] = None
        if currency.name.endswith("dollar"):
            for minor in ("cent", "cents"):
                names.setdefault(f"{currency.code} {minor}".casefold(), {})[currency.code, _MINOR] = None
    for minor in ("cent", "cents"):
        names.setdefault(f"eur {minor}", {})["EUR", _MINOR] = None
        names.setdefault(f"us {minor}", {})[USD, _MINOR] = None
        names.setdefault(f"euro {minor}", {})["EUR", _MINOR] = None
    return {name: tuple(meanings) for name, meanings in names.items()}


def read_amount(
    value: object,
    field: str = "money",
    accepted: str = ACCEPTED,
    rates: Rates | None = None,
    per: Mapping[str, float] = NOTHING_ELSE,
    bare: str = USD,
) -> Amount:
    """An amount with its currency before or after it, as a code, a word or a sign, also in hundredths.

    `per` are units that may stand below it, with the factor of each; `rates` says which other codes are known;
    `bare` is the currency of a number alone.

    >>> [str(read_amount(text)) for text in ("$1,000", "25JPY", "€2.5k", "15p", "80 cents", "CHF 12")]
    ['1000 USD', '25 JPY', '2500 EUR', '0.15 GBP', '0.8 USD', '12 CHF']
    >>> str(read_amount("14ct/kWh", per=PER_KWH)), str(read_amount("¥3 CNY"))
    ('0.14 EUR', '3 CNY')
    """
    if not isinstance(value, str):
        return Amount(parse_scaled(value, field, accepted), bare)
    text, factor = _without_unit(compact(value, field, accepted), per)
    begin, end = _number_in(text)
    before, number, after = text[:begin].strip(), text[begin:end], text[end:].strip()
    rates = exchange_rates() if rates is None else rates
    scale, after = _scale(after, rates)
    try:
        amount = parse_scaled(number + scale, field, accepted, value)
    except AmbiguousNumber as asked:
        first, second = (f"{text[:begin]}{reading}{text[end + len(scale) :]}" for reading in asked.readings)
        raise AmbiguousNumber(field, value, (first, second)) from None
    meanings = [_meanings(name, rates) for name in (before, after) if name]
    if not all(meanings) or (before and any(share != 1.0 for _, share in meanings[0])):
        raise InputError(field, value, accepted)
    common = [m for m in meanings[0] if all(m in other for other in meanings)] if meanings else [(bare, 1.0)]
    if not common:
        raise InputError(field, value, accepted)
    if len(common) > 1:
        raise AmbiguousCurrency(field, value, [(str(_of(amount, m, factor)), _full_name(m[0])) for m in common])
    return _of(amount, common[0], factor)


def parse_usd(
    value: object,
    field: str = "money",
    accepted: str = ACCEPTED,
    rates: Rates | None = None,
    per: Mapping[str, float] = NOTHING_ELSE,
) -> float:
    """The same in US dollars, at the rates that are known unless others are given.

    >>> parse_usd("$1,000"), parse_usd("1000 usd"), parse_usd("2.5k"), parse_usd("10EUR", rates={"EUR": 1.1})
    (1000.0, 1000.0, 2500.0, 11.0)
    """
    rates = exchange_rates() if rates is None else rates
    return read_amount(value, field, accepted, rates, per).usd(rates)


def _of(number: float, meaning: tuple[str, float], factor: float) -> Amount:
    code, share = meaning
    return Amount(float(f"{number * share * factor:.15g}") if share * factor != 1.0 else number, code)


def _without_unit(text: str, per: Mapping[str, float]) -> tuple[str, float]:
    for sign in ("/", " per "):
        head, mark, unit = text.rpartition(sign)
        if mark and unit.strip().lower() in per:
            return head.strip(), per[unit.strip().lower()]
    return text, 1.0


def _number_in(text: str) -> tuple[int, int]:
    """Where the number begins and ends: all between the first and the last digit, and a point before it."""
    digits = [at for at, letter in enumerate(text) if "0" <= letter <= "9"]
    if not digits:
        return 0, 0
    begin = digits[0] - (text[digits[0] - 1 : digits[0]] == ".")
    return begin, digits[-1] + 1


def _scale(after: str, rates: Rates) -> tuple[str, str]:
    """The letter that multiplies the number, unless it begins the name of a currency; what is left of the words."""
    if after and after[0].lower() in _SCALES and not _meanings(after, rates):
        return after[0], after[1:].strip()
    return "", after


def _meanings(name: str, rates: Rates) -> tuple[tuple[str, float], ...]:
    if name.upper() in rates and len(name) == 3:
        return ((name.upper(), 1.0),)
    return tuple(m for m in _names().get(name.casefold(), ()) if m[0] == USD or m[0] in rates)


def _full_name(code: str) -> str:
    return currencies()[code].name

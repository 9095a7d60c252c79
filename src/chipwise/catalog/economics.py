"""What money depends on beside prices of chips: servers to buy, places to run them, every assumption and its range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from chipwise.catalog.currencies import USD, Rates, currencies
from chipwise.catalog.files import rows
from chipwise.catalog.money import PER_KWH, Amount, read_amount
from chipwise.errors import InputError, UnknownName
from chipwise.io.brief import brief

DEFAULT_SITE = "us-average"
MOST = 1e12  # of any assumption; more is a slip, and dollars would overflow
MOST_USD_KWH, MOST_G_KWH = 100.0, 2_000.0
ALSO_CALLED = {  # names that people use beside the English one and the ISO 3166 code of two letters
    **dict.fromkeys(("usa", "united-states", "united-states-of-america", "america"), "us-average"),
    **dict.fromkeys(("uk", "great-britain", "britain", "england"), "united-kingdom"),
    **dict.fromkeys(("uae", "emirates"), "united-arab-emirates"),
    **dict.fromkeys(("korea", "republic-of-korea"), "south-korea"),
    **dict.fromkeys(("the-netherlands", "holland"), "netherlands"),
    "czech-republic": "czechia",
    "türkiye": "turkey",
    "quebec": "canada-quebec",
    "deutschland": "germany",
}
RATE_RANGE = "range: the rate's change since 2024-06-28, at least 10 %"
CHIP_WATTS, CHIP_IDLE_WATTS = "chip_watts", "chip_idle_watts"  # with a chip's name: what a file may say of its power
ANYWHERE = "any/any"  # the site of a cloud's region that is not listed


@dataclass(frozen=True, slots=True)
class Server:
    """Chips as they are bought. Prices in US dollars, power in watts, network in bytes/s one way."""

    id: str
    chip_id: str
    chips: int
    usd: float
    usd_low: float
    usd_high: float
    max_w: float  # that the place must provide
    load_w: float  # all of it while its chips compute
    rack_units: int
    network: float
    price_source: str
    price_date: str
    power_source: str
    power_date: str
    note: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A number with where it comes from and when."""

    value: float
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Site:
    """A region of a cloud, or a place of one's own."""

    id: str
    kind: str  # "cloud" or "own"
    cloud: str
    region: str
    usd_kwh: Cited | None  # None: part of what the cloud asks for a chip
    pue: Cited
    g_kwh: Cited  # grams of CO2-equivalent a kilowatt-hour of the grid
    note: str
    country: str = ""  # ISO 3166 alpha-2, of the place that stands for a country
    currency: str = USD  # of the price as its source has it
    local: Cited | None = None  # that price


class Basis(StrEnum):
    """What a number rests on."""

    ASSUMED = "assumed"
    PUBLISHED = "published"
    GIVEN = "given"  # by whoever asks
    MEASURED = "measured"  # of one's own jobs


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number that is not known: its median, and the ends of the 90 % interval."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    source: str  # "assumed" where there is none
    date: str
    note: str
    evidence: Basis = Basis.PUBLISHED

    @property
    def of_file(self) -> bool:
        """Whether it is from a file of one's own, measured or given there."""
        return self.evidence in (Basis.MEASURED, Basis.GIVEN) and self.source != Basis.GIVEN

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


@brief
@dataclass(frozen=True, slots=True)
class Economics:
    """Every assumption by name, some of them changed by whoever asks."""

    table: Mapping[str, Assumption]

    def __call__(self, name: str, where: str = "") -> Assumption:
        """An assumption, the one for a cloud or a kind where there is one.

        >>> economics()("egress_usd_gb", "aws").value, economics()("egress_usd_gb", "vast").name
        (0.09, 'egress_usd_gb')
        """
        return self.table.get(f"{name}.{where}") or self.table[name]

    def value(self, name: str, where: str = "") -> float:
        """The median of an assumption."""
        return self(name, where).value

    def power(self) -> dict[str, Assumption]:
        """What a file says of the watts of chips, by name; nothing unless there is one."""
        return {name: a for name, a in self.table.items() if name.partition(".")[0] in (CHIP_WATTS, CHIP_IDLE_WATTS)}

    def steps(self, name: str) -> tuple[tuple[float, Assumption], ...]:
        """Assumptions that depend on a size, by that size.

        >>> [size for size, _ in economics().steps("network_usd_node")]
        [1.0, 2.0, 64.0, 1024.0, 16384.0]
        """
        steps = [(float(key.rpartition(".")[2]), a) for key, a in self.table.items() if key.startswith(f"{name}.")]
        return tuple(sorted(steps, key=lambda pair: pair[0]))

    def changed(self, changes: Mapping[str, float]) -> Economics:
        """With other values, which are taken as certain; by a name without a cloud, those of all clouds change.

        >>> known = economics().changed({"egress_usd_gb": 0.0})
        >>> known("egress_usd_gb", "aws").value, known("egress_usd_gb", "aws").source
        (0.0, 'given')
        """
        table = dict(self.table)
        for name, value in changes.items():
            meant = [key for key in table if key == name or key.startswith(f"{name}.")]
            if not meant:
                raise UnknownName("assumptions", name, table, "; docs/cost.md lists them")
            for key in meant:
                check_amount(name, value, table[key].unit)
                table[key] = _given(table[key], value)
        return Economics(MappingProxyType(table))

    def at_rates(self, rates: Rates) -> Economics:
        """With other exchange rates, which are taken as certain, also of currencies that are not known.

        >>> economics().at_rates({"EUR": 1.25, "XAF": 0.0017}).rates()["XAF"]
        0.0017
        """
        table = dict(self.table)
        for code, usd in rates.items():
            if code != USD:
                name = rate_name(code)
                usual = table.get(name) or Assumption(name, usd, usd, usd, USD, "", "", f"dollars for one {code}")
                table[name] = replace(usual, value=usd, low=usd, high=usd, source="given", note="")
        return Economics(MappingProxyType(table))

    def rates(self) -> dict[str, float]:
        """US dollars for one unit of every currency, by its code."""
        prefix = rate_name("")
        by_code = {
            name.removeprefix(prefix).upper(): a.value for name, a in self.table.items() if name.startswith(prefix)
        }
        return {USD: 1.0, **by_code}

    def overlaid(self, figures: Iterable[Assumption]) -> Economics:
        """With figures of a file in place of those of the same names, and before them where they are of one cloud.

        >>> measured = replace(economics()("failure_chip_hour"), name="failure_chip_hour.aws", value=1e-5)
        >>> known = economics().overlaid([measured])
        >>> known.value("failure_chip_hour", "aws"), known.value("failure_chip_hour", "gcp")
        (1e-05, 1.97e-05)
        """
        return Economics(MappingProxyType({**self.table, **{figure.name: figure for figure in figures}}))


def _given(replaced: Assumption, value: float) -> Assumption:
    """A value that whoever asks is sure of; what a file has is said beside it."""
    note = f"in place of {replaced.value:g}, {replaced.source}" if replaced.of_file else ""
    return replace(
        replaced, value=value, low=value, high=value, source=Basis.GIVEN.value, note=note, evidence=Basis.GIVEN
    )


def check_amount(name: str, value: float, unit: str, field: str = "assumptions") -> None:
    """Refuse what no assumption of a unit can be."""
    most = 1.0 if unit.startswith("share") else MOST
    if not 0 <= value <= most or (value == 0 and name.startswith(_DIVISORS)):  # nan is neither
        least = "more than 0" if name.startswith(_DIVISORS) else "at least 0"
        raise InputError(f"{field} {name}", value, f"a number of {least} and at most {most:g}")


def read_changes(changes: Mapping[str, float] | Sequence[str] | None) -> dict[str, float]:
    """Other values for assumptions, as people write them.

    >>> read_changes(["interest=0.05"])
    {'interest': 0.05}
    """
    if isinstance(changes, Mapping):
        return {name: float(value) for name, value in changes.items()}
    given: dict[str, float] = {}
    for text in changes or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        try:
            given[name] = float(value)
        except ValueError:
            raise InputError("assumptions", text, "NAME=VALUE such as interest=0.05") from None
        if not equals:
            raise InputError("assumptions", text, "NAME=VALUE such as interest=0.05")
    return given


_DIVISORS = ("utilization", "checkpoint_gb_s", "price_drift", "spot_price_drift", "server_overhead")


@cache
def economics() -> Economics:
    """The assumptions that come with this version.

    >>> economics().value("utilization")
    0.6
    """
    table = {}
    for row in rows("economics.csv"):
        value, low, high = (float(row[key]) for key in ("value", "low", "high"))
        basis = Basis.ASSUMED if row["source"].startswith("assumed") else Basis.PUBLISHED
        table[row["name"]] = Assumption(
            row["name"], value, low, high, row["unit"], row["source"], row["date"], row["note"], basis
        )
    for code, currency in currencies().items():
        if code != USD:
            low, high, what = currency.low, currency.high, f"dollars for one {code} ({currency.name}); {RATE_RANGE}"
            name = rate_name(code)
            table[name] = Assumption(name, currency.usd, low, high, USD, currency.source, currency.date, what)
    return Economics(MappingProxyType(table))


@cache
def servers() -> Mapping[str, Server]:
    """Servers to buy, by the chip in them.

    >>> servers()["h100"].chips, servers()["h100"].load_w
    (8, 8400.0)
    """
    out = {}
    for row in rows("servers.csv"):
        out[row["chip"]] = Server(
            row["server"],
            row["chip"],
            int(row["chips"]),
            float(row["usd"]),
            float(row["usd_low"]),
            float(row["usd_high"]),
            float(row["kw_max"]) * 1e3,
            float(row["kw_load"]) * 1e3,
            int(row["rack_units"]),
            float(row["network_gbit_s"]) * 1e9 / 8,
            row["price_source"],
            row["price_date"],
            row["power_source"],
            row["power_date"],
            row["note"],
        )
    return MappingProxyType(out)


@cache
def sites() -> Mapping[str, Site]:
    """Places by name: a cloud's region is ``cloud/region``."""
    out = {}
    for row in rows("sites.csv"):
        price = Cited(float(row["kwh"]), row["kwh_source"], row["kwh_date"]) if row["kwh"] else None
        currency = row["currency"] or USD
        out[row["site"]] = Site(
            row["site"],
            row["kind"],
            row["cloud"],
            row["region"],
            in_dollars(price, currency, economics()) if price else None,
            Cited(float(row["pue"]), row["pue_source"], row["pue_date"]),
            Cited(float(row["g_kwh"]), row["g_source"], row["g_date"]),
            row["note"],
            row["country"],
            currency,
            price,
        )
    return MappingProxyType(out)


def rate_name(currency: str) -> str:
    """The assumption that says what a unit of a currency is in US dollars."""
    return f"usd_per_{currency.lower()}"


def in_dollars(price: Cited, currency: str, know: Economics) -> Cited:
    """A price of electricity in US dollars, with the rate it was taken at.

    >>> in_dollars(Cited(0.2, "a bill", "2026-01-01"), "EUR", economics().changed({"usd_per_eur": 1.1})).value
    0.22000000000000003
    """
    if currency == USD:
        return price
    rate = know(rate_name(currency))
    at = f"{rate.value:g} USD ({rate.source})"
    return replace(price, value=price.value * rate.value, source=f"{price.source}; {price.value:g} {currency} at {at}")


def own_sites() -> Iterable[str]:
    """Names of places of one's own."""
    return [site.id for site in sites().values() if site.kind == "own"]


def site(name: str, field: str = "site") -> Site:
    """A place of one's own by name.

    >>> site("us-iowa").usd_kwh.value, site("DE").id, site("United Kingdom").id, site("USA").id
    (0.0604, 'germany', 'united-kingdom', 'us-average')
    """
    slug = "-".join(name.lower().replace("_", " ").split())
    slug = ALSO_CALLED.get(slug, slug)
    own = sites().get(slug) or next((s for s in sites().values() if s.country and s.country == slug.upper()), None)
    if own is None or own.kind != "own":
        raise UnknownName(field, name, own_sites())
    return own


def region_site(cloud: str, region: str) -> Site:
    """A cloud's region; what is assumed of any where that one is not listed.

    >>> region_site("gcp", "us-central1").g_kwh.value, region_site("vast", "nowhere").id
    (412.72, 'any/any')
    """
    return sites().get(f"{cloud}/{region}") or sites()[ANYWHERE]


def own_site(
    name: str | None = None,
    energy_price: float | str | None = None,
    pue: float | None = None,
    g_kwh: float | None = None,
    know: Economics | None = None,
) -> Site:
    """A place of one's own (default: the US average), with another price of electricity, PUE or grid where given.

    >>> own_site("us-iowa", pue=1.1).pue.value, own_site("germany", "0.2 EUR").local.value
    (1.1, 0.2)
    """
    return site_with(site(name or DEFAULT_SITE), energy_price, pue, g_kwh, know)


def site_with(
    base: Site,
    energy_price: float | str | None = None,
    pue: float | None = None,
    g_kwh: float | None = None,
    know: Economics | None = None,
) -> Site:
    """A site with another price of electricity, power usage effectiveness (PUE) or grid, at known exchange rates."""
    know = know or economics()
    if energy_price is not None:
        local, currency = _energy_price(energy_price, know)
        base = replace(base, local=local, currency=currency)
    if base.local is not None:
        base = replace(base, usd_kwh=in_dollars(base.local, base.currency, know))
    if pue is not None:
        if not 1 <= pue <= 10:
            raise InputError("pue", pue, "a ratio from 1 to 10")
        base = replace(base, pue=Cited(pue, "given", ""))
    if g_kwh is not None:
        if not 0 <= g_kwh <= MOST_G_KWH:
            raise InputError("grid", g_kwh, f"grams of CO2 a kWh from 0 to {MOST_G_KWH:g}")
        base = replace(base, g_kwh=Cited(g_kwh, "given", ""))
    return base


def _energy_price(price: float | str, know: Economics) -> tuple[Cited, str]:
    """A price of electricity as people write it: 0.12, $0.12, 0.14 EUR, €0.14/kWh or 14ct/kWh, with its currency."""
    accepted = f"a price a kWh from 0 to {MOST_USD_KWH:g} US dollars, in any currency: 0.12, 0.14EUR or 14ct/kWh"
    rates = know.rates()
    amount: Amount = read_amount(price, "energy_price", accepted, rates, PER_KWH)
    if not 0 <= amount.usd(rates) <= MOST_USD_KWH:
        raise InputError("energy_price", price, accepted)
    return Cited(amount.value, "given", ""), amount.currency

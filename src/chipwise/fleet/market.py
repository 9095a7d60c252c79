"""Pools and supplies of a demand: offers of the price book, offers of the file, servers to buy, what exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from chipwise.catalog import Chip, load
from chipwise.catalog.economics import Economics, Site, region_site, servers, site, site_with
from chipwise.cost.onprem import RESIDUAL_YEARS, Owned, capex_usd, owned, server_of, unit_watts
from chipwise.errors import InputError, Refusal, UnknownName
from chipwise.fleet.demand import Calendar, Demand, price_source, usd_rate
from chipwise.fleet.problem import Exclusive, Limit, Pool, Supply
from chipwise.fleet.units import YEARS, Origin, Unit, units, within
from chipwise.knowledge import Knowledge
from chipwise.prices import is_stale, listed, why_no_price

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import CandidateSpec, ExistingSpec, SiteSpec

PRICING = {"ondemand": "ondemand", "spot": "spot", "1y": "year1", "3y": "year3"}
WORDS = {"ondemand": "on demand", "spot": "spot", "1y": "1 year", "3y": "3 years"}
SERVERS = 16  # over which staff and network of a site are shared unless its power says how many fit
MOST_SERVERS = 1024


@dataclass(slots=True)
class Stock:
    """Everything that can be had."""

    pools: dict[str, Pool] = field(default_factory=dict)
    clouds: dict[str, str] = field(default_factory=dict)  # pool -> cloud; "" on premises
    joined: dict[str, bool] = field(default_factory=dict)  # pool -> whether several of its units work together
    supplies: list[Supply] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)
    owned: dict[str, Owned] = field(default_factory=dict)  # supply -> servers
    limits: list[Limit] = field(default_factory=list)
    exclusives: list[Exclusive] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    zero: dict[str, tuple[str, int]] = field(default_factory=dict)  # supply -> the field and quota that shut it
    said: list[str] = field(default_factory=list)

    def add(self, supply: Supply, origin: Origin, shut: tuple[str, int] | None = None) -> None:
        """A supply, under a name of its own; `shut` is the field and the quota that leave no unit of it."""
        name, n = supply.id, 2
        while any(s.id == name for s in self.supplies):
            name, n = f"{supply.id} ({n})", n + 1
        self.supplies.append(replace(supply, id=name))
        self.origins[name] = origin
        if shut is not None:
            self.zero[name] = shut

    def of(self, pool: str) -> list[Supply]:
        """Supplies of a pool."""
        return [s for s in self.supplies if s.pool == pool]

    def shut(self, pool: str) -> tuple[str, int] | None:
        """The field and the quota that leave no unit of a pool; None where some supply of it can be had."""
        found = [self.zero.get(s.id) for s in self.of(pool)]
        return found[0] if found and all(found) else None


@dataclass(frozen=True, slots=True)
class Buying:
    """What prices are looked up with."""

    demand: Demand
    knowledge: Knowledge

    def periods(self, months: int) -> int:
        """Periods that so many months take."""
        return ceil(months / self.demand.calendar.each)

    def wait(self, months: int) -> str:
        """A lead in words, with what whole quarters make of it."""
        each = self.demand.calendar.each
        counted = f", counted as {self.periods(months)} quarters" if months % each else ""
        return f"{months} months from order to use{counted}"


def stock(buying: Buying) -> Stock:
    """All pools and supplies of a demand, with its limits."""
    out, spec = Stock(), buying.demand.spec
    _check_places(buying)
    for i, candidate in enumerate(spec.candidates):
        _candidate(out, buying, i, candidate)
    for i, offer in enumerate(spec.offers):
        chip = load().chips[offer.chip]
        pool = _pool(
            out, buying, chip, offer.cloud, offer.region, offer.chips or chip.fabric.host_chips, offer.terms == "spot"
        )
        usd = offer.usd_chip_hour * usd_rate(spec, offer.currency)
        limit = None if offer.quota is None else offer.quota // pool.chips
        out.add(
            _rented(buying, offer.name, pool, offer.terms, usd, offer.lead, limit),
            Origin(
                offer.cloud, offer.region, "", usd, "", price_source(spec, offer.usd_chip_hour, offer.currency), False
            ),
            (f"offers[{i}].quota", offer.quota or 0) if limit == 0 else None,
        )
    if spec.on_premises:
        _site(out, buying, spec.on_premises)
    for i in range(len(spec.existing)):
        _existing(out, buying, i)
    _limits(out, buying)
    return out


def _check_places(buying: Buying) -> None:
    """Clouds and regions that nobody prices are slips of the pen: nothing could ever be had there."""
    spec, book = buying.demand.spec, buying.knowledge.prices
    offers, commitments = (*book.offers, *listed().offers), (*book.commitments, *listed().commitments)
    places = {(o.cloud, o.region) for o in offers} | {(c.cloud, c.region) for c in commitments}
    clouds, regions = {cloud for cloud, _ in places}, {region for _, region in places if region}
    named = [(f"candidates[{i}].clouds", x, clouds) for i, c in enumerate(spec.candidates) for x in c.clouds or ()]
    named += [(f"candidates[{i}].regions", x, regions) for i, c in enumerate(spec.candidates) for x in c.regions or ()]
    there = clouds | {o.cloud for o in spec.offers}
    named += [(f"exclusive[{i}].clouds", x, there) for i, e in enumerate(spec.exclusive) for x in e.clouds]
    for where, name, known in named:
        if name not in known:
            raise UnknownName(where, name, known)
    for i, e in enumerate(spec.exclusive):
        if len(set(e.clouds)) < len(e.clouds):
            raise InputError(f"exclusive[{i}].clouds", ", ".join(e.clouds), "clouds that differ")


def _pool(
    out: Stock,
    buying: Buying,
    chip: Chip,
    cloud: str,
    region: str,
    chips: int,
    spot: bool = False,
    joined: bool = True,
) -> Pool:
    """The pool of a chip at a cloud, made when it is first asked for; one of parts of a host, or larger, says so."""
    where = f"{cloud}/{region}" if region else cloud
    name = f"{chip.id} {where}" + (f" x{chips}" if chips != chip.fabric.host_chips else "")
    end = " spot" if spot else ""
    if out.joined.get(name + end, joined) != joined:
        name += " joined" if joined else " apart"
    name += end
    if name not in out.pools:
        place = region_site(cloud, region)
        idle, busy = unit_watts(chip, chips, place, buying.knowledge.economics)
        out.pools[name] = Pool(name, chip.id, chip.family, chips, region, idle, busy, 0.0, place.g_kwh.value / 1000)
        out.clouds[name], out.joined[name] = cloud, joined
    return out.pools[name]


def _rented(
    buying: Buying, name: str, pool: Pool, terms: str, usd_per_chip_hour: float, lead: int, limit: int | None = None
) -> Supply:
    term = buying.periods(YEARS[terms] * 12) if terms in YEARS else 0
    return Supply(
        name, pool.id, PRICING[terms], usd_per_chip_hour * pool.chips, term, lead=buying.periods(lead), limit=limit
    )


def _candidate(out: Stock, buying: Buying, i: int, c: CandidateSpec) -> None:
    """The units of a candidate: of each cloud named those of the cheapest region, or of those named; else of all."""
    chip, before = load().chips[c.chip], len(out.supplies)
    for clouds in [[cloud] for cloud in c.clouds] if c.clouds else [None]:
        for regions in [[region] for region in c.regions] if c.regions else [None]:
            for terms in c.terms:
                there = units(chip, terms, buying.knowledge, clouds, regions)
                if not there:
                    where = "/".join([*(clouds or ["any cloud"]), *(regions or [])])
                    out.refused.append(("", f"{chip.id} {where}", _why_none(buying, chip, terms, clouds, regions)))
                for unit in there:
                    _unit(out, buying, i, c, terms, unit)
    if c.lead:
        out.said.append(f"{chip.id}: {buying.wait(c.lead)}")
    names = tuple(s.id for s in out.supplies[before:])
    if c.quota is not None and names:
        out.limits.append(
            Limit(f"quota of {chip.id}" + (f" at {', '.join(c.clouds)}" if c.clouds else ""), "chips", c.quota, names)
        )


def _why_none(
    buying: Buying, chip: Chip, terms: str, clouds: Sequence[str] | None, regions: Sequence[str] | None
) -> str:
    book, spot = within(buying.knowledge.prices, clouds, regions), terms == "spot"
    if terms not in YEARS and book.offers_for(chip.id, spot):
        return why_no_price(chip, 1, spot, book)
    return f"no price {WORDS[terms]} is listed"


def _unit(out: Stock, buying: Buying, i: int, c: CandidateSpec, terms: str, unit: Unit) -> None:
    chip, o = load().chips[c.chip], unit.origin
    pool = _pool(out, buying, chip, o.cloud, o.region, unit.chips, terms == "spot", unit.joined)
    shut = c.quota is not None and c.quota < pool.chips
    name = f"{pool.id.removesuffix(' spot')} {WORDS[terms]}"
    out.add(
        _rented(buying, name, pool, terms, o.usd_per_chip_hour, c.lead),
        o,
        (f"candidates[{i}].quota", c.quota or 0) if shut else None,
    )


# premises of one's own and what is there


def own_place(spec: SiteSpec | None, know: Economics) -> Site:
    """The site of one's own, with the electricity that the file says."""
    if spec is None:
        return site("us-average", "on_premises.site")
    return site_with(site(spec.site, "on_premises.site"), spec.usd_kwh, spec.pue, spec.g_kwh, know)


def _own_pool(out: Stock, chip: Chip, place: Site, know: Economics, chips: int) -> Pool:
    name = f"{chip.id} own {place.id}"
    if name not in out.pools:
        idle, busy = unit_watts(chip, chips, place, know)
        price = place.usd_kwh.value if place.usd_kwh else 0.0
        out.pools[name] = Pool(name, chip.id, chip.family, chips, place.id, idle, busy, price, place.g_kwh.value / 1000)
        out.clouds[name], out.joined[name] = "", True
    return out.pools[name]


def _site(out: Stock, buying: Buying, spec: SiteSpec) -> None:
    know = buying.knowledge.economics
    place = own_place(spec, know)
    for name in spec.chips:
        chip = load().chips[name]
        try:
            server = server_of(chip)
        except Refusal as refusal:
            out.refused.append(("", f"{name} on premises", str(refusal)))
            continue
        pool = _own_pool(out, chip, place, know, server.chips)
        fit = SERVERS if spec.power_kw is None else int(spec.power_kw * 1000 / pool.watts_busy)
        many = max(1, min(fit, MOST_SERVERS))
        mine = owned(chip, many * server.chips, place, know, spec.years)
        if name in spec.server_usd:
            mine = _at_price(mine, spec.server_usd[name], know)
        months = spec.years * 12
        interest = mine.payment_usd_month - (mine.capex_usd - mine.residual_usd) / months
        each = buying.demand.calendar.each
        price = spec.server_usd.get(name, server.usd)
        left = know.value("residual_value")
        supply = Supply(
            f"{name} servers",
            pool.id,
            "owned",
            capex=mine.capex_usd,
            resale=price,
            keeps=left ** (each / (RESIDUAL_YEARS * 12)),
            usd_period=(mine.fixed_usd_month + interest) * each,
            rack_units=server.rack_units,
            lead=buying.periods(spec.lead),
        )
        source = "the demand file" if name in spec.server_usd else server.price_source
        out.owned[supply.id] = mine
        out.add(
            supply,
            Origin(
                "",
                place.id,
                server.id,
                0.0,
                server.price_date,
                source,
                is_stale(server.price_date, buying.knowledge.today),
            ),
        )
        out.said.append(
            f"{name} servers: staff and network as of {many}; worth {left:.0%} of their price after "
            f"{RESIDUAL_YEARS:g} years, with the same loss every year; interest as if paid off over "
            f"{spec.years:g} years; {buying.wait(spec.lead)}"
        )


def _at_price(mine: Owned, usd: float, know: Economics) -> Owned:
    """The servers at another price."""
    network = mine.capex_usd - mine.server.usd * (1 + know.value("installation"))
    factor = usd / mine.server.usd
    capex = capex_usd(usd, know.value("installation"), network)
    return replace(
        mine,
        capex_usd=capex,
        residual_usd=mine.residual_usd * factor,
        payment_usd_month=mine.payment_usd_month * capex / mine.capex_usd,
        maintenance_usd_month=mine.maintenance_usd_month * factor,
    )


def _existing(out: Stock, buying: Buying, i: int) -> None:
    demand = buying.demand
    e, calendar = demand.spec.existing[i], demand.calendar
    chip = load().chips[e.chip]
    if e.cloud is None:
        server = servers().get(chip.id)
        pool = _own_pool(
            out,
            chip,
            own_place(demand.spec.on_premises, buying.knowledge.economics),
            buying.knowledge.economics,
            server.chips if server else chip.fabric.host_chips,
        )
        rack = float(server.rack_units) if server else 0.0
        if demand.spec.on_premises is None:
            out.said.append(f"{e.contract}: electricity, PUE and grid of {pool.region}, as no site is named")
    else:
        alike = [
            p
            for p in out.pools.values()
            if p.chip == chip.id
            and out.clouds[p.id] == e.cloud
            and out.joined[p.id]
            and not p.id.endswith(" spot")
            and e.region in ("", p.region)
            and e.chips % p.chips == 0
        ]
        pool = (
            max(alike, key=lambda p: p.chips)
            if alike
            else _pool(out, buying, chip, e.cloud, e.region, chip.fabric.host_chips)
        )
        rack = 0.0
    if e.chips % pool.chips:
        raise InputError(f"existing[{i}].chips", e.chips, f"a multiple of {pool.chips}, the chips of one unit")
    usd = e.usd_chip_hour * usd_rate(demand.spec, e.currency)
    hours = [_hours_there(calendar, e, t) for t in range(calendar.count)]
    whole = [there == p.hours for there, p in zip(hours, calendar.periods, strict=True)]
    out.add(
        Supply(
            e.contract,
            pool.id,
            "existing",
            usd * pool.chips,
            rack_units=rack,
            existing=tuple(e.chips // pool.chips if yes else 0 for yes in whole),
            idle_usd=tuple(0.0 if yes else usd * e.chips * x for yes, x in zip(whole, hours, strict=True)),
        ),
        Origin(e.cloud or "", pool.region, "", usd, "", price_source(demand.spec, e.usd_chip_hour, e.currency), False),
    )
    for yes, there, period in zip(whole, hours, calendar.periods, strict=True):
        if there and not yes:
            out.said.append(f"{e.contract}: there in a part of {period.name} alone: paid for that part, not used in it")


def _hours_there(calendar: Calendar, e: ExistingSpec, t: int) -> float:
    """Hours of a period in which what exists is there."""
    first = calendar.index(e.start) if e.start else 0
    last = calendar.index(e.until) if e.until else calendar.months - 1
    return sum(calendar.hours(m) for m in range(t * calendar.each, (t + 1) * calendar.each) if first <= m <= last)


def _limits(out: Stock, buying: Buying) -> None:
    spec = buying.demand.spec
    limits, own = spec.limits, spec.on_premises
    period = "quarter" if buying.demand.calendar.each > 1 else "month"
    if own is not None:
        there = tuple(s.id for s in out.supplies if not out.clouds[s.pool])
        for amount, kind, name in ((own.power_kw, "kw", "power"), (own.rack_units, "rack_units", "rack units")):
            if amount is not None and there:
                out.limits.append(Limit(f"{name} of {own.site}", kind, float(amount), there))
    for amount, kind, total, name in (
        (limits.budget_period, "usd", False, f"budget of a {period}"),
        (limits.budget, "usd", True, "budget"),
        (limits.power_kw, "kw", False, "power"),
        (_kg(limits.carbon_t_period), "kg", False, f"carbon of a {period}"),
        (_kg(limits.carbon_t), "kg", True, "carbon"),
    ):
        if amount is not None:
            out.limits.append(Limit(name, kind, float(amount), total=total))
    for e in spec.exclusive:
        sides = tuple(
            tuple(s.id for s in out.supplies if s.pricing in ("year1", "year3") and out.clouds[s.pool] == cloud)
            for cloud in e.clouds
        )
        if sum(bool(side) for side in sides) > 1:
            out.exclusives.append(Exclusive(e.name, tuple(side for side in sides if side)))


def _kg(tonnes: float | None) -> float | None:
    return None if tonnes is None else tonnes * 1000

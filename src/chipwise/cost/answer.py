"""From a row of a comparison to its statement of cost: the terms that can be had, each billed, with ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from math import inf

import numpy as np

from chipwise.catalog import Accelerators, Chip, Commitment, Offer, instances
from chipwise.catalog.economics import Assumption, Cited, Economics, Site, region_site
from chipwise.catalog.instances import squashed
from chipwise.compare.serving.fleet import rent as fleet_of
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.training.comparer import TrainingRow
from chipwise.cost.bill import Deal, bill, drawn_clock, expected_clock, plan, rate_h, uncertain
from chipwise.cost.case import Case, of_service, of_training
from chipwise.cost.commitment import BreakEven, break_even, checked
from chipwise.cost.onprem import checked_years, owned
from chipwise.cost.port import Port, Program, port
from chipwise.cost.sampling import DRAWS, checked_draws, drawn, generator, medians, spread, tornado
from chipwise.cost.statement import (
    KINDS,
    ONDEMAND,
    ONE_YEAR,
    OWNED,
    SPOT,
    THREE_YEARS,
    Missing,
    Purchase,
    Rival,
    Source,
    Split,
    Statement,
    TermCost,
)
from chipwise.errors import Refusal
from chipwise.knowledge import Knowledge
from chipwise.prices import Price, PriceBook, is_stale, price_of
from chipwise.prices.money import ALONE, fitting, paid_chips
from chipwise.units import HOUR, format_seconds

YEARS = {ONE_YEAR: 1, THREE_YEARS: 3}
ENDLESS = 100.0  # times as long as without interruptions: from there on there is no bill
NO_CHEAPER = "no spot price is listed below the price on demand"


@dataclass(frozen=True, slots=True)
class CostAssumptions:
    """What holds for every chip: what is known, the site, years, program, and how ranges are drawn."""

    site: Site  # where chips of one's own would stand
    knowledge: Knowledge = field(default_factory=Knowledge)
    years: float = 3.0
    utilisation: float | None = None  # None: what is assumed; of a service that is always on, 1
    program: Program = field(default_factory=Program)
    runs: float = 1.0
    epochs: float | None = None
    draws: int = DRAWS
    kinds: tuple[str, ...] = KINDS  # of terms that are asked for

    def __post_init__(self) -> None:
        checked_draws(self.draws, self.knowledge.seed)
        checked_years(self.years)
        if self.utilisation is not None:
            checked(self.utilisation, "--utilisation")


def state_cost(row: TrainingRow | ServingRow, asked: CostAssumptions) -> Statement:
    """What a row of a comparison costs on every kind of terms."""
    case = of_training(row, asked.epochs) if isinstance(row, TrainingRow) else of_service(row)
    chip = row.accelerators.chip
    effort = port(asked.program, chip, asked.knowledge.economics, asked.runs)
    offered: list[Deal] = []
    missing: list[Missing] = []
    for kind in asked.kinds:
        try:
            offered.append(_deal(kind, row, case, asked))
        except Refusal as refusal:
            missing.append(Missing(kind, str(refusal)))
    made = [_billed(deal, case, effort, asked) for deal in offered]
    missing += [gone for gone, _ in made if isinstance(gone, Missing)]
    terms_cost = tuple(term for term, _ in made if isinstance(term, TermCost))
    used: dict[str, Assumption] = {a.name: a for _, found in made for a in found}
    workload = row.prediction.workload if isinstance(row, TrainingRow) else row.served.service.target.workload
    spare = [
        f"on-premises: {deal.owned.servers:,} whole servers hold {deal.owned.chips:,} chips, of which the work "
        f"uses {case.chips:,}; all are paid for, the others idle"
        for deal in offered
        if deal.owned is not None and deal.owned.chips != case.chips
    ]
    spare += [f"{deal.kind}: price of {deal.source}: {deal.source.note}" for deal in offered if deal.source.note]
    spare += [
        f"{deal.kind}: rented in whole instances, {deal.chips:,} chips for {case.chips:,}"
        for deal in offered
        if deal.owned is None and deal.chips > case.chips
    ]
    return Statement(
        workload,
        row.accelerators,
        row,
        case.basis,
        case.evidence,
        case.because,
        terms_cost,
        tuple(sorted(missing, key=lambda m: KINDS.index(m.kind))),
        _commitments(chip, case.chips, asked),
        _purchase(chip, case, offered, asked),
        effort,
        tuple(sorted(used.values(), key=lambda a: a.name)),
        (*case.notes, *spare, *_notes(case, asked)),
        asked.knowledge.today,
        asked.draws,
        asked.knowledge.seed,
    )


def _deal(kind: str, row: TrainingRow | ServingRow, case: Case, asked: CostAssumptions) -> Deal:
    """The chips on one kind of terms; a `Refusal` where nobody offers it."""
    chip, chips = row.accelerators.chip, case.chips
    if kind == OWNED:
        mine = owned(chip, chips, asked.site, asked.knowledge.economics, asked.years)
        use = _use(case, asked, asked.knowledge.economics)
        server = mine.server
        stale = is_stale(server.price_date, asked.knowledge.today)
        said = Source(
            "",
            asked.site.id,
            server.id,
            mine.usd_per_chip_hour(use, case.chip_w),
            server.price_date,
            server.price_source,
            stale,
            server.note,
            chips=float(server.chips),
        )
        return Deal(kind, said, mine.chips, float(mine.servers), asked.site, mine)
    if kind in YEARS:
        found = asked.knowledge.prices.commitments_for(chip.id, YEARS[kind])
        if not found:
            raise Refusal(f"no commitment of {kind} for {chip.id} in {asked.knowledge.prices.origin}")
        source, many = min(
            (
                (said, paid_chips(chip, chips, said.chips))
                for said in (committed(c, asked.knowledge.today, asked.knowledge.prices) for c in found)
            ),
            key=lambda each: (not each[0].own and each[0].note.startswith(ALONE), each[0].usd_per_chip_hour * each[1]),
        )
        return Deal(
            kind, source, many, _instances(row, many, chip.fabric.host_chips), region_site(source.cloud, source.region)
        )
    price, many = _price(kind, row, asked)
    if price is None:
        what = f"{'spot' if kind == SPOT else 'public'} price"
        if asked.knowledge.prices.offers_for(chip.id, kind == SPOT):
            raise Refusal(f"every {what} of {chip.id} is for single nodes, which no network joins to {chips} chips")
        raise Refusal(f"{chip.id} has no {what} in {asked.knowledge.prices.origin}")
    o = price.offer
    return Deal(kind, rented(price), many, _instances(row, many, o.chips), region_site(o.cloud, o.region))


def _price(kind: str, row: TrainingRow | ServingRow, asked: CostAssumptions) -> tuple[Price | None, int]:
    """The price of a chip-hour, and how many chips are rented for it."""
    if isinstance(row, TrainingRow):
        return _of_instances(kind, row.accelerators, asked)
    if not row.accelerators.shape:
        return _of_replicas(kind, row, asked)
    quote = row.spot if kind == SPOT else row.ondemand
    if quote is None:
        if kind == SPOT and row.ondemand is not None:
            raise Refusal(NO_CHEAPER)
        return None, row.accelerators.count
    return quote.price, max(1, round(quote.usd.value / quote.price.usd_per_chip_hour))


def _of_replicas(kind: str, row: ServingRow, asked: CostAssumptions) -> tuple[Price | None, int]:
    """The instances that hold these replicas for least: replicas answer apart, so small ones do."""
    now, spot = (
        fleet_of(
            row.accelerators.chip,
            row.split.chips,
            row.fleet.replicas,
            each,
            asked.knowledge.today,
            asked.knowledge.prices,
        )
        for each in (False, True)
    )
    if kind != SPOT:
        return now.price, now.accelerators.count
    if now.usd_per_hour is not None and spot.usd_per_hour is not None and spot.usd_per_hour >= now.usd_per_hour:
        raise Refusal(NO_CHEAPER)
    return spot.price, spot.accelerators.count


def _of_instances(kind: str, acc: Accelerators, asked: CostAssumptions) -> tuple[Price | None, int]:
    """The instances that hold these chips for least, on demand or on spot where that is cheaper."""
    prices = [
        price_of(acc.chip, acc.count, spot, asked.knowledge.today, asked.knowledge.prices, True)
        for spot in (False, True)
    ]
    (now, now_chips), (spot, spot_chips) = (
        (p, acc.count if p is None else paid_chips(acc.chip, acc.count, p.offer.chips)) for p in prices
    )
    if kind != SPOT:
        return now, now_chips
    if now and spot and spot.usd_per_chip_hour * spot_chips >= now.usd_per_chip_hour * now_chips:
        raise Refusal(NO_CHEAPER)
    return spot, spot_chips


def _instances(row: TrainingRow | ServingRow, chips: int, each: float) -> float:
    """What can be taken away one by one: instances; of TPUs, slices."""
    acc = row.accelerators
    if acc.shape:
        return float(acc.slices)
    return max(1.0, -(-chips // max(each, 1.0)))


def rented(price: Price) -> Source:
    """Where a price comes from."""
    o = price.offer
    note = "; ".join(part for part in (price.note, o.note) if part)
    return Source(
        o.cloud,
        o.region,
        o.instance,
        price.usd_per_chip_hour,
        o.date,
        o.source,
        price.stale,
        note,
        o.ondemand_usd_per_chip_hour,
        o.chips,
        o.own,
    )


def committed(c: Commitment, today: date, book: PriceBook) -> Source:
    """Where the price of a commitment comes from; one for no instance that is known is for any number of chips."""
    known = instances().get((c.cloud, squashed(c.instance))) if c.instance else None
    mine = (o.chips for o in book.offers if c.instance and (o.cloud, o.instance) == (c.cloud, c.instance))
    return Source(
        c.cloud,
        c.region,
        c.instance,
        c.usd_per_chip_hour,
        c.date,
        c.source,
        is_stale(c.date, today),
        c.note,
        c.ondemand_usd_per_chip_hour,
        known.chips if known else next(mine, 1.0),
        c.own,
    )


def _use(case: Case, asked: CostAssumptions, know: Economics) -> float:
    """The share of paid hours that are used: of a service that is always on, all."""
    if asked.utilisation is not None:
        return asked.utilisation
    return 1.0 if case.basis == "month" else know.value("utilisation")


def _billed(
    deal: Deal, case: Case, effort: Port, asked: CostAssumptions
) -> tuple[TermCost | Missing, tuple[Assumption, ...]]:
    """The bill on these terms with its range, or why there is none; and what was assumed for it."""
    given = 1.0 if asked.utilisation is None and case.basis == "month" else asked.utilisation
    unknown = uncertain(case, deal, effort, asked.knowledge.economics, given)
    middle = medians(unknown.inputs)
    course = plan(case, deal, middle) if case.basis == "run" else None
    if course is not None and not course.stretch < ENDLESS:
        often = format_seconds(HOUR / float(rate_h(case, deal, middle)))
        return Missing(
            deal.kind,
            f"interrupted every {often} and slow to start again: it would hardly ever end, and "
            f"take over {ENDLESS:g} times as long",
        ), unknown.assumed
    interval = course.interval_s if course else inf

    def amount(x: Mapping[str, float]) -> float:
        return float(bill(case, deal, effort, x, expected_clock(interval)).total)

    one = bill(case, deal, effort, middle, expected_clock(interval))
    rng = generator(asked.knowledge.seed, f"interruptions {deal.kind}")
    with np.errstate(invalid="ignore"):  # a run that never ends, by a price of nothing
        many = bill(
            case, deal, effort, drawn(unknown.inputs, asked.draws, asked.knowledge.seed), drawn_clock(interval, rng)
        )
    totals = np.where(np.isfinite(many.wall_s), many.total, inf)
    split = Split(**{name: float(usd) for name, usd in one.parts.items()})
    kwh = _kwh(case, deal, float(one.chip_hours) * middle.get("utilisation", 1.0), asked.knowledge.economics)
    return TermCost(
        deal.kind,
        deal.source,
        split,
        spread(totals),
        float(one.wall_s) / HOUR,
        spread(np.broadcast_to(many.wall_s / HOUR, totals.shape)),
        float(one.chip_hours),
        kwh,
        kwh * deal.site.g_kwh.value / 1e3,
        tuple((name, split.total / count) for name, count in case.units),
        tornado(unknown.inputs, amount),
        course,
        float(rate_h(case, deal, middle)),
        middle.get("utilisation", 1.0),
    ), unknown.assumed


def _kwh(case: Case, deal: Deal, chip_hours: float, know: Economics) -> float:
    """Energy at the meter of the building while the work runs."""
    if deal.owned is not None:
        mine = deal.owned
        hours = chip_hours / deal.chips
        return hours * mine.servers * mine.server_w(mine.mean_w(case.chips, case.chip_w)) / 1e3 * deal.site.pue.value
    used = min(1.0, case.chips / deal.chips)  # of the chips of whole instances
    return chip_hours * used * case.watts(know) / 1e3 * deal.site.pue.value


def _commitments(chip: Chip, chips: int, asked: CostAssumptions) -> tuple[BreakEven, ...]:
    """Every commitment for the chip against the price on demand of its source, else the cheapest that fits."""
    now = price_of(chip, chips, False, asked.knowledge.today, asked.knowledge.prices)
    out = []
    for years in sorted(YEARS.values()):
        for c in asked.knowledge.prices.commitments_for(chip.id, years):
            if c.ondemand_usd_per_chip_hour is not None:
                usd, against = c.ondemand_usd_per_chip_hour, f"{c.cloud} on {c.date}"
            elif now is not None:
                usd, against = now.usd_per_chip_hour, f"{now.offer.cloud} {now.offer.region} on {now.offer.date}"
            else:
                continue
            out.append(
                BreakEven(
                    c, usd, against, break_even(c.usd_per_chip_hour, usd), is_stale(c.date, asked.knowledge.today)
                )
            )
    return tuple(out)


def _purchase(chip: Chip, case: Case, offered: Iterable[Deal], asked: CostAssumptions) -> Purchase | None:
    """Owning over the share of hours used, and against the cheapest of every cloud; None where none is sold."""
    mine = next((deal.owned for deal in offered if deal.owned is not None), None)
    if mine is None:
        return None
    offers = [
        Rival(kind, source, mine.break_even(source.usd_per_chip_hour, case.chip_w))
        for kind, source in _sources(chip, case.replica_chips, asked)
    ]
    best: dict[tuple[str, str], Rival] = {}
    for rival in offers:  # cheapest first
        best.setdefault((rival.kind, rival.source.cloud), rival)
    return Purchase(mine, case.chip_w, mine.curve(case.chip_w), tuple(best.values()), tuple(offers))


def _sources(chip: Chip, chips: int, asked: CostAssumptions) -> list[tuple[str, Source]]:
    """Every recent offer that could hold a replica or a run, and every commitment, by kind of terms, cheapest first."""
    out = [
        (kind, _offer(o, spot, asked.knowledge.today))
        for kind, spot in ((ONDEMAND, False), (SPOT, True))
        for o in fitting(chip, chips, spot, asked.knowledge.prices)[0]
    ]
    out += [
        (kind, committed(c, asked.knowledge.today, asked.knowledge.prices))
        for kind, years in YEARS.items()
        for c in asked.knowledge.prices.commitments_for(chip.id, years)
    ]
    return sorted(out, key=lambda pair: (KINDS.index(pair[0]), pair[1].usd_per_chip_hour, str(pair[1])))


def _offer(o: Offer, spot: bool, today: date) -> Source:
    return Source(
        o.cloud,
        o.region,
        o.instance,
        o.price(spot) or inf,
        o.date,
        o.source,
        is_stale(o.date, today),
        o.note,
        o.ondemand_usd_per_chip_hour,
        o.chips,
        o.own,
    )


def _notes(case: Case, asked: CostAssumptions) -> list[str]:
    """What is taken for granted beside the assumptions."""
    place = asked.site
    said = [
        "compute on demand and on spot is paid for the hours used; commitments and servers for all hours, of which "
        + (
            f"{asked.utilisation:.0%} are used (given)"
            if asked.utilisation is not None
            else "all are used (a service is always on)"
            if case.basis == "month"
            else f"{asked.knowledge.economics.value('utilisation'):.0%} are used (assumed)"
        ),
        "electricity, cooling and staff of clouds are part of their prices; kWh and CO2 are for the hours of this work "
        "alone, with servers and cooling, at the carbon intensity of the region's grid",
        f"on-premises: {asked.years:g} years at {place.id}, {_cited(place.usd_kwh, ' USD/kWh')}, "
        f"PUE {_cited(place.pue)}, {_cited(place.g_kwh, ' gCO2/kWh')}",
    ]
    if case.basis == "run":
        said.append(
            "failures interrupt runs on all terms, spot is interrupted by its cloud as well; the interval "
            "between checkpoints makes the exact expected time least"
        )
    else:
        said.append(
            "replicas that are away are paid for again (restart) or made up for later; the SLO is not kept meanwhile"
        )
    said.append(
        f"ranges: {asked.draws:,} draws with seed {asked.knowledge.seed}; a range holds its input nine times in ten"
    )
    return said


def _cited(figure: Cited | None, unit: str = "") -> str:
    if figure is None:
        return "no price of electricity"
    return f"{figure.value:g}{unit} ({figure.source}{', ' * bool(figure.date)}{figure.date})"

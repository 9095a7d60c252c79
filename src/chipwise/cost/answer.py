"""From a row of a comparison to its statement of cost: each pricing model that can be had, billed, with ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from math import inf

import numpy as np

from chipwise.catalog import Chip, Commitment
from chipwise.catalog.economics import Assumption, Basis, Cited, Economics, Site, region_site
from chipwise.compare.serving.row import ServingRow
from chipwise.compare.training.row import TrainingRow
from chipwise.cost.bill import Deal, bill, drawn_clock, expected_clock, plan, rate_h, uncertain
from chipwise.cost.case import Case, of_service, of_training
from chipwise.cost.commitment import break_evens, checked, left_out
from chipwise.cost.migration import Migration, Program, migration
from chipwise.cost.onprem import checked_years, owned
from chipwise.cost.sampling import DRAWS, checked_draws, drawn, generator, medians, spread, tornado
from chipwise.cost.statement import (
    ONDEMAND,
    ONE_YEAR,
    OWNED,
    PRICING_MODELS,
    SPOT,
    THREE_YEARS,
    CostOption,
    Missing,
    Purchase,
    Rival,
    Source,
    Split,
    Statement,
)
from chipwise.errors import Refusal
from chipwise.io.brief import brief
from chipwise.knowledge import Knowledge
from chipwise.prices import Price, PriceBook, Quote, age_in_days, cheapest, why_no_price
from chipwise.prices.commitments import commitments_that_count, instance_chips, may_be_joined
from chipwise.prices.fit import fitting, paid_chips, priced_offer
from chipwise.units import HOUR, format_seconds

YEARS = {ONE_YEAR: 1, THREE_YEARS: 3}
ENDLESS = 100.0  # times as long as without interruptions: from there on there is no bill
NO_CHEAPER = "no spot price is listed below the price on demand"


@brief
@dataclass(frozen=True, slots=True)
class CostAssumptions:
    """What holds for every chip: what is known, the site, years, program, and how ranges are drawn."""

    site: Site  # where chips of one's own would stand
    knowledge: Knowledge = field(default_factory=Knowledge)
    years: float = 3.0
    utilization: float | None = None  # None: what is assumed; of a service that is always on, 1
    program: Program = field(default_factory=Program)
    runs: float = 1.0
    epochs: float | None = None
    draws: int = DRAWS
    pricing: tuple[str, ...] = PRICING_MODELS  # the pricing models that are billed

    def __post_init__(self) -> None:
        checked_draws(self.draws, self.knowledge.seed)
        checked_years(self.years)
        if self.utilization is not None:
            checked(self.utilization, "utilization")


def state_cost(row: TrainingRow | ServingRow, assumptions: CostAssumptions) -> Statement:
    """What a row of a comparison costs on every pricing model."""
    case = of_training(row, assumptions.epochs) if isinstance(row, TrainingRow) else of_service(row)
    chip = row.accelerators.chip
    effort = migration(assumptions.program, chip, assumptions.knowledge.economics, assumptions.runs)
    offered: list[Deal] = []
    missing: list[Missing] = []
    for pricing in assumptions.pricing:
        try:
            offered.append(_deal(pricing, row, case, assumptions))
        except Refusal as refusal:
            missing.append(Missing(pricing, str(refusal)))
    made = [_billed(deal, case, effort, assumptions) for deal in offered]
    missing += [gone for gone, _ in made if isinstance(gone, Missing)]
    options = tuple(term for term, _ in made if isinstance(term, CostOption))
    used: dict[str, Assumption] = {a.name: a for _, found in made for a in found}
    workload = row.prediction.workload if isinstance(row, TrainingRow) else row.served.service.target.workload
    spare = [
        f"on-premises: {deal.owned.servers:,} whole servers hold {deal.owned.chips:,} chips, of which the work "
        f"uses {case.chips:,}; all are paid for, the others idle"
        for deal in offered
        if deal.owned is not None and deal.owned.chips != case.chips
    ]
    spare += [f"{deal.pricing}: price of {deal.source}: {deal.source.note}" for deal in offered if deal.source.note]
    spare += [
        f"{deal.pricing}: rented in whole instances, {deal.chips:,} chips for {case.chips:,}"
        for deal in offered
        if deal.owned is None and deal.chips > case.chips
    ]
    wanted = {pricing: years for pricing, years in YEARS.items() if pricing in assumptions.pricing}
    return Statement(
        workload,
        row.accelerators,
        row,
        case.basis,
        case.evidence,
        case.because,
        options,
        tuple(sorted(missing, key=lambda m: PRICING_MODELS.index(m.pricing))),
        break_evens(chip, case.chips, assumptions.knowledge),
        _purchase(chip, case, offered, assumptions),
        effort,
        tuple(sorted(used.values(), key=lambda a: a.name)),
        (*case.notes, *spare, *left_out(chip, wanted, assumptions.knowledge), *_notes(case, assumptions)),
        assumptions.knowledge.today,
        assumptions.draws,
        assumptions.knowledge.seed,
    )


def _deal(pricing: str, row: TrainingRow | ServingRow, case: Case, assumptions: CostAssumptions) -> Deal:
    """The chips on one pricing model; a `Refusal` where nobody offers it."""
    chip, chips = row.accelerators.chip, case.chips
    if pricing == OWNED:
        mine = owned(chip, chips, assumptions.site, assumptions.knowledge.economics, assumptions.years)
        use = _use(case, assumptions, assumptions.knowledge.economics)
        server = mine.server
        age = age_in_days(server.price_date, assumptions.knowledge.today)
        said = Source(
            "",
            assumptions.site.id,
            server.id,
            mine.usd_per_chip_hour(use, case.chip_w),
            server.price_date,
            server.price_source,
            age,
            server.note,
            chips=float(server.chips),
        )
        return Deal(pricing, said, mine.chips, float(mine.servers), assumptions.site, mine)
    if pricing in YEARS:
        known = assumptions.knowledge
        commitments = commitments_that_count(known.prices, chip, YEARS[pricing], known.today)
        if not commitments.counted:
            others = f" (left out: {'; '.join(commitments.left_out)})" if commitments.left_out else ""
            raise Refusal(f"no commitment of {pricing} for {chip.id} in {known.prices.origin}{others}")
        joinable = [
            committed(c, known.today, known.prices)
            for c in commitments.counted
            if may_be_joined(c) or case.replica_chips <= instance_chips(c, known.prices)
        ]
        if not joinable:
            raise Refusal(f"every commitment of {pricing} for {chip.id} is for instances that no fast fabric joins")
        source, many = min(
            ((source, paid_chips(chip, chips, source.chips)) for source in joinable),
            key=lambda pair: pair[0].usd_per_chip_hour * pair[1],
        )
        return Deal(
            pricing,
            source,
            many,
            _instances(row, many, chip.fabric.host_chips),
            region_site(source.cloud, source.region),
        )
    quote = _quote(pricing == SPOT, row, case, assumptions.knowledge)
    o = quote.price.offer
    where = region_site(o.cloud, o.region)
    return Deal(pricing, rented(quote.price), quote.chips, _instances(row, quote.chips, o.chips), where)


def _quote(spot: bool, row: TrainingRow | ServingRow, case: Case, knowledge: Knowledge) -> Quote:
    """What the row costs on demand or on spot, as the comparison found it; a `Refusal` where it has no such price."""
    quote = row.spot if spot else row.ondemand
    if quote is not None:
        return quote
    chip = row.accelerators.chip
    if spot and row.ondemand is not None and cheapest(chip, case.replica_chips, 1, True, book=knowledge.prices):
        raise Refusal(NO_CHEAPER)
    raise Refusal(why_no_price(chip, case.replica_chips, spot, knowledge.prices))


def _instances(row: TrainingRow | ServingRow, chips: int, each: float) -> float:
    """What can be taken away one by one: instances; of TPUs, slices."""
    acc = row.accelerators
    if acc.shape:
        return float(acc.slices)
    return max(1.0, -(-chips // max(each, 1.0)))


def rented(price: Price) -> Source:
    """Where a price comes from."""
    o = price.offer
    return Source(
        o.cloud,
        o.region,
        o.instance,
        price.usd_per_chip_hour,
        o.dated(price.spot),
        o.source,
        price.age_days,
        price.caveat,
        o.ondemand_usd_per_chip_hour,
        o.chips,
        o.own,
    )


def committed(c: Commitment, today: date, book: PriceBook) -> Source:
    """Where the price of a commitment comes from; one for no instance that is known is for any number of chips."""
    return Source(
        c.cloud,
        c.region,
        c.instance,
        c.usd_per_chip_hour,
        c.date,
        c.source,
        age_in_days(c.date, today),
        c.note,
        c.ondemand_usd_per_chip_hour,
        instance_chips(c, book),
        c.own,
    )


def _use(case: Case, assumptions: CostAssumptions, know: Economics) -> float:
    """The share of paid hours that are used: of a service that is always on, all."""
    if assumptions.utilization is not None:
        return assumptions.utilization
    return 1.0 if case.basis == "month" else know.value("utilization")


def _billed(
    deal: Deal, case: Case, effort: Migration, assumptions: CostAssumptions
) -> tuple[CostOption | Missing, tuple[Assumption, ...]]:
    """The bill of a deal with its range, or why there is none; and what was assumed for it."""
    given = 1.0 if assumptions.utilization is None and case.basis == "month" else assumptions.utilization
    unknown = uncertain(case, deal, effort, assumptions.knowledge.economics, given)
    middle = medians(unknown.inputs)
    course = plan(case, deal, middle) if case.basis == "run" else None
    if course is not None and not course.stretch < ENDLESS:
        often = format_seconds(HOUR / float(rate_h(case, deal, middle)))
        return Missing(
            deal.pricing,
            f"interrupted every {often} and slow to start again: it would hardly ever end, and "
            f"take over {ENDLESS:g} times as long",
        ), unknown.assumed
    interval = course.interval_s if course else inf

    def amount(x: Mapping[str, float]) -> float:
        return float(bill(case, deal, effort, x, expected_clock(interval)).total)

    one = bill(case, deal, effort, middle, expected_clock(interval))
    seed = assumptions.knowledge.seed
    rng = generator(seed, f"interruptions {deal.pricing}")
    with np.errstate(invalid="ignore"):  # a run that never ends, by a price of nothing
        many = bill(
            case,
            deal,
            effort,
            drawn(unknown.inputs, assumptions.draws, assumptions.knowledge.seed),
            drawn_clock(interval, rng),
        )
    totals = np.where(np.isfinite(many.wall_s), many.total, inf)
    split = Split(**{name: float(usd) for name, usd in one.parts.items()})
    kwh = _kwh(case, deal, float(one.chip_hours) * middle.get("utilization", 1.0), assumptions.knowledge.economics)
    return CostOption(
        deal.pricing,
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
        middle.get("utilization", 1.0),
    ), unknown.assumed


def _kwh(case: Case, deal: Deal, chip_hours: float, know: Economics) -> float:
    """Energy at the meter of the building while the work runs."""
    if deal.owned is not None:
        mine = deal.owned
        hours = chip_hours / deal.chips
        return hours * mine.servers * mine.server_w(mine.mean_w(case.chips, case.chip_w)) / 1e3 * deal.site.pue.value
    used = min(1.0, case.chips / deal.chips)  # of the chips of whole instances
    return chip_hours * used * case.watts(know) / 1e3 * deal.site.pue.value


def _purchase(chip: Chip, case: Case, offered: Iterable[Deal], assumptions: CostAssumptions) -> Purchase | None:
    """Owning over the share of hours used, and against the cheapest of every cloud; None where none is sold."""
    mine = next((deal.owned for deal in offered if deal.owned is not None), None)
    if mine is None:
        return None
    offers = [
        Rival(pricing, source, mine.break_even(source.usd_per_chip_hour, case.chip_w))
        for pricing, source in _sources(chip, case.replica_chips, assumptions)
    ]
    best: dict[tuple[str, str], Rival] = {}
    for rival in offers:  # cheapest first
        best.setdefault((rival.pricing, rival.source.cloud), rival)
    return Purchase(mine, case.chip_w, mine.curve(case.chip_w), tuple(best.values()), tuple(offers))


def _sources(chip: Chip, chips: int, assumptions: CostAssumptions) -> list[tuple[str, Source]]:
    """Every recent offer that could hold a replica or a run, and every commitment, by pricing model, cheapest first."""
    out = [
        (pricing, rented(priced_offer(o, spot, assumptions.knowledge.today)))
        for pricing, spot in ((ONDEMAND, False), (SPOT, True))
        for o in fitting(chip, chips, spot, assumptions.knowledge.prices)[0]
    ]
    out += [
        (pricing, committed(c, assumptions.knowledge.today, assumptions.knowledge.prices))
        for pricing, years in YEARS.items()
        for c in commitments_that_count(assumptions.knowledge.prices, chip, years, assumptions.knowledge.today).counted
    ]
    return sorted(out, key=lambda pair: (PRICING_MODELS.index(pair[0]), pair[1].usd_per_chip_hour, str(pair[1])))


def _notes(case: Case, assumptions: CostAssumptions) -> list[str]:
    """What is taken for granted beside the assumptions."""
    place, use = assumptions.site, assumptions.knowledge.economics("utilization")
    of_file = f"in place of {use.value:.0%}, {use.source}" if use.of_file else ""
    instead = of_file or (use.note if use.evidence is Basis.GIVEN else "")
    said = [
        "compute on demand and on spot is paid for the hours used; commitments and servers for all hours, of which "
        + (
            f"{assumptions.utilization:.0%} are used ({', '.join(filter(None, ('given', instead)))})"
            if assumptions.utilization is not None
            else "all are used (a service is always on)"
            if case.basis == "month"
            else f"{use.value:.0%} are used ({use.source})"
        ),
        "electricity, cooling and staff of clouds are part of their prices; kWh and CO2 are for the hours of this work "
        "alone, with servers and cooling, at the carbon intensity of the region's grid",
        f"on-premises: {assumptions.years:g} years at {place.id}, {_cited(place.usd_kwh, ' USD/kWh')}, "
        f"PUE {_cited(place.pue)}, {_cited(place.g_kwh, ' gCO2/kWh')}",
    ]
    if case.basis == "run":
        said.append(
            "failures interrupt runs by every pricing model, spot is interrupted by its cloud as well; the interval "
            "between checkpoints makes the exact expected time least"
        )
    else:
        said.append(
            "replicas that are away are paid for again (restart) or made up for later; the SLO is not kept meanwhile"
        )
    said.append(
        f"ranges: {assumptions.draws:,} draws with seed {assumptions.knowledge.seed}; a range is the 90 % interval of "
        "its input"
    )
    return said


def _cited(figure: Cited | None, unit: str = "") -> str:
    if figure is None:
        return "no price of electricity"
    return f"{figure.value:g}{unit} ({figure.source}{', ' * bool(figure.date)}{figure.date})"

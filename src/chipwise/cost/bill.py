"""One bill: what a case costs on one deal, from inputs that are floats or arrays of draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from chipwise.catalog.economics import CHIP_IDLE_WATTS, CHIP_WATTS, Assumption, Economics, Site
from chipwise.cost import onprem
from chipwise.cost.case import MONTH, Case
from chipwise.cost.migration import Migration
from chipwise.cost.onprem import HOURS_MONTH, Owned
from chipwise.cost.sampling import Input
from chipwise.cost.spot import Expected, Hazard, expected
from chipwise.cost.spot_draws import draw
from chipwise.cost.statement import ONE_YEAR, OWNED, SPOT, THREE_YEARS, Source
from chipwise.units import GIGA, HOUR

Amount = Any  # a float, or an array of draws
Clock = Callable[[Amount, Amount, Amount, Amount, Amount], tuple[Amount, Amount]]
COMMITTED = (ONE_YEAR, THREE_YEARS)
RARE = 1e15  # seconds between interruptions that stand for none in draws
SHARED = (
    "failure_chip_hour",
    "restart_s",
    "checkpoint_gb_s_node",
    "checkpoint_gb_s_all",
    "checkpoints_kept",
    "engineer_week_usd",
)
BUYING = (
    "installation",
    "residual_value",
    "interest",
    "maintenance",
    "insurance",
    "colocation_usd_kw_month",
    "staff_usd_year",
    "staff_fte_first",
    "staff_fte_server",
    "energy_price_drift",
)


@dataclass(frozen=True, slots=True)
class Deal:
    """One way to have the chips."""

    pricing: str
    source: Source
    chips: int
    instances: float  # that can be taken away one by one; a TPU slice goes as a whole
    site: Site
    owned: Owned | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """Amounts of one bill."""

    parts: Mapping[str, Amount]  # US dollars by part of a `Split`
    wall_s: Amount
    chip_hours: Amount  # paid for

    @property
    def total(self) -> Amount:
        """US dollars."""
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The inputs of a bill, by role, and the assumptions that they are."""

    inputs: tuple[Input, ...]
    assumed: tuple[Assumption, ...]


def uncertain(case: Case, deal: Deal, migration: Migration, know: Economics, utilization: float | None) -> Uncertain:
    """Everything that a bill depends on and that is not known."""
    cloud = deal.source.cloud if deal.pricing != OWNED else "owned"
    named = [(name, know(name, cloud)) for name in SHARED]
    named += [(name, know(name)) for name in {case.dataset[0], case.sent[0]}]
    named.append(("egress_usd_gb", know("egress_usd_gb", cloud)))
    if deal.pricing == OWNED:
        named.append(("storage_usd_gb", know("storage_usd_gb.owned")))
        named += [(name, know(name)) for name in BUYING]
    else:
        named.append(("storage_usd_gb_month", know("storage_usd_gb_month", cloud)))
        named.append(("price", know("spot_price_drift" if deal.pricing == SPOT else "price_drift", cloud)))
    if deal.pricing == SPOT:
        named += [("spot_per_hour", know("spot_per_hour", cloud)), ("wait_s", know("spot_wait_s"))]
    else:
        named.append(("repair_s", know("repair_s")))
    assumed = [a for _, a in named]
    inputs = [Input(role, a.value, a.low, a.high, 1.0 if a.unit.startswith("share") else inf) for role, a in named]
    inputs.append(case.scale)
    if deal.pricing in COMMITTED or deal.pricing == OWNED:
        given = know("utilization")
        if utilization is not None:
            inputs.append(Input("utilization", utilization, utilization, utilization, 1.0))
        else:
            assumed.append(given)
            inputs.append(Input("utilization", given.value, given.low, given.high, 1.0))
    if deal.owned is not None:
        server, steps = deal.owned.server, know.steps("network_usd_node")
        inputs.append(Input("server_usd", server.usd, server.usd_low, server.usd_high))
        middle = onprem.network_usd(know, deal.owned.servers)
        widest = steps[-1][1]
        low, high = (middle * end / widest.value if widest.value else 0.0 for end in (widest.low, widest.high))
        inputs.append(Input("network_usd", middle, low, high))
        assumed += [a for _, a in steps]
    power = know.power()
    busy, idle = (power.get(f"{name}.{case.accelerators.chip.id}") for name in (CHIP_WATTS, CHIP_IDLE_WATTS))
    if busy is not None:  # else it is part of the prediction
        assumed.append(busy)
        if deal.owned is not None:
            inputs.append(Input(CHIP_WATTS, busy.value, busy.low, busy.high))
    if idle is not None and deal.owned is not None:
        assumed.append(idle)
    if migration.weeks_high > 0:
        inputs.append(Input("migration_weeks", migration.weeks, migration.weeks_low, migration.weeks_high))
    assumed += [part.assumed for part in migration.parts]
    return Uncertain(tuple(sorted(inputs, key=lambda i: i.name)), tuple(assumed))


def bill(case: Case, deal: Deal, migration: Migration, x: Mapping[str, Amount], clock: Clock) -> Bill:
    """What the case costs by this pricing model with these inputs."""
    wall, billed = times(case, deal, x, clock)
    many = x.get("chips_needed", 1.0)
    hours = billed / HOUR * many
    chip_hours = hours * deal.chips
    use = x.get("utilization", 1.0)
    energy = staff = 0.0
    if deal.owned is None:
        compute = chip_hours * deal.source.usd_per_chip_hour * x["price"] / use
    else:
        compute, energy, staff = _owned(case, deal.owned, x, hours, use)
    size = x["checkpoints_kept"] * case.state_bytes + case.kept_bytes + x[case.dataset[0]] * case.dataset[1]
    months = wall / MONTH
    if deal.owned is None:
        storage = size / GIGA * months * x["storage_usd_gb_month"]
    else:
        storage = size / GIGA * months * x["storage_usd_gb"] / (deal.owned.years * 12)
    sent = x[case.sent[0]] * case.sent[1] + case.sent_bytes
    parts = {
        "compute": compute,
        "storage": storage,
        "egress": sent / GIGA * x["egress_usd_gb"],
        "energy": energy,
        "staff": staff,
        "migration": x.get("migration_weeks", 0.0) * x["engineer_week_usd"] / migration.runs,
    }
    return Bill(parts, wall, chip_hours / use)


def _owned(
    case: Case, mine: Owned, x: Mapping[str, Amount], hours: Amount, use: Amount
) -> tuple[Amount, Amount, Amount]:
    """Servers with their space and upkeep, electricity, and people, for hours of all servers at a share of use."""
    network = x["network_usd"] * onprem.network_scale(mine.server)
    capex = onprem.capex_usd(x["server_usd"], x["installation"], network)
    kept = onprem.residual_usd(x["server_usd"], x["residual_value"], mine.years)
    month = onprem.payment(capex, kept, x["interest"], mine.years)
    month = month + x["server_usd"] * (x["maintenance"] + x["insurance"]) / 12
    month = month + mine.server.max_w / 1e3 * x["colocation_usd_kw_month"]
    people = onprem.staff_fte(mine.servers, x["staff_fte_first"], x["staff_fte_server"]) * x["staff_usd_year"] / 12
    held = hours / use  # hours that the servers are there for this work
    price = mine.usd_kwh * x["energy_price_drift"]
    busy, idle = (
        onprem.energy_usd(mine.server_w(w), mine.site.pue.value, price)
        for w in (mine.mean_w(case.chips, x.get(CHIP_WATTS, case.chip_w)), mine.idle_w)
    )
    energy = hours * (busy + (1 / use - 1) * idle) * mine.servers
    return held / HOURS_MONTH * month * mine.servers, energy, held / HOURS_MONTH * people


def rate_h(case: Case, deal: Deal, x: Mapping[str, Amount]) -> Amount:
    """Interruptions an hour of the chips that stop together."""
    failures = x["failure_chip_hour"] * case.replica_chips
    if deal.pricing != SPOT:
        return failures
    share = 1.0 if case.basis == "run" else min(1.0, case.replica_chips / deal.chips)
    return failures + x["spot_per_hour"] * max(1.0, deal.instances * share)


def times(case: Case, deal: Deal, x: Mapping[str, Amount], clock: Clock) -> tuple[Amount, Amount]:
    """Seconds from beginning to end, and seconds that the chips are paid for."""
    rate = rate_h(case, deal, x)
    restart = x["restart_s"] + x.get("repair_s", 0.0)
    wait = x.get("wait_s", 0.0)
    work = case.seconds * x.get("run_time", 1.0)
    if case.basis == "run":
        mean = np.where(np.asarray(rate) > 0, HOUR / np.maximum(rate, HOUR / RARE), inf)
        return clock(work, mean, write_s(case, x), restart, wait)
    paid = work * (1 + rate * restart / HOUR)
    if case.basis == "job":  # replicas answer apart: what one loses is answered later
        return work * (1 + rate * (restart + wait) / HOUR), paid
    return work, paid


def write_s(case: Case, x: Mapping[str, Amount]) -> Amount:
    """Seconds to write a checkpoint."""
    each, every = x["checkpoint_gb_s_node"], x["checkpoint_gb_s_all"]
    return case.state_bytes / (np.minimum(case.hosts * each, every) * GIGA)


def plan(case: Case, deal: Deal, x: Mapping[str, float], interval_s: float | None = None) -> Expected:
    """The expected course of a run, with the best interval between checkpoints unless one is given."""
    rate = float(rate_h(case, deal, x))
    hazard = Hazard(
        HOUR / rate if rate > 0 else inf,
        float(write_s(case, x)),
        x["restart_s"] + x.get("repair_s", 0.0),
        x.get("wait_s", 0.0),
    )
    return expected(case.seconds * x.get("run_time", 1.0), hazard, interval_s)


def expected_clock(interval_s: float) -> Clock:
    """Expected times, one run at a time."""

    def clock(work: Amount, mean: Amount, write: Amount, restart: Amount, wait: Amount) -> tuple[Amount, Amount]:
        found = expected(float(work), Hazard(float(mean), float(write), float(restart), float(wait)), interval_s)
        return found.wall_s, found.billed_s

    return clock


def drawn_clock(interval_s: float, rng: np.random.Generator) -> Clock:
    """Times of runs with interruptions drawn, one for each element."""

    def clock(work: Amount, mean: Amount, write: Amount, restart: Amount, wait: Amount) -> tuple[Amount, Amount]:
        found = draw(
            rng,
            *(
                np.asarray(each, dtype=np.float64)
                for each in (work, interval_s, np.minimum(mean, RARE), write, restart, wait)
            ),
        )
        return found.wall_s, found.billed_s

    return clock

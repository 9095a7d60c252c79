"""Chips of one's own: what a server costs a month whether it is used or not, and what a useful chip-hour then costs.

The formulas take floats, or arrays of draws of the same length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from chipwise.catalog import Chip, load
from chipwise.catalog.economics import Economics, Server, Site, servers
from chipwise.catalog.vendors import vendors
from chipwise.cost.commitment import checked
from chipwise.errors import InputError, Refusal
from chipwise.io.brief import brief
from chipwise.predict.model.energy import idle_watts, watts

Amount = Any  # a float, or an array of draws

HOURS_MONTH = 365.25 * 24 / 12
RESIDUAL_YEARS = 3.0  # that the assumed residual value is for
NODE_NETWORK = 400e9  # bytes/s of the node whose share of the network the assumptions give: 8 x 400 Gb/s
CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@brief
@dataclass(frozen=True, slots=True)
class Owned:
    """Servers of one's own; dollars of one server. Rents of money, space and people fall due used or not."""

    chip: Chip
    server: Server
    servers: int
    racks: int  # by their units and by what one may draw
    site: Site
    years: float
    capex_usd: float  # server, installation and its share of the network
    residual_usd: float  # what it is worth at the end
    payment_usd_month: float  # what pays capex less residual back with interest
    maintenance_usd_month: float  # support, spares, insurance
    colocation_usd_month: float
    staff_usd_month: float
    usd_kwh: float
    overhead_w: float  # of the server beside its chips
    idle_w: float  # of a chip that nobody uses

    @property
    def chips(self) -> int:
        """All chips bought."""
        return self.servers * self.server.chips

    @property
    def fixed_usd_month(self) -> float:
        """US dollars a month of one server beside its price and electricity."""
        return self.maintenance_usd_month + self.colocation_usd_month + self.staff_usd_month

    @property
    def month_usd(self) -> float:
        """US dollars a month of one server, electricity apart."""
        return self.payment_usd_month + self.fixed_usd_month

    def server_w(self, chip_w: float) -> float:
        """Watts of one server whose chips draw so many each."""
        return self.server.chips * chip_w + self.overhead_w

    def mean_w(self, used: int, chip_w: float) -> float:
        """Mean watts of a chip where so many are used and the others of whole servers idle."""
        return (used * chip_w + (self.chips - used) * self.idle_w) / self.chips

    def energy_usd_per_hour(self, chip_w: float) -> float:
        """US dollars an hour of one server for electricity and, through the PUE, for cooling."""
        return float(energy_usd(self.server_w(chip_w), self.site.pue.value, self.usd_kwh))

    @property
    def idle_usd_per_hour(self) -> float:
        """US dollars an hour of one server for electricity while its chips idle."""
        return self.energy_usd_per_hour(self.idle_w)

    def usd_per_chip_hour(self, utilization: float, chip_w: float) -> float:
        """US dollars for a chip-hour that is used, at a share of hours used."""
        used = checked(utilization)
        busy, idle = self.energy_usd_per_hour(chip_w), self.idle_usd_per_hour
        return (self.month_usd / HOURS_MONTH + used * busy + (1 - used) * idle) / used / self.server.chips

    def curve(self, chip_w: float) -> tuple[tuple[float, float], ...]:
        """(share of hours used, US dollars for a used chip-hour)."""
        return tuple((share, self.usd_per_chip_hour(share, chip_w)) for share in CURVE)

    def break_even(self, usd_per_chip_hour: float, chip_w: float) -> float:
        """The share of hours from which owning costs less than so many dollars a chip-hour; above 1: never."""
        busy, idle = self.energy_usd_per_hour(chip_w), self.idle_usd_per_hour
        gained = usd_per_chip_hour * self.server.chips - busy + idle
        return (self.month_usd / HOURS_MONTH + idle) / gained if gained > 0 else float("inf")


def server_of(chip: Chip) -> Server:
    """The server that holds a chip; a `Refusal` where none is sold or no price is known."""
    found = servers().get(chip.id)
    if found is not None:
        return found
    maker = vendors().get(chip.vendor)
    if maker is not None and maker.not_sold:
        raise Refusal(f"{chip.id} is not sold", maker.not_sold)
    known = ", ".join(name for name in servers() if name in load().chips)
    raise Refusal(f"no price listed for a server with {chip.id}", f"there is one for {known}")


def owned(chip: Chip, chips: int, site: Site, know: Economics, years: float = 3.0) -> Owned:
    """So many chips bought in whole servers and run for years; a `Refusal` where none is sold.

    >>> from chipwise.catalog.economics import economics, site as place
    >>> mine = owned(load().chips["h100"], 60, place("us-average"), economics())
    >>> mine.servers, round(mine.capex_usd - 310_000 * 1.03)
    (8, 9912)
    """
    checked_years(years)
    if site.usd_kwh is None:
        raise InputError("site", site.id, "a place with a price of electricity")
    server = server_of(chip)
    many = max(1, ceil(chips / server.chips))
    network = network_usd(know, many) * network_scale(server)
    capex = capex_usd(server.usd, know.value("installation"), network)
    kept = residual_usd(server.usd, know.value("residual_value"), years)
    upkeep = server.usd * (know.value("maintenance") + know.value("insurance")) / 12
    people = staff_fte(many, know.value("staff_fte_first"), know.value("staff_fte_server"))
    return Owned(
        chip,
        server,
        many,
        racks(server, many, know),
        site,
        years,
        capex,
        kept,
        float(payment(capex, kept, know.value("interest"), years)),
        upkeep,
        server.max_w / 1e3 * know.value("colocation_usd_kw_month"),
        people * know.value("staff_usd_year") / 12 / many,
        site.usd_kwh.value,
        overhead_w(chip, server),
        idle_watts(chip, know.table),
    )


def checked_years(years: float) -> float:
    """Years that servers can be owned for.

    >>> checked_years(3.0)
    3.0
    """
    if not 0.25 <= years <= 20:
        raise InputError("years", years, "0.25 to 20 years")
    return years


def capex_usd(server_usd: Amount, installation: Amount, network: Amount) -> Amount:
    """US dollars of a server in its place.

    >>> capex_usd(300_000.0, 0.03, 10_000.0)
    319000.0
    """
    return server_usd * (1 + installation) + network


def residual_usd(server_usd: Amount, share: Amount, years: float) -> Amount:
    """What a server is worth after years, where `share` is left after three: the same loss every year.

    >>> residual_usd(300_000.0, 0.3, 3.0)
    90000.0
    """
    return server_usd * share ** (years / RESIDUAL_YEARS)


def payment(capex: Amount, residual: Amount, interest: Amount, years: float) -> Amount:
    """US dollars a month that pay for a server with interest, less what it is worth at the end: an annuity.

    >>> float(payment(360_000.0, 36_000.0, 0.0, 3.0)), round(float(payment(310_000.0, 93_000.0, 0.07, 3.0)), 2)
    (9000.0, 7242.83)
    """
    months, rate = years * 12, np.asarray(interest) / 12
    safe = np.where(rate > 0, rate, 1.0)
    grown = months * np.log1p(safe)
    paid = (capex - residual * np.exp(-grown)) * safe / -np.expm1(-grown)  # exact for the smallest of rates
    return np.where(rate > 0, paid, (capex - residual) / months)


def network_usd(know: Economics, nodes: int) -> float:
    """US dollars of switches and cables for each of so many nodes, between the known sizes by their logarithm.

    >>> from chipwise.catalog.economics import economics
    >>> network_usd(economics(), 64), 6_480 < network_usd(economics(), 8) < 15_060
    (15060.0, True)
    """
    steps = know.steps("network_usd_node")
    return float(np.interp(np.log(nodes), [np.log(size) for size, _ in steps], [a.value for _, a in steps]))


def racks(server: Server, many: int, know: Economics) -> int:
    """Racks for so many servers; one holds at least one server.

    >>> from chipwise.catalog.economics import economics
    >>> racks(servers()["h100"], 64, economics()), racks(servers()["gb200"], 3, economics())
    (22, 3)
    """
    by_units = max(1, int(know.value("rack_units") // server.rack_units))
    by_power = max(1, int(know.value("rack_kw") * 1e3 // server.max_w))
    return ceil(many / min(by_units, by_power))


def network_scale(server: Server) -> float:
    """How many nodes of 8 x 400 Gb/s a server's network is worth."""
    return server.network / NODE_NETWORK


def staff_fte(many: int, first: Amount, each: Amount) -> Amount:
    """People who run so many servers.

    >>> staff_fte(1, 0.5, 0.02), round(staff_fte(51, 0.5, 0.02), 6)
    (0.5, 1.5)
    """
    return first + each * (many - 1)


def overhead_w(chip: Chip, server: Server) -> float:
    """Watts of a server beside its chips: what it draws at load less what they do."""
    return max(server.load_w - server.chips * watts(chip, 1.0), 0.0)


def energy_usd(server_w: Amount, pue: Amount, usd_kwh: Amount) -> Amount:
    """US dollars an hour.

    >>> energy_usd(8_000.0, 1.5, 0.25)
    3.0
    """
    return server_w / 1e3 * pue * usd_kwh


def unit_watts(chip: Chip, chips: int, place: Site, know: Economics) -> tuple[float, float]:
    """Watts of a unit that idles and of one at work, with its share of the server and the building's cooling."""
    server = servers().get(chip.id)
    busy, idle = watts(chip, 1.0, know.table), idle_watts(chip, know.table)
    around = overhead_w(chip, server) / server.chips if server else busy * (know.value("server_overhead") - 1)
    return tuple(chips * (w + around) * place.pue.value for w in (idle, busy))  # type: ignore[return-value]

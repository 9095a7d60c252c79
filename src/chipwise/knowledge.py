"""What is known today: calibrations, prices, economics, the date, and the seed that simulations draw with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from chipwise.catalog import add_chip_files
from chipwise.catalog.assumption_file import read_assumption_file
from chipwise.catalog.calibration import Calibration, load_calibration
from chipwise.catalog.currencies import exchange_rates, own_rates
from chipwise.catalog.economics import Economics, economics, read_changes
from chipwise.io.brief import brief
from chipwise.io.clock import day_of_asking
from chipwise.prices import PriceBook, laid_over, listed, read_custom_prices
from chipwise.prices.given import GivenPrices, with_given
from chipwise.prices.offer_filter import Names, OfferFilter

PRICE_FILES = "CHIPWISE_PRICES"


@brief
@dataclass(frozen=True, slots=True)
class Knowledge:
    """What every answer rests on besides the question; one object instead of a train of parameters.

    >>> Knowledge(seed=7).seed
    7
    """

    calibration: Calibration = field(default_factory=load_calibration)
    prices: PriceBook = field(default_factory=listed)
    economics: Economics = field(default_factory=economics)
    today: date = field(default_factory=day_of_asking)
    seed: int = 0

    @classmethod
    def default(
        cls,
        prices: str | Path | Iterable[str | Path] | None = None,
        fx: Sequence[str] | None = None,
        assumptions: Mapping[str, float] | Sequence[str] | None = None,
        today: date | None = None,
        seed: int = 0,
        *,
        cloud: Names = None,
        region: Names = None,
        max_age: str | float | None = None,
        fabric: str | None = None,
        price: GivenPrices = None,
        chip_file: str | Path | Iterable[str | Path] | None = None,
        assumptions_file: str | Path | None = None,
    ) -> Knowledge:
        """What is known by default, with price files laid over the list, and other economics.

        The files that CHIPWISE_PRICES names are laid over the list prices first, then `prices`, each over the last.
        Rates of other currencies come from CHIPWISE_FX (split by commas) and, before it, from `fx`. `assumptions` are
        ``{"interest": 0.05}`` or ``["interest=0.05"]``, over those of an `assumptions_file` of one's own.

        Offers of other clouds and regions than named, and older than `max_age` (``"90d"``), don't count. Above one
        instance those known to be joined by a fast fabric count, with `fabric` ``any`` also those not known. `price`
        is for a chip on demand, in place of its offers: ``{"v7x": 12.0}`` or ``["v7x=12.0"]``. `chip_file` describes a
        chip of one's own by one that it is like: it joins the catalog of this process, beside those of CHIPWISE_CHIPS.

        >>> {o.cloud for o in Knowledge.default(cloud="amazon").prices.offers}
        {'aws'}
        """
        know = economics().at_rates(own_rates(fx))
        if assumptions_file is not None:
            know = know.overlaid(read_assumption_file(Path(assumptions_file), know))
        know = know.changed(read_changes(assumptions))
        files = [chip_file] if isinstance(chip_file, str | Path) else chip_file or ()
        add_chip_files(files, own_rates(fx))
        day = today or day_of_asking()
        book = OfferFilter.read(cloud, region, max_age, fabric).apply(price_book(prices, fx, day), day)
        book = with_given(book, price, day, know.rates())
        calibration, power = load_calibration(), know.power()
        return cls(replace(calibration, power=power) if power else calibration, book, know, day, seed)

    @classmethod
    def published(cls, refits: bool = False) -> Knowledge:
        """What is published: calibrated on published rows and not on chips measured by `bench`, at list prices.

        `check` and `validate` rest on it; `refits`, for validation, adds those that leave published rows out.
        """
        return cls(load_calibration(bench=False, refits=refits))


def price_book(
    prices: str | Path | Iterable[str | Path] | None = None,
    fx: Sequence[str] | None = None,
    today: date | None = None,
) -> PriceBook:
    """The list prices under the files of CHIPWISE_PRICES and under `prices`."""
    named = [name for name in os.environ.get(PRICE_FILES, "").split(os.pathsep) if name.strip()]
    given = [prices] if isinstance(prices, str | Path) else list(prices or ())
    rates = exchange_rates(fx)
    book = listed()
    for file in [*named, *given]:
        book = laid_over(book, read_custom_prices(Path(file), rates, today))
    return book

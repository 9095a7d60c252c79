"""Verbs that tell what is known: chips, models, prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from chipwise.verbs.arguments import knowledge_of

if TYPE_CHECKING:
    from chipwise.knowledge import Knowledge
    from chipwise.prices.chip_view import ChipList, ChipSheet
    from chipwise.prices.update.run import PriceUpdate
    from chipwise.prices.view import PriceList
    from chipwise.workload.preset_view import ModelList


@overload
def chips(name: None = None, *, knowledge: Knowledge | None = None) -> ChipList: ...


@overload
def chips(name: str, *, knowledge: Knowledge | None = None) -> ChipSheet: ...


def chips(name: str | None = None, *, knowledge: Knowledge | None = None) -> ChipList | ChipSheet:
    """List the chips known with their prices, or show everything about one, in any spelling of its name.

    >>> chips("NVIDIA H100 80GB HBM3").chip.id
    'h100'
    >>> chips("v5e").chip.figures["memory_bytes"].value / 2**30, chips("v5e").chip.figures["memory_bytes"].unit
    (16.0, 'bytes')
    >>> {"h100", "mi300x", "v5p"} <= {chip.id for chip in chips().chips}
    True
    """
    from chipwise.catalog import find_chip
    from chipwise.catalog import load as catalog
    from chipwise.prices.chip_view import ChipList, ChipSheet, priced

    known = knowledge_of(knowledge)
    if name is None:
        return ChipList(priced(catalog().chips.values(), known.prices, known.today), known.prices)
    return ChipSheet(priced([find_chip(name)], known.prices, known.today), known.prices)


def models(name: str | None = None) -> ModelList:
    """List the models known by name; with `name`, those that have it in one of their names.

    >>> models("mixtral").names
    ('mixtral-8x22b', 'mixtral-8x7b')
    """
    from chipwise.workload.preset_view import list_models

    return list_models(name)


def prices(
    on: str | Sequence[str] | None = None,
    *,
    cloud: str | Sequence[str] | None = None,
    region: str | Sequence[str] | None = None,
    pricing: str | None = None,
    every: bool = False,
    fabric: str | None = None,
    knowledge: Knowledge | None = None,
) -> PriceList:
    """List offers per chip-hour, cheapest first: on demand, spot, committed for one and three years.

    `on` names chips (default: all), of which the cheapest of each cloud are listed, or `every` offer; `cloud` and
    `region` narrow the list, so does `fabric` ``known``, and `pricing` (``ondemand``, ``spot``, ``1y`` or ``3y``),
    which also ranks it.

    >>> offers = prices("v5e", cloud="gcp", pricing="spot")
    >>> offers.lines[0].spot.date, {line.cloud for line in offers.lines}
    ('2026-08-21', {'gcp'})
    """
    from chipwise.prices.view import PriceFilter, list_prices

    known = knowledge_of(knowledge)
    return list_prices(known.prices, known.today, PriceFilter(on, cloud, region, pricing, every, fabric))


def update_prices(
    source: str | Path = "",
    *,
    cloud: str | None = None,
    date: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> PriceUpdate:
    """Fetch newer list prices and use them from now on: the public SkyPilot catalog, or another `source` of its form.

    `source` is an address, a folder (a checkout) or a vms.csv file; `cloud` names the cloud of a file, or the only one
    to fetch; `date` is the day of the prices where the source says none. The list before is kept beside the new one.

    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> with TemporaryDirectory() as folder, patch.dict(os.environ, CHIPWISE_DATA=folder):
    ...     update = update_prices("examples/prices/skypilot", date="2026-08-21")
    >>> update.clouds, update.dated
    (('aws', 'gcp', 'lambda'), '2026-08-21')
    >>> from chipwise.prices import listed
    >>> listed.cache_clear()
    """
    from chipwise.prices import day_of
    from chipwise.prices.update.run import update_prices as run

    return run(str(source), (cloud or "").strip().lower(), day_of(date, "date") if date else "", tell=progress)

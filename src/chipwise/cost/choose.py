"""Which offers and pricing models count: all, or those of one cloud, region or instance, and those named."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from chipwise.catalog.economics import Economics
from chipwise.cost.statement import ONDEMAND, ONE_YEAR, OWNED, PRICING_MODELS, SPOT, THREE_YEARS
from chipwise.errors import Conflict, InputError, UnknownName
from chipwise.io.clock import day_of_asking
from chipwise.prices import PriceBook
from chipwise.prices.offer_filter import Names, OfferFilter
from chipwise.units import parse_share

NAMES = {"ondemand": ONDEMAND, "1y": ONE_YEAR, "3y": THREE_YEARS, "spot": SPOT, "on-premises": OWNED}


def chosen(book: PriceBook, cloud: Names = None, region: Names = None, offer: str | None = None) -> PriceBook:
    """A price book with the offers and commitments of clouds, regions, or one offer (cloud/region/instance).

    >>> from chipwise.prices import listed
    >>> {o.cloud for o in chosen(listed(), "gcp", "us-central1").offers}
    {'gcp'}
    """
    if offer is None:
        narrowed = replace(OfferFilter.read(cloud, region), fabric=book.fabric)
        return book if cloud is None and region is None else narrowed.apply(book, day_of_asking())
    for flag, value in {"cloud": cloud, "region": region}.items():
        if value is not None:
            raise Conflict(flag, "offer", "the offer names the cloud and the region")
    where, place, instance = _parts(book, offer)
    offers = [o for o in book.offers if (o.cloud, o.region, o.instance) == (where, place, instance)]
    commitments = [
        c for c in book.commitments if c.cloud == where and c.region in ("", place) and c.instance in ("", instance)
    ]
    return replace(
        book,
        offers=tuple(replace(o, joined="yes") for o in offers),  # whoever names an offer knows its network
        commitments=tuple(commitments),
        origin=f"{book.origin}, {offer} alone",
        oldest_days=inf,
    )


def read_pricing(text: str | None) -> tuple[str, ...]:
    """pricing models as people write them.

    >>> read_pricing("spot,ondemand"), read_pricing(None) == PRICING_MODELS
    (('on demand', 'spot'), True)
    """
    if text is None:
        return PRICING_MODELS
    given = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in given:
        if name not in NAMES:
            raise InputError("pricing", name, f"a list of {', '.join(NAMES)}")
    if not given:
        raise InputError("pricing", text, f"a list of {', '.join(NAMES)}")
    return tuple(model for name, model in NAMES.items() if name in given)


def read_utilization(economics: Economics, given: float | str | None) -> float | None:
    """The share of hours used, given by its own option or as an assumption that was set; None where neither was.

    >>> from chipwise.catalog.economics import economics
    >>> read_utilization(economics().changed({"utilization": 0.8}), None)
    0.8
    """
    known = economics("utilization")
    if known.source != "given":
        return None if given is None else parse_share(given, "utilization")
    if given is not None:
        raise Conflict("utilization", "assumptions utilization")
    return known.value


def _parts(book: PriceBook, offer: str) -> tuple[str, str, str]:
    """The cloud, region and instance that an offer names."""
    names = {f"{o.cloud}/{o.region}/{o.instance}": (o.cloud, o.region, o.instance) for o in book.offers}
    if offer not in names:
        if offer.count("/") < 2:
            raise InputError("offer", offer, "cloud/region/instance such as gcp/us-central1/a3-highgpu-8g")
        raise UnknownName("offer", offer, names, "; see `chipwise prices`")
    return names[offer]

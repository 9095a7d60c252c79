"""Which offers and pricing models count: all, or those of one cloud, region or instance, and those named."""

from __future__ import annotations

from dataclasses import replace

from chipwise.catalog.economics import Economics
from chipwise.cost.statement import ONDEMAND, ONE_YEAR, OWNED, PRICING_MODELS, SPOT, THREE_YEARS
from chipwise.errors import Conflict, InputError, UnknownName
from chipwise.prices import PriceBook

NAMES = {"ondemand": ONDEMAND, "1y": ONE_YEAR, "3y": THREE_YEARS, "spot": SPOT, "on-premises": OWNED}


def chosen(book: PriceBook, cloud: str | None = None, region: str | None = None, offer: str | None = None) -> PriceBook:
    """A price book with the offers and commitments of a cloud, a region, or one offer (cloud/region/instance).

    >>> from chipwise.prices import listed
    >>> {o.cloud for o in chosen(listed(), "gcp", "us-central1").offers}
    {'gcp'}
    """
    instance = None
    if offer is not None:
        named = {"cloud": cloud, "region": region}
        for flag, value in named.items():
            if value is not None:
                raise Conflict(flag, "offer", "the offer names the cloud and the region")
        cloud, region, instance = _parts(book, offer)
    places = {*((o.cloud, o.region) for o in book.offers), *((c.cloud, c.region) for c in book.commitments)}
    cloud = _known("cloud", cloud, {name for name, _ in places})
    region = _known("region", region, {where for name, where in places if cloud in (None, name)} - {""})
    offers = [o for o in book.offers if cloud in (None, o.cloud)]
    offers = [o for o in offers if region in (None, o.region) and instance in (None, o.instance)]
    commitments = [
        c
        for c in book.commitments
        if cloud in (None, c.cloud)
        and (region is None or c.region in ("", region))
        and (instance is None or c.instance in ("", instance))
    ]
    where = "/".join(part for part in (cloud, region, instance) if part)
    return replace(
        book,
        offers=tuple(offers),
        commitments=tuple(commitments),
        origin=f"{book.origin}, {where} alone" if where else book.origin,
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


def read_utilization(economics: Economics, given: float | None) -> float | None:
    """The share of hours used, given by its own option or as an assumption that was set; None where neither was.

    >>> from chipwise.catalog.economics import economics
    >>> read_utilization(economics().changed({"utilization": 0.8}), None)
    0.8
    """
    known = economics("utilization")
    if known.source != "given":
        return given
    if given is not None:
        raise Conflict("utilization", "assumptions utilization")
    return known.value


def _known(flag: str, name: str | None, known: set[str]) -> str | None:
    """A name as it is written in the list, whatever its case."""
    if name is None or name in known:
        return name
    lower = {each.lower(): each for each in sorted(known)}
    if name.strip().lower() not in lower:
        raise UnknownName(flag, name, known, ": see `chipwise prices --all`")
    return lower[name.strip().lower()]


def _parts(book: PriceBook, offer: str) -> tuple[str, str, str]:
    """The cloud, region and instance that an offer names."""
    names = {f"{o.cloud}/{o.region}/{o.instance}": (o.cloud, o.region, o.instance) for o in book.offers}
    if offer not in names:
        if offer.count("/") < 2:
            raise InputError("offer", offer, "cloud/region/instance such as gcp/us-central1/a3-highgpu-8g")
        raise UnknownName("offer", offer, names, "; see `chipwise prices`")
    return names[offer]

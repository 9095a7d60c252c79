"""Which offers count: of these clouds and regions, no older than so many days, on a fabric that is known or on any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import inf
from typing import get_args

from chipwise.errors import InputError, UnknownName
from chipwise.prices.book import GIVEN, FabricNeeded, PriceBook
from chipwise.prices.providers import cloud_id
from chipwise.prices.record import age_in_days
from chipwise.units import DAY, parse_duration

Names = str | Sequence[str] | None
FABRICS: tuple[FabricNeeded, ...] = get_args(FabricNeeded)


@dataclass(frozen=True, slots=True)
class OfferFilter:
    """Offers that count; empty names mean all."""

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    max_age_days: float | None = None
    fabric: FabricNeeded = "known"

    @classmethod
    def read(
        cls, cloud: Names = None, region: Names = None, max_age: str | float | None = None, fabric: str | None = None
    ) -> OfferFilter:
        """A filter as people write it: ``cloud="amazon,gcp"``, ``max_age="90d"`` (a bare number is days).

        >>> OfferFilter.read("Amazon,gcp", max_age="90d")
        OfferFilter(clouds=('aws', 'gcp'), regions=(), max_age_days=90.0, fabric='known')
        """
        needed = next((each for each in FABRICS if each == fabric), None)
        if fabric is not None and needed is None:
            raise InputError("fabric", fabric, f"one of {', '.join(FABRICS)}")
        return cls(
            tuple(dict.fromkeys(cloud_id(name) for name in name_list("cloud", cloud))),
            tuple(name_list("region", region)),
            _days(max_age),
            needed or "known",
        )

    def apply(self, book: PriceBook, today: date) -> PriceBook:
        """A price book with the offers and commitments that count; one that leaves none is a mistake.

        >>> from chipwise.prices.book import listed
        >>> {o.cloud for o in OfferFilter.read("google", "us-central1").apply(listed(), date(2026, 9, 1)).offers}
        {'gcp'}
        """
        places = {*((o.cloud, o.region) for o in book.offers), *((c.cloud, c.region) for c in book.commitments)}
        clouds = known_names("cloud", self.clouds, {name for name, _ in places})
        regions = known_names(
            "region", self.regions, {where for name, where in places if not clouds or name in clouds} - {""}
        )
        offers = [
            o
            for o in book.offers
            if o.cloud == GIVEN or ((not clouds or o.cloud in clouds) and (not regions or o.region in regions))
        ]
        commitments = [
            c
            for c in book.commitments
            if (not clouds or c.cloud in clouds) and (not regions or c.region in ("", *regions))
        ]
        if self.max_age_days is not None:
            newest = max((o.date for o in offers), default="")
            offers = [o for o in offers if o.own or age_in_days(o.date, today) <= self.max_age_days]
            commitments = [c for c in commitments if c.own or age_in_days(c.date, today) <= self.max_age_days]
            if not offers and not commitments:
                raise InputError(
                    "max_age", f"{self.max_age_days:g}d", f"an age that leaves a price; the newest is {newest}"
                )
        words = self._in_words(clouds, regions)
        return replace(
            book,
            offers=tuple(offers),
            commitments=tuple(commitments),
            origin=f"{book.origin}, {words} alone" if words else book.origin,
            fabric=self.fabric,
            oldest_days=book.oldest_days if self.max_age_days is None else inf,  # what is asked for counts
        )

    def _in_words(self, clouds: Sequence[str], regions: Sequence[str]) -> str:
        where = "/".join(", ".join(names) for names in (clouds, regions) if names)
        age = f"at most {self.max_age_days:g} days old" if self.max_age_days is not None else ""
        return ", ".join(part for part in (where, age) if part)


def name_list(flag: str, given: Names, expected: str = "names split by commas") -> list[str]:
    """The names of a list as people write it; an empty one is a mistake."""
    if given is None:
        return []
    parts: Iterable[str] = given.split(",") if isinstance(given, str) else given
    names = [name.strip() for name in parts if name.strip()]
    if not names:
        raise InputError(flag, str(given), expected)
    return names


def known_names(flag: str, names: Iterable[str], known: set[str]) -> tuple[str, ...]:
    """Names as they are written in the list, whatever their case; one that isn't known is a mistake."""
    lower = {name.lower(): name for name in sorted(known)}
    for name in names:
        if name.lower() not in lower:
            raise UnknownName(flag, name, known, ": see `chipwise prices --all`")
    return tuple(lower[name.lower()] for name in names)


def _days(max_age: str | float | None) -> float | None:
    if max_age is None:
        return None
    bare = not isinstance(max_age, str) or max_age.strip().replace(".", "", 1).isdigit()
    days = float(max_age) if bare else parse_duration(str(max_age), "max_age") / DAY
    if not days > 0:
        raise InputError("max_age", max_age, "an age such as 90d")
    return days

"""The pools file read: prices, slices, watts and interruptions filled in from the catalog, each with its source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.catalog import Chip, exact_chip, load
from chipwise.catalog.economics import CHIP_WATTS, Economics, economics, region_site
from chipwise.cost.onprem import unit_watts
from chipwise.errors import BrokenFile, InputError, UnknownName
from chipwise.io.clock import day_of_asking
from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text
from chipwise.io.paths import data_folder
from chipwise.knowledge import Knowledge, price_book
from chipwise.prices import PriceBook, is_stale, listed, price_of, why_no_price
from chipwise.prices.fit import priced_offer
from chipwise.route.access import Access
from chipwise.route.load.access import access_of
from chipwise.route.load.explain import checked
from chipwise.route.load.links import check_links
from chipwise.route.load.secrecy import refuse_names, refuse_settings
from chipwise.route.pool import Pool

if TYPE_CHECKING:
    from chipwise.route.spec.pools import PoolSpec, PoolsSpec

PATHS = ("folder", "conf", "kubeconfig", "cwd")  # settings and parts of addresses that are paths: from the file's own
SHARED = "folder"  # the one setting that is not part of a pool's address
CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Pools:
    """A pools file that holds together."""

    pools: tuple[Pool, ...]
    folder: Path  # of attempts; shared with the nodes that run them
    backends: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # settings; also in each pool's address
    assumptions: tuple[str, ...] = ()  # what was assumed, in words
    path: str = ""  # of the file
    weights: Mapping[str, float] = field(default_factory=dict)  # of policies, as far as the file sets them
    access: Access = field(default_factory=Access)  # who may do what, and how much

    def pool(self, name: str) -> Pool:
        """The pool of that name."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise UnknownName("pool", name, [pool.name for pool in self.pools])

    def of(self, backend: str) -> tuple[Pool, ...]:
        """The pools that a backend hands out."""
        return tuple(pool for pool in self.pools if pool.backend == backend)

    def settings(self, backend: str) -> Mapping[str, str]:
        """What the file says of a backend."""
        return self.backends.get(backend, {})

    def folder_of(self, backend: str) -> Path:
        """Where attempts on a backend have their folders."""
        return Path(self.settings(backend).get("folder", self.folder))


def load_pools(
    path: str | Path, book: PriceBook | None = None, know: Economics | None = None, today: date | None = None
) -> Pools:
    """The pools of a file; an `InputError` names the field that can't be used."""
    file = Path(path)
    raw = parse_yaml(read_text(file, MAX_YAML_BYTES), file.name, such="`pools:` with a list of them")
    return pools_of(raw, file.parent.resolve(), str(file), book, know, today)


def read_pools(path: str | Path, knowledge: Knowledge | None = None) -> Pools:
    """The pools of a file that the user names; default: priced by the list and the files of CHIPWISE_PRICES over it."""
    try:
        return load_pools(path, price_book() if knowledge is None else knowledge.prices)
    except BrokenFile as error:
        if error.field != "file":
            raise
        raise error.under("pools") from None


def pools_of(
    raw: Mapping[str, Any],
    base: Path,
    path: str = "",
    book: PriceBook | None = None,
    know: Economics | None = None,
    today: date | None = None,
) -> Pools:
    """The pools that a mapping holds."""
    from chipwise.route.spec.pools import PoolsSpec

    spec = checked(PoolsSpec, raw, "pools")
    names = [pool.name for pool in spec.pools]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError("pools.name", twice, "a name of its own for each")
    backends = _settings(spec, base)
    asking = _PoolReader(book or listed(), know or economics(), today or day_of_asking(), base, backends)
    pools = tuple(asking.pool(one, f"pools[{i}]") for i, one in enumerate(spec.pools))
    folder = _path(base, spec.folder) if spec.folder else default_folder()
    if not spec.folder:
        asking.assumptions.append(f"folder: not given; attempts have their folders under {folder}")
    weights = {} if spec.delay is None else {"delay": spec.delay}
    access = access_of(spec.access)
    return Pools(pools, folder, backends, tuple(asking.assumptions), path, weights, access)


def default_folder() -> Path:
    """Where attempts have their folders unless the file says: under the user's own data."""
    return data_folder() / "attempts"


def _path(base: Path, text: str) -> Path:
    return Path(os.path.normpath(base / Path(text).expanduser()))


def _settings(spec: PoolsSpec, base: Path) -> dict[str, dict[str, str]]:
    """Settings of each backend as text, which every backend checks for itself; none of them a secret."""
    out: dict[str, dict[str, str]] = {}
    for backend, settings in spec.backends.items():
        refuse_names(settings, f"backends.{backend}")
        out[str(backend)] = dict(_flat(settings, base))
        refuse_settings(out[str(backend)], f"backends.{backend}")
    return out


@dataclass(frozen=True, slots=True)
class _Priced:
    usd: float
    source: str
    instance: int = 1  # chips that are paid for together


@dataclass(slots=True)
class _PoolReader:
    """Reads pools: what the file leaves open comes from the catalog, and is noted as an assumption."""

    book: PriceBook
    know: Economics
    today: date
    base: Path
    backends: Mapping[str, Mapping[str, str]]
    assumptions: list[str] = field(default_factory=list)

    def pool(self, spec: PoolSpec, where: str) -> Pool:
        """A pool with all that the file leaves open."""
        terms = spec.terms or ("owned" if spec.backend == "local" else "ondemand")
        if spec.terms is None:
            self.say(spec, f"terms taken as {terms}")
        if spec.interruptions is not None and terms != "spot":
            raise InputError(f"{where}.interruptions", spec.interruptions, "terms: spot beside it")
        chip = None if spec.chip == CPU else self.chip(spec, where)
        price = self.price(spec, chip, terms, where)
        unit, shapes = self.granularity(spec, chip, price, where)
        return Pool(
            spec.name,
            spec.backend,
            chip.id if chip else CPU,
            chip.family if chip else CPU,
            spec.count,
            unit,
            shapes,
            price.usd,
            terms,
            price.source,
            spec.region or "",
            self.interruptions(spec, terms),
            self.watts(spec, chip, terms),
            inf if spec.power_kw is None else spec.power_kw * 1000,
            inf if spec.max_time is None else spec.max_time,
            self.address(spec, where),
            spec.cloud or "",
        )

    def address(self, spec: PoolSpec, where: str) -> tuple[tuple[str, str], ...]:
        """Where in the backend, with the backend's own settings."""
        refuse_names(spec.address, f"{where}.address")
        own = dict(_flat(spec.address, self.base))
        refuse_settings(own, f"{where}.address")
        common = {key: value for key, value in self.backends.get(spec.backend, {}).items() if key != SHARED}
        check_links(spec.backend, {**common, **own}, f"{where}.address")
        return tuple({**common, **own}.items())

    def say(self, spec: PoolSpec, text: str) -> None:
        """Note an assumption about a pool."""
        self.assumptions.append(f"{spec.name}: {text}")

    def chip(self, spec: PoolSpec, where: str) -> Chip:
        """The chip, which must be of a family that variants have."""
        try:
            chip = exact_chip(spec.chip)
        except InputError as e:
            raise InputError(f"{where}.chip", spec.chip, e.accepted) from None
        if chip.family not in ("gpu", "tpu"):
            raise InputError(f"{where}.chip", spec.chip, "a GPU, a TPU or cpu")
        return chip

    def price(self, spec: PoolSpec, chip: Chip | None, terms: str, where: str) -> _Priced:
        """The price given, or that of the price book for the pool's cloud, region and terms."""
        if spec.price is not None:
            return _Priced(spec.price, "the pools file")
        if terms == "owned":
            self.say(spec, "its own chips cost nothing an hour (no price given)")
            return _Priced(0.0, "owned, no price given")
        if chip is None or spec.cloud is None:
            raise InputError(
                f"{where}.price",
                "nothing",
                "US dollars of a chip-hour"
                + ("" if chip is None else ", or a cloud (and region) whose price is listed"),
            )
        clouds = {offer.cloud for offer in self.book.offers}
        if spec.cloud not in clouds:
            raise UnknownName(f"{where}.cloud", spec.cloud, clouds)
        priced = self.committed(spec, chip, where) if terms == "reserved" else self.offered(spec, chip, terms)
        if priced is None:
            place_name = f"{spec.cloud} {spec.region}" if spec.region else spec.cloud
            raise InputError(
                f"{where}.price",
                "nothing",
                f"US dollars of a chip-hour: no {terms} price of {chip.id} is listed at {place_name}",
            )
        self.say(spec, f"price {priced.usd:.2f} USD a chip-hour: {priced.source}")
        return priced

    def offered(self, spec: PoolSpec, chip: Chip, terms: str) -> _Priced | None:
        """The cheapest offer of the cloud, in the region where one is named."""
        offers = tuple(
            o for o in self.book.offers if o.cloud == spec.cloud and (not spec.region or o.region in (spec.region, ""))
        )
        book = replace(self.book, offers=offers)
        spot = terms == "spot"
        here = book.offers_for(chip.id, spot)
        if not here:
            return None
        host = min(spec.count, chip.fabric.host_chips)
        # of a pool of single instances, which no fabric joins, the price is that of one
        price = price_of(chip, host, spot, self.today, book) or price_of(chip, 1, spot, self.today, book)
        if price is None:  # it decides nothing elsewhere, but these chips are there, and no other price of them is
            why = why_no_price(chip, 1, spot, book)
            price = priced_offer(here[0], spot, self.today, why)
        o = price.offer
        source = f"{o.cloud} {o.region} {o.instance} {terms}, {o.date}" + (", stale" if price.stale else "")
        source += ", own price" if o.own else ""
        source += f", though {price.note}" if price.note else ""
        return _Priced(price.usd_per_chip_hour, source, max(1, int(o.chips)))

    def committed(self, spec: PoolSpec, chip: Chip, where: str) -> _Priced | None:
        """The cheapest commitment of so many years."""
        if spec.years is None:
            raise InputError(f"{where}.years", "nothing", "1 or 3: years of the reservation, or a price")
        regions = [spec.region] if spec.region else None
        commitments = self.book.commitments_for(chip.id, spec.years, [spec.cloud or ""], regions)
        if not commitments:
            return None
        c = commitments[0]
        stale = ", stale" if is_stale(c.date, self.today) else ""
        return _Priced(c.usd_per_chip_hour, f"{c.cloud} {c.region} {c.instance} {c.years} years, {c.date}{stale}")

    def granularity(
        self, spec: PoolSpec, chip: Chip | None, price: _Priced, where: str
    ) -> tuple[int, tuple[tuple[int, str], ...]]:
        """Multiples and slices in which chips are taken."""
        legal = load().slices.get(chip.id) if chip else None
        if spec.unit is not None and spec.count % spec.unit:
            raise InputError(f"{where}.unit", spec.unit, f"a divisor of the {spec.count} chips")
        if isinstance(spec.shapes, list):
            return spec.unit or 1, _shapes(spec, chip, f"{where}.shapes")
        if legal is not None and spec.shapes is None and spec.unit is None:
            counts = [n for n in legal.chip_counts() if n <= spec.count]
            shapes = tuple((n, "x".join(map(str, legal.shape_for(n) or ()))) for n in counts)
            self.say(
                spec,
                f"slices of the catalog: {', '.join(s for _, s in shapes[:6])}"
                f"{', ...' if len(shapes) > 6 else ''} (no shapes given)",
            )
            return 1, shapes
        if spec.unit is None and price.instance > 1 and legal is None:
            unit = min(price.instance, spec.count)
            if spec.count % unit:
                raise InputError(
                    f"{where}.unit", "nothing", f"a unit: {spec.count} chips are not whole instances of {unit}"
                )
            self.say(spec, f"taken in whole instances of {unit} chips, as they are priced (no unit given)")
            return unit, ()
        return spec.unit or 1, ()

    def interruptions(self, spec: PoolSpec, terms: str) -> float:
        """Interruptions of a unit in an hour."""
        if terms != "spot":
            return 0.0
        if spec.interruptions is not None:
            return spec.interruptions
        assumed = self.know("spot_per_hour", spec.cloud or "")
        self.say(spec, f"interrupted {assumed.value:g} times a unit-hour ({assumed.source}, {assumed.date})")
        return assumed.value

    def watts(self, spec: PoolSpec, chip: Chip | None, terms: str) -> float:
        """Watts of a busy chip with its share of the server, and cooling."""
        if spec.watts is not None:
            return spec.watts
        if chip is None:
            self.say(spec, "no power is counted (no watts given)")
            return 0.0
        site = region_site(spec.cloud or "", spec.region or "")
        _, busy = unit_watts(chip, 1, site, self.know)
        measured = self.know.power().get(f"{CHIP_WATTS}.{chip.id}")
        own = f"{chip.tdp_w:.0f} W rated" if measured is None else f"{measured.value:.0f} W {measured.source}"
        self.say(
            spec,
            f"{busy:.0f} W a busy chip: {own}, its share of the server, and PUE "
            f"{site.pue.value:g} ({site.pue.source}, {site.pue.date})",
        )
        return busy


def _shapes(spec: PoolSpec, chip: Chip | None, where: str) -> tuple[tuple[int, str], ...]:
    """The slices named: those that exist, each count once."""
    legal = load().slices.get(chip.id) if chip else None
    assert isinstance(spec.shapes, list)
    out: dict[int, str] = {}
    for text in spec.shapes:
        axes = tuple(int(axis) for axis in text.split("x"))
        if legal is None:
            raise InputError(where, text, f"nothing: {spec.chip} comes in no slices; `unit` says its multiples")
        shape = legal.canonical(axes)
        if shape is None:
            near = ", ".join("x".join(map(str, s)) for s in legal.shapes[:8])
            raise InputError(where, text, f"a slice of {spec.chip} such as {near}")
        if prod(shape) > spec.count:
            raise InputError(where, text, f"a slice of at most the pool's {spec.count} chips")
        if prod(shape) in out:
            raise InputError(where, text, f"one shape of {prod(shape)} chips")
        out[prod(shape)] = "x".join(map(str, shape))
    return tuple(sorted(out.items()))


def _flat(address: Mapping[str, Any], base: Path) -> list[tuple[str, str]]:
    """Settings or an address as pairs of text: keys inside one as key=value, lists by commas, paths from the file's.

    >>> _flat({"label": {"pool": "h100", "zone": "a"}, "constraint": "nvlink", "mounts": ["/a", "/b"]}, Path())
    [('label', 'pool=h100,zone=a'), ('constraint', 'nvlink'), ('mounts', '/a,/b')]
    """
    out: list[tuple[str, str]] = []
    for key, value in address.items():
        if isinstance(value, dict):
            text = ",".join(f"{inner}={_text(part)}" for inner, part in value.items())
        elif isinstance(value, list):
            text = ",".join(value)
        else:
            text = _text(value)
        out.append((key, str(_path(base, text)) if key in PATHS and "://" not in text else text))
    return out


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

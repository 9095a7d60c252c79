"""The catalog's data files: the folder they lie in, and its texts, rows and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import _lru_cache_wrapper, cache
from pathlib import Path
from typing import Any, TypeVar

from chipwise.errors import BrokenFile
from chipwise.io.files import read_text

FOLDER = "CHIPWISE_CATALOG"  # the variable that names another folder


CHIPS = "CHIPWISE_CHIPS"  # the variable that names files of one's own chips
_added: list[Path] = []
_rates: dict[str, float] = {}  # of currencies, as given for their prices
_once: list[Callable[[], None]] = []
Answer = TypeVar("Answer")
Made = TypeVar("Made")


def once(function: Callable[[], Answer]) -> _lru_cache_wrapper[Answer]:
    """A function of the catalog that is called once, and again after a chip was added."""
    cached = cache(function)
    _once.append(cached.cache_clear)
    return cached


def chip_files() -> tuple[Path, ...]:
    """The files of one's own chips: those that $CHIPWISE_CHIPS names, then those that were added."""
    named = [Path(name).expanduser() for name in os.environ.get(CHIPS, "").split(os.pathsep) if name.strip()]
    return tuple(dict.fromkeys(path.resolve() for path in (*named, *_added)))


def take_chip_files(files: Iterable[Path]) -> tuple[Path, ...]:
    """Read these files beside those that $CHIPWISE_CHIPS names; those that were read so far."""
    before = tuple(_added)
    _added[:] = dict.fromkeys(path.expanduser().resolve() for path in files)
    forget()
    return before


def chip_rates() -> Mapping[str, float]:
    """US dollars for one unit of currencies, as given for the prices in files of one's own chips."""
    return _rates


def take_rates(rates: Mapping[str, float]) -> None:
    """Read prices in files of one's own chips at these rates, before those that are known."""
    if rates == _rates:
        return
    _rates.clear()
    _rates.update(rates)
    if chip_files():
        forget()


def forget() -> None:
    """Read the catalog again when it is next asked for."""
    for clear in _once:
        clear()


# The readers are imported where they are used: a command that needs no chip should not pay for them.
def folder() -> Path:
    """Where the facts about chips, stacks and prices lie: $CHIPWISE_CATALOG, or the package's own folder.

    It is read once a process. The calibrations that come with chipwise are read from the package in any case.
    """
    from importlib.resources import files

    given = os.environ.get(FOLDER)
    return Path(given).expanduser() if given else Path(str(files("chipwise.catalog"))) / "data"


def text(name: str) -> str:
    """A data file as it is written."""
    path = folder() / name
    try:
        return read_text(path, field=FOLDER)
    except BrokenFile as error:
        if os.environ.get(FOLDER):
            raise BrokenFile(FOLDER, str(path), f"a folder with every file of the catalog ({error.accepted})") from None
        raise BrokenFile("catalog", name, "a data file inside the installed package") from error


def each(name: str, entries: Iterable[Mapping[str, Any]], make: Callable[[Any], Made]) -> list[Made]:
    """What is made of the entries of a data file; the one that lacks something, or holds what it can't, is named."""
    made = []
    for entry in entries:
        try:
            made.append(make(entry))
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            which = next(
                (entry[key] for key in ("id", "chip", "instance") if entry.get(key)), "an entry without a name"
            )
            reason = f"{type(error).__name__}: {error}"
            raise BrokenFile(str(folder() / name), str(which), f"what entries of that file have ({reason})") from None
    return made


def rows(name: str) -> Iterator[dict[str, str]]:
    """The lines of a CSV file among the data."""
    import csv

    try:
        yield from csv.DictReader(text(name).splitlines())
    except csv.Error as error:
        raise BrokenFile("catalog", str(folder() / name), f"CSV ({error})") from None


def tables(name: str, key: str) -> list[dict[str, Any]]:
    """The tables under `key` of a TOML file among the data."""
    import tomllib

    try:
        entries: list[dict[str, Any]] = tomllib.loads(text(name)).get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise BrokenFile("catalog", str(folder() / name), f"tables [[{key}]]")
    except (ValueError, RecursionError) as error:  # not TOML; a number of thousands of digits
        raise BrokenFile("catalog", str(folder() / name), f"TOML ({error})") from None
    return entries

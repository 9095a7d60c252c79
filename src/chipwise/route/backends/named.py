"""The backends that a pools file names: ours by package, others by entry point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from chipwise.errors import InputError, UnknownName
from chipwise.io.install import install_line
from chipwise.route.backend import Backend
from chipwise.route.names import BACKEND_GROUP, BACKENDS, backend_names
from chipwise.route.pool import Pool

Make = Callable[[str, Sequence[Pool], Path, str], Backend]  # of a name, its pools, a folder and the ledger's uid


def backend_name(pool: Pool) -> str:
    """The backend of a pool: its kind, and which cluster of that kind where the pool says so.

    >>> backend_name(Pool("a", "slurm", "h100", "gpu", 8, address=(("cluster", "north"),)))
    'slurm/north'
    """
    cluster = pool.setting("cluster")
    return f"{pool.backend}/{cluster}" if cluster else pool.backend


def backends_of(pools: Sequence[Pool], folders: Mapping[str, Path], uid: str) -> dict[str, Backend]:
    """A backend for each that the pools name. `folders`: of each, where this ledger's attempts lie; `uid` names it."""
    by_name: dict[str, list[Pool]] = {}
    for pool in pools:
        by_name.setdefault(backend_name(pool), []).append(pool)
    return {name: _maker(theirs[0].backend)(name, theirs, folders[name], uid) for name, theirs in by_name.items()}


def _maker(kind: str) -> Make:
    """What makes a backend of a kind: ours, or that of an entry point of the group ``chipwise.backends``."""
    if kind in BACKENDS:
        try:
            make: Make = import_module(f"chipwise.route.backends.{kind}.backend").make
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("chipwise"):
                raise
            raise InputError("backend", kind, f"a machine with its client: {install_line(kind)}") from None
        return make
    points = entry_points(group=BACKEND_GROUP, name=kind)
    if not points:
        raise InputError("backend", kind, f"one of {', '.join(backend_names())}")
    try:
        loaded: Make = next(iter(points)).load()
    except Exception as broken:
        raise InputError("backend", kind, f"a backend that can be imported ({broken})") from broken
    return loaded


def check_keys(pools: Sequence[Pool], keys: Collection[str]) -> None:
    """Refuse keys of an address that a backend would pass over."""
    for pool in pools:
        for key, _ in pool.address:
            if key not in keys:
                raise UnknownName(f"pools.{pool.name}.address", key, keys)


def attempt_folder(folder: Path, attempt: str) -> Path:
    """Where an attempt's files lie."""
    return folder / "attempts" / attempt

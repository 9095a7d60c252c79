"""The backends that a pools file names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from chipwise.errors import InputError
from chipwise.route.backend import Backend
from chipwise.route.pool import ENGINES, Pool


def backend_name(pool: Pool) -> str:
    """The backend of a pool: its kind, and which cluster of that kind where the pool says so.

    >>> backend_name(Pool("a", "slurm", "h100", "gpu", 8, address=(("cluster", "north"),)))
    'slurm/north'
    """
    cluster = pool.at("cluster")
    return f"{pool.backend}/{cluster}" if cluster else pool.backend


def backends_of(pools: Sequence[Pool], folders: Mapping[str, Path], uid: str) -> dict[str, Backend]:
    """A backend for each that the pools name. `folders`: of each, where this ledger's attempts lie; `uid` names it."""
    by_name: dict[str, list[Pool]] = {}
    for pool in pools:
        by_name.setdefault(backend_name(pool), []).append(pool)
    return {name: _backend(name, theirs, folders[name], uid) for name, theirs in by_name.items()}


def _backend(name: str, pools: Sequence[Pool], folder: Path, uid: str) -> Backend:
    kind = pools[0].backend
    if kind not in ENGINES:
        raise InputError("backend", kind, f"one of {', '.join(ENGINES)}")
    try:
        module = import_module(f"chipwise.route.backends.{kind}.backend")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("chipwise"):
            raise
        raise InputError("backend", kind, f"a machine with its client: pip install 'chipwise[{kind}]'") from None
    made: Backend = module.make(name, pools, folder, uid)
    return made


def attempt_folder(folder: Path, attempt: str) -> Path:
    """Where an attempt's files lie."""
    return folder / "attempts" / attempt

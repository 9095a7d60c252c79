"""Nodes of a pool by name: those that people or findings take out of use, while the others go on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from chipwise.errors import InputError
from chipwise.route.backend import Nodes
from chipwise.route.backends.named import backend_name, backends_of
from chipwise.route.load import Pools
from chipwise.route.pool import Pool
from chipwise.route.router.health import Guarded

# a host's name, as RFC 1123 has it, and what Slurm allows besides; no list, no range
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_MOST = 1000  # named at once
_SHOWN = 8


def check_names(names: Any) -> list[str]:
    """Names of nodes, or an `InputError`."""
    if not isinstance(names, list) or not 0 < len(names) <= _MOST or not all(isinstance(name, str) for name in names):
        raise InputError("node", names, f"names of 1 to {_MOST} nodes")
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError("node", name, "the name of one node: letters, digits, dots and dashes")
    return list(dict.fromkeys(names))


def node_names(pools: Pools, pool: Pool, uid: str) -> list[str]:
    """The nodes of a pool that jobs can be kept off, as its backend names them when it is asked."""
    name = backend_name(pool)
    folders = {name: pools.folder_of(pool.backend) / (uid or "none")}
    theirs = [other for other in pools.pools if backend_name(other) == name]
    backend = backends_of(theirs, folders, uid or "none")[name]
    return sorted(Guarded(name, backend).node_names(pool)) if isinstance(backend, Nodes) else []


def check_nodes(pools: Pools, pool: Pool, names: Sequence[str], uid: str) -> None:
    """See that a pool has these nodes, and that jobs can be kept off them."""
    present = node_names(pools, pool, uid)
    if not present:
        can_not = f"no node: none is there by name that {pool.backend} could keep jobs off, drain the whole pool"
        raise InputError(f"node of {pool.name}", names[0], can_not)
    for name in names:
        if name not in present:
            shown = ", ".join(present[:_SHOWN]) + (f", ... ({len(present)} in all)" if len(present) > _SHOWN else "")
            raise InputError(f"node of {pool.name}", name, f"one of {shown}")

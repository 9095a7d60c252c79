"""What the address of a local pool says: the ids of its chips, and where its programs work."""

from __future__ import annotations

import re
from pathlib import Path

from chipwise.errors import InputError
from chipwise.route.pool import Pool

ADDRESS = frozenset({"cluster", "cwd", "ids", "secrets"})  # what a pool's address may say here


def ids(pool: Pool) -> tuple[int, ...]:
    """The ids of a pool's chips on this machine: its address's `ids`, or from 0 on.

    >>> ids(Pool("a", "local", "h100", "gpu", 2, address=(("ids", "4,5"),)))
    (4, 5)
    """
    listed = tuple(int(word) for word in pool.setting("ids").split(",") if word.strip())
    return listed or tuple(range(pool.count))


def check_address(pool: Pool) -> None:
    """Refuse what this backend would pass over or could not use."""
    where = f"pools.{pool.name}.address"
    for key, _ in pool.address:
        if key not in ADDRESS:
            raise InputError(where, key, f"one of {', '.join(sorted(ADDRESS))}")
    if pool.setting("ids"):
        words = [word.strip() for word in pool.setting("ids").split(",")]
        numeric = all(re.fullmatch(r"[0-9]{1,6}", word) for word in words)
        if not numeric or len({int(word) for word in words}) != len(words):
            raise InputError(f"{where}.ids", pool.setting("ids"), "whole numbers by commas, each once, such as 0,1")
        if len(words) != pool.count:
            raise InputError(f"{where}.ids", pool.setting("ids"), f"{pool.count} ids, one for each chip of the pool")
    if pool.setting("cwd") and not Path(pool.setting("cwd")).is_dir():
        raise InputError(f"{where}.cwd", pool.setting("cwd"), "a folder of this machine")

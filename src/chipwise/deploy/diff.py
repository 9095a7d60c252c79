"""What a new decision changes of a tree that was written: pools added, replaced, removed, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from chipwise.deploy.deployment import Deployment, NodePool
from chipwise.deploy.tree import MANIFEST, manifest_of
from chipwise.errors import BrokenFile, InputError
from chipwise.present.data import to_data


class Effect(StrEnum):
    """What applying does to a pool, worst last."""

    UNCHANGED = "unchanged"
    ADDED = "added"
    IN_PLACE = "in place"
    REPLACED = "replaced"
    REMOVED = "removed"


# fields of a pool whose change ends its machines: of google_container_node_pool they force a new resource (accelerator,
# spot, flex start, reservation, placement) or make every node again (machine type).
# https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/container_node_pool and
# hashicorp/terraform-provider-google: google/services/container/node_config.go, 2026-11-19
REPLACING = ("chip", "machine", "accelerator", "topology", "host_chips", "term", "reservation")
IN_PLACE = ("hosts", "min_hosts", "slices", "role", "max_seconds", "usd_per_chip_hour")
WHOLE = ("target", "name", "provider", "engine", "region")  # of the deployment itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChange:
    """What becomes of a pool."""

    pool: str
    effect: Effect
    fields: tuple[str, ...] = ()  # what differs: "hosts 4 -> 8"
    chips_before: int = 0
    chips_after: int = 0
    usd_month_before: float = 0.0
    usd_month_after: float = 0.0

    @property
    def drain(self) -> bool:
        """Whether jobs on it end when the change is applied."""
        gone = self.effect in (Effect.REPLACED, Effect.REMOVED)
        return gone or (self.effect is Effect.IN_PLACE and self.chips_after < self.chips_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of a tree."""

    name: str
    source: str
    whole: tuple[str, ...]  # what of the deployment itself differs: all pools are replaced
    pools: tuple[PoolChange, ...]
    usd_month_before: float
    usd_month_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFacts:
    """What the manifest says of a tree."""

    target: str
    name: str
    provider: str
    engine: str
    region: str
    zone: str | None
    pools: tuple[NodePool, ...]


def tree_facts(folder: Path) -> TreeFacts:
    """What was written into a folder."""
    if not (folder / MANIFEST).is_file():
        raise InputError("folder", str(folder), f"a folder that `deploy write` wrote (it has no {MANIFEST})")
    document = manifest_of(folder)
    rows = document.get("pools")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BrokenFile("folder", str(folder / MANIFEST), "the manifest that deploy wrote")
    texts = {key: document.get(key) for key in WHOLE}
    if not all(isinstance(value, str) for value in texts.values()):
        raise BrokenFile("folder", str(folder / MANIFEST), f"the manifest that deploy wrote ({', '.join(WHOLE)})")
    zone = str(document.get("zone") or "") or None
    return TreeFacts(**{key: str(value) for key, value in texts.items()}, zone=zone, pools=tuple(map(_pool_of, rows)))


def change_of(facts: TreeFacts, deployment: Deployment) -> Change:
    """What a deployment of the same name and target changes of a tree."""
    after = {"provider": str(deployment.provider), "engine": str(deployment.engine), "region": deployment.region}
    whole = tuple(f"{key} {getattr(facts, key)} -> {new}" for key, new in after.items() if getattr(facts, key) != new)
    before = {pool.name: pool for pool in facts.pools}
    now = {pool.name: pool for pool in deployment.pools}
    changes = [_change(name, before.get(name), now.get(name), bool(whole)) for name in dict.fromkeys((*before, *now))]
    return Change(
        name=deployment.name,
        source=deployment.source,
        whole=whole,
        pools=tuple(changes),
        usd_month_before=sum(change.usd_month_before for change in changes),
        usd_month_after=sum(change.usd_month_after for change in changes),
    )


def _change(name: str, old: NodePool | None, after: NodePool | None, whole: bool) -> PoolChange:
    fields = () if old is None or after is None else tuple(_differences(old, after))
    if old is None:
        effect = Effect.ADDED
    elif after is None:
        effect = Effect.REMOVED
    elif whole or any(key in REPLACING for key, _ in fields):
        effect = Effect.REPLACED
    else:
        effect = Effect.IN_PLACE if fields else Effect.UNCHANGED
    return PoolChange(
        pool=name,
        effect=effect,
        fields=tuple(words for _, words in fields),
        chips_before=0 if old is None else old.chips,
        chips_after=0 if after is None else after.chips,
        usd_month_before=0.0 if old is None else old.usd_month,
        usd_month_after=0.0 if after is None else after.usd_month,
    )


def _pool_of(row: Mapping[str, Any]) -> NodePool:
    """A pool as the manifest has it; a `BrokenFile` where it is not as it was written."""
    known = {name: row[name] for name in NodePool.__dataclass_fields__ if name in row and name != "labels"}
    try:
        pool = NodePool(**known)
        _ = pool.chips, pool.usd_month
    except TypeError as error:
        raise BrokenFile("folder", MANIFEST, f"the manifest that deploy wrote ({error})") from None
    return pool


def _differences(before: NodePool, after: NodePool) -> Iterator[tuple[str, str]]:
    for key in (*REPLACING, *IN_PLACE):
        old, new = to_data(getattr(before, key)), to_data(getattr(after, key))
        if old != new:
            yield key, f"{key} {_shown(old)} -> {_shown(new)}"


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)

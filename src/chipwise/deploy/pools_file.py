"""The router's pools file for what was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.deploy.deployment import Deployment, NodePool, Provider, Term
from chipwise.deploy.tree import TreeFile

PATH = "pools.yaml"
# the router's terms: flex-start machines are paid by the hour and stay until their time is over
TERMS = {Term.FLEX_START: "ondemand"}


def pools_file(
    deployment: Deployment, backend: Mapping[str, Any], addresses: Mapping[str, Mapping[str, Any]]
) -> TreeFile:
    """The file; `backend` are the settings that all pools share, `addresses` those of each pool."""
    import yaml

    engine = str(deployment.engine)
    document: dict[str, Any] = {"backends": {engine: dict(backend)}} if backend else {}
    document["pools"] = [_pool(pool, deployment, addresses.get(pool.name, {})) for pool in deployment.pools]
    head = (
        f"# The router's pools for what this folder puts up; made of {deployment.source}.\n"
        f"# chipwise pools --pools {PATH} lists them, chipwise router run --pools {PATH} sends jobs to them.\n"
    )
    return TreeFile(path=PATH, text=head + yaml.safe_dump(document, sort_keys=False, width=120))


def _pool(pool: NodePool, deployment: Deployment, address: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": pool.name,
        "backend": str(deployment.engine),
        "chip": pool.chip,
        "count": pool.chips,
        "terms": str(TERMS.get(pool.term, pool.term)),
        "price": round(pool.usd_per_chip_hour, 6),
    }
    if pool.topology:
        row["shapes"] = [pool.topology]
    else:
        row["unit"] = pool.host_chips
    if deployment.provider is not Provider.ON_PREMISES:
        row["cloud"] = str(deployment.provider)
    if deployment.region:
        row["region"] = deployment.region
    if pool.max_seconds is not None:
        row["max_time"] = f"{pool.max_seconds:g}s"
    if address:
        row["address"] = dict(address)
    return row

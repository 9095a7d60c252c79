"""The router's pools file as pools asked for."""

from __future__ import annotations

from math import inf
from pathlib import Path

from chipwise.deploy.deployment import PoolRequest, Problem, Term, Undeployable
from chipwise.deploy.read.requests import Source
from chipwise.knowledge import Knowledge
from chipwise.route.load import read_pools
from chipwise.route.pool import Pool


def read_pools_file(path: Path, knowledge: Knowledge | None) -> Source:
    """The pools of a file that have chips; a pool of processors alone needs no machines of its own."""
    pools = read_pools(path, knowledge)
    chips = [pool for pool in pools.pools if pool.family != "cpu"]
    if not chips:
        raise Undeployable(Problem.NOTHING, "", f"{path.name} has no pool with chips", "name a GPU or a TPU")
    left_out = tuple(
        f"{pool.name}: left out, it has no chips and needs no machines" for pool in pools.pools if pool.family == "cpu"
    )
    return Source(
        words=f"the pools file {path.name}",
        name=path.stem,
        requests=tuple(_request(pool) for pool in chips),
        assumptions=left_out,
    )


def _request(pool: Pool) -> PoolRequest:
    return PoolRequest(
        name=pool.name,
        chip=pool.chip,
        chips=pool.count,
        shapes=tuple(shape for _, shape in pool.shapes),
        unit=pool.unit,
        term=Term(pool.terms),
        cloud=pool.cloud,
        region=pool.region,
        always=pool.count if pool.terms in (Term.RESERVED, Term.OWNED) else 0,
        usd_per_chip_hour=pool.usd_per_chip_hour,
        price_source=pool.price_source,
        max_seconds=None if pool.max_seconds == inf else pool.max_seconds,
    )

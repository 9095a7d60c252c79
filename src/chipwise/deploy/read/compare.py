"""The pick of a comparison as a pool asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.deploy.deployment import PoolRequest, Problem, Role, Term, Undeployable
from chipwise.deploy.read.requests import Source, field, pool_name
from chipwise.errors import UnknownName

PRICED = {Term.ONDEMAND: "ondemand", Term.SPOT: "spot"}  # the rows' offers by terms


def read_comparison(document: Mapping[str, Any], row_name: str | None, terms: Mapping[str, Term]) -> Source:
    """The pick, or the row of that name, at its offer on these terms."""
    rows = field(document, "rows", list, "FROM")
    if not rows:
        raise Undeployable(Problem.NOTHING, "", "the comparison has no pick", "compare again within other limits")
    names = [field(field(row, "accelerators", dict, "rows"), "name", str, "accelerators") for row in rows]
    wanted = row_name or field(document, "pick", str, "FROM")
    if wanted not in names:
        raise UnknownName("row", wanted, names)
    row = rows[names.index(wanted)]
    chips = row["accelerators"]
    work = field(field(document, "workload", dict, "FROM"), "name", str, "workload")
    shape = "x".join(str(axis) for axis in field(chips, "shape", list, "accelerators"))
    replica = row.get("chips_per_replica")
    name = pool_name(field(chips, "chip", str, "accelerators"))
    chosen = terms.get(name, terms.get("", Term.ONDEMAND))
    term = chosen if chosen in PRICED else Term.ONDEMAND  # others have no offer in a comparison
    offer = row.get(PRICED[term]) or {}
    serving = "replicas" in row
    request = PoolRequest(
        name=name,
        chip=chips["chip"],
        chips=field(chips, "count", int, "accelerators"),
        shapes=(shape,) if shape else (),
        unit=replica if isinstance(replica, int) and serving and not shape and replica < 8 else 1,
        term=term,
        role=Role.SERVE if serving else Role.TRAIN,
        cloud=offer.get("cloud") or "",
        region=offer.get("region") or "",
        instance=offer.get("instance") or "",
        usd_per_chip_hour=float(offer.get("usd_per_chip_hour") or 0.0),
        replica_chips=replica if serving and isinstance(replica, int) else 0,
        replica_requests=float(row.get("batch") or 0.0) if serving else 0.0,
        price_source=f"{offer['cloud']} {offer['region']}, {offer['date']}" if offer.get("cloud") else "",
    )
    unpriced = () if offer else (f"{request.name}: no {term} price is known, it counts nothing in what a month costs",)
    return Source(
        words=f"the comparison of {work}: {wanted}", name=pool_name(work), requests=(request,), assumptions=unpriced
    )

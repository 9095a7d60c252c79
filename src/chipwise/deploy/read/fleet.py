"""What a fleet plan holds in one period as pools asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from chipwise.deploy.deployment import PoolRequest, Problem, Role, Term, Undeployable
from chipwise.deploy.read.requests import Source, field, pool_name, unique
from chipwise.errors import UnknownName

TERMS = {
    "ondemand": Term.ONDEMAND,
    "spot": Term.SPOT,
    "year1": Term.RESERVED,
    "year3": Term.RESERVED,
    "existing": Term.RESERVED,
    "owned": Term.OWNED,
}
Row = Mapping[str, Any]


def read_plan(document: Row, period: str | None) -> Source:
    """The chips held or rented in a period (default: the first), each use of them in slices of its own."""
    plan = document.get("plan")
    if not isinstance(plan, Mapping):
        raise Undeployable(Problem.NOTHING, "", "the fleet plan meets no demand", "loosen what its `relax` names")
    periods = [field(row, "name", str, "periods") for row in field(document, "periods", list, "FROM")]
    if period is not None and period not in periods:
        raise UnknownName("period", period, periods)
    when = period or periods[0]
    supplies = {field(row, "id", str, "supplies"): row for row in field(document, "supplies", list, "FROM")}
    holdings = [row for row in field(plan, "holdings", list, "plan") if row["period"] == when and row["chips"] > 0]
    if not holdings:
        raise Undeployable(Problem.NOTHING, "", f"the plan holds no chips in {when}", f"one of {', '.join(periods)}")
    parts = [part for row in holdings for part in _parts(row, supplies.get(row["supply"], {}), document, when)]
    names = unique([part.name for part in parts])
    requests = tuple(_renamed(part, name) for part, name in zip(parts, names, strict=True))
    name = field(document, "name", str, "FROM")
    return Source(words=f"the fleet plan {name}, {when}", name=pool_name(name), requests=requests)


def _renamed(request: PoolRequest, name: str) -> PoolRequest:
    from dataclasses import replace

    return replace(request, name=name)


def _parts(holding: Row, supply: Row, document: Row, when: str) -> list[PoolRequest]:
    """The chips of a holding by the slices that runs and services have of them."""
    unit = int(supply.get("chips_per_unit") or max(1, holding["chips"] // max(1, holding["units"])))
    term = TERMS[holding["pricing"]]
    region = holding.get("region") or ""
    base = {
        "chip": holding["chip"],
        "term": term,
        "cloud": holding.get("cloud") or "on-premises",
        "region": region,
        "instance": supply.get("instance") or "",
        "usd_per_chip_hour": _usd_per_chip_hour(holding, supply, unit),
        "price_source": f"{holding['supply']}, the plan",
    }
    label = pool_name(" ".join([holding["chip"], region, "spot" if term is Term.SPOT else str(term)]))
    parts = []
    for shape, chips, role in _uses(holding, document, when, unit):
        parts.append(
            PoolRequest(
                name=pool_name(f"{label} {shape}") if shape else label,
                chips=chips,
                shapes=(shape,) if shape else (),
                unit=unit if not shape else 1,
                role=role,
                always=chips if term in (Term.RESERVED, Term.OWNED) else 0,
                **base,
            )
        )
    return parts


def _usd_per_chip_hour(holding: Row, supply: Row, unit: int) -> float:
    """The supply's price by the hour, or what the period's dollars are an hour; servers of one's own: their upkeep."""
    by_hour = float(supply.get("usd_per_unit_hour") or 0.0) / unit
    if by_hour or not holding.get("unit_hours"):
        return by_hour
    return float(holding["usd"]) / (float(holding["unit_hours"]) * unit)


def _uses(holding: Row, document: Row, when: str, unit: int) -> list[tuple[str, int, Role]]:
    """Slices, their chips and what they are for: each run's own, the rest in the shape that services have."""
    plan, advice = document["plan"], document.get("advice") or []
    shapes = {
        (row["workload"], row["pool"]): "x".join(map(str, row["accelerators"].get("shape") or ())) for row in advice
    }
    left = int(holding["chips"])
    uses: dict[tuple[str, Role], int] = {}
    runs = [row for row in plan.get("runs") or [] if row["period"] == when and row["supply"] == holding["supply"]]
    for run in sorted(runs, key=lambda row: -row["chips"]):
        shape = _shape_of(run["run"], run["pool"], shapes)
        size = _size(shape) or unit
        chips = min(left, int(run["chips"])) // size * size
        if chips:
            uses[shape, Role.TRAIN] = uses.get((shape, Role.TRAIN), 0) + chips
            left -= chips
    served = [row for row in plan.get("services") or [] if row["period"] == when and _serves(row, holding)]
    names: Sequence[str] = list(dict.fromkeys(row["service"] for row in served))
    sized = sorted({shapes.get((name, row["pool"]), "") for row in served for name in names}, key=_size, reverse=True)
    for shape in sized if left else ():
        size = _size(shape) or unit
        chips = left // size * size
        if chips:
            uses[shape, Role.SERVE] = uses.get((shape, Role.SERVE), 0) + chips
            left -= chips
    if left:  # held and idle, or smaller than any slice named
        uses["", Role.ANY] = left
    return [(shape, chips, role) for (shape, role), chips in uses.items()]


def _shape_of(run: str, pool: str, shapes: Mapping[tuple[str, str], str]) -> str:
    """The slice of a run, which is named after its workload and, where it comes again, its start."""
    if (run, pool) in shapes:
        return shapes[run, pool]
    named = [shape for (workload, of), shape in shapes.items() if of == pool and run.startswith(f"{workload} ")]
    return max(named, default="", key=_size)


def _serves(row: Row, holding: Row) -> bool:
    """Whether a service's pool is this supply: a pool's name begins its supplies' names."""
    return bool(str(holding["supply"]).startswith(row["pool"])) or row["pool"].startswith(holding["chip"] + " ")


def _size(shape: str) -> int:
    return prod(int(axis) for axis in shape.split("x")) if shape else 0

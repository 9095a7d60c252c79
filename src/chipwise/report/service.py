"""What a report says of a model that is served."""

from __future__ import annotations

from chipwise.compare import ServingComparison, ServingRow
from chipwise.compare.serving.row import slo_latencies
from chipwise.compare.view import serving_head
from chipwise.predict.estimate import Estimate
from chipwise.present.numbers import interval, percent, time_interval
from chipwise.report.parts import Tile
from chipwise.report.subject import Subject
from chipwise.units import format_money, format_seconds


def service_subject(c: ServingComparison) -> Subject:
    """A service, as a report has it."""
    job, unit = c.comparer.demand.kind == "job", c.rows[0].unit
    cost = f"US dollars a million {unit}, on demand" if job else "US dollars an hour, on demand"
    return Subject(
        kind="inference",
        calibration=c.comparer.knowledge.calibration.serving.date,
        about=f"Serving of {c.workload.model.name}: {serving_head(c)}",
        estimate=lambda row: row.load,
        seconds=lambda row: row.seconds,
        time="to finish the job" if job else "of a whole answer, median",
        per=" an hour",
        bars={
            "cost": ("Rented chips on demand", cost),
            "time": ("Time", "{} for the job" if job else "{} a request, median"),
            "energy": ("Energy", f"joules of one of the {unit}"),
        },
        tiles=_tiles,
        table="sustain it",
        note="Headroom is what the replicas sustain beyond the demand.",
    )


def _tiles(r: ServingRow) -> list[Tile]:
    acc, million = r.accelerators, r.per_million(r.ondemand)
    size = f"{r.split.chips} chip{'s' * (r.split.chips != 1)}"
    replicas = f"{r.fleet.replicas:,} replicas of {size}; {r.served.service.target.stack.name}"
    tiles = []
    if million is not None:
        amount = format_money(million.value)
        tiles.append(Tile(f"Rented chips for a million {r.unit}", amount, interval(million, format_money)))
    tiles.append(Tile("Chips", f"{acc.count:,} × {acc.chip.id}", acc.chip.name, replicas))
    tiles += [Tile(name, format_seconds(e.value), time_interval(e)) for name, e in slo_latencies(r)[:2]]
    if r.headroom is not None:
        above = percent(r.headroom.value)
        tiles.append(Tile("Headroom above the demand", above, _headroom(r.headroom), f"until {r.limit}"))
    return [*tiles, Tile("Evidence", r.evidence, "", r.load.because)]


def _headroom(e: Estimate) -> str:
    return f"{e.low * 100:+.0f} to {e.high * 100:+.0f} %".replace("-", "−")

"""The columns of a comparison, each declared once: terminal, JSON, CSV, HTML and notebook are drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chipwise.compare.serving.row import ServingRow, slo_latencies
from chipwise.compare.training.comparer import TrainingRow
from chipwise.predict.estimate import Estimate
from chipwise.present.columns import Column
from chipwise.present.numbers import rate, spread
from chipwise.units import format_money, format_seconds

if TYPE_CHECKING:
    from chipwise.compare.comparison import ServingComparison
    from chipwise.prices import Quote

NO_PRICE = "no public price"


def _quoted(quote: Quote | None, missing: str) -> str:
    return missing if quote is None else str(quote)


TRAINING: list[Column[TrainingRow]] = [
    Column("accelerators", lambda r: r.accelerators, "chips", words=True, help="chips, how many, in which slice"),
    Column(
        "layout", lambda r: str(r.prediction.layout), "layout", words=True, under=True, help="how the work is split"
    ),
    Column("stack", lambda r: r.prediction.stack.id, help="software"),
    Column(
        "step_seconds",
        lambda r: r.prediction.step,
        "step",
        lambda r: format_seconds(r.prediction.step.value),
        help="one optimizer step",
    ),
    Column("", None, "90 %", lambda r: spread(r.prediction.step), drop=4),
    Column("lower_bound_seconds", lambda r: r.prediction.bound_s, help="no schedule is faster"),
    Column("math_seconds", lambda r: r.prediction.math_s, help="model FLOPs at the chip's dense peak"),
    Column("parts_seconds", lambda r: dict(r.prediction.parts), nested=True, help="the step by cause"),
    Column("hidden_seconds", lambda r: r.prediction.hidden_s, help="collectives hidden behind compute"),
    Column("calibration_factor", lambda r: r.prediction.calibration_factor, help="on the step of the formulas alone"),
    Column("units_per_second", lambda r: r.prediction.tokens_per_s, help="tokens or images of all chips"),
    Column(
        "units_per_second_per_chip",
        lambda r: r.tokens_per_s_per_chip,
        lambda c: f"{c.workload.unit}/s/chip",
        lambda r: rate(r.tokens_per_s_per_chip.value),
        drop=3,
        help="tokens or images of one chip",
    ),
    Column(
        "mfu",
        lambda r: r.prediction.mfu,
        "MFU",
        lambda r: f"{r.prediction.mfu * 100:.0f}%",
        drop=5,
        help="model FLOPs over the dense peak of the training precision",
    ),
    Column(
        "duration_seconds",
        lambda r: r.prediction.duration,
        "time",
        lambda r: format_seconds(r.prediction.duration.value),
        help="the whole run",
    ),
    Column(
        "kwh",
        lambda r: r.prediction.kwh,
        "kWh",
        lambda r: rate(r.prediction.kwh.value),
        drop=1,
        help="energy of the chips; servers and cooling come on top",
    ),
    Column("watts_per_chip", lambda r: r.prediction.watts, help="mean"),
    Column("memory_bytes", lambda r: dict(r.prediction.memory), nested=True, help="of a chip, by class"),
    Column("capacity_bytes", lambda r: r.prediction.capacity, help="that a chip can allocate"),
    Column("layouts_evaluated", lambda r: r.search.evaluated if r.search else None, help="of which this is the best"),
    Column(
        "ondemand",
        lambda r: r.ondemand,
        "on demand",
        lambda r: _quoted(r.ondemand, NO_PRICE),
        help="the run on demand, by the cheapest offer; null without a public price",
    ),
    Column(
        "spot", lambda r: r.spot, "spot", lambda r: _quoted(r.spot, "-"), drop=2, help="on spot, where that is cheaper"
    ),
    Column("", None, "evidence", lambda r: r.evidence, words=True),
    Column("assumptions", lambda r: list(r.prediction.assumptions), nested=True, help="of this row"),
]


def _spread(seconds: Estimate) -> str:
    return f"{format_seconds(seconds.value)} {spread(seconds)}"


def _latencies(row: ServingRow) -> dict[str, Estimate]:
    """Latencies by a key such as ``ttft_p99``."""
    return {name.replace(" ", "_").replace(".", "_"): seconds for name, seconds in slo_latencies(row)}


def _latency(name: str) -> Column[ServingRow]:
    def show(row: ServingRow) -> str:
        latency = dict(slo_latencies(row)).get(name)
        return "-" if latency is None else _spread(latency)

    return Column("", None, name, show)


def _headroom(row: ServingRow) -> str:
    e = row.headroom
    return "-" if e is None else f"{e.value * 100:.0f}% ({e.low * 100:+.0f} to {e.high * 100:+.0f})"


def _million(row: ServingRow, quote: Quote | None) -> str:
    usd = row.per_million(quote)
    return "-" if usd is None or quote is None else format_money(usd.value) + ("*" if quote.price.stale else "")


def _per_unit(text: str) -> Callable[[Any], str]:
    return lambda c: text.format(c.workload.unit, c.workload.unit.removesuffix("s"))


SERVING: list[Column[ServingRow]] = [
    Column("accelerators", lambda r: r.accelerators, "chips", words=True, help="chips, how many, in which slice"),
    Column("", None, "replicas", lambda r: f"{r.fleet.replicas:,} x {r.split}", words=True, under=True),
    Column("replicas", lambda r: r.fleet.replicas, help="equal ones, each with a queue of its own"),
    Column("split", lambda r: r.split, help="how a replica is split over its chips"),
    Column("chips_per_replica", lambda r: r.split.chips, help="chips of one replica"),
    Column("stack", lambda r: r.served.service.target.stack.id, help="software"),
    Column(
        "latencies_seconds", lambda r: _latencies(r), help="at the percentiles of the SLO, by metric and percentile"
    ),
    Column(
        "unloaded_seconds",
        lambda r: r.unloaded,
        "unloaded",
        lambda r: format_seconds(r.unloaded.value),
        drop=5,
        help="time per token (or of the whole answer) of a request that meets no other",
    ),
    Column(
        "units_per_second",
        lambda r: r.unit_rate,
        _per_unit("{}/s"),
        lambda r: rate(r.unit_rate.value),
        drop=4,
        help="output tokens, or answers of a model that doesn't write",
    ),
    Column("requests_per_second", lambda r: r.request_rate, help="requests answered"),
    Column("capacity", lambda r: r.load, help="the largest load that all replicas carry, in the demand's unit"),
    Column("headroom", lambda r: r.headroom, "headroom", _headroom, help="capacity over the demand, less 1"),
    Column("limit", lambda r: r.limit, help="what ends the capacity"),
    Column("duration_seconds", lambda r: r.seconds if r.demand.kind == "job" else None, help="of an offline job"),
    Column("busy", lambda r: r.served.measures.busy, help="share of the time that a replica computes"),
    Column("batch", lambda r: r.served.measures.batch, help="sequences in a step, mean"),
    Column("kv_use", lambda r: r.served.measures.kv_use, help="share of the KV cache in use"),
    Column(
        "ondemand",
        lambda r: r.ondemand,
        "$/h",
        lambda r: _quoted(r.ondemand, NO_PRICE),
        help="an hour on demand, by the cheapest offer; null without a public price",
    ),
    Column(
        "ondemand_usd_per_million_units",
        lambda r: r.per_million(r.ondemand),
        _per_unit("$/M {}"),
        lambda r: _million(r, r.ondemand),
        help="a million output tokens or answers",
    ),
    Column(
        "spot",
        lambda r: r.spot,
        "spot $/h",
        lambda r: _quoted(r.spot, "-"),
        drop=2,
        help="on spot, where that is cheaper",
    ),
    Column(
        "spot_usd_per_million_units",
        lambda r: r.per_million(r.spot),
        _per_unit("spot $/M {}"),
        lambda r: _million(r, r.spot),
        drop=1,
        help="on spot",
    ),
    Column(
        "joules_per_unit",
        lambda r: r.joules,
        _per_unit("J/{1}"),
        lambda r: f"{r.joules.value:.2g}",
        drop=3,
        help="energy of an output token or an answer",
    ),
    Column("", None, "evidence", lambda r: r.evidence, words=True),
]


def serving_columns(c: ServingComparison) -> list[Column[ServingRow]]:
    """The columns of services, with one for each latency that counts here."""
    if c.comparer.demand.kind == "job":
        time: Column[ServingRow] = Column("", None, "time", lambda r: _spread(r.seconds))
        latencies = [time]
    else:
        latencies = [_latency(name) for name in dict.fromkeys(name for name, _ in slo_latencies(c.rows[0]))]
    at = next(i for i, column in enumerate(SERVING) if column.header == "replicas") + 1
    return [*SERVING[:at], *latencies, *SERVING[at:]]

"""The columns of a comparison, each declared once: terminal, JSON, CSV, HTML and notebook are drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chipwise.compare.decision import Flip, R, Refused
from chipwise.compare.serving.row import ServingRow, slo_latencies
from chipwise.compare.training.front import FrontPoint
from chipwise.compare.training.row import TrainingRow
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


def _chips() -> Column[R]:
    return Column(
        "accelerators",
        lambda r: r.accelerators,
        "chips",
        words=True,
        help="`name` (parses back), `chip`, `count`, `shape` of one slice, `slices`",
    )


def _ondemand(header: str, what: str, per: str) -> Column[R]:
    return Column(
        "ondemand",
        lambda r: r.ondemand,
        header,
        lambda r: _quoted(r.ondemand, NO_PRICE),
        help=f"{what} on demand by the cheapest offer: `usd` (estimate) `per` {per}, and the quote; null without a "
        "public price",
        unit="USD",
    )


def _spot(header: str) -> Column[R]:
    return Column(
        "spot",
        lambda r: r.spot,
        header,
        lambda r: _quoted(r.spot, "-"),
        drop=2,
        help="the same on spot, where that is cheaper; else null",
        unit="USD",
    )


def _evidence(rests: str) -> Column[R]:
    return Column("", None, "evidence", lambda r: r.evidence, words=True, help=f"what {rests} on")


TRAINING: list[Column[TrainingRow]] = [
    _chips(),
    Column(
        "layout",
        lambda r: str(r.prediction.layout),
        "layout",
        words=True,
        under=True,
        help="how the work is split, as `--layout` reads it",
    ),
    Column("stack", lambda r: r.prediction.stack.id, help="the software stack assumed or named"),
    Column(
        "step_seconds",
        lambda r: r.prediction.step,
        "step",
        lambda r: format_seconds(r.prediction.step.value),
        help="estimate of one optimizer step",
        unit="s",
    ),
    Column("", None, "90 %", lambda r: spread(r.prediction.step), drop=4, help="ends of the step's 90 % interval"),
    Column(
        "lower_bound_seconds",
        lambda r: r.prediction.bound_s,
        help="the longer of T_math (the model's FLOPs at the dense peak) and T_comms (everything on the wires, if "
        "nothing overlapped): no schedule is faster",
        unit="s",
    ),
    Column(
        "math_seconds",
        lambda r: r.prediction.math_s,
        help="the model's FLOPs at the dense peak of the chips",
        unit="s",
    ),
    Column(
        "parts_seconds",
        lambda r: dict(r.prediction.parts),
        nested=True,
        help="the step by cause; the parts add up to it",
        unit="s",
    ),
    Column(
        "hidden_seconds",
        lambda r: r.prediction.hidden_s,
        help="collectives hidden behind compute, not part of the step",
        unit="s",
    ),
    Column(
        "calibration_factor",
        lambda r: r.prediction.calibration_factor,
        help="on the formulas' step, by published steps nearby or by measurements of the chip",
    ),
    Column(
        "units_per_second",
        lambda r: r.prediction.tokens_per_s,
        help="estimate of the rate of all chips together; the workload's `unit` says of what",
        unit="units/s",
    ),
    Column(
        "units_per_second_per_chip",
        lambda r: r.tokens_per_s_per_chip,
        lambda c: f"{c.workload.unit}/s/chip",
        lambda r: rate(r.tokens_per_s_per_chip.value),
        drop=3,
        help="estimate of the rate of one chip",
        unit="units/s",
    ),
    Column(
        "mfu",
        lambda r: r.prediction.mfu,
        "MFU",
        lambda r: f"{r.prediction.mfu * 100:.0f}%",
        drop=5,
        help="model FLOPs over the dense peak of the training precision",
        unit="share",
    ),
    Column(
        "duration_seconds",
        lambda r: r.prediction.duration,
        "time",
        lambda r: format_seconds(r.prediction.duration.value),
        help="estimate of the whole run",
        unit="s",
    ),
    Column(
        "kwh",
        lambda r: r.prediction.kwh,
        "chip kWh",
        lambda r: rate(r.prediction.kwh.value),
        drop=1,
        help="estimate of the energy of the chips over the run; servers and cooling come on top",
        unit="kWh",
    ),
    Column("watts_per_chip", lambda r: r.prediction.watts, help="mean power of a chip", unit="W"),
    Column(
        "memory_bytes",
        lambda r: dict(r.prediction.memory),
        nested=True,
        help="of a chip by class, and their `total`",
        unit="bytes",
    ),
    Column("capacity_bytes", lambda r: r.prediction.capacity, help="that a chip can allocate", unit="bytes"),
    Column(
        "layouts_evaluated",
        lambda r: r.search.evaluated if r.search else None,
        help="layouts of which this is the best; null where the layout was named",
    ),
    _ondemand("on demand", "the run", "run"),
    _spot("spot"),
    _evidence("the step rests"),
    Column(
        "assumptions",
        lambda r: list(r.prediction.assumptions),
        nested=True,
        help="what was taken for granted, in words",
    ),
]


def _mark(point: FrontPoint) -> str:
    """What to know of a count: the pick, the limit it breaks, or that nothing beats it."""
    if point.pick:
        return "pick"
    if not point.within:
        return "beyond the limits"
    return "front" if point.best else ""


FRONT: list[Column[FrontPoint]] = [
    Column(
        "accelerators",
        lambda p: p.row.accelerators,
        "chips",
        words=True,
        help="`name` (parses back), `chip`, `count`, `shape` of one slice, `slices`",
    ),
    Column(
        "duration_seconds",
        lambda p: p.row.prediction.duration,
        "time",
        lambda p: format_seconds(p.row.prediction.duration.value),
        help="estimate of the whole run",
        unit="s",
    ),
    Column("", None, "90 %", lambda p: spread(p.row.prediction.duration), help="ends of the time's 90 % interval"),
    Column(
        "ondemand",
        lambda p: p.row.ondemand,
        "on demand",
        lambda p: _quoted(p.row.ondemand, NO_PRICE),
        help="the run on demand by the cheapest offer that supplies so many",
        unit="USD",
    ),
    Column(
        "mfu",
        lambda p: p.row.prediction.mfu,
        "MFU",
        lambda p: f"{p.row.prediction.mfu * 100:.0f}%",
        help="model FLOPs over the dense peak",
        unit="share",
    ),
    Column("within", lambda p: p.within, help="whether it keeps the deadline and the budget"),
    Column("front", lambda p: p.best, help="whether no other count shown is both cheaper and faster"),
    Column("pick", lambda p: p.pick, help="whether it is the pick"),
    Column("", None, "note", _mark, words=True),
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


def _paid_by(c: ServingComparison) -> str:
    """What a million is counted of: of an offline job that writes, the tokens of its answers alone."""
    job = c.comparer.demand.kind == "job" and c.workload.unit == "tokens"
    return "$/M tokens out" if job else f"$/M {c.workload.unit}"


def _usd(estimate: Estimate | None, quote: Quote | None) -> str:
    return (
        "-" if estimate is None or quote is None else format_money(estimate.value) + ("*" if quote.price.stale else "")
    )


JOB_COSTS: list[Column[ServingRow]] = [
    Column("", None, "$/job", lambda r: _usd(r.job_usd(r.ondemand), r.ondemand)),
    Column("", None, "$/M tokens in+out", lambda r: _usd(r.per_million_processed(r.ondemand), r.ondemand), drop=1),
]


SERVING: list[Column[ServingRow]] = [
    _chips(),
    Column(
        "",
        None,
        "replicas",
        lambda r: f"{r.replicas_in_short} x {r.split}",
        words=True,
        under=True,
        help="how many, each split so over its chips",
    ),
    Column(
        "replicas",
        lambda r: r.replicas,
        help="equal ones, each with a queue of its own; where some prefill apart, those that decode",
    ),
    Column("prefill_replicas", lambda r: r.prefill_replicas, help="replicas of their own for prompts; 0: none"),
    Column("split", lambda r: r.split, help="of a replica over its chips: `name`, `tp`, `pp`, `dp`, `ep`"),
    Column("chips_per_replica", lambda r: r.split.chips, help="chips of one replica"),
    Column("stack", lambda r: r.served.service.target.stack.id, help="the software stack assumed or named"),
    Column(
        "precision",
        lambda r: r.precision,
        help="of the weights as served here: what stands in for a precision that the chip lacks",
    ),
    Column(
        "latencies_seconds",
        _latencies,
        help="estimates at the percentiles of the SLO, by metric and percentile: `ttft_p99`",
        unit="s",
    ),
    Column(
        "unloaded_seconds",
        lambda r: r.unloaded,
        "unloaded",
        lambda r: format_seconds(r.unloaded.value),
        drop=5,
        help="estimate of the time per token at batch 1 (or of the whole answer) of a request that meets no other",
        unit="s",
    ),
    Column(
        "units_per_second",
        lambda r: r.unit_rate,
        _per_unit("{}/s"),
        lambda r: rate(r.unit_rate.value),
        drop=4,
        help="estimate of output tokens, or of answers of a model that doesn't write",
        unit="units/s",
    ),
    Column("requests_per_second", lambda r: r.request_rate, help="estimate of requests answered", unit="requests/s"),
    Column(
        "capacity",
        lambda r: r.load,
        help="estimate of the largest load that all replicas sustain",
        unit="requests/s or users",
    ),
    Column(
        "headroom",
        lambda r: r.headroom,
        "headroom",
        _headroom,
        help="estimate of the capacity over the demand, less 1",
        unit="share",
    ),
    Column("limit", lambda r: r.limit, help="what ends the capacity, in words"),
    Column(
        "queueing_margin",
        lambda r: r.queueing_margin,
        help="what random arrivals take off the capacity of a replica, against requests at equal distances; null "
        "where they are not random",
        unit="share",
    ),
    Column(
        "duration_seconds",
        lambda r: r.seconds if r.demand.kind == "job" else None,
        help="estimate of an offline job; else null",
        unit="s",
    ),
    Column("busy", lambda r: r.served.measures.busy, help="of the time that a replica computes", unit="share"),
    Column("batch", lambda r: r.served.measures.batch, help="sequences in a step, mean"),
    Column("kv_use", lambda r: r.served.measures.kv_use, help="of the KV cache in use", unit="share"),
    _ondemand("$/h", "an hour", "hour"),
    Column(
        "ondemand_usd_per_million_units",
        lambda r: r.per_million(r.ondemand),
        _paid_by,
        lambda r: _million(r, r.ondemand),
        help="estimate for a million output tokens or answers",
        unit="USD",
    ),
    Column(
        "job_usd",
        lambda r: r.job_usd(r.ondemand),
        help="estimate of all that an offline job costs; null without a number of requests",
        unit="USD",
    ),
    Column(
        "ondemand_usd_per_million_tokens_processed",
        lambda r: r.per_million_processed(r.ondemand),
        help="estimate of an offline job over a million of its tokens, of prompts and answers alike; else null",
        unit="USD",
    ),
    _spot("spot $/h"),
    Column(
        "spot_usd_per_million_units",
        lambda r: r.per_million(r.spot),
        lambda c: f"spot {_paid_by(c)}",
        lambda r: _million(r, r.spot),
        drop=1,
        help="the same on spot",
        unit="USD",
    ),
    Column(
        "joules_per_unit",
        lambda r: r.joules,
        _per_unit("J/{1}"),
        lambda r: f"{r.joules.value:.2g}",
        drop=3,
        help="estimate of the energy of an output token or an answer",
        unit="J",
    ),
    _evidence("the latencies rest"),
]


def serving_columns(c: ServingComparison) -> list[Column[ServingRow]]:
    """The columns of services, with one for each latency that counts here."""
    if c.comparer.demand.kind == "job":
        time: Column[ServingRow] = Column("", None, "time", lambda r: _spread(r.seconds))
        latencies = [time]
    else:
        latencies = [_latency(name) for name in dict.fromkeys(name for name, _ in slo_latencies(c.rows[0]))]
    at = next(i for i, column in enumerate(SERVING) if column.header == "replicas") + 1
    if any(row.precision != c.workload.serve.precision for row in c.rows):
        latencies.insert(0, Column("", None, "precision", lambda r: r.precision, words=True))
    columns = [*SERVING[:at], *latencies, *SERVING[at:]]
    if c.comparer.demand.kind == "job":
        paid = next(i for i, column in enumerate(columns) if column.key == "ondemand_usd_per_million_units")
        columns[paid:paid] = JOB_COSTS if c.workload.unit == "tokens" else JOB_COSTS[:1]
    return columns


FLIPS: list[Column[Flip]] = [
    Column(
        "kind",
        lambda f: f.kind,
        "change of",
        words=True,
        help="price, efficiency, batch, chips, deadline, budget, rate or users",
    ),
    Column("winner", lambda f: f.winner, "new pick", words=True),
    Column("subject", lambda f: f.subject, help="the chip whose price or efficiency changes"),
    Column("before", lambda f: f.before),
    Column("after", lambda f: f.after),
    Column("words", lambda f: f.words, "in words", words=True),
]
REFUSED: list[Column[Refused]] = [
    Column("chip", lambda r: r.chip.id),
    Column("accelerators", lambda r: r.accelerators, "chips", lambda r: r.name, words=True),
    Column("kind", lambda r: r.kind, help="memory, precision, layout, stack, slo, deadline or budget"),
    Column("reason", lambda r: r.reason, "why not", words=True),
    Column("unlock", lambda r: r.unlock, "what would unlock it", lambda r: r.unlock or "–", words=True),
]

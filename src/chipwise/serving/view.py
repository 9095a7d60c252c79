"""A simulated service as every face shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, table
from chipwise.present.columns import record as row_record
from chipwise.present.data import flatten
from chipwise.present.numbers import plural, rate, time_interval
from chipwise.serving.describe import (
    LATENCIES,
    arrival_of,
    cache_of,
    command_of,
    deadline_of,
    rate_interval,
    requests_of,
    seconds_interval,
    settings_of,
    target_assumptions,
    use_of,
)
from chipwise.serving.launched import flags
from chipwise.serving.measures import SloCheck, Spread
from chipwise.serving.service import Served, Service
from chipwise.serving.step_times import EngineConfig
from chipwise.units import format_seconds

if TYPE_CHECKING:
    from chipwise.serving.results import ServingSimulation

LISTS = ("slo", "curve", "assumptions")  # of the record, that are no columns of a flat row


@dataclass(frozen=True, slots=True)
class Latency:
    """A latency by name."""

    name: str
    spread: Spread


LATENCY_COLUMNS: list[Column[Latency]] = [
    Column("", None, "latency", lambda row: LATENCIES[row.name], words=True),
    Column("", None, "p50", lambda row: seconds_interval(row.spread.p50)),
    Column("", None, "p90", lambda row: seconds_interval(row.spread.p90), drop=2),
    Column("", None, "p99", lambda row: seconds_interval(row.spread.p99)),
    Column("", None, "evidence", lambda row: row.spread.p50.evidence, words=True, drop=1),
]


def slo_columns(served: Served) -> list[Column[SloCheck]]:
    """The columns of a bound and what the run has at its percentile; nothing to measure is within."""

    def interval(check: SloCheck) -> str:
        estimate = getattr(getattr(served, check.bound.metric), f"p{check.bound.percentile:g}", None)
        return "-" if estimate is None or not check.measured else time_interval(estimate)

    return [
        Column("", None, "bound", lambda c: str(c.bound), words=True),
        Column("metric", lambda c: c.bound.metric, help="ttft, tpot, itl or e2e"),
        Column("percentile", lambda c: c.bound.percentile, help="of requests that keep it", unit="%"),
        Column("bound_seconds", lambda c: c.bound.seconds, help="what the SLO asks for", unit="s"),
        Column(
            "seconds",
            lambda c: c.seconds,
            "has",
            lambda c: format_seconds(c.seconds) if c.measured else "-",
            help="at that percentile, as simulated; null: nothing to measure",
            unit="s",
        ),
        Column("", None, "90 %", interval),
        Column("met", lambda c: c.holds, "SLO", _verdict, words=True, help="whether the bound is met"),
    ]


def _verdict(check: SloCheck) -> str:
    if not check.measured:
        return "met: nothing to measure"
    return "met" if check.holds else "missed"


def settings_record(config: EngineConfig) -> dict[str, Any]:
    """How the stack's scheduler is set."""
    return {
        "max_batch": config.most_sequences,
        "chunk": config.most_tokens,
        "block": config.block,
        "mixed": config.mixed,
        "reserve": config.reserve,
    }


def service_record(of: Service) -> dict[str, Any]:
    """The replicas."""
    replica = of.replica
    return {
        "split": replica.split,
        "replicas": of.replicas,
        "prefill_replicas": of.prefill_replicas,
        "chips": of.chips,
        "router": of.router,
        "stack": of.target.stack.id,
        "settings": settings_record(replica.config),
        "cache_blocks": of.blocks(replica) if replica.kv_cache.caches else None,
        "cache_sequences": of.cache_sequences,
        "cache_bytes_per_token": replica.kv_cache.per_token,
        "weights_bytes": replica.kv_cache.weights,
        "flags": flags(of) or None,
    }


def job_record(served: Served) -> dict[str, Any]:
    """An offline job's end."""
    limit = served.service.target.workload.serve.deadline_s
    return {
        "duration_seconds": served.duration,
        "deadline_seconds": limit or None,
        "deadline_met": served.duration.value <= limit if limit else None,
    }


def record(s: ServingSimulation) -> dict[str, Any]:
    """The simulation as JSON has it."""
    m, of, served = s.measures, s.service, s.served
    return {
        "workload": s.workload,
        "accelerators": s.accelerators,
        "service": service_record(of),
        "split_chosen": s.request.split is None,
        "seed": s.seed,
        "requests_simulated": len(served.simulation.requests),
        "requests_counted": m.requests,
        "ttft_seconds": served.ttft,
        "tpot_seconds": served.tpot,
        "itl_seconds": served.itl,
        "e2e_seconds": served.e2e,
        "requests_per_second": served.request_rate,
        "units_per_second": served.token_rate,
        "goodput_per_second": m.goodput,
        "good_share": m.good,
        "slo": [row_record(slo_columns(served), check) for check in m.slo_checks],
        "slo_met": m.holds,
        "use": {
            "busy": m.busy,
            "busy_prefill": m.busy_prefill if of.prefill else None,
            "cache": m.kv_use,
            "cache_peak": m.kv_peak,
            "queue": m.queue,
            "in_system": m.in_system,
            "batch": m.batch,
            "preemptions": m.preemptions,
        },
        "settled": m.settled,
        "watts": m.watts,
        "joules_per_unit": served.joules,
        "job": job_record(served) if served.offline else None,
        "curve": None if s.curve is None else s.curve.points,
        "assumptions": assumptions(s),
    }


def flat_rows(s: ServingSimulation) -> list[dict[str, Any]]:
    """The simulation as one row of CSV or pandas, whose columns are the keys of the record without its lists."""
    cells = [flatten(key, value) for key, value in record(s).items() if key not in LISTS]
    return [{name: cell for some in cells for name, cell in some.items()}]


def blocks(s: ServingSimulation) -> list[Block]:
    """The service, latencies, rates, the SLO, its command line and assumptions, in that order."""
    checks = s.measures.slo_checks
    slo: list[Block] = [table(slo_columns(s.served), checks, title="SLO")] if checks else []
    return [
        Text(f"{s.workload.name} on {s.accelerators}: {arrival_of(s.served)}; {requests_of(s.workload)}"),
        _service(s),
        table(LATENCY_COLUMNS, latencies(s.served), title="Latency of requests, with 90 % intervals"),
        _rates(s.served),
        *slo,
        *command_of(s.service),
        *section("Assumptions", assumptions(s)),
    ]


def _service(s: ServingSimulation) -> Table:
    of = s.service
    how = "named" if s.request.split else "chosen: the split with the largest load"
    return bare_table(
        "Service",
        {
            "replicas": f"{of} ({how})",
            "router": of.router if of.prefill is None else "least_loaded, in both pools",
            "stack": of.target.stack.name,
            "settings": settings_of(of),
            "KV cache": cache_of(of),
        },
    )


def bare_table(title: str, rows: dict[str, str]) -> Table:
    """Names and what they hold, without headers."""
    return Table(["", " "], [list(row) for row in rows.items()], frozenset({"", " "}), title=title, bare=True)


def latencies(served: Served) -> list[Latency]:
    """Every latency there is; an offline job's requests all wait from the start, so only gaps mean something."""
    every = {"ttft": served.ttft, "tpot": served.tpot, "itl": served.itl, "e2e": served.e2e}
    left: tuple[str, ...] = ()
    if served.service.target.workload.serve.unit != "tokens":
        left = ("ttft",)  # the first token is the whole answer
    elif served.offline:
        left = ("ttft", "e2e")
    return [Latency(name, spread) for name, spread in every.items() if spread is not None and name not in left]


def _rates(served: Served) -> Table:
    of, m = served.service, served.measures
    serve, rows = of.target.workload.serve, {}
    if served.offline:
        count = plural(serve.requests or m.requests, "request")
        rows["job"] = f"{seconds_interval(served.duration)} for {count}{deadline_of(served)}"
    rows["answered"] = f"{rate_interval(served.request_rate)} requests/s"
    if serve.unit == "tokens":
        per_chip = rate(served.token_rate.value / of.chips)
        rows["output"] = f"{rate_interval(served.token_rate)} tokens/s, {per_chip} a chip"
    if m.slo_checks:
        rows["goodput"] = f"{rate(m.goodput)} requests/s within every bound, {m.good:.1%} of them"
    rows["compute"] = use_of(served)
    if of.replica.kv_cache.caches:
        preempted = plural(m.preemptions, "preemption")
        rows["KV cache"] = f"{m.kv_use:.1%} in use over time, {m.kv_peak:.1%} at most; {preempted}"
    rows["queue"] = f"{rate(m.queue)} requests wait on average, {rate(m.in_system)} are in the system"
    unit = serve.unit.removesuffix("s")
    rows["power"] = f"{rate(m.watts)} W of {plural(of.chips, 'chip')}, {rate(m.joules_per_token)} J per output {unit}"
    return bare_table("Rates and use", rows)


def assumptions(s: ServingSimulation) -> list[str]:
    """What was taken for granted, in words."""
    of, run, chips = s.service, s.served.simulation, s.accelerators.count
    counted = f"the first {run.warm:,} are warm-up" if run.steady and run.warm else "all of them count"
    out = [f"{plural(len(run.requests), 'request')} simulated with seed {s.seed}; {counted}"]
    if not s.measures.settled:
        out.append("the requests in the system still rose at the end: more of them (--requests) would tell if for good")
    if of.chips < chips:
        out.append(f"{chips - of.chips} of {chips} chips are not used")
    out += target_assumptions(of.target)
    out += [
        f"{LATENCIES[latency.name]}: {latency.spread.p50.evidence}, {latency.spread.p50.because}"
        for latency in latencies(s.served)
        if latency.name != "itl"
    ]
    out.append(
        "p50, p90 and p99 are over requests (of gaps between tokens: over gaps); intervals hold the model's "
        "error and the chance of the run"
    )
    if s.workload.serve.unit == "tokens" and not s.served.offline:
        out.append(f"first tokens include {format_seconds(of.shown_s)} on the way in and until they are streamed")
    out.append("power: chips at full power while a replica is busy, idle power else")
    if of.prefill is not None:
        out.append("KV caches travel between replicas over the links of the chips, each as if it had them to itself")
    return out

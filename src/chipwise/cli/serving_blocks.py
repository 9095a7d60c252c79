"""A simulated service for people."""

from __future__ import annotations

from chipwise.catalog import Accelerators
from chipwise.cli.replicas import ServiceRequest, words_of
from chipwise.cli.serving_words import (
    METRICS,
    arrival_of,
    cache_of,
    common_assumptions,
    deadline_of,
    duration_of,
    number,
    rate,
    requests_of,
    settings_of,
)
from chipwise.predict.estimate import Estimate
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural, time_interval
from chipwise.serving.flags import flags
from chipwise.serving.measures import SloCheck, Spread
from chipwise.serving.service import Served
from chipwise.units import format_seconds

PERCENTILES = ("p50", "p90", "p99")


def served_blocks(served: Served, acc: Accelerators, asked: ServiceRequest, seed: int) -> list[Block]:
    """The service, latencies, rates, the SLO, use, flags and assumptions, in that order."""
    of = served.service
    work = of.target.workload
    out: list[Block] = [
        Text(f"{work.name} on {acc}: {arrival_of(served)}; {requests_of(work.serve)}"),
        _service(served, acc, asked),
        _latency(served),
        _rates(served),
    ]
    if served.measures.slo_checks:
        out.append(
            Table(
                ["bound", "has", "90 %", "answer"],
                [_kept(k, served) for k in served.measures.slo_checks],
                frozenset({"bound", "answer"}),
                title="SLO",
            )
        )
    if said := flags(of):
        out += [Text("One replica, in its stack's words", True), Text(f"  {said}")]
    return [*out, Text("Assumptions", True), *(Text(f"  {line}") for line in assumptions(served, acc, seed))]


def _service(served: Served, acc: Accelerators, asked: ServiceRequest) -> Table:
    of = served.service
    how = "named" if asked.split else "chosen: it carries most of the splits that fit"
    replicas = f"{words_of(of)} ({how})"
    return Table(
        ["", " "],
        [
            ["replicas", replicas],
            ["router", of.router if of.prefill is None else "least_loaded, in both pools"],
            ["stack", of.target.stack.name],
            ["settings", settings_of(of)],
            ["cache", cache_of(of)],
        ],
        frozenset({"", " "}),
        title="Service",
        bare=True,
    )


def spreads(served: Served) -> list[tuple[str, Spread]]:
    """Every latency there is; an offline job's requests all wait from the start, so only gaps mean something."""
    every = (("ttft", served.ttft), ("tpot", served.tpot), ("itl", served.itl), ("e2e", served.e2e))
    left: tuple[str, ...] = ()
    if served.service.target.workload.serve.unit != "tokens":
        left = ("ttft",)  # the first token is the whole answer
    elif served.simulation.requests.kind == "offline":
        left = ("ttft", "e2e")
    return [(name, spread) for name, spread in every if spread is not None and name not in left]


def _latency(served: Served) -> Table:
    rows = []
    for name, spread in spreads(served):
        cells = [_time(getattr(spread, p)) for p in PERCENTILES]
        rows.append([METRICS[name], *cells, spread.p50.evidence])
    return Table(
        ["latency", *PERCENTILES, "evidence"],
        rows,
        frozenset({"latency", "evidence"}),
        title="Latency of requests, with 90 % intervals",
        drop=("evidence", "p90"),
    )


def _time(e: Estimate) -> str:
    shown = Estimate(e.value, max(e.low, 0.0), e.high, e.evidence)
    return f"{format_seconds(e.value)} ({time_interval(shown)})"


def _rates(served: Served) -> Table:
    of, m, unit = served.service, served.measures, served.service.target.workload.serve.unit
    rows = [["answered", f"{rate(served.request_rate)} requests/s"]]
    if served.simulation.requests.kind == "offline":
        ends = deadline_of(served)
        rows.insert(
            0,
            [
                "job",
                f"{_time(duration_of(served))} for "
                f"{plural(of.target.workload.serve.requests or m.requests, 'request')}" + (f"; {ends}" if ends else ""),
            ],
        )
    if unit == "tokens":
        each = number(served.token_rate.value / of.chips)
        rows.append(["output", f"{rate(served.token_rate)} tokens/s, {each} a chip"])
    if m.slo_checks:
        rows.append(["goodput", f"{number(m.goodput)} requests/s within every bound, {m.good:.1%} of them"])
    pools = f"; replicas for prompts {m.busy_prefill:.0%}" if of.prefill is not None else ""
    rows.append(["compute", f"{m.busy:.0%} of the time busy with {number(m.batch)} sequences an iteration{pools}"])
    if of.replica.room.caches:
        rows.append(
            [
                "cache",
                f"{m.kv_use:.1%} in use over time, {m.kv_peak:.1%} at most; {plural(m.preemptions, 'preemption')}",
            ]
        )
    rows.append(["queue", f"{number(m.queue)} requests wait on average, {number(m.in_system)} are in the system"])
    watts = m.joules_per_token * m.token_rate.value
    rows.append(
        [
            "power",
            f"{number(watts)} W of {plural(of.chips, 'chip')}, "
            f"{number(m.joules_per_token)} J per output {unit.removesuffix('s')}",
        ]
    )
    return Table(["", " "], rows, frozenset({"", " "}), title="Rates and use", bare=True)


def _kept(k: SloCheck, served: Served) -> list[str]:
    spread = getattr(served, k.bound.metric)
    name = f"p{k.bound.percentile:g}"
    of_run = getattr(spread, name, None) if spread is not None else None
    if k.seconds != k.seconds:  # nothing to measure
        return [str(k.bound), "-", "-", "kept: nothing to measure"]
    return [
        str(k.bound),
        format_seconds(k.seconds),
        time_interval(of_run) if of_run is not None else "-",
        "kept" if k.holds else "broken",
    ]


def assumptions(served: Served, acc: Accelerators, seed: int) -> list[str]:
    """What was taken for granted, in words."""
    of, run, m = served.service, served.simulation, served.measures
    counted = f"the first {run.warm:,} are warm-up" if run.steady and run.warm else "all of them count"
    out = [f"{plural(len(run.requests), 'request')} simulated with seed {seed}; {counted}"]
    if not m.settled:
        out.append("the requests in the system still rose at the end: more of them (--requests) would tell if for good")
    if of.chips < acc.count:
        out.append(f"{acc.count - of.chips} of {acc.count} chips are not used")
    out += common_assumptions(of.target)
    out += [
        f"{METRICS[name]}: {spread.p50.evidence}, {spread.p50.because}"
        for name, spread in spreads(served)
        if name != "itl"
    ]
    out.append(
        "p50, p90 and p99 are over requests (of gaps between tokens: over gaps); intervals hold the model's "
        "error and the chance of the run"
    )
    if of.target.workload.serve.unit == "tokens" and run.requests.kind != "offline":
        out.append(f"first tokens include {format_seconds(of.shown_s)} on the way in and until they are streamed")
    out.append("power: chips at full power while a replica is busy, idle power else")
    if of.prefill is not None:
        out.append("caches travel between replicas over the links of the chips, each as if it had them alone")
    return out

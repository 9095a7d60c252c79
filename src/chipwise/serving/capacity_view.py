"""The largest loads of a service as every face shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.launch.launch import section_of
from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, flat, padded, table
from chipwise.present.columns import record as row_record
from chipwise.present.data import flatten
from chipwise.present.numbers import plural, rate
from chipwise.serving.capacity import LONG, Capacity, FrontPoint, together, trial_requests
from chipwise.serving.describe import (
    cache_of,
    deadline_of,
    load_unit,
    rate_interval,
    requests_of,
    seconds_interval,
    settings_of,
    target_assumptions,
    use_of,
)
from chipwise.serving.view import bare_table, job_record, service_record, settings_record
from chipwise.workload import metrics_that_matter
from chipwise.workload.serve import job_in_words

if TYPE_CHECKING:
    from chipwise.serving.results import ServingCapacity


def _load_header(c: ServingCapacity) -> str:
    return load_unit(c.workload.serve.arrival)


def _user_header(c: ServingCapacity) -> str:
    return f"{c.workload.serve.unit}/s/user"


def _chip_header(c: ServingCapacity) -> str:
    return f"{c.workload.serve.unit}/s/chip"


def _replicas(c: Capacity) -> str:
    both = f"{c.service.prefill_replicas}+" if c.service.prefill else ""
    return f"{both}{c.service.replicas:,}"


def _sequences(c: Capacity) -> str:
    fit = c.service.cache_sequences
    return "-" if fit is None else rate(fit)


SPLITS: list[Column[Capacity]] = [
    Column(
        "split",
        lambda c: c.service.replica.split,
        "split",
        lambda c: str(c.service.replica.split),
        words=True,
        help="of a replica over its chips: `name`, `tp`, `pp`, `dp`, `ep`",
    ),
    Column(
        "replicas",
        lambda c: c.service.replicas,
        "replicas",
        _replicas,
        drop=2,
        help="that the chips hold; where some prefill apart, those that decode",
    ),
    Column("prefill_replicas", lambda c: c.service.prefill_replicas, help="replicas of their own for prompts; 0: none"),
    Column(
        "capacity",
        lambda c: c.load,
        _load_header,
        lambda c: rate(c.load.value),
        help="estimate of the largest load within the SLO",
        unit="requests/s or users",
    ),
    Column(
        "user_units_per_second",
        lambda c: c.served.user_rate,
        _user_header,
        lambda c: rate(c.served.user_rate),
        help="output that one user sees at that load, as simulated",
        unit="units/s",
    ),
    Column(
        "chip_units_per_second",
        lambda c: c.chip_rate,
        _chip_header,
        lambda c: rate(c.chip_rate),
        help="output of one chip at that load, as simulated",
        unit="units/s",
    ),
    Column(
        "cache_sequences",
        lambda c: c.service.cache_sequences,
        "sequences fit",
        _sequences,
        drop=1,
        help="of mean length that fit in the KV cache of a replica; null: no cache",
    ),
    Column("limit", lambda c: c.limit, "limit", words=True, help="what ends the load, in words"),
    Column("settings", lambda c: settings_record(c.service.replica.config), help="of the stack's scheduler, as above"),
]
FRONT: list[Column[FrontPoint]] = [
    Column(
        "user_units_per_second",
        lambda p: p.trial.user_tokens_per_s,
        _user_header,
        lambda p: rate(p.trial.user_tokens_per_s),
        help="output that one user sees, as simulated",
        unit="units/s",
    ),
    Column(
        "chip_units_per_second",
        lambda p: p.chip_rate,
        _chip_header,
        lambda p: rate(p.chip_rate),
        help="output of one chip, as simulated",
        unit="units/s",
    ),
    Column(
        "split",
        lambda p: p.split,
        "split",
        lambda p: str(p.split),
        words=True,
        help="of a replica over its chips",
    ),
    Column(
        "load",
        lambda p: p.load,
        _load_header,
        lambda p: rate(p.load),
        help="of all replicas together, as tried",
        unit="requests/s or users",
    ),
]


def record(c: ServingCapacity) -> dict[str, Any]:
    """The search as JSON has it."""
    return {
        "workload": c.workload,
        "accelerators": c.accelerators,
        "seed": c.seed,
        "load_unit": "users" if c.workload.serve.arrival.kind == "closed" else "requests_per_second",
        "capacity": c.load,
        "best": service_record(c.best.service),
        "rows": [row_record(SPLITS, row) for row in c.rows],
        "front": [row_record(FRONT, point) for point in c.front],
        "refused": c.refused,
        "passed_over": c.search.passed_over,
        "needed_chips": c.needed_chips or None,
        "job": None if c.job is None else job_record(c.job),
        "assumptions": assumptions(c),
    }


def flat_rows(c: ServingCapacity) -> list[dict[str, Any]]:
    """One flat row a split; the refused follow, with the reason."""
    rows = [{**flat(SPLITS, row), "refused": None} for row in c.rows]
    return padded([*rows, *({**flatten("split", r.split), "refused": r.reason} for r in c.refused)])


def blocks(c: ServingCapacity) -> list[Block]:
    """The best, every split, the front, what was refused and assumptions, in that order."""
    return [
        Text(f"{c.workload.name} on {c.accelerators}: {_slo(c)}; {requests_of(c.workload)}"),
        *(Text(line) for line in (_largest(c), _job(c), _needed(c)) if line),
        table(SPLITS, c.rows, c, strong=frozenset({0}), title="Largest load of each split"),
        *([Text(_passed_over(c))] if c.search.passed_over else []),
        _best(c.best),
        table(FRONT, c.front, c, title="Pareto front: nothing else is faster for a user and gives more a chip"),
        *section_of(c.launchable),
        *section("Refused", [f"{refused.split}: {refused.reason}" for refused in c.refused]),
        *section("What decides this workload", metrics_that_matter(c.workload)),
        *section("Assumptions", assumptions(c)),
    ]


def _passed_over(c: ServingCapacity) -> str:
    """How many splits were not simulated, and why."""
    count = len(c.search.passed_over)
    return f"{plural(count, 'other split')} not simulated: by a steady stream of requests no match for the best"


def _slo(c: ServingCapacity) -> str:
    serve = c.workload.serve
    if serve.arrival.kind == "offline":
        return "as fast as it goes"
    return "within " + ", ".join(str(bound) for bound in serve.slo) if serve.slo else "no SLO"


def _largest(c: ServingCapacity) -> str:
    """The largest load; where any number of users would hold, the largest output."""
    serve, best = c.workload.serve, c.best
    if serve.arrival.kind == "closed" and not serve.slo:
        output = best.served.token_rate.scaled(best.service.replicas)
        return (
            f"Largest output: {rate_interval(output)} {serve.unit}/s, to {rate(best.load.value)} users with "
            f"{best.service} ({output.evidence}): more users only wait longer"
        )
    return f"Largest load: {rate_interval(c.load)} {_load_header(c)}, with {best.service} ({c.load.evidence})"


def _job(c: ServingCapacity) -> str:
    """How long an offline job takes."""
    if c.job is None:
        return ""
    return f"The job of {job_in_words(c.workload)} takes {seconds_interval(c.job.duration)}{deadline_of(c.job)}"


def _needed(c: ServingCapacity) -> str:
    """How many chips the workload's own load takes."""
    if not c.needed_chips:
        return ""
    what = "such group" if c.best.service.prefill else "such replica"
    replicas = plural(c.search.needed_replicas, what)
    own = f"{rate(c.search.demand)} {_load_header(c)}"
    return f"The workload's own {own} take {replicas}: {plural(c.needed_chips, 'chip')}"


def _best(best: Capacity) -> Table:
    of = best.service
    cache = f", {best.served.measures.kv_use:.0%} of the KV cache in use" if of.replica.kv_cache.caches else ""
    return bare_table(
        "The best",
        {
            "replicas": str(of),
            "stack": of.target.stack.name,
            "settings": settings_of(of),
            "KV cache": cache_of(of),
            "at that load": f"{use_of(best.served)}{cache}",
        },
    )


def assumptions(c: ServingCapacity) -> list[str]:
    """What was taken for granted, in words."""
    target = c.search.target
    sizes = together(c.best.service), max(LONG, together(c.best.service))
    count, longer = (len(trial_requests(target, c.seed, size)) for size in sizes)
    requests = f"{count:,} requests, those of the best again with {longer:,}, seed {c.seed}"
    apart = c.best.service.prefill is not None
    out = [
        f"each load is tried on all replicas together, those for prefill and those for decode, with {requests}"
        if apart
        else f"each load is tried on one replica with {requests}; so many replicas sustain so many times as much (a "
        "router that balances them, somewhat more)",
        f"{c.load.evidence}: {c.load.because}",
    ]
    spare = c.search.chips - c.best.service.chips
    if spare:
        out.append(f"{spare} of {c.search.chips} chips are not used")
    return out + target_assumptions(target)

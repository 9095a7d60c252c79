"""The largest loads of a service for people."""

from __future__ import annotations

from math import ceil

from chipwise.catalog import Accelerators
from chipwise.cli.replicas import words_of
from chipwise.cli.serving_words import (
    cache_of,
    common_assumptions,
    deadline_of,
    duration_of,
    fitting,
    load_unit,
    number,
    rate,
    requests_of,
    settings_of,
)
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural, time_interval
from chipwise.serving.capacity import COUNT, LONG, Capacity, Search, Tried, front, trial_requests
from chipwise.serving.flags import flags
from chipwise.serving.service import Served
from chipwise.units import format_seconds
from chipwise.workload import metrics_that_matter


def capacity_blocks(found: Search, acc: Accelerators, seed: int, job: Served | None) -> list[Block]:
    """The best, every split, the front, what was refused and assumptions, in that order."""
    work, best = found.place.workload, found.best
    unit = load_unit(work.serve.arrival)
    out: list[Block] = [
        Text(f"{work.name} on {acc}: {_slo(found)}; {requests_of(work.serve)}"),
        Text(_most(best, unit)),
    ]
    if job is not None:
        took, ends = duration_of(job), deadline_of(job)
        out.append(
            Text(
                f"The job of {plural(work.serve.requests, 'request')} takes {format_seconds(took.value)} "
                f"({time_interval(took)})" + (f"; {ends}" if ends else "")
            )
        )
    if words := needed(found):
        out.append(Text(words))
    out += [_splits(found), _best(best), _front(found)]
    if said := flags(best.service):
        out += [Text("One replica, in its stack's words", True), Text(f"  {said}")]
    if found.refused:
        out += [Text("Refused", True), *(Text(f"  {split}: {why}") for split, why in found.refused)]
    out += [Text("What decides this workload", True), *(Text(f"  {line}") for line in metrics_that_matter(work))]
    return [*out, Text("Assumptions", True), *(Text(f"  {line}") for line in assumptions(found, seed))]


def _most(best: Capacity, unit: str) -> str:
    """The largest load; where any number of users would hold, the largest output."""
    serve, of = best.service.target.workload.serve, best.service
    if serve.arrival.kind == "closed" and not serve.slo:
        output = best.served.token_rate.scaled(of.replicas)
        return (
            f"The most it gives is {rate(output)} {serve.unit}/s, to {number(best.load.value)} users with "
            f"{words_of(of)} ({output.evidence}): more users only wait longer"
        )
    return f"The most it carries is {rate(best.load)} {unit}, with {words_of(of)} ({best.load.evidence})"


def _slo(found: Search) -> str:
    serve = found.place.workload.serve
    if serve.arrival.kind == "offline":
        return "as fast as it goes"
    return "within " + ", ".join(str(bound) for bound in serve.slo) if serve.slo else "no SLO"


def asked_load(found: Search) -> float:
    """The load that the workload has itself; 0: none, or one that any number of chips holds."""
    serve = found.place.workload.serve
    if serve.arrival.kind == "closed":
        return float(serve.arrival.users) if serve.slo else 0.0
    return serve.arrival.rate


def needed_chips(found: Search) -> int:
    """Chips of the best split that carry the workload's own load; 0: it has none."""
    of, asked = found.best.service, asked_load(found)
    return ceil(asked / (found.best.load.value / of.replicas) - 1e-9) * of.replica.split.chips if asked else 0


def needed(found: Search) -> str:
    """How many chips the workload's own load takes, in words."""
    chips = needed_chips(found)
    if not chips:
        return ""
    replicas = chips // found.best.service.replica.split.chips
    return (
        f"The workload's own {number(asked_load(found))} {load_unit(found.place.workload.serve.arrival)} take "
        f"{plural(replicas, 'such replica')}: {plural(chips, 'chip')}"
    )


def speed(c: Capacity) -> tuple[float, float]:
    """Output that one user sees and that one chip gives, 1/s, at the largest load."""
    served = c.served
    each = served.tpot.mean.value if served.tpot else served.e2e.mean.value
    return 1 / each if each > 0 else 0.0, served.token_rate.value / c.service.replica.split.chips


def _splits(found: Search) -> Table:
    serve = found.place.workload.serve
    load, unit = load_unit(serve.arrival), serve.unit
    rows = []
    for c in found.found:
        user, chip = speed(c)
        fit = fitting(c.service)
        rows.append(
            [
                str(c.service.replica.split),
                str(c.service.replicas),
                number(c.load.value),
                number(user),
                number(chip),
                number(fit) if fit is not None else "-",
                c.limit,
            ]
        )
    return Table(
        ["split", "replicas", load, f"{unit}/s/user", f"{unit}/s/chip", "sequences fit", "limit"],
        rows,
        frozenset({"split", "limit"}),
        frozenset({0}),
        title="Largest load of each split",
        drop=("sequences fit", "replicas"),
    )


def _best(best: Capacity) -> Table:
    of, m = best.service, best.served.measures
    rows = [
        ["replicas", words_of(of)],
        ["stack", of.target.stack.name],
        ["settings", settings_of(of)],
        ["cache", cache_of(of)],
        [
            "at that load",
            f"{m.busy:.0%} of the time busy with {number(m.batch)} sequences an iteration"
            + (f", {m.kv_use:.0%} of the cache in use" if of.replica.room.caches else ""),
        ],
    ]
    return Table(["", " "], rows, frozenset({"", " "}), title="The best", bare=True)


def _front(found: Search) -> Table:
    serve = found.place.workload.serve
    rows = [
        [number(t.user_tokens_per_s), number(per_chip(c, t)), str(c.service.replica.split), number(replica_load(c, t))]
        for c, t in front(found.found)
    ]
    return Table(
        [f"{serve.unit}/s/user", f"{serve.unit}/s/chip", "split", f"{load_unit(serve.arrival)}"],
        rows,
        frozenset({"split"}),
        title="Pareto front: nothing else is faster for a user and gives more a chip",
    )


def per_chip(c: Capacity, t: Tried) -> float:
    """Output of a chip at a load that was tried, 1/s."""
    return t.tokens_per_s / c.service.replica.split.chips


def replica_load(c: Capacity, t: Tried) -> float:
    """The load of all replicas together when each has the one that was tried."""
    offline = c.service.target.workload.serve.arrival.kind == "offline"
    return c.load.value if offline else t.load * c.service.replicas


def assumptions(found: Search, seed: int) -> list[str]:
    """What was taken for granted, in words."""
    best, at = found.best, found.place
    count, longer = (len(trial_requests(at, seed, size)) for size in (COUNT, LONG))
    out = [
        f"each load is tried on one replica with {count:,} requests, the best ones' again with {longer:,}, seed "
        f"{seed}; so many replicas carry so many times as much (a router that balances them, somewhat more)",
        f"{best.load.evidence}: {best.load.because}",
    ]
    spare = found.chips - best.service.chips
    if spare:
        out.append(f"{spare} of {found.chips} chips are not used")
    return out + common_assumptions(at)

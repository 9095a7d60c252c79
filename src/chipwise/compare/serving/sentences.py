"""A comparison of services in three sentences: what to pick, why, and what would flip the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from chipwise.compare.decision import (
    TIE,
    DecisionSummary,
    Flip,
    Refused,
    ahead_of,
    judged_in_words,
    lead,
    nearer_in_words,
    percent,
    pick_of,
    runner_up,
    spot_in_words,
)
from chipwise.compare.sellers import sellers_in_words
from chipwise.compare.serving.comparer import ServingComparer
from chipwise.compare.serving.flips import Relaxed, relaxed_in_words
from chipwise.compare.serving.row import ServingRow
from chipwise.errors import Refusal
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.energy import power_in_words
from chipwise.present.numbers import plural, times
from chipwise.prices import fabric_in_words, prices_in_words, sold
from chipwise.serving.capacity import COUNT, LONG
from chipwise.serving.describe import speculation_in_words
from chipwise.units import format_money, format_seconds


def in_words(
    comparer: ServingComparer,
    rows: Sequence[ServingRow],
    pick: ServingRow | None,
    flips: Sequence[Flip],
    looser: Relaxed | None,
) -> DecisionSummary:
    """The three sentences of a comparison."""
    objective = comparer.terms.objective
    if pick is None:
        least = min(rows, key=lambda row: row.accelerators.count)
        return DecisionSummary(
            f"No pick on {objective}: none of the chips that sustain {comparer.demand} has a public price.",
            f"The fewest chips are {least.accelerators}: {_replicas(least)}.",
            "Any public price would decide.",
        )
    second = runner_up(rows, pick, objective)
    near = nearer_in_words(rows, pick, second, lambda row: _shown(row, objective), objective) if second else ""
    return DecisionSummary(
        _pick(comparer, pick, rows),
        _why(comparer, pick, second) + near,
        _flip(rows, pick, flips, looser, objective),
        sellers_in_words(rows, pick, comparer.knowledge, objective),
    )


def _replicas(row: ServingRow) -> str:
    if row.prefill_replicas:
        both = f"{plural(row.prefill_replicas, 'replica')} for prefill and {row.replicas:,} for decode"
        return f"{both}, each of {row.split}"
    many = f"{row.fleet.replicas:,} replicas" if row.fleet.replicas > 1 else "one replica"
    return f"{many} of {row.split}"


def _shown(row: ServingRow, objective: str) -> str:
    by = row.by(objective)
    if by is None:
        return "no public price"
    if objective == "cost":
        return _interval(by, format_money) + (f" a million {_paid(row)}" if row.demand.kind == "job" else " an hour")
    if objective == "time":
        return _interval(by, format_seconds) + (" for the job" if row.demand.kind == "job" else " a request")
    return _interval(by, lambda joules: f"{joules:.3g}") + " J a " + ("token" if row.writes else "request")


def _paid(row: ServingRow) -> str:
    return "tokens out" if row.writes else row.unit


def _interval(e: Estimate, show: object) -> str:
    assert callable(show)
    high = "no count at all" if e.high == inf else show(e.high)
    if e.low == e.value == e.high:
        return str(show(e.value))
    return f"{show(e.value)} ({show(e.low)} to {high})"


def _pick(comparer: ServingComparer, pick: ServingRow, rows: Sequence[ServingRow]) -> str:
    objective = comparer.terms.objective
    said = [_shown(pick, "cost") + (f" on demand at {pick.ondemand.price}" if pick.ondemand else "")]
    if pick.fleet.idle and pick.ondemand:
        said.append(f"in whole instances, {pick.accelerators.count + pick.fleet.idle:,} chips paid for")
    if objective != "cost":
        said.insert(0, _shown(pick, objective))
    if pick.demand.kind == "job":
        total = pick.job_usd(pick.ondemand)
        said.append(
            f"done in {format_seconds(pick.seconds.value)}"
            + (f" for {_interval(total, format_money)}" if total else "")
        )
    text = f"Pick {pick.accelerators}, {_replicas(pick)}: {', '.join(said)}."
    text += _holds(pick) + _never_measured(pick) + _beyond_supply(pick)
    ahead = ahead_of(pick, rows, objective)
    if ahead:
        names = ", ".join(f"{r.accelerators} at {_shown(r, objective)}" for r in ahead[:2])
        more = f" and {len(ahead) - 2} more" if len(ahead) > 2 else ""
        text += f" {names}{more} {'ranks' if len(ahead) == 1 else 'rank'} ahead, but "
        text += (
            "may be worse: nothing published backs them, so the high end decides."
            if pick.evidence == "bounded"
            else "on bounded evidence only."
        )
    return text


def _holds(row: ServingRow) -> str:
    """How much more than the demand the chips sustain, and whether that is sure."""
    headroom = row.headroom
    if headroom is None:
        return ""
    subject = "It sustains" if row.fleet.replicas == 1 else "They sustain"
    more = f" {subject} {headroom.value:.0%} more than {row.demand} until {_limit(row)}".replace("%", " %")
    if headroom.low >= 0 and not row.certain:
        return f"{more}."
    if headroom.low >= 0:
        return f"{more}, and enough even at the low end of the interval."
    if row.load.low <= 0:
        return f"{more}; at the low end of the interval no count would hold the SLO: measure first."
    many = f"{float(f'{row.demand.load / row.load.low:.2g}'):,.10g}"
    return f"{more}; at the low end of the interval it would take {many} times as many: measure first."


def _never_measured(row: ServingRow) -> str:
    """That no published figure of the chip is behind its times: whatever the intervals say, it is no certain winner."""
    if row.certain:
        return ""
    return f" No published serving figure of {row.accelerators.chip.id} is behind this: measure it before a commitment."


def _beyond_supply(row: ServingRow) -> str:
    """That so many chips take a contract, or several sellers; nothing where the seller can be counted on for them."""
    if row.ondemand is None or row.accelerators.count <= (most := sold(row.ondemand.price.offer)):
        return ""
    cloud = row.ondemand.price.offer.cloud
    return f" Without a contract {cloud} can be counted on for {most:,} of them: ask, or rent of several sellers."


def _limit(row: ServingRow) -> str:
    if row.demand.kind == "job":
        return "the deadline is missed"
    return row.limit if row.limit.startswith("the ") else f"{row.limit} is broken"


def _why(comparer: ServingComparer, pick: ServingRow, second: ServingRow | None) -> str:
    objective = comparer.terms.objective
    if second is None:
        priced = " and has a public price" if objective == "cost" else ""
        return f"It is the only chip compared that sustains it{priced}."
    mine, other = pick.by(objective), second.by(objective)
    assert mine is not None and other is not None
    less = 1 - mine.value / other.value
    size = percent(abs(less))
    verb = {"cost": "costs", "time": "takes", "energy": "uses"}[objective]
    if less < 0:
        return (
            f"{second.accelerators} at {_shown(second, objective)} {verb} {size} less by its value, but nothing "
            "published backs it: the high end of its interval is the higher."
        )
    text = (
        f"It {verb} {size} less than the runner-up, {second.accelerators} at "
        f"{_shown(second, objective)}: {_cause(pick, second)}"
        f"{judged_in_words(pick, second, objective, _end(objective))}"
    )
    if lead(pick, second, objective) < TIE:
        return text + "; that is too near to call."
    if mine.high < other.low and pick.certain and second.certain:
        return text + "; even the ends of their intervals do not meet."
    if mine.high < other.low:
        unsure = " and ".join(row.accelerators.chip.id for row in (pick, second) if not row.certain)
        return text + f"; their 90 % intervals do not meet, but no published serving figure of {unsure} is behind them."
    return text + "; their 90 % intervals overlap, so measure both before a large commitment."


def _end(objective: str) -> Callable[[float], str]:
    show: Callable[[float], str] = {"cost": format_money, "time": format_seconds}.get(objective, "{:.3g} J".format)
    return lambda amount: "no count at all" if amount == inf else show(amount)


def _cause(pick: ServingRow, second: ServingRow) -> str:
    """The two numbers whose ratio decides."""
    mine, other = (row.load.value / row.accelerators.count for row in (pick, second))
    text = f"a chip sustains {times(mine / other)}x the load"
    if pick.ondemand and second.ondemand:
        dearer = pick.ondemand.price.usd_per_chip_hour / second.ondemand.price.usd_per_chip_hour
        text += f" at {times(dearer)}x the price"
    return text


def _flip(
    rows: Sequence[ServingRow], pick: ServingRow, flips: Sequence[Flip], looser: Relaxed | None, objective: str
) -> str:
    kinds = dict.fromkeys(flip.kind for flip in flips)  # smallest first: one of each kind is enough
    first = "; or ".join(next(flip.words for flip in flips if flip.kind == kind) for kind in kinds)
    more = [relaxed_in_words(looser, pick, objective)] if looser else []
    if objective == "cost":
        more += _without_price(rows, pick)
    return (
        "; ".join(
            [f"What would change this: {first}" if first else "No price or demand tried flips the decision", *more]
        )
        + "."
    )


def _without_price(rows: Sequence[ServingRow], pick: ServingRow) -> list[str]:
    """The chip without a public price that would win at the highest price."""
    best = (0.0, "")
    for row in rows:
        if row.ondemand is None and row.evidence != "bounded" and pick.ondemand is not None:
            share = 1.0
            if pick.demand.kind == "job":
                share = row.request_rate.value / pick.request_rate.value
            best = max(best, (pick.ondemand.usd.value * share / row.accelerators.count, str(row.accelerators)))
    return [f"{best[1]} has no public price and would win below ${best[0]:.2f}/h a chip"] if best[1] else []


def assumptions(comparer: ServingComparer, rows: Sequence[ServingRow], fixed: bool) -> tuple[str, ...]:
    """What the comparison took for granted."""
    s, job = comparer.workload.serve, comparer.demand.kind == "job"
    stacks = sorted({f"{r.served.service.target.stack.name} on {r.accelerators.chip.family}" for r in rows})
    calibration = comparer.knowledge.calibration.serving
    first = rows[0].served.simulation.requests
    tried = f"{COUNT} requests for each load of a replica, {LONG:,} for those that size a fleet"
    said = [
        f"counts: as named{_together(rows)}" if fixed else _sizing(comparer, rows),
        f"software: {', '.join(stacks)}" + ("" if s.stack else " (assumed: none was named)"),
        f"precision {s.precision}"
        + _published(comparer)
        + (f", cache in {s.kv_precision}" if rows[0].writes else "")
        + "; engine settings as the stack has them by default",
        *speculation_in_words(comparer.workload),
        f"simulated with seed {comparer.knowledge.seed}: "
        + (f"{len(first):,} requests on one replica" if job else tried)
        + "; every chip gets the same requests",
        "prices: the cheapest list price for whole instances (TPUs: slices) that hold the replicas; "
        f"{fabric_in_words(comparer.knowledge.prices)}; whether so many are free is not known",
        "not counted: idle hours, replicas spare for failures, the router, storage, network, support, discounts",
        spot_in_words(rows, lambda row: row.accelerators.chip.id, " an hour"),
        f"calibration of {calibration.date} on {calibration.rows:,} published serving rows",
        *power_in_words((r.accelerators.chip for r in rows), comparer.knowledge.calibration.power),
    ]
    if rows[0].writes:
        said.append("unloaded: the time per token of a request that meets no other (batch 1)")
    bare = [r for r in rows if r.ondemand and r.ondemand.price.offer.note.startswith("accelerator only")]
    if bare:
        names = ", ".join(r.accelerators.chip.id for r in bare)
        said.append(f"without their hosts, which the list prices apart: {names}")
    if any(r.evidence == "bounded" for r in rows):
        said.append("bounded rows are ranked by value and picked by the high end of their interval")
    used = [q.price for r in rows for q in (r.ondemand, r.spot) if q]
    return (*said, *prices_in_words(comparer.knowledge.prices, used))


def _published(comparer: ServingComparer) -> str:
    """That a precision is the one in which the model is published, where that isn't the usual."""
    model = comparer.workload.model
    if model.serve_precision == "bf16" or model.serve_precision != comparer.workload.serve.precision:
        return ""
    other = f", as {model.native_precision}" if model.native_precision != model.serve_precision else ""
    return f" (what {model.name} is published in{other})"


def _sizing(comparer: ServingComparer, rows: Sequence[ServingRow]) -> str:
    if comparer.demand.kind == "job":
        within = "finish in time" if comparer.demand.load else "hold one replica (no deadline was given)"
        return f"counts (where not named): the fewest chips of each kind that {within}"
    counts = "counts (where not named): the demand over what one replica sustains, filling whole instances"
    if comparer.demand.kind == "users":
        return counts + "; headroom is what they sustain beyond it, with its interval" + _together(rows)
    if comparer.demand.most_use < 1:
        share = f"{comparer.demand.most_use:.0%}".replace("%", " %")
        counts += f", of which at most {share} is used (no SLO bounds the queue)"
    pick = pick_of(rows, comparer.terms.objective) or rows[0]
    if pick.queueing_margin is not None:
        counts += (
            "; each replica gets its share of the requests at random, which costs "
            f"{pick.queueing_margin:.0%} of {pick.accelerators} against requests at equal distances (the queueing "
            "margin)"
        ).replace("% of", " % of")
    return f"{counts}; headroom is what the fleet sustains beyond the demand, with its interval{_together(rows)}"


def _together(rows: Sequence[ServingRow]) -> str:
    """How replicas are sized some of which do prompts alone."""
    names = ", ".join(str(row.accelerators) for row in rows if row.prefill_replicas)
    apart = (
        "; replicas for prefill and for decode are simulated together, on chips of one kind, behind a router that knows"
    )
    return f"{apart} their queues: {names}" if names else ""


def nowhere(comparer: ServingComparer, refused: Sequence[Refused]) -> Refusal:
    """One refusal for all: that of the chip which comes nearest."""
    if len(refused) == 1:
        return Refusal(refused[0].reason, refused[0].unlock)
    first = min(refused, key=lambda r: (comparer.missed.get(r.chip.id, inf), r.kind != "slo"))
    why = f"{first.reason}; {first.unlock}" if first.unlock else first.reason
    near = "the nearest" if first.chip.id in comparer.missed else "for one"
    return Refusal(f"none of the {len(refused)} chips compared can serve {comparer.workload.name}", f"{near}: {why}")

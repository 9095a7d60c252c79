"""A comparison of services in three sentences: what to pick, why, and what would flip the decision."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from chipwise.compare.serving.comparer import ServingComparer, ServingRow
from chipwise.compare.serving.flips import Relaxed, relaxed_in_words, runner_up
from chipwise.compare.training.flips import Flip
from chipwise.compare.training.sentences import Words
from chipwise.predict.estimate import Estimate
from chipwise.units import format_money, format_seconds


def in_words(
    market: ServingComparer,
    rows: Sequence[ServingRow],
    pick: ServingRow | None,
    flips: Sequence[Flip],
    looser: Relaxed | None,
) -> Words:
    """The three sentences of a comparison."""
    objective = market.terms.objective
    if pick is None:
        least = min(rows, key=lambda row: row.accelerators.count)
        return Words(
            f"No pick on {objective}: none of the chips that carry {market.workload.name} has a public price.",
            f"The fewest chips are {least.accelerators}: {_replicas(least)}.",
            "Any public price would decide.",
        )
    return Words(
        _pick(market, pick, rows),
        _why(market, pick, runner_up(rows, pick, objective)),
        _flip(rows, pick, flips, looser, objective),
    )


def _replicas(row: ServingRow) -> str:
    many = f"{row.fleet.replicas:,} replicas" if row.fleet.replicas > 1 else "one replica"
    return f"{many} of {row.split}"


def _shown(row: ServingRow, objective: str) -> str:
    by = row.by(objective)
    if by is None:
        return "no public price"
    if objective == "cost":
        unit = "tokens" if row.writes else row.served.service.target.workload.serve.unit
        return _interval(by, format_money) + (f" a million {unit}" if row.demand.kind == "job" else " an hour")
    if objective == "time":
        return _interval(by, format_seconds) + (" for the job" if row.demand.kind == "job" else " a request")
    return _interval(by, lambda joules: f"{joules:.3g}") + " J a " + ("token" if row.writes else "request")


def _interval(e: Estimate, show: object) -> str:
    assert callable(show)
    high = "no count at all" if e.high == inf else show(e.high)
    if e.low == e.value == e.high:
        return str(show(e.value))
    return f"{show(e.value)} ({show(e.low)} to {high})"


def _pick(market: ServingComparer, pick: ServingRow, rows: Sequence[ServingRow]) -> str:
    objective = market.terms.objective
    said = [_shown(pick, "cost") + (f" on demand at {pick.ondemand.price}" if pick.ondemand else "")]
    if objective != "cost":
        said.insert(0, _shown(pick, objective))
    if pick.demand.kind == "job":
        said.append(f"done in {format_seconds(pick.seconds.value)}")
    text = f"Pick {pick.accelerators}, {_replicas(pick)}: {', '.join(said)}."
    text += _holds(pick)
    best = pick.by(objective)
    ahead = [r for r in rows if r is not pick and (by := r.by(objective)) and best and by.value < best.value]
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
    """How much more than the demand the chips carry, and whether that is sure."""
    room = row.headroom
    if room is None:
        return ""
    subject = "It carries" if row.fleet.replicas == 1 else "They carry"
    more = f" {subject} {room.value:.0%} more than {row.demand} until {_limit(row)}".replace("%", " %")
    if room.low >= 0:
        return f"{more}, and enough even at the low end of the interval."
    if row.load.low <= 0:
        return f"{more}; at the low end of the interval no count would hold the SLO: measure first."
    times = row.demand.load / row.load.low
    return f"{more}; at the low end of the interval it would take {times:.1f} times as many: measure first."


def _limit(row: ServingRow) -> str:
    if row.demand.kind == "job":
        return "the deadline is missed"
    return row.limit if row.limit.startswith("the ") else f"{row.limit} is broken"


def _why(market: ServingComparer, pick: ServingRow, second: ServingRow | None) -> str:
    objective = market.terms.objective
    if second is None:
        priced = " and has a public price" if objective == "cost" else ""
        return f"It is the only chip compared that carries it{priced}."
    mine, other = pick.by(objective), second.by(objective)
    assert mine is not None and other is not None
    less = 1 - mine.value / other.value
    size = f"{abs(less):.0%}".replace("%", " %")
    verb = {"cost": "costs", "time": "takes", "energy": "uses"}[objective]
    if less < 0:
        return (
            f"{second.accelerators} at {_shown(second, objective)} {verb} {size} less by its value, but nothing "
            "published backs it: the high end of its interval is the higher."
        )
    text = (
        f"It {verb} {size} less than the next by the same rule, {second.accelerators} at "
        f"{_shown(second, objective)}: {_cause(pick, second)}"
    )
    if mine.high < other.low:
        return text + "; even the ends of their intervals do not meet."
    return text + "; their 90 % intervals overlap, so measure both before a large commitment."


def _cause(pick: ServingRow, second: ServingRow) -> str:
    """The two numbers whose ratio decides."""
    mine, other = (row.load.value / row.accelerators.count for row in (pick, second))
    text = f"a chip carries {mine / other:.2f}x the load"
    if pick.ondemand and second.ondemand:
        text += f" at {pick.ondemand.price.usd_h / second.ondemand.price.usd_h:.2f}x the price"
    return text


def _flip(
    rows: Sequence[ServingRow], pick: ServingRow, flips: Sequence[Flip], looser: Relaxed | None, objective: str
) -> str:
    kinds = dict.fromkeys(flip.kind for flip in flips)  # smallest first: one of each kind is enough
    first = "; or ".join(next(flip.words for flip in flips if flip.kind == kind) for kind in kinds)
    more = [relaxed_in_words(looser, pick, objective)] if looser else []
    if objective == "cost":
        more += _without_price(rows, pick)
    return "; ".join([f"Flips: {first}" if first else "No price or demand tried flips the decision", *more]) + "."


def _without_price(rows: Sequence[ServingRow], pick: ServingRow) -> list[str]:
    """The chip without a public price that would win at the highest price."""
    best = (0.0, "")
    for row in rows:
        if row.ondemand is None and row.evidence != "bounded" and pick.ondemand is not None:
            share = 1.0
            if pick.demand.kind == "job":
                share = row.request_rate.value / pick.request_rate.value
            best = max(best, (pick.ondemand.usd_h.value * share / row.accelerators.count, str(row.accelerators)))
    return [f"{best[1]} has no public price and would win below ${best[0]:.2f}/h a chip"] if best[1] else []

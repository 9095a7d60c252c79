"""A comparison in three sentences: what to pick, why, and what would flip the decision."""

from __future__ import annotations

from collections.abc import Sequence

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
    runner_up,
    spot_in_words,
)
from chipwise.compare.sellers import sellers_in_words
from chipwise.compare.terms import Terms
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.row import TrainingRow
from chipwise.errors import DoesNotFit, NoLayout, Refusal
from chipwise.layout.headroom import in_words as headroom_in_words
from chipwise.predict.estimate import Estimate
from chipwise.predict.model.energy import power_in_words
from chipwise.predict.prediction import lora_in_words
from chipwise.present.numbers import times
from chipwise.prices import fabric_in_words, prices_in_words, why_no_price
from chipwise.units import DAY, format_money, format_seconds
from chipwise.workload.model import Workload

LONG_S = 366 * DAY


def in_words(
    comparer: TrainingComparer, rows: Sequence[TrainingRow], pick: TrainingRow | None, flips: Sequence[Flip]
) -> DecisionSummary:
    """The three sentences of a comparison."""
    objective = comparer.terms.objective
    if pick is None:
        fastest = min(rows, key=lambda row: row.prediction.duration.value)
        return DecisionSummary(
            f"No pick on {objective}: none of the chips that can run {comparer.workload.name} has a public price.",
            f"The fastest is {fastest.accelerators}: {_shown(fastest, 'time')}.",
            "Any public price would decide.",
        )
    second = runner_up(rows, pick, objective)
    near = nearer_in_words(rows, pick, second, lambda row: _shown(row, objective), objective) if second else ""
    return DecisionSummary(
        _pick(pick, rows, comparer.terms),
        _why(comparer, pick, second, objective) + near,
        _flip(rows, pick, flips, objective),
        sellers_in_words(rows, pick, comparer.knowledge, objective),
    )


def _shown(row: TrainingRow, objective: str) -> str:
    by = row.by(objective)
    return "no public price" if by is None else _interval(by, objective)


def _interval(by: Estimate, objective: str) -> str:
    show = SHOW[objective]
    return f"{show(by.value)} ({show(by.low)} to {show(by.high)})"


def _kwh(value: float) -> str:
    return f"{value / 1e3:,.1f} MWh" if value >= 1e4 else f"{value:,.1f} kWh"


SHOW = {"cost": format_money, "time": format_seconds, "energy": _kwh}


def _pick(pick: TrainingRow, rows: Sequence[TrainingRow], terms: Terms) -> str:
    objective, takes = terms.objective, [_shown(pick, "time")]
    if pick.ondemand:
        takes.append(f"{_shown(pick, 'cost')} on demand at {pick.ondemand.price}")
    if objective == "energy":
        takes.append(_shown(pick, "energy"))
    text = f"Pick {pick.accelerators} with {pick.prediction.layout}: {', '.join(takes)}."
    if terms.budget_usd is not None and pick.ondemand:
        share = pick.ondemand.usd.value / terms.budget_usd
        text += f" That is {f'{share:.0%}' if share >= 0.01 else 'under 1%'} of the budget.".replace("%", " %")
    if pick.prediction.duration.value > LONG_S:
        text += " That is more than a year: few runs are worth so long a wait."
    ahead = ahead_of(pick, rows, objective)
    if ahead:
        names = ", ".join(f"{r.accelerators} at {_shown(r, objective)}" for r in ahead[:2])
        more = f" and {len(ahead) - 2} more" if len(ahead) > 2 else ""
        verb = "ranks" if len(ahead) == 1 else "rank"
        text += f" {names}{more} {verb} ahead, but on bounded evidence only."
    return text


def _why(comparer: TrainingComparer, pick: TrainingRow, second: TrainingRow | None, objective: str) -> str:
    if second is None:
        limits = " on these terms" if comparer.terms.deadline_s or comparer.terms.budget_usd else ""
        priced = " and has a public price" if objective == "cost" else ""
        return f"It is the only chip compared that can run it{limits}{priced}."
    mine, other = pick.by(objective), second.by(objective)
    assert mine is not None and other is not None
    less = 1 - mine.value / other.value
    verb = {"cost": "costs", "time": "takes", "energy": "uses"}[objective]
    unit = {"cost": "", "time": " time", "energy": " energy"}[objective]
    size = percent(abs(less))
    if less < 0:  # only bounded evidence ranks behind by its high end
        return (
            f"{second.accelerators} at {_shown(second, objective)} {verb} {size} less{unit} by its value, but "
            "nothing published backs it: the high end of its interval is the higher."
        )
    text = (
        f"It {verb} {size} less{unit} than the runner-up, {second.accelerators}"
        f" at {_shown(second, objective)}: {_cause(pick, second, objective)}"
        f"{judged_in_words(pick, second, objective, SHOW[objective])}"
    )
    if pick.prediction.measured != second.prediction.measured:
        one = (pick if pick.prediction.measured else second).accelerators.chip.id
        return text + f"; only {one} rests on measurements of the chip, so measure both before a large commitment."
    if lead(pick, second, objective) < TIE:
        return text + "; that is too near to call."
    if mine.high < other.low:
        return text + "; even the ends of their intervals do not meet."
    return text + "; their 90 % intervals overlap, so measure both before a large commitment."


def _cause(pick: TrainingRow, second: TrainingRow, objective: str) -> str:
    """The two numbers whose ratio decides."""
    unit = pick.prediction.workload.unit
    rate = pick.tokens_per_s_per_chip.value / second.tokens_per_s_per_chip.value
    text = f"{times(rate)}x its {unit}/s per chip"
    if objective == "cost" and pick.ondemand and second.ondemand:
        price, other = (row.ondemand.price.usd_per_chip_hour for row in (pick, second) if row.ondemand)
        return f"{text} at {times(price / other)}x its price"
    if objective == "energy":
        return f"{text} at {times(pick.prediction.watts / second.prediction.watts)}x its watts"
    if pick.accelerators.count != second.accelerators.count:
        return f"{text} on {pick.accelerators.count:,} chips against {second.accelerators.count:,}"
    return text


def _flip(rows: Sequence[TrainingRow], pick: TrainingRow, flips: Sequence[Flip], objective: str) -> str:
    if not flips:
        return "No change tried flips the decision: there is no other chip to turn to."
    first, rest = flips[0], flips[1:]
    # a fall of the rival's price and a loss of the pick's efficiency of the same size say the same
    others = [f for f in rest if f.kind != first.kind and f.size < first.size * 1.01 + 1e-4][:1]
    others += [f for f in rest if f.kind == "batch" and f not in others][:1]
    again = f"{first.winner} wins on {objective} "  # need not be said twice
    said = f"What would change this: {first.words}" + "".join(f"; or {f.words.removeprefix(again)}" for f in others)
    if objective == "cost":
        open_price = _without_price(rows, pick)
        if open_price:
            said += f"; {open_price}"
    return said + "."


def _without_price(rows: Sequence[TrainingRow], pick: TrainingRow) -> str:
    """The chip without a public price that would win at the highest price."""
    assert pick.ondemand is not None
    best = None
    for row in rows:
        if row.ondemand is None and row.prediction.step.evidence != "bounded":
            hours = row.accelerators.count * row.prediction.duration.value / 3600
            even = pick.ondemand.usd.value / hours
            best = max(best or (0.0, ""), (even, str(row.accelerators)))
    return f"{best[1]} has no public price and would win below ${best[0]:.2f}/h" if best else ""


def assumptions(comparer: TrainingComparer, rows: Sequence[TrainingRow], fixed: bool) -> tuple[str, ...]:
    """What the comparison took for granted."""
    calibration = comparer.knowledge.calibration.training
    t, book = comparer.workload.train, comparer.knowledge.prices
    stacks = sorted({f"{r.prediction.stack.name} on {r.accelerators.chip.family}" for r in rows})
    said = [
        "counts: as named" if fixed else f"counts (where not named): {comparer.terms.in_words()}",
        "software: " + (comparer.stack.name if comparer.stack else f"{', '.join(stacks)} (assumed: none was named)"),
        f"prices: the cheapest listed instances that hold the chips, paid whole; {fabric_in_words(book)}; whether so "
        "many are free is not known; storage, network, support and discounts come on top (see chipwise cost)",
        spot_in_words(rows, lambda row: row.accelerators),
        f"precision {t.precision}, {t.optimizer} with {t.state_precision} state",
        f"layouts leave {headroom_in_words(comparer.headroom)} of each chip free",
        *lora_in_words(comparer.workload),
        f"calibration of {calibration.date} on {calibration.rows:,} published rows",
        *power_in_words((r.accelerators.chip for r in rows), comparer.knowledge.calibration.power),
    ]
    if any(r.prediction.step.evidence == "bounded" for r in rows):
        said.append("bounded rows are ranked by value and picked by the high end of their interval")
    uncompiled = {a: None for r in rows for a in r.prediction.assumptions if a.startswith("not compiled")}
    if any(r.prediction.step.evidence == "compiled" for r in rows) or uncompiled:
        said.append("layouts are chosen by the model; compiled rows time that layout by the compiler's schedule")
        said += uncompiled
    said += [
        f"{r.accelerators}: {why_no_price(r.accelerators.chip, r.accelerators.count, False, book)}"
        for r in rows
        if r.ondemand is None and book.offers_for(r.accelerators.chip.id)
    ]
    used = [q.price for r in rows for q in (r.ondemand, r.spot) if q]
    return (*said, *prices_in_words(book, used))


def nowhere(workload: Workload, refused: Sequence[Refused]) -> Refusal:
    """One refusal for all: the smallest slice of each chip that would hold the work."""
    if len(refused) == 1:
        only = refused[0]
        kind: type[Refusal] = {"memory": DoesNotFit, "layout": NoLayout}.get(only.kind, Refusal)
        return kind(only.reason, only.unlock)
    reason = f"none of the {len(refused)} chips compared can run {workload.name}"
    held = [r.holds for r in refused if r.holds]
    if held:
        other = len(refused) - len(held)
        also = f"; {other} more are refused for other reasons" if other else ""
        return DoesNotFit(
            reason + ": it does not fit", f"by doubling, the smallest of each that hold it are {', '.join(held)}{also}"
        )
    why = dict.fromkeys(f"{r.reason}; {r.unlock}" if r.unlock else r.reason for r in refused)
    first = next(iter(why))
    return Refusal(reason, f"for one, {first}")

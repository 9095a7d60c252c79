"""The decision of a comparison: the rank of rows, the pick, the runner-up, and the changes that would flip it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any, Protocol, TypeVar

from chipwise.catalog import Accelerators, Chip
from chipwise.predict.estimate import Estimate
from chipwise.prices import Quote
from chipwise.units import format_money

HAIR = 1e-6  # past a tie
TIE = 0.01  # a difference that nobody should decide by


class Row(Protocol):
    """A candidate that can do the work."""

    @property
    def accelerators(self) -> Accelerators:
        """All chips."""

    @property
    def ondemand(self) -> Quote | None:
        """What they cost on demand; None without a public price."""

    @property
    def spot(self) -> Quote | None:
        """What they cost on spot, where that is cheaper."""

    @property
    def evidence(self) -> str:
        """Of the times."""

    def by(self, objective: str) -> Estimate | None:
        """What the row is ranked by; None where it has no price."""

    @property
    def unpriced_rank(self) -> float:
        """What orders rows that have no price."""

    def priced(self, usd_per_chip_hour: float) -> Any:
        """The row at another on-demand price."""


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Refused:
    """A chip that can't do the work on these terms: why, and what would unlock it."""

    chip: Chip
    accelerators: Accelerators | None
    kind: str  # "memory", "precision", "layout", "stack", "slo", "deadline" or "budget"
    reason: str
    unlock: str
    holds: str = ""  # of one for lack of memory: the smallest count of the chip that has enough

    @property
    def name(self) -> str:
        """The chips as people write them."""
        return str(self.accelerators or self.chip.id)


@dataclass(frozen=True, slots=True)
class Flip:
    """A change after which `winner` is the pick."""

    kind: str  # "price", "efficiency", "batch", "chips", "deadline", "budget", "rate" or "users"
    winner: str
    subject: str  # the chip whose price or efficiency changes; "" for the terms
    before: float
    after: float
    words: str

    @property
    def size(self) -> float:
        """How large the change is: the logarithm of its ratio, either way."""
        return abs(log(self.after / self.before))


@dataclass(frozen=True, slots=True)
class DecisionSummary:
    """Sentences: what to pick, why, what would flip it, and who sells it at which prices ("" without a price)."""

    pick: str
    why: str
    flip: str
    sellers: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"pick": self.pick, "why": self.why, "flip": self.flip, "sellers": self.sellers}


def rank(row: Row, objective: str) -> tuple[bool, float, str]:
    """What orders rows: best first, those without a price last."""
    by = row.by(objective)
    return by is None, by.value if by else row.unpriced_rank, str(row.accelerators)


def score(row: Row, objective: str) -> float | None:
    """What the pick minimizes: the estimate, or its high end where only a bound is known."""
    by = row.by(objective)
    if by is None:
        return None
    return by.high if by.evidence == "bounded" else by.value


def pick_of(rows: Sequence[R], objective: str) -> R | None:
    """The row to pick: the best score, then the best value; None where no row has one."""
    scored = [
        (points, by.value, str(row.accelerators), row)
        for row in rows
        if (points := score(row, objective)) is not None and (by := row.by(objective)) is not None
    ]
    return min(scored, key=lambda candidate: candidate[:3])[3] if scored else None


def runner_up(rows: Sequence[R], pick: R, objective: str) -> R | None:
    """The row that would be picked without `pick`."""
    return pick_of([row for row in rows if row is not pick], objective)


def price_flip(rows: Sequence[R], pick: R, per: str = "") -> Iterator[Flip]:
    """The smallest fall of a rival's price that makes it the pick on cost; `per` says of what the price is."""
    second = runner_up(rows, pick, "cost")
    if second is None or second.ondemand is None:
        return
    best, other = score(pick, "cost"), score(second, "cost")
    if best is None or other is None or inf in (best, other):
        return
    before = second.ondemand.price.usd_per_chip_hour
    after = before * best / other * (1 - HAIR)
    now = pick_of([second.priced(after) if row is second else row for row in rows], "cost")
    if now is None or now.accelerators != second.accelerators:
        return
    name = str(second.accelerators)
    yield Flip(
        "price",
        name,
        second.accelerators.chip.id,
        before,
        after,
        f"{name} wins on cost if its price falls by {percent(1 - after / before)} "
        f"to ${after:.2f}/h{per} (from ${before:.2f}/h)",
    )


def ahead_of(pick: Row, rows: Sequence[R], objective: str) -> list[R]:
    """Rows that rank ahead of the pick by their value: bounded ones, which are picked by their high end."""
    best = pick.by(objective)
    return [row for row in rows if row is not pick and (by := row.by(objective)) and best and by.value < best.value]


def judged_in_words(pick: R, second: R, objective: str, show: Callable[[float], str]) -> str:
    """By which numbers the two are held against each other, where those are not their values; "" where they are."""
    alone = [row for row in (pick, second) if (by := row.by(objective)) and by.evidence == "bounded"]
    mine, other = score(pick, objective), score(second, objective)
    if not alone or mine is None or other is None:
        return ""
    names = " and ".join(str(row.accelerators) for row in alone)
    verb, ends = ("is", "end of its interval") if len(alone) == 1 else ("are", "ends of their intervals")
    return (
        f"; nothing published backs it, so {names} {verb} picked by the high {ends}, {show(mine)} against {show(other)}"
    )


def lead(pick: Row, second: Row, objective: str) -> float:
    """The share by which the pick is ahead: of the values, or of what is decided by where that is less."""
    mine, other = pick.by(objective), second.by(objective)
    best, next_best = score(pick, objective), score(second, objective)
    if mine is None or other is None or best is None or next_best is None:
        return 0.0
    return 1 - max(mine.value / other.value, best / next_best if best < inf else 1.0)


def nearer_in_words(rows: Sequence[R], pick: R, second: R, shown: Callable[[R], str], objective: str) -> str:
    """The best row between pick and runner-up by its value: a bounded one, which is judged by its high end."""
    mine, other = pick.by(objective), second.by(objective)
    near = [
        (by.value, row)
        for row in rows
        if row is not pick and row is not second and (by := row.by(objective)) and mine and other
        if mine.value <= by.value < other.value
    ]
    if not near:
        return ""
    _, row = min(near, key=lambda pair: pair[0])
    return f" {row.accelerators} at {shown(row)} comes nearer by its value, but on bounded evidence only."


def spot_in_words(rows: Sequence[R], name: Callable[[R], object], per: str = "") -> str:
    """What spot prices leave out, and the cheapest row by them."""
    assumed = "spot: no interruptions are counted"
    priced = [(r.spot.usd.value, r) for r in rows if r.spot]
    if not priced:
        return assumed
    usd, row = min(priced, key=lambda pair: pair[0])
    return f"{assumed}; the cheapest on spot is {name(row)} at {format_money(usd)}{per}"


def percent(share: float) -> str:
    """A share in percent, never rounded to nothing.

    >>> percent(0.1234), percent(0.0004)
    ('12 %', '0.04 %')
    """
    return f"{share:.0%}".replace("%", " %") if share >= 0.0095 else f"{share * 100:.1g} %"

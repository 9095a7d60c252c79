"""The terms of a comparison: by what chips are ranked, and how many of each are taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from chipwise.catalog import Accelerators, Chip, load, parse
from chipwise.catalog.currencies import Rates, exchange_rates
from chipwise.catalog.money import read_amount
from chipwise.catalog.names import is_chip
from chipwise.errors import InputError
from chipwise.layout.headroom import read_headroom
from chipwise.units import DAY, format_money, format_seconds, parse_count, parse_duration_with_unit

OBJECTIVES = ("cost", "time", "energy")
DEFAULT_CHIPS = 64
MOST_CHIPS = 16_384  # the largest count that a deadline or a budget tries
LARGEST_CHIPS = 1_000_000
LONGEST_S = 36_525 * DAY  # a century
LARGEST_USD = 1e15


@dataclass(frozen=True, slots=True)
class Terms:
    """What to rank by, and limits that hold together: so many chips, a deadline in seconds, a budget in US dollars."""

    objective: str = "cost"
    chips: int | None = None
    deadline_s: float | None = None
    budget_usd: float | None = None
    headroom: float | None = None  # of a training run: the share of a chip's memory that stays free; None: the default
    disaggregate: str | None = None  # of a service: replicas of their own for prompts, as `serving capacity` takes them
    budget_note: str = ""  # the budget as it was written and its rate, where that is no US dollars

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError("objective", self.objective, f"one of {', '.join(OBJECTIVES)}")
        if self.chips is not None and not 1 <= self.chips <= LARGEST_CHIPS:
            raise InputError("chips", self.chips, f"a whole number of chips from 1 to {LARGEST_CHIPS:,}")
        if self.deadline_s is not None and not 1 <= self.deadline_s <= LONGEST_S:
            raise InputError("deadline", f"{self.deadline_s:g} s", "a second to a century, such as 12h or 30d")
        if self.budget_usd is not None and not 0 < self.budget_usd <= LARGEST_USD:
            raise InputError("budget", f"${self.budget_usd:g}", "more than $0, such as 1000 or 2.5M")

    @classmethod
    def read(
        cls,
        by: str | None = None,
        chips: str | int | None = None,
        deadline: str | float | None = None,
        budget: str | float | None = None,
        headroom: str | float | None = None,
        disaggregate: str | None = None,
        rates: Rates | None = None,
    ) -> Terms:
        """Terms as people write them: 64 chips, a deadline of ``30d``, a budget of ``2M``.

        Ranked by cost, by time within a budget that has no deadline beside it, where `by` doesn't say otherwise.

        >>> terms = Terms.read(budget="2M")
        >>> terms.objective, terms.budget_usd
        ('time', 2000000.0)
        """
        if by is not None and by not in OBJECTIVES:
            raise InputError("by", by, f"one of {', '.join(OBJECTIVES)}")
        count = None if chips is None else parse_count(str(chips), "chips")
        if count is not None and not isinstance(count, int):
            raise InputError("chips", chips, "a whole number of chips from 1 to 1,000,000")
        rates = exchange_rates() if rates is None else rates
        amount = None if budget is None else read_amount(budget, "budget", rates=rates)
        return cls(
            by or ("time" if budget is not None and deadline is None else "cost"),
            count,
            parse_duration_with_unit(deadline, "deadline") if isinstance(deadline, str) else deadline,
            None if amount is None else amount.usd(rates),
            None if headroom is None else read_headroom(headroom),
            disaggregate,
            "" if amount is None else amount.note(rates),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "chips": self.chips,
            "deadline_seconds": self.deadline_s,
            "budget_usd": self.budget_usd,
            "words": self.in_words(),
        }

    @property
    def limited(self) -> bool:
        """Whether a deadline or a budget is to be kept."""
        return self.deadline_s is not None or self.budget_usd is not None

    def in_words(self) -> str:
        """How many chips of each kind are compared, and why."""
        limits = []
        if self.deadline_s is not None:
            limits.append(f"finish within {format_seconds(self.deadline_s)}")
        if self.budget_usd is not None:
            note = f" ({self.budget_note})" if self.budget_note else ""
            limits.append(f"cost at most {format_money(self.budget_usd)}{note} on demand")
        kept = f" that {' and '.join(limits)} by the high end of the interval" if limits else ""
        if self.chips is not None or not limits:
            assumed = "" if self.chips is not None else " (assumed: no count, deadline or budget was given)"
            return (
                f"{self.chips or DEFAULT_CHIPS} chips of each kind, rounded up to whole hosts and slices{kept}{assumed}"
            )
        return (
            "the fewest chips of each kind (by doubling, up to what an offer is known to supply without a contract) "
            f"within 5 % of the best by {self.objective}, of the counts{kept}"
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chip to compare; `fixed` where the count was given with it."""

    chip: Chip
    fixed: Accelerators | None = None

    @classmethod
    def read(cls, text: str) -> Candidate:
        """A candidate as people write it: ``h100`` leaves the count open, ``h100:512`` fixes it.

        >>> Candidate.read("h100").fixed is None, str(Candidate.read("v5p-128").fixed)
        (True, 'v5p:4x4x4')
        """
        acc = parse(text)
        counted = ":" in text or acc.count > 1 or text.strip().endswith("-1")
        return cls(acc.chip, acc if counted else None)


def candidates(on: str | Sequence[str] | None) -> list[Candidate] | None:
    """Candidates as people write them: ``"h100,v5p:128"`` or a list; None, all of the catalog, where none are named.

    >>> [str(c.fixed or c.chip.id) for c in candidates("h100, v5p:128, H100 SXM") or ()]
    ['h100', 'v5p:4x4x8']
    """
    if on is None:
        return None
    parts = on.split(",") if isinstance(on, str) else on
    names = dict.fromkeys(name.strip() for name in parts if name.strip())
    if counts := [name for name in names if name.isdecimal()]:
        raise InputError("on", ",".join(names), f"a chip before each count: h100:8,h100:64, not {counts[0]} alone")
    if not names:
        raise InputError("on", on if isinstance(on, str) else ",".join(on), "chips such as h100,v5p:128")
    for name in names:
        apart = [part for part in re.split(r"[;\s]+", name) if part]
        if len(apart) > 1 and all(is_chip(part) for part in apart):
            raise InputError("on", name, f"commas between chips: {','.join(apart)}")
    distinct: dict[str, Candidate] = {}
    for one in map(Candidate.read, names):
        distinct.setdefault(str(one.fixed or one.chip.id), one)  # a chip has many names
    return list(distinct.values())


def every_chip() -> list[Candidate]:
    """All chips of the catalog."""
    return [Candidate(chip) for chip in load().chips.values()]


def at_least(chip: Chip, chips: int) -> Accelerators:
    """So many chips or a few more: whole hosts above one host, and slices that exist.

    >>> h100, v5e = load().chips["h100"], load().chips["v5e"]
    >>> str(at_least(h100, 60)), str(at_least(h100, 3)), str(at_least(v5e, 60)), str(at_least(v5e, 300))
    ('h100:64', 'h100:3', 'v5e:8x8', 'v5e:2*16x16')
    """
    legal = load().slices.get(chip.id)
    if legal is None:
        host = chip.fabric.host_chips
        return Accelerators(chip, chips if chips < host else -(-chips // host) * host)
    above = [n for n in legal.chip_counts() if n >= chips]
    if above:
        return Accelerators(chip, above[0], legal.shape_for(above[0]) or ())
    many = -(-chips // legal.max_chips)
    return Accelerators(chip, many * legal.max_chips, legal.shape_for(legal.max_chips) or (), many)


def ladder(chip: Chip) -> tuple[Accelerators, ...]:
    """The counts a deadline or a budget tries, ascending: by doubling, in slices that exist.

    >>> [a.count for a in ladder(load().chips["h100"])][:5]
    [1, 2, 4, 8, 16]
    >>> str(ladder(load().chips["v5e"])[-1])
    'v5e:64*16x16'
    """
    return _ladder(chip.id, chip.fabric.host_chips)


@cache
def _ladder(chip_id: str, host: int) -> tuple[Accelerators, ...]:
    legal = load().slices.get(chip_id)
    if legal is None:
        inside = [n for n in _doubled(1) if n < host]
        return tuple(Accelerators(load().chips[chip_id], n) for n in [*inside, *_doubled(host)])
    out = []
    for n in _doubled(1):
        try:
            out.append(parse(f"{chip_id}:{n}"))
        except InputError:
            continue  # no slice of that many chips
    return tuple(out)


def _doubled(first: int) -> list[int]:
    return [first * 2**i for i in range(MOST_CHIPS.bit_length()) if first * 2**i <= MOST_CHIPS]

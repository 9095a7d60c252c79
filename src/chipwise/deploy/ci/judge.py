"""A branch against its base: what compiles no more, fits no more, or became slower than it may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.deploy.ci.results import Answer, TargetResult


class Verdict(StrEnum):
    """What became of a program on a target."""

    BROKEN = "broken"  # it was fine on the base branch
    STILL_BROKEN = "still broken"
    NEW_BROKEN = "new, and broken"
    SLOWER = "slower"  # by more than the limit
    FIXED = "fixed"
    FASTER = "faster"
    CHANGED = "changed"
    SAME = "same"
    NEW = "new"
    GONE = "gone"


FAILING = frozenset({Verdict.BROKEN, Verdict.STILL_BROKEN, Verdict.NEW_BROKEN, Verdict.SLOWER})
SAME_SHARE = 0.001  # of the time: less is no change that anybody would look at (own, 2026-11-20)
ORDER = tuple(Verdict)  # the gravest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A program on a target, on both branches."""

    base: TargetResult | None
    head: TargetResult | None
    limit: float

    @property
    def result(self) -> TargetResult:
        """The newer one that there is."""
        result = self.head if self.head is not None else self.base
        assert result is not None
        return result

    @property
    def slower(self) -> float | None:
        """By which share it takes longer than on the base branch; None where one of them has no time."""
        return _change(self.base, self.head, "seconds")

    @property
    def larger(self) -> float | None:
        """By which share it takes more memory."""
        return _change(self.base, self.head, "memory_bytes")

    @property
    def dearer(self) -> float | None:
        """By which share it costs more."""
        return _change(self.base, self.head, "usd")

    @property
    def verdict(self) -> Verdict:
        """What became of it."""
        if self.head is None:
            return Verdict.GONE
        before = self.base is not None and self.base.answer is Answer.OK
        absent = self.base is None or self.base.answer is Answer.UNREADABLE
        if self.head.answer is not Answer.OK:
            return Verdict.BROKEN if before else Verdict.NEW_BROKEN if absent else Verdict.STILL_BROKEN
        if not before:
            return Verdict.NEW if absent else Verdict.FIXED
        slower, larger = self.slower or 0.0, self.larger or 0.0
        if slower > self.limit:
            return Verdict.SLOWER
        if slower < -SAME_SHARE:
            return Verdict.FASTER
        return Verdict.CHANGED if max(slower, abs(larger)) > SAME_SHARE else Verdict.SAME

    @property
    def fails(self) -> bool:
        """Whether the branch must not be merged for it."""
        return self.verdict in FAILING


def _change(base: TargetResult | None, head: TargetResult | None, figure: str) -> float | None:
    before = getattr(base, figure) if base is not None else None
    after = getattr(head, figure) if head is not None else None
    return after / before - 1 if before and after is not None else None


def compared(base: Sequence[TargetResult], head: Sequence[TargetResult], limit: float) -> list[Comparison]:
    """Every program and target of either branch, the gravest first."""
    before, after = ({result.key: result for result in results} for results in (base, head))
    rows = [Comparison(base=before.get(key), head=after.get(key), limit=limit) for key in {**after, **before}]
    return sorted(rows, key=lambda row: (ORDER.index(row.verdict), row.result.key))

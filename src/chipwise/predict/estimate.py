"""A number that says how wrong it may be and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, exp
from typing import Any

from chipwise.catalog import Chip, Stack
from chipwise.catalog.calibration import Calibration
from chipwise.predict.site import architecture
from chipwise.workload.model import Model, Workload

LogInterval = tuple[float, float]  # of log(observed / predicted)
FEWEST = 15  # published steps on a chip, or in a group, from which its own errors set the interval


class Distance(StrEnum):
    """How far the nearest published figures that a prediction was fitted to are, the nearest first."""

    SOURCE = "source"  # the same repository has figures of this chip, stack and load: scored rows alone are so near
    REGIME = "regime"  # others have figures of this chip, stack and load
    CHIP = "chip"  # of the chip with another stack or load
    DESIGN = "design"  # of chips of its design
    VENDOR = "vendor"  # of its vendor's chips
    NOBODY = "nobody"  # of no chip of its vendor

    @property
    def own(self) -> bool:
        """Whether there are figures of the chip itself."""
        return self in (Distance.SOURCE, Distance.REGIME, Distance.CHIP)


DISTANCES = tuple(Distance)


class Nearness(StrEnum):
    """How alike the nearest published training step is, by the covariance of what formulas miss at both."""

    NEAR = "near"
    SOME = "some"
    FAR = "far"

    @classmethod
    def of(cls, alike: float) -> Nearness:
        """By covariance: 1 for the same step, falling to 0.

        >>> Nearness.of(1.0), Nearness.of(0.1), Nearness.of(0.0)
        (<Nearness.NEAR: 'near'>, <Nearness.SOME: 'some'>, <Nearness.FAR: 'far'>)
        """
        return cls.NEAR if alike > NEAR_FROM else cls.SOME if alike > SOME_FROM else cls.FAR


# Where errors of published steps left out begin to grow, and grow no more (left out by groups and sources, 2026-11-19)
NEAR_FROM, SOME_FROM = 0.3, 0.03


@dataclass(frozen=True, slots=True)
class Estimate:
    """`value` with a 90 % interval from `low` to `high`, the evidence behind it, and why in words.

    Evidence, best first: ``measured``, ``compiled``, ``modelled``, ``bounded``.
    """

    value: float
    low: float
    high: float
    evidence: str
    because: str = ""
    distance: Distance | None = None  # at which the interval was learned; None: it does not depend on one

    def __post_init__(self) -> None:
        """No path makes an interval that its own value lies outside of."""
        if not self.low <= self.value <= self.high:
            raise AssertionError(f"an estimate of {self.value:g} outside its interval {self.low:g} to {self.high:g}")

    def scaled(self, factor: float) -> Estimate:
        """The estimate in other units.

        >>> Estimate(2.0, 1.0, 3.0, "modelled").scaled(10).high
        30.0
        """
        return replace(self, value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def inverted(self, factor: float = 1.0) -> Estimate:
        """`factor` over the estimate: a rate from a time.

        >>> Estimate(2.0, 1.0, 4.0, "modelled").inverted(8).low
        2.0
        """
        return replace(self, value=factor / self.value, low=factor / self.high, high=factor / self.low)

    def at_least(self, bound: float) -> Estimate:
        """The estimate with no end under `bound`, which its value keeps.

        >>> Estimate(2.0, 1.0, 4.0, "modelled").at_least(1.5).low
        1.5
        """
        return replace(self, low=min(max(self.low, bound), self.value))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "evidence": self.evidence,
            "because": self.because,
            **({"distance": str(self.distance)} if self.distance else {}),
        }


def described_alone(like: str) -> str:
    """Why an estimate of a chip of one's own is bounded, whatever is published of its relatives."""
    return f"a chip of one's own, like {like}: nothing published or measured on it"


def group_of(chip: Chip, model: Model) -> str:
    """Rows whose errors are alike share an interval: family of chips, dense or mixture of experts."""
    return f"{chip.family}/{'moe' if model.experts else 'dense'}"


def step_estimate(
    seconds: float,
    bound: float,
    chip: Chip,
    workload: Workload,
    stack: Stack | None,
    calibration: Calibration,
    alike: float,
    beside: Sequence[LogInterval] = (),
) -> Estimate:
    """A step time with the interval that residuals on published results of its kind gave.

    It is the wider the less `alike` the nearest published step is. What nobody measured is no surer than anything that
    was: a bounded interval holds those of all groups, and those `beside`, which measured steps of its kind on the chip
    would have.
    """
    table, model, arch = calibration.training.intervals, workload.model, architecture(chip)
    unknown, groups = tuple(table["unknown"]), table.get("groups", {})
    group, seen = group_of(chip, model), table.get("chips", {}).get(chip.id, 0)
    farther = table.get("nearness", {})
    everywhere = _hull(unknown, *groups.values(), *(ends for of in farther.values() for ends in of.values()), *beside)
    if chip.like and seen < FEWEST:
        return _within(seconds, bound, everywhere, "bounded", described_alone(chip.like))
    if arch not in table.get("architectures", ()):
        why = f"few or no published training steps on {arch} chips to learn from"
        return _within(seconds, bound, everywhere, "bounded", why)
    if model.family not in table.get("models", ()):
        why = f"no published {model.family} step to learn from"
        return _within(seconds, bound, everywhere, "bounded", why)
    nearness = Nearness.of(alike)
    own = groups.get(group, unknown)
    if nearness in farther.get(group, {}):
        own = _hull(own, farther[group][nearness])
    if stack is None or stack.id not in table.get("stacks", ()):
        why = "a stack no published row used"
    elif f"{arch}/{workload.train.precision}" not in table.get("precisions", ()):
        why = f"no published step in {workload.train.precision} on {arch} chips"
    elif seen < FEWEST:
        why = f"only {seen} published steps on this chip"
    else:
        why = f"errors on published {group} rows, {seen} steps on this chip"
        if nearness is not Nearness.NEAR:
            why += ", " + APART[nearness]
        return _within(seconds, bound, own, "modelled", why)
    return _within(seconds, bound, _hull(unknown, own), "modelled", why)


APART = {
    Nearness.SOME: "none of them quite like this one",
    Nearness.FAR: "none of them like this one",
}


def _hull(*intervals: LogInterval) -> LogInterval:
    """The narrowest interval that holds all."""
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _within(seconds: float, bound: float, ends: LogInterval, evidence: str, why: str) -> Estimate:
    """An estimate with the logarithms of its ends, the lower never under what no schedule can beat."""
    low, high = ends
    return Estimate(seconds, min(seconds, max(seconds * exp(low), bound)), seconds * exp(high), evidence, why)


def quantile_pair(errors: Sequence[float], level: float = 0.90) -> tuple[float, float]:
    """Split-conformal bounds of log(observed / predicted): the order statistics that cover `level`.

    >>> quantile_pair([0.0] * 30)
    (0.0, 0.0)
    """
    ranked = sorted(errors)
    n = len(ranked)
    tail = (1 - level) / 2
    upper = min(n - 1, ceil((n + 1) * (1 - tail)) - 1)
    lower = max(0, n - 1 - upper)
    return ranked[lower], ranked[upper]

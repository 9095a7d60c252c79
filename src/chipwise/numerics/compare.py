"""A recipe against fp32, seed by seed: final loss and curve, each with a margin and a paired test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.numerics.recipes import Recipe
from chipwise.numerics.runs import Count, Run, smoothed, total
from chipwise.numerics.statistics import LEVEL, Paired, paired, pairs_needed

MARGIN = 0.02
SAFE, UNSAFE, INCONCLUSIVE = "safe", "unsafe", "inconclusive"
RULE = (
    "safe: the final loss is above fp32's by less than the margin asked for, and the curve departs from fp32's by "
    f"less than its limit, both at p < {LEVEL:g} (one-sided paired t-tests over seeds: the upper half of TOST)",
    f"unsafe: the curve is beyond it at p < {LEVEL:g}, or the loss beyond both the margin and the spread of fp32's own "
    "seeds, or not finite; else inconclusive",
)


@dataclass(frozen=True, slots=True)
class Margins:
    """How much worse still counts as the same. `scale` is what shares are of: fp32's final loss, or its fall."""

    final_mean: float
    final_spread: float  # standard deviation over seeds
    first_mean: float
    scale: float
    asked: float  # margin on the final loss, as asked for
    final: float  # the larger of it and the spread: a loss between the two differs as one seed does from the next
    curve: float  # limit on the distance of curves, a share of `scale`
    between_seeds: float  # mean distance of two fp32 curves of different seeds


@dataclass(frozen=True, slots=True)
class Compared:
    """One recipe against fp32; the tests are None where some seed ended with no finite loss."""

    recipe: Recipe
    runs: tuple[Run, ...]
    native: bool
    final: Paired | None
    curve: Paired | None
    status: str
    why: str  # in words, where it isn't safe
    seeds_needed: int | None
    noisy: bool  # undecided since fp32's own seeds differ by more than the margin
    counts: Mapping[tuple[str, str], Count]


def margins(reference: Sequence[Run], share: float) -> Margins:
    """What fp32's own runs say about which differences matter."""
    finals = [run.final for run in reference]
    mean = math.fsum(finals) / len(finals)
    spread = math.sqrt(math.fsum((loss - mean) ** 2 for loss in finals) / (len(finals) - 1))
    first = math.fsum(run.losses[0] for run in reference) / len(reference)
    scale = max(abs(mean), abs(first - mean)) or 1.0
    pairs = [(a, b) for i, a in enumerate(reference) for b in reference[i + 1 :]]
    between = math.fsum(distance(a, b, scale) for a, b in pairs) / len(pairs)
    return Margins(mean, spread, first, scale, share * scale, max(share * scale, spread), max(share, between), between)


def distance(one: Run, other: Run, scale: float) -> float:
    """The mean distance of two smoothed loss curves as a share of `scale`.

    >>> a, b = (Run("fp32", 0, (loss,) * 20, (), (), ()) for loss in (1.0, 1.5))
    >>> distance(a, b, 2.0)
    0.25
    """
    width = max(5, len(one.losses) // 10)
    pairs = zip(smoothed(one.losses, width), smoothed(other.losses, width), strict=True)
    return math.fsum(abs(a - b) for a, b in pairs) / len(one.losses) / scale


def compared(recipe: Recipe, runs: tuple[Run, ...], reference: Sequence[Run], m: Margins, native: bool) -> Compared:
    """A recipe's runs against fp32's, seed by seed."""
    counts = total(run.counts for run in runs)
    if not all(math.isfinite(loss) for run in runs for loss in run.losses):
        return Compared(recipe, runs, native, None, None, UNSAFE, _dead(recipe, runs, counts), None, False, counts)
    pairs = list(zip(runs, reference, strict=True))
    differences = [run.final - base.final for run, base in pairs]
    final, within_spread = paired(differences, m.asked), paired(differences, m.final)
    curve = paired([distance(run, base, m.scale) for run, base in pairs], m.curve)
    if final.p_not_worse < LEVEL and curve.p_not_worse < LEVEL:
        return Compared(recipe, runs, native, final, curve, SAFE, "", None, False, counts)
    if within_spread.p_worse < LEVEL or curve.p_worse < LEVEL:
        why = f"{_difference(final, curve, m)}; {cause(recipe, counts)}"
        return Compared(recipe, runs, native, final, curve, UNSAFE, why, None, False, counts)
    needed = [pairs_needed(test) for test in (final, curve) if test.p_not_worse >= LEVEL]
    most = None if None in needed else max(count for count in needed if count is not None)
    more = f"about {most} seeds" if most is not None else "more than 1,000 seeds"
    noisy = within_spread.p_not_worse < LEVEL and curve.p_not_worse < LEVEL
    if noisy:
        spread = f"{m.final_spread / m.scale:.1%}"
        why = f"{_difference(final, curve, m)}, and fp32's own seeds spread by {spread}; more steps would tell"
    else:
        why = f"{_difference(final, curve, m)}; {more} would tell"
    return Compared(recipe, runs, native, final, curve, INCONCLUSIVE, why, most, noisy, counts)


def _difference(final: Paired, curve: Paired, m: Margins) -> str:
    if final.p_not_worse >= LEVEL:
        reach = f"{final.low / m.scale:+.1%} to {final.high / m.scale:+.1%}"
        return f"the final loss is off by {reach} where {m.asked / m.scale:.1%} is allowed"
    return f"the curve departs by {curve.low:.1%} to {curve.high:.1%} where {m.curve:.1%} is allowed"


def _dead(recipe: Recipe, runs: Sequence[Run], counts: Mapping[tuple[str, str], Count]) -> str:
    """Why a loss is not finite: since when, and where most values became infinite."""
    bad = [run for run in runs if not all(map(math.isfinite, run.losses))]
    first = min(next(i for i, loss in enumerate(run.losses) if not math.isfinite(loss)) for run in bad)
    skipped = [run for run in bad if run.died is not None and recipe.scaling == "dynamic"]
    what = "every step overflows, at any scale," if skipped else "the loss is not finite"
    words = f"{what} from step {first} on in {len(bad)} of {len(runs)} seeds"
    where = max(counts.items(), key=lambda item: item[1].overflowed, default=None)
    if where is None or not where[1].overflowed or recipe.low is None:
        return words
    (layer, kind), _ = where
    return f"{words}; {kind} of {layer} grow beyond {recipe.low.largest:,.0f}"


def cause(recipe: Recipe, counts: Mapping[tuple[str, str], Count]) -> str:
    """What most likely went wrong: the layer that lost the largest share of its values, and how."""
    worst = max(counts.items(), key=lambda item: (item[1].share_zeroed, item[1].elements), default=None)
    if worst is None or worst[1].share_zeroed < 0.01 or recipe.low is None:
        return "no layer loses 1 % of its values: rounding errors add up"
    (layer, kind), count = worst
    share = f"{count.share_zeroed:.1%}"
    if kind == "updates":
        return (
            f"{share} of the updates of {layer} are lost: they are below half a unit in the last place of its "
            f"weights in {recipe.low.name if not recipe.master else 'fp32'}"
        )
    low = recipe.low
    limit = "" if low.range_of_fp32 else f" (the smallest number of {low.name} is {low.smallest:.1e})"
    return f"{share} of the {kind} of {layer} round to 0{limit}"

"""Runs of one kind of program in the order in which they ran: where their times changed, and what else did then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp

import numpy as np

from chipwise.catalog.telemetry_files import ObservedRun
from chipwise.observe.drift.change_point import FEWEST_AFTER, FEWEST_BEFORE, Change, changes
from chipwise.observe.learn.runs import Candidate

FEWEST_RUNS = FEWEST_BEFORE + FEWEST_AFTER
MOSTLY = 0.75  # of the runs with a label that have the old value before, and the new one from then on


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """A label that changed about when the times did."""

    label: str
    before: str
    after: str
    place: int  # the first run that has the new value


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A change of the times of a group."""

    change: Change
    run: ObservedRun  # the first that takes another time
    called: ObservedRun  # the run by which that was certain
    labels: tuple[LabelChange, ...]  # the nearest first

    @property
    def before(self) -> float:
        """Times as long as predicted, before."""
        return exp(self.change.before)

    @property
    def after(self) -> float:
        """Times as long as predicted, since then."""
        return exp(self.change.after)

    @property
    def ratio(self) -> float:
        """Times as long as before."""
        return exp(self.change.shift)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs of one kind of program on a chip under a stack."""

    chip: str
    stack: str
    program: str
    runs: tuple[ObservedRun, ...]  # in the order in which they ran
    drifts: tuple[Drift, ...]
    labels: tuple[str, ...]  # that its runs tell

    @property
    def judged(self) -> bool:
        """Whether there are runs enough."""
        return len(self.runs) >= FEWEST_RUNS

    @property
    def level(self) -> float:
        """Times as long as predicted, now: the median since the last change."""
        start = self.drifts[-1].change.place if self.drifts else 0
        return exp(float(np.median([run.log_ratio for run in self.runs[start:]])))


def groups_of(candidates: Iterable[Candidate]) -> tuple[Group, ...]:
    """The groups of runs, each once, with what changed in them."""
    by_key: dict[tuple[str, str, str], dict[str, Candidate]] = defaultdict(dict)
    for candidate in candidates:
        if candidate.run is not None:
            by_key[candidate.run.key].setdefault(candidate.run.digest, candidate)
    return tuple(_group(list(members.values())) for _, members in sorted(by_key.items()))


def _group(members: list[Candidate]) -> Group:
    pairs = [(member.run, member.labels) for member in members if member.run is not None]
    if all(run.at for run, _ in pairs):  # else the order in which they are named
        pairs.sort(key=lambda pair: pair[0].at)
    runs, labels = [run for run, _ in pairs], [labels for _, labels in pairs]
    drifts = []
    shifts = changes(np.asarray([run.log_ratio for run in runs]))
    bounds = [0, *(change.place for change in shifts), len(runs)]
    for change, start, end in zip(shifts, bounds, bounds[2:], strict=False):
        named = label_changes([dict(one) for one in labels[start:end]], change, start)
        drifts.append(Drift(change=change, run=runs[change.place], called=runs[change.called - 1], labels=named))
    first = runs[0]
    return Group(
        chip=first.chip,
        stack=first.stack,
        program=first.program,
        runs=tuple(runs),
        drifts=tuple(drifts),
        labels=tuple(sorted({label for one in labels for label in one})),
    )


def label_changes(labels: Sequence[dict[str, str]], change: Change, start: int = 0) -> tuple[LabelChange, ...]:
    """Labels whose value changed where the times may have: runs that do not tell one are passed over.

    A label counts where nearly all runs before have its old value and nearly all since then the new one: one that
    comes and goes with nodes is no change.
    """
    near = sorted(change.places)
    out = []
    for label in sorted({label for one in labels for label in one}):
        values = [(start + place, one[label]) for place, one in enumerate(labels) if label in one]
        for (previous, old), (place, new) in pairwise(values):
            between = any(previous < at <= place for at in near)
            if old == new or not between:
                continue
            earlier = [value == old for at, value in values if at < place]
            later = [value == new for at, value in values if at >= place]
            if np.mean(earlier) >= MOSTLY and np.mean(later) >= MOSTLY:
                out.append(LabelChange(label=label, before=old, after=new, place=place))
    return tuple(sorted(out, key=lambda one: (abs(one.place - change.place), one.label)))

"""What is learned of runs beside those accepted before, as a difference that somebody accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chipwise.catalog.calibration import Calibration
from chipwise.catalog.telemetry_files import ObservedRun, TelemetryGroup
from chipwise.observe.learn.groups import learned, outliers
from chipwise.observe.learn.runs import Candidate, LeftOut, Source, candidate

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """A group before and after."""

    before: TelemetryGroup | None
    after: TelemetryGroup

    @property
    def new_runs(self) -> int:
        """Runs that it has more."""
        return self.after.runs - (self.before.runs if self.before is not None else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """A run: what was predicted, what would be, and what it took."""

    candidate: Candidate
    before: float | None = None  # seconds of a step, as predicted today
    after: float | None = None  # as would be predicted
    held: bool | None = None  # it lies in the interval of the group that was accepted before; None: there was none

    @property
    def observed(self) -> float | None:
        """Seconds of a step, as it took."""
        return None if self.candidate.run is None else self.candidate.run.observed_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What was learned, of which runs."""

    groups: Sequence[GroupChange]
    runs: Sequence[RunChange]
    kept: Sequence[ObservedRun]  # all that the next file has: of before, and new

    @property
    def changed(self) -> bool:
        """Whether there is anything to accept."""
        return any(change.after != change.before for change in self.groups)


def lesson(sources: Iterable[Source], calibration: Calibration) -> Lesson:
    """Learn from runs; those learned from before count too, where they were held against the same calibration."""
    accepted = calibration.telemetry
    candidates = [candidate(source, calibration) for source in sources]
    new = {c.run.digest: c.run for c in candidates if c.run is not None}
    by_group: dict[Key, list[ObservedRun]] = defaultdict(list)
    bases = {run.key: run.base for run in new.values()}
    for run in (*(run for run in accepted.runs if run.digest not in new), *new.values()):
        if run.base == bases.get(run.key, run.base):
            by_group[run.key].append(run)
    far = {digest for runs in by_group.values() for digest in outliers(runs)}
    after = {key: group for key, runs in by_group.items() if (group := learned(runs)) is not None}
    changes = [GroupChange(before=accepted.groups.get(key), after=group) for key, group in sorted(after.items())]
    kept = [run for runs in by_group.values() for run in runs]
    return Lesson(groups=changes, runs=[_change(c, far, after, accepted.groups) for c in candidates], kept=kept)


def _change(
    c: Candidate, far: set[str], after: dict[Key, TelemetryGroup], accepted: Mapping[Key, TelemetryGroup]
) -> RunChange:
    if c.run is None:
        return RunChange(candidate=c)
    run, old, new = c.run, accepted.get(c.run.key), after.get(c.run.key)
    if run.digest in far:
        c = replace(c, left_out=LeftOut.OUTLIER, detail="far from the other runs of such programs on the chip")
    elif new is None:
        c = replace(c, left_out=LeftOut.FEW_RUNS, detail="fewer than 3 runs of such programs on the chip")
    now = old if old is not None and old.base == run.base else None
    return RunChange(
        candidate=c,
        before=run.predicted_seconds * (now.factor if now is not None else 1.0),
        after=None if new is None else run.predicted_seconds * new.factor,
        held=None if now is None else now.low <= run.log_ratio <= now.high,
    )

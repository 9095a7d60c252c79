"""Two bench files point by point: how much faster or slower, and whether more than the samples' scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.bench.file import BenchFile
from chipwise.bench.measurement import Measurement
from chipwise.bench.significance import benjamini_hochberg, mann_whitney, ratio_interval
from chipwise.present.blocks import Block
from chipwise.present.columns import padded
from chipwise.present.result import Result

LEVEL = 0.05  # false alarms among the points called faster or slower
LEAST = 4  # samples of each file: with three and three no difference can be significant


@dataclass(frozen=True, slots=True)
class Change:
    """One point in both files."""

    before: Measurement
    after: Measurement
    ratio: float  # median seconds after over before
    low: float  # 95 % interval of the ratio
    high: float
    q: float | None  # None where the samples are too few to tell
    verdict: str  # faster, slower, same, unknown

    @property
    def percent(self) -> float:
        """How much longer it takes, in percent."""
        return (self.ratio - 1.0) * 100


@dataclass(frozen=True, slots=True)
class Lost:
    """A point that only one file has a usable time for."""

    key: Measurement  # of the file that has it, or of the second
    before: str  # its status: ok, unstable, oom, failed, unsupported; "" where the file lacks it
    after: str


@dataclass(frozen=True, slots=True, repr=False)
class BenchDiff(Result):
    """What changed from one file to the other; it fails where a point is slower by more than `fail_above` percent."""

    VERB: ClassVar[str] = "bench diff"
    before: BenchFile
    after: BenchFile
    changes: tuple[Change, ...]
    lost: tuple[Lost, ...]
    notes: tuple[str, ...]
    fail_above: float | None = None

    def regressions(self, above_percent: float = 0.0) -> tuple[Change, ...]:
        """Points significantly slower by more than so many percent."""
        return tuple(change for change in self.changes if change.verdict == "slower" and change.percent > above_percent)

    @property
    def failures(self) -> tuple[Change, ...]:
        """Points slower by more than is allowed."""
        return () if self.fail_above is None else self.regressions(self.fail_above)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        from chipwise.bench.view import diff_record

        return diff_record(self)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: points that both files have."""
        from chipwise.bench.view import diff_rows

        return padded(diff_rows(self))

    def blocks(self, every: bool = False) -> list[Block]:
        """For people: what changed, or `every` point."""
        from chipwise.bench.view import diff_blocks

        return diff_blocks(self, every)


def diff(before: BenchFile, after: BenchFile, fail_above: float | None = None) -> BenchDiff:
    """Points matched by what they measure and the framework; unusable ones are listed, not compared."""
    olds, news = _by_key(before), _by_key(after)
    both = [(olds[key], news[key]) for key in olds if key in news and olds[key].usable and news[key].usable]
    lost = [
        Lost(olds.get(key) or news[key], _status(olds.get(key)), _status(news.get(key)))
        for key in dict.fromkeys((*olds, *news))
        if _status(olds.get(key)) != _status(news.get(key))
    ]
    ps = [_p(old, new) for old, new in both]
    qs = iter(benjamini_hochberg([p for p in ps if p is not None]))
    changes = tuple(_change(old, new, None if p is None else next(qs)) for (old, new), p in zip(both, ps, strict=True))
    return BenchDiff(before, after, changes, tuple(lost), tuple(_notes(before, after)), fail_above)


def _by_key(file: BenchFile) -> dict[Any, Measurement]:
    return {(measurement.framework, measurement.point.key()): measurement for measurement in file.points}


def _status(measurement: Measurement | None) -> str:
    return "" if measurement is None else measurement.status


def _samples(measurement: Measurement) -> tuple[float, ...]:
    return measurement.seconds.samples_s if measurement.seconds is not None else ()


def _p(old: Measurement, new: Measurement) -> float | None:
    a, b = _samples(old), _samples(new)
    return mann_whitney(a, b) if min(len(a), len(b)) >= LEAST else None


def _change(old: Measurement, new: Measurement, q: float | None) -> Change:
    assert old.seconds is not None and new.seconds is not None
    ratio = new.seconds.median / old.seconds.median
    if q is None:
        return Change(old, new, ratio, ratio, ratio, None, "unknown")
    low, high = ratio_interval(_samples(old), _samples(new))
    verdict = "same" if q > LEVEL or low <= 1.0 <= high else "slower" if ratio > 1 else "faster"
    return Change(old, new, ratio, low, high, q, verdict)


def _notes(before: BenchFile, after: BenchFile) -> list[str]:
    """What else differs between the runs and may explain a change."""
    out = []
    if before.device.name != after.device.name:
        out.append(f"another device: {before.device.name}, then {after.device.name}")
    for name in dict.fromkeys((*before.frameworks, *after.frameworks)):
        olds, news = before.frameworks.get(name, {}), after.frameworks.get(name, {})
        if olds and news:
            out += [
                f"{name}: {package} {olds.get(package, 'absent')}, then {news.get(package, 'absent')}"
                for package in dict.fromkeys((*olds, *news))
                if olds.get(package) != news.get(package)
            ]
    for words, old, new in (
        ("setting", before.telemetry.settings, after.telemetry.settings),
        ("environment", before.environment, after.environment),
    ):
        skip = {"power_w", "temperature_c", "clock_hz", "host"}  # these move by themselves
        out += [
            f"{words} {key}: {old.get(key, 'absent')}, then {new.get(key, 'absent')}"
            for key in dict.fromkeys((*old, *new))
            if old.get(key) != new.get(key) and key not in skip
        ]
    return out

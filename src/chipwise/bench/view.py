"""Plans, measurements, comparisons and ceilings as every face shows them; columns are declared once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from statistics import geometric_mean
from typing import Any

from chipwise.bench.diff import BenchDiff, Change
from chipwise.bench.file import BenchFile, measurement_as_json
from chipwise.bench.measurement import Measurement
from chipwise.bench.method import UNSTABLE
from chipwise.bench.roofline import Roofline
from chipwise.bench.session import BenchPlan, listing
from chipwise.bench.show import chip_of, figures, name, rate, sizes, variant
from chipwise.catalog import Chip
from chipwise.ops.point import Point
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, record, table
from chipwise.present.numbers import plural
from chipwise.units import format_bytes, format_rate, format_seconds

POINTS: list[Column[tuple[str, Point]]] = [  # a framework and a point; the bench file names its fields
    Column("", None, "suite", lambda p: p[1].suite, words=True),
    Column("", None, "work", lambda p: p[1].kind, words=True),
    Column("", None, "dtype", lambda p: p[1].dtype, words=True),
    Column("", None, "sizes", lambda p: sizes(p[1]), words=True),
    Column("", None, "how", lambda p: variant(p[1]) or "-", words=True, under=True),
    Column("framework", lambda p: p[0], "framework", words=True, help="torch or jax"),
]


def plan_record(plan: BenchPlan) -> dict[str, Any]:
    """What would be measured."""
    return {
        "platform": plan.platform,
        "device": asdict(plan.parts[0].device),
        "frameworks": {part.framework: dict(part.versions) for part in plan.parts},
        "notes": list(plan.notes),
        "points": plan_rows(plan),
    }


def plan_rows(plan: BenchPlan) -> list[dict[str, Any]]:
    """Points with the names that the bench file gives their sizes."""
    return [{**pair[1].as_json(), **record(POINTS, pair)} for pair in listing(plan)]


def plan_blocks(plan: BenchPlan) -> list[Block]:
    """Every point that would be measured."""
    device, points = plan.parts[0].device, list(listing(plan))
    return [
        Text(f"{device.name} ({device.platform}): {plural(len(points), 'point')}, none measured"),
        *([table(POINTS, points)] if points else []),
        *section("Notes", plan.notes),
    ]


def _joules(m: Measurement) -> str:
    joules = m.watched.energy_j
    if joules is None:
        return "-"
    unit, words = (1.0, "J") if joules >= 1 else (1e-3, "mJ") if joules >= 1e-3 else (1e-6, "uJ")
    return f"{joules / unit:.3g} {words}"


def _share(m: Measurement, chip: Chip | None) -> str:
    """The share of the ceiling that the rate shown has in the catalog."""
    figure = figures(m, chip)
    share = figure.bandwidth_share if rate(m).endswith("B/s") else figure.peak_share
    return f"{share:.0%}" if share is not None else "-"


def _median(m: Measurement | None) -> float | None:
    return m.seconds.median if m is not None and m.seconds is not None else None


def _seconds(m: Measurement) -> str:
    return "-" if m.seconds is None else format_seconds(m.seconds.median)


def measured_columns(timed: Sequence[Measurement], chip: Chip | None) -> list[Column[Measurement]]:
    """Columns of measured points, in tables alone: the bench file names its own fields."""
    share: Column[Measurement] = Column("", None, "of peak", lambda m: _share(m, chip))
    joules: Column[Measurement] = Column("", None, "energy", _joules, drop=2)
    energy = any(m.watched.energy_j is not None for m in timed)
    return [
        Column("", None, "work", lambda m: m.point.kind, words=True),
        Column("", None, "dtype", lambda m: m.point.dtype, words=True),
        Column("", None, "sizes", lambda m: sizes(m.point), words=True),
        Column("", None, "how", lambda m: variant(m.point) or "-", words=True, under=True),
        Column("", None, "framework", lambda m: m.framework, words=True),
        Column("", None, "median", _seconds),
        Column("", None, "IQR", lambda m: f"{m.seconds.spread * 100:.1f} %" if m.seconds else "-", drop=1),
        Column("", None, "rate", rate),
        *([share] if chip else []),
        *([joules] if energy else []),
        Column("", None, "status", lambda m: m.status, words=True),
    ]


def file_record(file: BenchFile) -> dict[str, Any]:
    """A bench file with what its figures mean."""
    chip = chip_of(file)
    document = file.as_json()
    del document["schema"], document["chipwise"], document["command"]
    points = [{**measurement_as_json(m), "figures": asdict(figures(m, chip))} for m in file.points]
    return {"measured_by": file.chipwise, "measured_with": list(file.command), **document, "points": points}


def file_blocks(file: BenchFile) -> list[Block]:
    """A bench file: the measured points, those that were not, and what else to know."""
    chip = chip_of(file)
    stacks = "; ".join(
        f"{name} ({', '.join(f'{k} {v}' for k, v in versions.items())})" for name, versions in file.frameworks.items()
    )
    chip_words = f", {chip.id} of the catalog" if chip else ""
    timed = [m for m in file.points if m.seconds is not None]
    return [
        Text(
            f"{file.device.name}{chip_words}: {plural(len(file.points), 'point')} of {file.created}"
            f"{f', in {file.elapsed_s:,.0f} s' if file.elapsed_s else ''}{'' if file.complete else ', incomplete'}"
        ),
        Text(f"through {stacks}"),
        *([table(measured_columns(timed, chip), timed)] if timed else []),
        *section("Not used", _unused(file)),
        *section("Frameworks", _frameworks(file)),
        *section("Device", _device(file)),
        *section("Notes", file.notes),
    ]


def _unused(file: BenchFile) -> list[str]:
    """Points with no time, with the reasons, the same reason once; and how many have a time in doubt."""
    counted: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], str] = {}
    for m in file.points:
        if m.seconds is None:
            key = (m.framework, m.status, m.reason)
            counted[key] += 1
            first.setdefault(key, name(m.point))
    doubtful = sum(m.status == "unstable" for m in file.points)
    words = f"scatter or drift by more than {UNSTABLE:.0%}, measured twice: unstable"
    lines = [f"{plural(doubtful, 'point')}: samples {words}"] if doubtful else []
    for key, count in counted.items():
        framework, status, reason = key
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"{framework} {first[key]}{more}: {status}: {reason}")
    return lines


def _frameworks(file: BenchFile) -> list[str]:
    """Two frameworks on the same points."""
    by_point: dict[object, dict[str, float]] = {}
    for m in file.points:
        if m.usable and m.seconds is not None:
            by_point.setdefault(m.point.key(), {})[m.framework] = m.seconds.median
    lines: list[str] = []
    names = list(file.frameworks)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            ratios = [times[second] / times[first] for times in by_point.values() if {first, second} <= set(times)]
            if ratios:
                faster = sum(ratio > 1.05 for ratio in ratios)
                slower = sum(ratio < 1 / 1.05 for ratio in ratios)
                lines.append(
                    f"{first} against {second} on {plural(len(ratios), 'point')}: faster by over 5 % on {faster},"
                    f" slower on {slower}; {second} takes {geometric_mean(ratios):.2f}x as long (geometric mean)"
                )
    return lines


def _device(file: BenchFile) -> list[str]:
    """The device during the run: power, temperature, clocks, throttling."""
    watched = [m.watched for m in file.points if m.watched.samples]
    parts = []
    wanted = (
        ("power up to", "power_w", 1.0, "W"),
        ("temperature up to", "temperature_c", 1.0, "C"),
        ("clock down to", "clock_hz", 1e-6, "MHz"),
    )
    for words, field, scale, unit in wanted:
        values = [value for w in watched if (value := getattr(w, field)) is not None]
        if values:
            value = min(values) if words.endswith("down to") else max(values)
            parts.append(f"{words} {value * scale:.0f} {unit}")
    memory = [w.memory_bytes for w in watched if w.memory_bytes is not None]
    parts += [f"memory in use up to {format_bytes(max(memory))}"] if memory else []
    reasons = Counter(word for w in watched for word in w.throttled)
    throttled = [f"throttled during {plural(count, 'point')}: {word}" for word, count in reasons.items()]
    return [*([", ".join(parts)] if parts else []), *throttled]


def _interval(c: Change) -> str:
    return "-" if c.q is None else f"{(c.low - 1) * 100:+.1f} to {(c.high - 1) * 100:+.1f} %"


def _q(c: Change) -> str:
    return "-" if c.q is None else "<0.001" if c.q < 0.001 else f"{c.q:.3f}"


CHANGES: list[Column[Change]] = [  # beside the fields of the point, as the bench file names them
    Column("", None, "work", lambda c: name(c.before.point), words=True),
    Column("framework", lambda c: c.before.framework, "framework", words=True, help="torch or jax"),
    Column("before_seconds", lambda c: _median(c.before), "before", lambda c: _seconds(c.before), help="median"),
    Column("after_seconds", lambda c: _median(c.after), "after", lambda c: _seconds(c.after), help="median"),
    Column("ratio", lambda c: c.ratio, "change", lambda c: f"{c.percent:+.1f} %", help="after over before"),
    Column("", None, "95 %", _interval, drop=1),
    Column("low", lambda c: c.low, help="of the ratio's 95 % interval"),
    Column("high", lambda c: c.high, help="of the ratio's 95 % interval"),
    Column("q", lambda c: c.q, "q", _q, drop=2, help="null where the samples are too few"),
    Column("verdict", lambda c: c.verdict, "verdict", words=True, help="slower, faster, same or unknown"),
]
ORDER = {"slower": 0, "faster": 1, "unknown": 2, "same": 3}  # verdicts, as they are listed


def diff_rows(diff: BenchDiff) -> list[dict[str, Any]]:
    """Points that both files have, with how they changed."""
    return [{**c.before.point.as_json(), **record(CHANGES, c)} for c in diff.changes]


def diff_record(diff: BenchDiff) -> dict[str, Any]:
    """What changed between two files."""
    return {
        "before": {"created": diff.before.created, "device": diff.before.device.name},
        "after": {"created": diff.after.created, "device": diff.after.device.name},
        "changes": diff_rows(diff),
        "status_changes": [
            {
                **lost.key.point.as_json(),
                "framework": lost.key.framework,
                "before_status": lost.before,
                "after_status": lost.after,
            }
            for lost in diff.lost
        ],
        "notes": list(diff.notes),
        "fail_above_percent": diff.fail_above,
        "regressions": None if diff.fail_above is None else len(diff.failures),
    }


def diff_blocks(diff: BenchDiff, every: bool) -> list[Block]:
    """What changed, the slower first; `every` point, or those that did not stay the same."""
    shown = sorted(
        (c for c in diff.changes if every or c.verdict != "same"), key=lambda c: (ORDER[c.verdict], -abs(c.percent))
    )
    counts = Counter(c.verdict for c in diff.changes)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
    lost = [
        f"{lost.key.framework} {name(lost.key.point)}: {lost.before or 'absent'}, then {lost.after or 'absent'}"
        for lost in diff.lost
    ]
    verdict = []
    if diff.fail_above is not None:
        many = len(diff.failures)
        status = f"exit status {1 if many else 0}"
        verdict = [f"{plural(many, 'point')} significantly slower by more than {diff.fail_above:g} %: {status}"]
    return [
        Text(f"{plural(len(diff.changes), 'point')} in both: {words or 'nothing to compare'}"),
        *([table(CHANGES, shown)] if shown else []),
        *section("Only one has a usable time, or the status changed", lost),
        *section("What else differs", diff.notes),
        *section("Verdict", verdict),
    ]


Ceiling = tuple[str, str, float, float | None]  # its name, its unit, measured and stated
CEILINGS: list[Column[Ceiling]] = [
    Column("ceiling", lambda c: c[0], "ceiling", words=True, help="bandwidth, or a precision"),
    Column("measured", lambda c: c[2], "measured", lambda c: format_rate(c[2], c[1]), help="the best measured"),
    Column(
        "stated",
        lambda c: c[3],
        "stated",
        lambda c: "-" if c[3] is None else format_rate(c[3], c[1]),
        help="by the catalog",
    ),
    Column("", None, "share", lambda c: "-" if c[3] is None else f"{c[2] / c[3]:.0%}"),
]


def ceilings(roofline: Roofline) -> list[Ceiling]:
    """The ceilings measured, each beside the catalog's."""
    r = roofline
    memory = [("bandwidth", "B/s", r.bandwidth, r.stated_bandwidth)] if r.bandwidth is not None else []
    return [*memory, *((dtype, "FLOP/s", peak, r.stated.get(dtype)) for dtype, peak in r.measured.items())]


def roofline_record(roofline: Roofline) -> dict[str, Any]:
    """Ceilings and dots."""
    return {
        "title": roofline.title,
        "bandwidth_bytes_per_s": roofline.bandwidth,
        "stated_bandwidth_bytes_per_s": roofline.stated_bandwidth,
        "flops_per_s_by_dtype": roofline.measured,
        "stated_flops_per_s_by_dtype": roofline.stated,
        "dots": [asdict(dot) for dot in roofline.dots],
    }


def roofline_blocks(roofline: Roofline) -> list[Block]:
    """The ceilings measured, beside the catalog's."""
    return [
        Text(f"{roofline.title}: {plural(len(roofline.dots), 'point')} under these ceilings"),
        table(CEILINGS, ceilings(roofline)),
    ]

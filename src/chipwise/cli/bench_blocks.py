"""What `chipwise bench` shows: plans, measurements, comparisons, ceilings."""

from __future__ import annotations

from collections import Counter
from statistics import geometric_mean
from typing import TYPE_CHECKING

from chipwise.bench.method import UNSTABLE
from chipwise.bench.session import listing
from chipwise.bench.show import chip_of, figures, name, rate, sizes, variant
from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural
from chipwise.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from chipwise.bench.diff import Change, Diff
    from chipwise.bench.file import BenchFile
    from chipwise.bench.measurement import Measurement
    from chipwise.bench.roofline import Roofline
    from chipwise.bench.session import Plan
    from chipwise.catalog import Chip

_WORDS = frozenset({"suite", "work", "dtype", "sizes", "how", "framework", "status"})


def plan_blocks(planned: Plan) -> list[Block]:
    """Every point that would be measured."""
    device = planned.parts[0].device
    rows = [
        [each.suite, each.kind, each.dtype, sizes(each), variant(each) or "-", framework]
        for framework, each in listing(planned)
    ]
    notes: list[Block] = [Text(f"  {note}") for note in planned.notes]
    return [
        Text(f"{device.name} ({device.platform}): {plural(len(rows), 'point')}, none measured"),
        *([Table(["suite", "work", "dtype", "sizes", "how", "framework"], rows, _WORDS)] if rows else []),
        *([Text("Notes", True), *notes] if notes else []),
    ]


def file_blocks(file: BenchFile) -> list[Block]:
    """A bench file: the measured points, those that were not, and what else to know."""
    chip = chip_of(file)
    stacks = "; ".join(
        f"{name} ({', '.join(f'{k} {v}' for k, v in versions.items())})" for name, versions in file.frameworks.items()
    )
    known = f", {chip.id} of the catalog" if chip else ""
    out: list[Block] = [
        Text(
            f"{file.device.name}{known}: {plural(len(file.points), 'point')} of {file.created}"
            f"{f', in {file.elapsed_s:,.0f} s' if file.elapsed_s else ''}{'' if file.complete else ', incomplete'}"
        ),
        Text(f"through {stacks}"),
    ]
    timed = [each for each in file.points if each.seconds is not None]
    if timed:
        out.append(_table(timed, chip))
    return [*out, *_untimed(file), *_stacks(file), *_watched(file), *_notes(file)]


def _table(timed: list[Measurement], chip: Chip | None) -> Table:
    energy = any(each.watched.energy_j is not None for each in timed)
    headers = [
        "work",
        "dtype",
        "sizes",
        "how",
        "framework",
        "median",
        "IQR",
        "rate",
        *(["of peak"] if chip else []),
        *(["energy"] if energy else []),
        "status",
    ]
    rows = [_row(each, chip, energy) for each in timed]
    return Table(headers, rows, _WORDS, under=("how",), drop=("IQR", "energy"))


def _row(each: Measurement, chip: Chip | None, energy: bool) -> list[str]:
    assert each.seconds is not None
    joules = each.watched.energy_j
    return [
        each.point.kind,
        each.point.dtype,
        sizes(each.point),
        variant(each.point) or "-",
        each.framework,
        format_seconds(each.seconds.median),
        f"{each.seconds.spread * 100:.1f} %",
        rate(each),
        *([_share(each, chip)] if chip else []),
        *([_joules(joules)] if energy else []),
        each.status,
    ]


def _share(each: Measurement, chip: Chip) -> str:
    """The share of the ceiling that the rate shown has in the catalog."""
    found = figures(each, chip)
    share = found.bandwidth_share if rate(each).endswith("B/s") else found.peak_share
    return f"{share:.0%}" if share is not None else "-"


def _joules(joules: float | None) -> str:
    if joules is None:
        return "-"
    unit, words = (1.0, "J") if joules >= 1 else (1e-3, "mJ") if joules >= 1e-3 else (1e-6, "uJ")
    return f"{joules / unit:.3g} {words}"


def _untimed(file: BenchFile) -> list[Block]:
    """Points with no time, with the reasons, the same reason once; and how many have a time in doubt."""
    counted: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], str] = {}
    for each in file.points:
        if each.seconds is None:
            key = (each.framework, each.status, each.reason)
            counted[key] += 1
            first.setdefault(key, name(each.point))
    doubtful = sum(each.status == "unstable" for each in file.points)
    words = f"scatter or drift by more than {UNSTABLE:.0%}, measured twice: unstable"
    lines: list[Block] = [Text(f"  {plural(doubtful, 'point')}: samples {words}")] if doubtful else []
    for key, count in counted.items():
        framework, status, reason = key
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(Text(f"  {framework} {first[key]}{more}: {status}: {reason}"))
    return [Text("Not used", True), *lines] if lines else []


def _stacks(file: BenchFile) -> list[Block]:
    """Two frameworks on the same points."""
    by_point: dict[object, dict[str, float]] = {}
    for each in file.points:
        if each.usable and each.seconds is not None:
            by_point.setdefault(each.point.key(), {})[each.framework] = each.seconds.median
    out: list[Block] = []
    names = list(file.frameworks)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            ratios = [times[second] / times[first] for times in by_point.values() if {first, second} <= set(times)]
            if ratios:
                faster = sum(ratio > 1.05 for ratio in ratios)
                slower = sum(ratio < 1 / 1.05 for ratio in ratios)
                out.append(
                    Text(
                        f"  {first} against {second} on {plural(len(ratios), 'point')}: faster by over 5 % on {faster},"
                        f" slower on {slower}; {second} takes {geometric_mean(ratios):.2f}x as long (geometric mean)"
                    )
                )
    return [Text("Frameworks", True), *out] if out else []


def _watched(file: BenchFile) -> list[Block]:
    """The device during the run: power, temperature, clocks, throttling."""
    seen = [each.watched for each in file.points if each.watched.samples]
    parts = []
    wanted = (
        ("power up to", "power_w", 1.0, "W"),
        ("temperature up to", "temperature_c", 1.0, "C"),
        ("clock down to", "clock_hz", 1e-6, "MHz"),
    )
    for words, field, scale, unit in wanted:
        values = [value for each in seen if (value := getattr(each, field)) is not None]
        if values:
            value = min(values) if words.endswith("down to") else max(values)
            parts.append(f"{words} {value * scale:.0f} {unit}")
    memory = [each.memory_bytes for each in seen if each.memory_bytes is not None]
    parts += [f"memory in use up to {format_bytes(max(memory))}"] if memory else []
    lines = [f"  {', '.join(parts)}"] if parts else []
    reasons = Counter(word for each in seen for word in each.throttled)
    lines += [f"  throttled during {plural(count, 'point')}: {word}" for word, count in reasons.items()]
    return [Text("Device", True), *map(Text, lines)] if lines else []


def _notes(file: BenchFile) -> list[Block]:
    return [Text("Notes", True), *(Text(f"  {note}") for note in file.notes)] if file.notes else []


def diff_blocks(found: Diff, fail_above: float | None, every: bool) -> list[Block]:
    """What changed, the slower first."""
    order = {"slower": 0, "faster": 1, "unknown": 2, "same": 3}
    shown = sorted(
        (each for each in found.changes if every or each.verdict != "same"),
        key=lambda each: (order[each.verdict], -abs(each.percent)),
    )
    counts = Counter(each.verdict for each in found.changes)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    out: list[Block] = [Text(f"{plural(len(found.changes), 'point')} in both: {words or 'nothing to compare'}")]
    if shown:
        out.append(
            Table(
                ["work", "framework", "before", "after", "change", "95 %", "q", "verdict"],
                [_change(each) for each in shown],
                frozenset({"work", "framework", "verdict"}),
                drop=("95 %", "q"),
            )
        )
    if found.lost:
        out.append(Text("Only one has a usable time, or the status changed", True))
        out += [
            Text(
                f"  {each.key.framework} {name(each.key.point)}: {each.before or 'absent'}, then "
                f"{each.after or 'absent'}"
            )
            for each in found.lost
        ]
    if found.notes:
        out += [Text("What else differs", True), *(Text(f"  {note}") for note in found.notes)]
    if fail_above is not None:
        many = len(found.regressions(fail_above))
        status = "exit status 1" if many else "exit status 0"
        out += [
            Text("Verdict", True),
            Text(f"  {plural(many, 'point')} significantly slower by more than {fail_above:g} %: {status}"),
        ]
    return out


def _change(each: Change) -> list[str]:
    before, after = each.before.seconds, each.after.seconds
    assert before is not None and after is not None
    interval = "-" if each.q is None else f"{(each.low - 1) * 100:+.1f} to {(each.high - 1) * 100:+.1f} %"
    q = "-" if each.q is None else "<0.001" if each.q < 0.001 else f"{each.q:.3f}"
    return [
        name(each.before.point),
        each.before.framework,
        format_seconds(before.median),
        format_seconds(after.median),
        f"{each.percent:+.1f} %",
        interval,
        q,
        each.verdict,
    ]


def roofline_blocks(found: Roofline) -> list[Block]:
    """The ceilings measured, beside the catalog's."""
    rows = []
    if found.bandwidth is not None:
        rows.append(["bandwidth", *_beside(found.bandwidth, found.stated_bandwidth, "B/s")])
    rows += [[dtype, *_beside(peak, found.stated.get(dtype), "FLOP/s")] for dtype, peak in found.measured.items()]
    return [
        Text(f"{found.title}: {plural(len(found.dots), 'point')} under these ceilings"),
        Table(["ceiling", "measured", "stated", "share"], rows, frozenset({"ceiling"})),
    ]


def _beside(measured: float, stated: float | None, unit: str) -> list[str]:
    if stated is None:
        return [format_rate(measured, unit), "-", "-"]
    return [format_rate(measured, unit), format_rate(stated, unit), f"{measured / stated:.0%}"]

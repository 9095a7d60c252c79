"""A check as every face shows it: a table of targets, then each one's memory, time, collectives, padding and risks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chipwise.compiled.check.check import CheckReport, Row
from chipwise.compiled.check.columns import COLLECTIVES, PADDING, STAGES, TARGETS, short, trial_columns
from chipwise.compiled.check.tune import Tuning
from chipwise.compiled.job import Refused
from chipwise.compiled.timing.timing import CollectiveTime
from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import flat, padded, record, table
from chipwise.present.numbers import plural, time_interval
from chipwise.present.text import bar
from chipwise.units import format_bytes, format_seconds

KINDS = {
    "matmul": "matrix products",
    "conv": "convolutions",
    "attention": "attention kernels",
    "stream": "memory-bound operations",
    "kernel": "custom kernels",
    "collective": "collectives, exposed",
    "copy": "copies to and from on-chip memory, exposed",
    "host": "transfers to and from the host, exposed",
    "gather": "gathers and scatters",
    "sort": "sorts",
}
PROGRAMS = {
    "function": "a JAX function",
    "torch": "a PyTorch module",
    "file": "an exported file",
    "workload": "a workload's reference program",
}
VERSIONS = ("libtpu", "jax-cuda13-plugin", "jax", "torch")  # shown of the packages behind a compile
DETAIL = 12  # lines of the compiler's own text


def report_record(report: CheckReport) -> dict[str, Any]:
    """The report as JSON has it."""
    rows = [
        {
            **record(TARGETS, row),
            "collectives": [] if row.timing is None else [record(COLLECTIVES, c) for c in row.timing.collectives],
            "padding": [record(PADDING, waste) for waste in row.padding],
        }
        for row in report.rows
    ]
    document = {"program": report.program, "kind": report.kind, "ok": report.ok, "rows": rows}
    return {**document, "tunings": list(map(_tuning_record, report.tunings))} if report.tunings else document


def _tuning_record(tuning: Tuning) -> dict[str, Any]:
    columns = trial_columns(tuning.base)
    return {
        "accelerators": tuning.accelerators,
        "base": record(columns, tuning.base),
        "best": record(columns, tuning.best),
        "trials": [record(columns, trial) for trial in tuning.trials],
        "left": tuning.left,
        "use": tuning.use,
    }


def flat_rows(report: CheckReport) -> list[dict[str, Any]]:
    """One row a target, for CSV and pandas."""
    return padded([flat(TARGETS, row) for row in report.rows])


def blocks(report: CheckReport, lines: int) -> list[Block]:
    """The whole report, with at most `lines` rows in each breakdown."""
    bad = [str(row.question.accelerators) for row in report.rows if not row.ok]
    good = "compiles and fits on every target" if len(report.rows) > 1 else "compiles and fits"
    return [
        Text(f"{report.program}: {PROGRAMS[report.kind]}"),
        table(TARGETS, report.rows),
        *(block for row in report.rows for block in _target(row, lines)),
        *(block for tuning in report.tunings for block in _tuning(tuning)),
        Text("Verdict", True),
        Text(f"{', '.join(bad)}: see above; exit status 1" if bad else good),
    ]


def _target(row: Row, lines: int) -> list[Block]:
    q = row.question
    heading = Text(f"{q.accelerators}" + (f" with {q.layout}" if q.layout else ""), True)
    if isinstance(row.outcome, Refused):
        return [heading, *_refused(row.outcome), *section("Notes", row.notes)]
    how = "from the cache" if row.outcome.cached else f"in {format_seconds(row.outcome.seconds)}"
    versions = ", ".join(f"{name} {row.outcome.versions[name]}" for name in VERSIONS if name in row.outcome.versions)
    return [
        heading,
        Text(f"compiled {how} ({versions})"),
        _memory(row),
        *_time(row, lines),
        *_collectives(row, lines),
        *([table(PADDING, row.padding[:lines], title="Padding")] if row.padding else []),
        *_risks(row),
        *section("Notes", row.notes),
    ]


def _refused(r: Refused) -> list[Block]:
    out = [f"  {STAGES[r.stage]}: {r.reason}"]
    where = [part for part in (r.source, f"in {r.op}" if r.op else "") if part]
    out += [f"  where: {' '.join(where)}"] if where else []
    if r.hbm_needed and r.hbm_available:
        out.append(f"  memory: needs {format_bytes(r.hbm_needed)}, {format_bytes(r.hbm_available)} usable")
    out += [f"  {'change' if r.tried else 'to try it'}: {r.change}"] if r.change else []
    if r.stage in ("import", "trace", "export", "limit") or not r.change:
        out += [f"    {line}" for line in r.detail.strip().splitlines()[:DETAIL]]
    return list(map(Text, out))


def _memory(row: Row) -> Table:
    m = row.memory
    assert m is not None
    parts = {
        "arguments": m.arguments,
        "outputs of their own": m.outputs,
        "temporaries": m.temporaries,
        "code": m.code,
        "total": m.total,
        "usable": m.usable,
    }
    rows = [[name, format_bytes(size), bar(size / m.usable)] for name, size in parts.items()]
    if m.host:
        rows.append(["on the host", format_bytes(m.host), ""])
    if not row.fits:
        rows.append(["missing", format_bytes(m.total - m.usable), ""])
    headers = ["memory of a device", "size", "of usable"]
    return Table(headers, rows, frozenset({"memory of a device", "of usable"}), title="Memory")


def _time(row: Row, lines: int) -> list[Block]:
    if row.timing is None or row.step is None:
        return []
    timing, step = row.timing, row.step
    total = timing.seconds or 1.0

    def share(seconds: float) -> list[str]:
        return [format_seconds(seconds), f"{seconds / total * 100:.1f}%"]

    kinds = [
        [KINDS.get(name, name), *share(seconds), format_seconds(timing.hidden[name]) if timing.hidden.get(name) else ""]
        for name, seconds in sorted(timing.by_kind.items(), key=lambda item: -item[1])
    ]
    kinds.append(["one call", format_seconds(timing.seconds), "100.0%", ""])
    where = "where the time goes"
    out: list[Block] = [
        Table([where, "seconds", "share", "hidden"], kinds, frozenset({where}), title="Time"),
        Text(f"{format_seconds(step.value)} ({time_interval(step)}), {step.evidence}: {step.because}"),
    ]
    if row.cross is not None:
        out.append(
            Text(
                f"cross-check of the matrix products alone: {format_seconds(row.cross.ours)} here, "
                f"{format_seconds(row.cross.sol)} by XLA's own cost model"
            )
        )
    sources = [[line, *share(seconds)] for line, seconds in list(timing.by_source.items())[:lines]]
    if sources:
        headers = ["source line", "seconds", "share"]
        out.append(Table(headers, sources, frozenset({"source line"}), title="Source lines"))
    return out


def _collectives(row: Row, lines: int) -> list[Block]:
    alike = _alike(row.timing.collectives) if row.timing else []
    if not alike:
        return []
    shown = table(COLLECTIVES, alike[:lines], title="Collectives")
    if len(alike) <= lines:
        return [shown]
    rest = sum(c.seconds for c in alike[lines:])
    return [shown, Text(f"and {len(alike) - lines} more, {format_seconds(rest)} in all")]


def _alike(collectives: Sequence[CollectiveTime]) -> list[CollectiveTime]:
    """Collectives of one kind, size and line as one, the longest first."""
    groups: dict[tuple[str, float, int, str], CollectiveTime] = {}
    for c in collectives:
        key = c.op, c.data, c.size, c.source
        if (before := groups.get(key)) is not None:
            times, seconds, exposed = before.times + c.times, before.seconds + c.seconds, before.exposed + c.exposed
            c = replace(c, times=times, seconds=seconds, exposed=exposed)
        groups[key] = c
    return sorted(groups.values(), key=lambda c: -c.seconds)


def _risks(row: Row) -> list[Block]:
    lines = ["each other size of these compiles again:", *row.risks] if row.risks else []
    out = section("Recompilation", lines)
    if row.open_loops:
        out.append(Text(f"{plural(row.open_loops, 'loop')} with a count only running tells: counted once"))
    return out


def _tuning(t: Tuning) -> list[Block]:
    """What each change did, and the best set."""
    best = frozenset(i for i, trial in enumerate(t.trials) if trial is t.best)
    out: list[Block] = [table(trial_columns(t.base), t.trials, strong=best, title=f"Tuning on {t.accelerators}")]
    if t.left:
        out.append(Text(f"{plural(t.left, 'change')} not tried: the limit of compiles was reached (--tune-limit)"))
    if t.best is t.base:
        return [*out, Text("nothing tried is faster than the options it started with")]
    assert t.best.seconds is not None and t.base.seconds is not None
    gain = (1 - t.best.seconds / t.base.seconds) * 100
    out.append(Text(f"best: {short(t.best.changes)}: {gain:.1f} % less time"))
    return [*out, Text(f"use it: {t.use}")] if t.use else out

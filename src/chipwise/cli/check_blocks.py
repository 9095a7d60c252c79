"""A check for people: a table of targets, then each target's memory, time, collectives, padding and risks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.present.blocks import Block, Table, Text
from chipwise.present.numbers import plural, time_interval
from chipwise.present.text import bar
from chipwise.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.compiled.check.check import Report, Row
    from chipwise.compiled.check.tune import Trial, Tuning
    from chipwise.compiled.job import Refused
    from chipwise.compiled.timing.timing import CollectiveTime

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
STAGES = {
    "import": "could not be imported",
    "trace": "could not be traced",
    "export": "could not be exported",
    "compile": "does not compile",
    "memory": "does not fit",
    "limit": "was stopped",
    "compiler": "not tried",
}
_DETAIL = 12  # lines


def blocks(r: Report, lines: int) -> list[Block]:
    """The whole report, with at most `lines` rows in each breakdown."""
    out: list[Block] = [Text(f"{r.program}: {PROGRAMS[r.kind]}"), _summary(r)]
    for row in r.rows:
        out += _target(row, lines)
    bad = [str(row.question.accelerators) for row in r.rows if not row.ok]
    verdict = (
        f"{', '.join(bad)}: see above; exit status 1"
        if bad
        else "compiles and fits on every target"
        if len(r.rows) > 1
        else "compiles and fits"
    )
    return [*out, Text("Verdict", True), Text(verdict)]


def _summary(r: Report) -> Table:
    rows = []
    for row in r.rows:
        step, m = row.step, row.memory
        rows.append(
            [
                str(row.question.accelerators),
                _answer(row),
                "-" if step is None else format_seconds(step.value),
                "-" if step is None else time_interval(step),
                "-" if m is None else format_bytes(m.total),
                "-" if m is None else f"{m.total / m.usable * 100:.0f}%",
            ]
        )
    return Table(
        ["target", "answer", "time", "90 %", "memory a device", "of usable"],
        rows,
        frozenset({"target", "answer"}),
        drop=("90 %",),
    )


def _answer(row: Row) -> str:
    from chipwise.compiled.job import Refused

    if isinstance(row.outcome, Refused):
        return STAGES[row.outcome.stage]
    return "compiles and fits" if row.fits else "compiles, does not fit"


def _target(row: Row, lines: int) -> list[Block]:
    from chipwise.compiled.job import Refused

    q = row.question
    out: list[Block] = [Text(f"{q.accelerators}" + (f" with {q.layout}" if q.layout else ""), True)]
    if isinstance(row.outcome, Refused):
        return [*out, *_refused(row.outcome), *_notes(row)]
    how = "from the cache" if row.outcome.cached else f"in {format_seconds(row.outcome.seconds)}"
    shown = ("libtpu", "jax-cuda13-plugin", "jax", "torch")
    versions = ", ".join(f"{name} {row.outcome.versions[name]}" for name in shown if name in row.outcome.versions)
    out.append(Text(f"compiled {how} ({versions})"))
    out.append(_memory(row))
    return [*out, *_time(row, lines), *_collectives(row, lines), *_padding(row, lines), *_risks(row), *_notes(row)]


def _refused(r: Refused) -> list[Block]:
    out: list[Block] = [Text(f"  {STAGES[r.stage]}: {r.reason}")]
    where = [part for part in (r.source, f"in {r.op}" if r.op else "") if part]
    out += [Text(f"  where: {' '.join(where)}")] if where else []
    if r.hbm_needed and r.hbm_available:
        out.append(Text(f"  memory: needs {format_bytes(r.hbm_needed)}, {format_bytes(r.hbm_available)} usable"))
    out += [Text(f"  {'change' if r.tried else 'to try it'}: {r.change}")] if r.change else []
    if r.stage in ("import", "trace", "export", "limit") or not r.change:
        detail = r.detail.strip().splitlines()
        out += [Text(f"    {line}") for line in detail[:_DETAIL]]
    return out


def _memory(row: Row) -> Table:
    m = row.memory
    assert m is not None
    parts = [
        ("arguments", m.arguments),
        ("outputs of their own", m.outputs),
        ("temporaries", m.temporaries),
        ("code", m.code),
        ("total", m.total),
        ("usable", m.usable),
    ]
    rows = [[name, format_bytes(size), bar(size / m.usable)] for name, size in parts]
    if m.host:
        rows.append(["on the host", format_bytes(m.host), ""])
    if not row.fits:
        rows.append(["missing", format_bytes(m.total - m.usable), ""])
    return Table(
        ["memory of a device", "size", "of usable"],
        rows,
        frozenset({"memory of a device", "of usable"}),
        title="Memory",
    )


def _time(row: Row, lines: int) -> list[Block]:
    if row.timing is None or row.step is None:
        return []
    total = row.timing.seconds or 1.0
    rows = [
        [
            KINDS.get(name, name),
            format_seconds(seconds),
            f"{seconds / total * 100:.1f}%",
            _hidden(row.timing.hidden, name),
        ]
        for name, seconds in sorted(row.timing.by_kind.items(), key=lambda each: -each[1])
    ]
    rows.append(["one call", format_seconds(row.timing.seconds), "100.0%", ""])
    out: list[Block] = [
        Table(
            ["where the time goes", "seconds", "share", "hidden"],
            rows,
            frozenset({"where the time goes"}),
            title="Time",
        ),
        Text(f"{format_seconds(row.step.value)} ({time_interval(row.step)}), {row.step.evidence}: {row.step.because}"),
    ]
    if row.cross is not None:
        out.append(
            Text(
                f"cross-check: XLA's speed of light gives the products {format_seconds(row.cross.sol)}, "
                f"this estimate {format_seconds(row.cross.ours)}"
            )
        )
    sources = list(row.timing.by_source.items())[:lines]
    if sources:
        out.append(
            Table(
                ["source line", "seconds", "share"],
                [[name, format_seconds(s), f"{s / total * 100:.1f}%"] for name, s in sources],
                frozenset({"source line"}),
                title="Source lines",
            )
        )
    return out


def _hidden(hidden: Mapping[str, float], name: str) -> str:
    return format_seconds(hidden[name]) if hidden.get(name) else ""


def _collectives(row: Row, lines: int) -> list[Block]:
    names = {
        "gather": "all-gather",
        "scatter": "reduce-scatter",
        "reduce": "all-reduce",
        "exchange": "all-to-all",
        "permute": "permute",
    }
    found = _alike(row.timing.collectives) if row.timing else []
    if not found:
        return []
    rows = [
        [
            names.get(c.op, c.op),
            format_bytes(c.data),
            str(c.size),
            f"{c.times:g}",
            format_seconds(c.seconds),
            "exposed"
            if c.exposed > 0.95 * c.seconds
            else "hidden"
            if c.exposed < 0.05 * c.seconds
            else f"{c.exposed / c.seconds * 100:.0f}% exposed",
            c.source or "-",
        ]
        for c in found[:lines]
    ]
    out: list[Block] = [
        Table(
            ["collective", "bytes", "devices", "times", "seconds", "behind compute", "source"],
            rows,
            frozenset({"collective", "behind compute", "source"}),
            title="Collectives",
            drop=("source",),
        )
    ]
    if len(found) > lines:
        rest = sum(c.seconds for c in found[lines:])
        out.append(Text(f"and {len(found) - lines} more, {format_seconds(rest)} in all"))
    return out


def _alike(collectives: Sequence[CollectiveTime]) -> list[CollectiveTime]:
    """Collectives of one kind, size and line as one, the longest first."""
    found: dict[tuple[str, float, int, str], CollectiveTime] = {}
    for c in collectives:
        key = c.op, c.data, c.size, c.source
        before = found.get(key)
        found[key] = (
            c
            if before is None
            else replace(
                c, times=before.times + c.times, seconds=before.seconds + c.seconds, exposed=before.exposed + c.exposed
            )
        )
    return sorted(found.values(), key=lambda c: -c.seconds)


def _padding(row: Row, lines: int) -> list[Block]:
    if not row.padding:
        return []
    rows = [
        [
            format_seconds(w.seconds),
            f"{w.share * 100:.0f}%",
            " x ".join(f"{name} {size}" for name, size in w.dims),
            w.source or "-",
            w.words,
        ]
        for w in row.padding[:lines]
    ]
    return [
        Table(
            ["wasted", "padding", "product", "source", "change"],
            rows,
            frozenset({"product", "source", "change"}),
            title="Padding",
            under=("change",),
        )
    ]


def _risks(row: Row) -> list[Block]:
    out: list[Block] = []
    if row.risks:
        out += [Text("Recompilation", True), Text("  each other size of these compiles again:")]
        out += [Text(f"  {risk}") for risk in row.risks]
    if row.open_loops:
        out.append(Text(f"{plural(row.open_loops, 'loop')} with a count only running tells: counted once"))
    return out


def _notes(row: Row) -> list[Block]:
    return [Text("Notes", True), *(Text(f"  {note}") for note in row.notes)] if row.notes else []


def tuning_blocks(t: Tuning) -> list[Block]:
    """What each change did, and the best set."""
    rows = [_trial(each, t.base) for each in t.trials]
    out: list[Block] = [
        Table(
            ["change", "time", "of base", "memory", "of base "],
            rows,
            frozenset({"change"}),
            frozenset(i for i, each in enumerate(t.trials) if each is t.best),
            title=f"Tuning on {t.accelerators}",
        ),
    ]
    if t.left:
        out.append(Text(f"{plural(t.left, 'change')} not tried: the limit of compiles was reached (--tune-limit)"))
    if t.best is t.base:
        return [*out, Text("nothing tried is faster than the options it started with")]
    assert t.best.seconds is not None and t.base.seconds is not None
    gain = (1 - t.best.seconds / t.base.seconds) * 100
    return [*out, Text(f"best: {_short(t.best.changes)}: {gain:.1f} % less time"), Text(f"use it: {t.use}")]


def _trial(t: Trial, base: Trial) -> list[str]:
    if t.seconds is None or t.bytes is None or not base.seconds or not base.bytes:
        return [_short(t.changes), "refused", "", "", t.refused[:60]]
    if t.same and t is not base:
        return [_short(t.changes), "same module", "", "", ""]
    return [
        _short(t.changes),
        format_seconds(t.seconds),
        f"{(t.seconds / base.seconds - 1) * 100:+.1f}%",
        format_bytes(t.bytes),
        f"{(t.bytes / base.bytes - 1) * 100:+.1f}%",
    ]


def _short(changes: Mapping[str, object]) -> str:
    """The first change, and how many more: the command has them all."""
    each = [f"{name}={value}" for name, value in changes.items()]
    more = f" and {len(each) - 1} more" if len(each) > 1 else ""
    return f"{each[0]}{more}" if each else "as it is"

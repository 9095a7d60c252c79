"""The columns of a check, each declared once: targets, memory, collectives, padding and the trials of a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.compiled.check.check import Row
from chipwise.compiled.check.tune import Trial
from chipwise.compiled.job import Compiled, Job, Refused
from chipwise.compiled.timing.padding import Waste
from chipwise.compiled.timing.timing import CollectiveTime
from chipwise.present.columns import Column
from chipwise.present.numbers import time_interval
from chipwise.units import format_bytes, format_seconds

STAGES = {
    "import": "could not be imported",
    "program": "no step to compile",
    "trace": "could not be traced",
    "export": "could not be exported",
    "compile": "does not compile",
    "memory": "does not fit",
    "limit": "was stopped",
    "compiler": "not tried",
}
COLLECTIVE_NAMES = {
    "gather": "all-gather",
    "scatter": "reduce-scatter",
    "reduce": "all-reduce",
    "exchange": "all-to-all",
    "permute": "permute",
}


def compiled(row: Row) -> Compiled | None:
    """What the compiler made, if it made anything."""
    return row.outcome if isinstance(row.outcome, Compiled) else None


def _answer(row: Row) -> str:
    if isinstance(row.outcome, Refused):
        return STAGES[row.outcome.stage]
    return "compiles and fits" if row.fits else "compiles, does not fit"


def _compiles(row: Row) -> bool | None:
    if isinstance(row.outcome, Compiled):
        return True
    return False if row.outcome.tried else None


def _refused(row: Row) -> dict[str, Any] | None:
    if isinstance(row.outcome, Compiled):
        return None
    r = row.outcome
    return {
        "stage": r.stage,
        "reason": r.reason,
        "op": r.op,
        "source_line": r.source,
        "change": r.change,
        "detail": r.detail,
        "hbm_needed_bytes": r.hbm_needed,
        "hbm_available_bytes": r.hbm_available,
    }


def _memory(row: Row) -> dict[str, float] | None:
    m = row.memory
    if m is None:
        return None
    parts = {"arguments": m.arguments, "outputs": m.outputs, "temporaries": m.temporaries, "code": m.code}
    return {**parts, "total": m.total}


def _options(row: Row) -> dict[str, Any]:
    job = row.question.job
    return dict(job.options) if isinstance(job, Job) else {}


TARGETS: list[Column[Row]] = [
    Column(
        "accelerators",
        lambda r: r.question.accelerators,
        "target",
        lambda r: str(r.question.accelerators),
        words=True,
        help="chips, how many, in which slice",
    ),
    Column("", None, "answer", _answer, words=True),
    Column("layout", lambda r: r.question.layout or None, help="how a workload is split"),
    Column("options", _options, nested=True, help="of the compiler"),
    Column("ok", lambda r: r.ok, help="compiles and fits"),
    Column("compiles", _compiles, help="null where the compiler can't be used here"),
    Column("fits", lambda r: r.fits if compiled(r) else None, help="null where it does not compile"),
    Column("cached", lambda r: bool((c := compiled(r)) and c.cached), help="answered with no compile"),
    Column("refused", _refused, help="why it does not compile, and what to change"),
    Column("compile_seconds", lambda r: c.seconds if (c := compiled(r)) else None, help="wall clock of the compile"),
    Column("versions", lambda r: dict(c.versions) if (c := compiled(r)) else {}, nested=True, help="of the packages"),
    Column(
        "step_seconds",
        lambda r: r.step,
        "time",
        lambda r: "-" if r.step is None else format_seconds(r.step.value),
        help="one call",
    ),
    Column("", None, "90 %", lambda r: "-" if r.step is None else time_interval(r.step), drop=1),
    Column(
        "memory_bytes",
        _memory,
        "memory a device",
        lambda r: "-" if r.memory is None else format_bytes(r.memory.total),
        help="of a device, by class",
    ),
    Column(
        "usable_bytes",
        lambda r: None if r.memory is None else r.memory.usable,
        "of usable",
        lambda r: "-" if r.memory is None else f"{r.memory.total / r.memory.usable * 100:.0f}%",
        help="what programs may allocate",
    ),
    Column("host_bytes", lambda r: None if r.memory is None else r.memory.host, help="in the host's memory"),
    Column(
        "by_class_seconds",
        lambda r: {} if r.timing is None else dict(r.timing.by_kind),
        nested=True,
        help="the call by class of operation",
    ),
    Column(
        "hidden_seconds",
        lambda r: {} if r.timing is None else dict(r.timing.hidden),
        nested=True,
        help="by class: what ran beside compute",
    ),
    Column(
        "by_source_seconds",
        lambda r: {} if r.timing is None else dict(r.timing.by_source),
        nested=True,
        help="the call by source line",
    ),
    Column("unknown_kernels", lambda r: list(r.unknown), nested=True, help="only their shapes are known"),
    Column("open_loops", lambda r: r.open_loops, help="loops whose count only running tells"),
    Column("recompiles", lambda r: list(r.risks), nested=True, help="shapes that vary"),
    Column("notes", lambda r: list(r.notes), nested=True, help="in words"),
    Column(
        "cross_check",
        lambda r: None if r.cross is None else {"sol_seconds": r.cross.sol, "our_seconds": r.cross.ours},
        help="GPUs: XLA's speed-of-light time of the products, and ours",
    ),
]


def _behind(c: CollectiveTime) -> str:
    if c.exposed > 0.95 * c.seconds:
        return "exposed"
    return "hidden" if c.exposed < 0.05 * c.seconds else f"{c.exposed / c.seconds * 100:.0f}% exposed"


COLLECTIVES: list[Column[CollectiveTime]] = [
    Column("name", lambda c: c.name, help="of the instruction"),
    Column(
        "op",
        lambda c: c.op,
        "collective",
        lambda c: COLLECTIVE_NAMES.get(c.op, c.op),
        words=True,
        help="gather, scatter, reduce, exchange or permute",
    ),
    Column("data_bytes", lambda c: c.data, "bytes", lambda c: format_bytes(c.data), help="of one device's buffer"),
    Column("group", lambda c: c.size, "devices", help="devices that take part"),
    Column("times", lambda c: c.times, "times", lambda c: f"{c.times:g}", help="runs in one call"),
    Column("seconds", lambda c: c.seconds, "seconds", lambda c: format_seconds(c.seconds), help="of all runs"),
    Column("exposed_seconds", lambda c: c.exposed, "behind compute", _behind, words=True, help="not behind compute"),
    Column("source_line", lambda c: c.source, "source", lambda c: c.source or "-", words=True, drop=1, help="its line"),
]
PADDING: list[Column[Waste]] = [
    Column("seconds", lambda w: w.seconds, "wasted", lambda w: format_seconds(w.seconds), help="lost to padding"),
    Column("share", lambda w: w.share, "padding", lambda w: f"{w.share * 100:.0f}%", help="of the array's work"),
    Column(
        "dims",
        lambda w: dict(w.dims),
        "product",
        lambda w: " x ".join(f"{name} {size}" for name, size in w.dims),
        words=True,
        help="of the product, by name",
    ),
    Column("source_line", lambda w: w.source, "source", lambda w: w.source or "-", words=True, help="its line"),
    Column("words", lambda w: w.words, "change", words=True, under=True, help="what to change"),
    Column("name", lambda w: w.name, help="of the instruction"),
    Column("op_name", lambda w: w.op_name, help="as the framework names it"),
    Column("dimension", lambda w: w.dimension, help="the one to change"),
    Column("size", lambda w: w.size, help="of that dimension"),
    Column("padded", lambda w: w.padded, help="what it is padded to"),
    Column("multiple", lambda w: w.multiple, help="of which it would need no padding"),
    Column("times", lambda w: w.times, help="runs in one call"),
]


def trial_columns(base: Trial) -> list[Column[Trial]]:
    """The columns of a search's trials, beside what it began with."""

    def tried(show: Any, refused: str = "", same: str = "") -> Any:
        def cell(t: Trial) -> str:
            if t.seconds is None or t.bytes is None or not base.seconds or not base.bytes:
                return refused
            return same if t.same and t is not base else str(show(t))

        return cell

    time = tried(lambda t: format_seconds(t.seconds), "refused", "same module")
    return [
        Column("set", lambda t: dict(t.changes), "change", lambda t: short(t.changes), words=True, help="changes"),
        Column("seconds", lambda t: t.seconds, "time", time, help="of a call"),
        Column("", None, "of base", tried(lambda t: f"{(t.seconds / base.seconds - 1) * 100:+.1f}%")),
        Column("bytes", lambda t: t.bytes, "memory", tried(lambda t: format_bytes(t.bytes)), help="of a device"),
        Column(
            "refused_reason",
            lambda t: t.refused,
            "of base ",
            lambda t: tried(lambda t: f"{(t.bytes / base.bytes - 1) * 100:+.1f}%", t.refused[:60])(t),
            help="why it was refused",
        ),
        Column("same_module", lambda t: t.same, help="the change did nothing"),
    ]


def short(changes: Mapping[str, object]) -> str:
    """The first change, and how many more: the command has them all.

    >>> short({"remat": "full", "layout": "fsdp=4"}), short({})
    ('remat=full and 1 more', 'as it is')
    """
    words = [f"{name}={value}" for name, value in changes.items()]
    more = f" and {len(words) - 1} more" if len(words) > 1 else ""
    return f"{words[0]}{more}" if words else "as it is"

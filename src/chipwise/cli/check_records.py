"""What `chipwise check -o json` prints. Documented in docs/json.md; SI units throughout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.cli.records import accelerators, estimate, head

if TYPE_CHECKING:
    from chipwise.compiled.check.check import Report, Row
    from chipwise.compiled.check.tune import Trial, Tuning
    from chipwise.compiled.job import Refused
    from chipwise.compiled.timing.padding import Waste
    from chipwise.compiled.timing.timing import CollectiveTime


def report(r: Report, tunings: tuple[Tuning, ...] = ()) -> dict[str, Any]:
    """Everything about a program on every target."""
    document = {
        **head("check"),
        "program": r.program,
        "kind": r.kind,
        "ok": r.ok,
        "rows": [row(each) for each in r.rows],
    }
    return {**document, "tunings": [tuning(each) for each in tunings]} if tunings else document


def row(r: Row) -> dict[str, Any]:
    """One target."""
    from chipwise.compiled.job import Compiled, Job

    made = r.outcome if isinstance(r.outcome, Compiled) else None
    tried = isinstance(r.outcome, Compiled) or r.outcome.tried
    job, m, t = r.question.job, r.memory, r.timing
    return {
        "accelerators": accelerators(r.question.accelerators),
        "layout": r.question.layout or None,
        "options": dict(job.options) if isinstance(job, Job) else {},
        "ok": r.ok,
        "compiles": made is not None if tried else None,
        "fits": r.fits if made else None,
        "cached": bool(made and made.cached),
        "refused": None if made else refused(r.outcome),  # type: ignore[arg-type]
        "compile_seconds": made.seconds if made else None,
        "versions": dict(made.versions) if made else {},
        "memory_bytes": None
        if m is None
        else {
            "arguments": m.arguments,
            "outputs": m.outputs,
            "temporaries": m.temporaries,
            "code": m.code,
            "total": m.total,
        },
        "usable_bytes": None if m is None else m.usable,
        "host_bytes": None if m is None else m.host,
        "step_seconds": None if r.step is None else estimate(r.step),
        "by_class_seconds": {} if t is None else dict(t.by_kind),
        "hidden_seconds": {} if t is None else dict(t.hidden),
        "by_source_seconds": {} if t is None else dict(t.by_source),
        "collectives": [] if t is None else [collective(c) for c in t.collectives],
        "padding": [waste(w) for w in r.padding],
        "unknown_kernels": list(r.unknown),
        "open_loops": r.open_loops,
        "recompiles": list(r.risks),
        "notes": list(r.notes),
        "cross_check": None if r.cross is None else {"sol_seconds": r.cross.sol, "our_seconds": r.cross.ours},
    }


def refused(r: Refused) -> dict[str, Any]:
    """Why a program was refused."""
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


def collective(c: CollectiveTime) -> dict[str, Any]:
    """One collective the compiler chose."""
    return {
        "name": c.name,
        "op": c.op,
        "data_bytes": c.data,
        "group": c.size,
        "times": c.times,
        "seconds": c.seconds,
        "exposed_seconds": c.exposed,
        "source_line": c.source,
    }


def waste(w: Waste) -> dict[str, Any]:
    """Padding in one product."""
    return {
        "name": w.name,
        "source_line": w.source,
        "op_name": w.op_name,
        "dims": dict(w.dims),
        "share": w.share,
        "seconds": w.seconds,
        "dimension": w.dimension,
        "size": w.size,
        "padded": w.padded,
        "multiple": w.multiple,
        "times": w.times,
        "words": w.words,
    }


def tuning(t: Tuning) -> dict[str, Any]:
    """A search over compiler options and the program's own choices on one target."""
    return {
        "accelerators": accelerators(t.accelerators),
        "base": trial(t.base),
        "best": trial(t.best),
        "trials": [trial(each) for each in t.trials],
        "left": t.left,
        "use": t.use,
    }


def trial(t: Trial) -> dict[str, Any]:
    """One set of options, and what came of it."""
    return {
        "set": dict(t.changes),
        "seconds": t.seconds,
        "bytes": t.bytes,
        "refused_reason": t.refused,
        "same_module": t.same,
    }

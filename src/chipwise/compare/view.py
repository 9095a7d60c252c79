"""A comparison as every face shows it: its record, its rows, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.compare import columns as declared
from chipwise.compare.comparison import AnyComparison, AnyRow, Comparison, ServingComparison, TrainingComparison
from chipwise.compare.decision import DecisionSummary, Refused
from chipwise.compare.launched import launchable
from chipwise.compare.terms import DEFAULT_CHIPS
from chipwise.launch.launch import section_of
from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, flat, padded, table
from chipwise.present.columns import record as row_record
from chipwise.units import format_count, format_seconds
from chipwise.workload import metrics_that_matter
from chipwise.workload.serve import job_in_words
from chipwise.workload.serve_criteria import what_decides_serving

FAR = 20  # times the best, above which nobody would run it
NAMED = 4  # of those, in the line that they share
ROWS = 10  # for people, unless they ask for all
FRONT = "Cost against time over counts (front: nothing shown is both cheaper and faster)"
REASONS = 6  # lines of refusals, likewise


def columns(c: Comparison[Any, Any]) -> Sequence[Column[Any]]:
    """The columns of its rows."""
    return declared.serving_columns(c) if isinstance(c, ServingComparison) else declared.TRAINING


def criteria(c: AnyComparison) -> list[str]:
    """What decides the workload: the metrics that matter, and the hardware criteria."""
    return metrics_that_matter(c.workload) if isinstance(c, TrainingComparison) else what_decides_serving(c.workload)


def record(c: Any) -> dict[str, Any]:
    """The comparison as JSON has it."""
    return {
        "workload": c.workload,
        "objective": c.terms.objective,
        "terms": c.terms,
        **_demand(c),
        "pick": str(c.pick.accelerators) if c.pick else None,
        "words": c.words,
        "flips": [row_record(declared.FLIPS, flip) for flip in c.flips],
        "rows": [{"rank": i, **row_record(columns(c), row)} for i, row in enumerate(c.rows, 1)],
        **({"front": [row_record(declared.FRONT, point) for point in c.front]} if c.front else {}),
        "refused": [row_record(declared.REFUSED, refused) for refused in c.refused],
        "criteria": criteria(c),
        "assumptions": c.assumptions,
    }


def _demand(c: AnyComparison) -> dict[str, Any]:
    if isinstance(c, TrainingComparison):
        return {}
    demand = c.comparer.demand
    return {
        "demand": {"kind": demand.kind, "load": demand.load or None},
        "seed": c.comparer.knowledge.seed,
        "relaxed": c.relaxed,
    }


def flat_rows(c: Any) -> list[dict[str, Any]]:
    """Flat rows for CSV and pandas; the refused follow, with the reason."""
    rows: list[dict[str, Any]] = [
        {"rank": i, **flat(columns(c), row), "evidence": row.evidence, "pick": row is c.pick, "refused": None}
        for i, row in enumerate(c.rows, 1)
    ]
    for refused in c.refused:
        why = f"{refused.reason}; {refused.unlock}" if refused.unlock else refused.reason
        rows.append({"accelerators": refused.name, "accelerators_chip": refused.chip.id, "pick": False, "refused": why})
    return padded(rows)


def blocks(c: Any, everything: bool = False) -> list[Block]:
    """The comparison for people: its first rows and refusals, or all of them."""
    head = training_head(c) if isinstance(c, TrainingComparison) else serving_head(c)
    rows = None if everything else first_rows(c)
    refused = refusals(c.refused)
    if not everything and len(refused) > REASONS:
        refused = [*refused[: REASONS - 1], f"{len(refused) - REASONS + 1} more: --all"]
    return [
        Text(f"{c.workload.name}: {head}; by {c.terms.objective}"),
        ranked(c, rows=rows),
        *([] if rows is None or len(rows) == len(c.rows) else [Text(more_rows(c, rows))]),
        *(Text(line, i == 0) for i, line in enumerate(("Decision", *decision_lines(c.words)))),
        *([table(declared.FRONT, c.front, c, title=FRONT)] if c.front else []),
        *section_of(launchable(c.pick) if c.pick else None),
        *section("Refused", refused),
        *section("What decides this workload", criteria(c)),
        *section("Assumptions", c.assumptions),
    ]


def decision_lines(words: DecisionSummary) -> list[str]:
    """The sentences of a decision."""
    return [line for line in (words.pick, words.why, words.sellers, words.flip) if line]


def first_rows(c: AnyComparison) -> list[AnyRow]:
    """The rows that people see first, and the pick, which rows on bounded evidence may rank ahead of."""
    far = {id(row) for row in far_off(c)}
    near: list[AnyRow] = [row for row in c.rows if id(row) not in far]
    if len(near) <= ROWS + 1:  # a line that says "1 more" is as long as the row
        return near
    return [row for i, row in enumerate(near) if i < ROWS or row is c.pick]


def more_rows(c: AnyComparison, shown: Sequence[AnyRow]) -> str:
    """How many rows are left out, and which of them nobody would deploy."""
    text = f"{len(c.rows) - len(shown)} more: --all"
    far = far_off(c)
    if not far:
        return text
    names = ", ".join(f"{row.accelerators}{_at(row, c.terms.objective)}" for row in far[:NAMED])
    others = f" and {len(far) - NAMED} more" if len(far) > NAMED else ""
    return f"{text} ({len(far)} above {FAR}x the best: {names}{others})"


def _at(row: AnyRow, objective: str) -> str:
    by = row.by(objective)
    if by is None or objective == "energy":
        return ""
    return f" at {row.ondemand}" if objective == "cost" else f" at {format_seconds(by.value)}"


def far_off(c: AnyComparison) -> list[AnyRow]:
    """Rows that take more than 20 times the best by what is ranked by: nobody would run them, so they share a line."""
    known = [(row, by.value) for row in c.rows if (by := row.by(c.terms.objective)) is not None]
    best = min((value for _, value in known), default=0.0)
    return [row for row, value in known if value > FAR * best and row is not c.pick]


def ranked(c: AnyComparison, numbered: bool = True, rows: Sequence[AnyRow] | None = None, **options: Any) -> Table:
    """The rows, or some of them, as a table, the pick standing out."""
    order = {id(row): i for i, row in enumerate(c.rows, 1)}
    shown: Sequence[AnyRow] = c.rows if rows is None else rows
    number: Column[AnyRow] = Column("rank", lambda row: order[id(row)], "#")
    picked = frozenset(i for i, row in enumerate(shown) if row is c.pick)
    return table([*([number] if numbered else []), *columns(c)], shown, c, strong=picked, **options)


def training_head(c: TrainingComparison) -> str:
    """The run in a few words."""
    t = c.workload.train
    run = (
        f"{format_count(t.samples)} {c.workload.model.pictures}"
        if c.workload.unit != "tokens"
        else f"{format_count(t.tokens)} tokens, sequences of {t.sequence:,}"
    )
    kind = f"{t.precision}, LoRA of rank {t.lora_rank}" if t.lora_rank else t.precision
    kind += f", base in {t.lora_base}" if t.lora_base else ""
    assumed = any(row.accelerators.assumed for row in c.rows)
    counts = f", on {DEFAULT_CHIPS} chips of a kind: no count was named" if assumed else ""
    return f"{run}, global batch {t.global_batch:,}, {kind}{counts}"


def serving_head(c: ServingComparison) -> str:
    """The service in a few words."""
    s, demand = c.workload.serve, c.comparer.demand
    work = str(demand)
    if demand.kind == "job":
        work = job_in_words(c.workload) if s.requests else "an offline job"
        work += f" within {format_seconds(s.deadline_s)}" if s.deadline_s else ", no deadline"
    writes = c.workload.model.writes
    lengths = f", {s.input.mean:,.0f} tokens in and {s.output.mean:,.0f} out on average" if writes else ""
    slo = f", {', '.join(map(str, s.slo))}" if s.slo else ", no SLO"
    return f"{work}{lengths}, {_precision(c)}{slo}"


def _precision(c: ServingComparison) -> str:
    """The precision, and what stands in for it on which chips."""
    wanted = c.workload.serve.precision
    others: dict[str, list[str]] = {}
    for row in c.rows:
        if row.precision != wanted:
            others.setdefault(row.precision, []).append(row.accelerators.chip.id)
    instead = "; ".join(f"{name} on {', '.join(dict.fromkeys(chips))}" for name, chips in others.items())
    return f"{wanted} ({instead})" if instead else wanted


def refusals(refused: Sequence[Refused]) -> list[str]:
    """One line a reason; chips that miss the same thing share it."""
    groups: dict[str, list[str]] = {}
    for r in refused:
        missing = r.kind == "precision" or r.reason.endswith("has no public price")
        reason = r.reason.replace(f"{r.chip.id} has", "has") if missing else r.reason
        if r.kind == "slo":  # the line begins with the name
            reason = reason.removeprefix(f"on {r.chip.id} ").removeprefix(f"{r.name} ")
        unlock = f"; {r.unlock}" if r.unlock else ""
        groups.setdefault(reason + unlock, []).append(r.chip.id if missing else r.name)
    return [f"{', '.join(names)}: {why}" for why, names in groups.items()]

"""The comment on a pull request, in Markdown that GitHub and GitLab both read."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.deploy.ci.judge import FAILING, Comparison, Verdict
from chipwise.deploy.ci.results import CALLS, TargetResult, compilers
from chipwise.present.numbers import plural
from chipwise.present.safe import safe
from chipwise.units import format_bytes, format_money, format_seconds

MARK = "<!-- chipwise -->"  # by which a workflow finds the comment that it wrote before
MOST_ROWS = 200  # GitHub takes 65,536 characters of a comment (docs.github.com, 2026-11-20)
MOST_PROBLEM = 300  # characters
_ICONS = {Verdict.FASTER: "🟢", Verdict.FIXED: "🟢", Verdict.NEW: "🔵", Verdict.GONE: "⚪"}


def comment_text(rows: Sequence[Comparison], limit: float) -> str:
    """The comment."""
    bad = [row for row in rows if row.fails]
    lines = [MARK, f"### chipwise: {_headline(rows, bad, limit)}", ""]
    lines += ["| | program | target | a step | memory of a device | " + f"{CALLS:,} steps cost |", "|-|-|-|-|-|-|"]
    lines += [_line(row) for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        lines.append(f"\n{len(rows) - MOST_ROWS:,} more rows are in the files of the run.")
    problems = [row for row in rows[:MOST_ROWS] if row.head is not None and row.head.problem]
    lines += ["", *(_problem(row) for row in problems)] if problems else []
    lines += ["", *_notes(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _headline(rows: Sequence[Comparison], bad: Sequence[Comparison], limit: float) -> str:
    if not rows:
        return "nothing was checked"
    if not bad:
        return f"{plural(len(rows), 'target')} compile and fit, none slower by more than {limit:.0%}"
    counts = [(verdict, sum(row.verdict is verdict for row in bad)) for verdict in Verdict if verdict in FAILING]
    return f"{len(bad)} of {plural(len(rows), 'target')} fail: " + ", ".join(
        f"{count} {verdict}" + (f" by more than {limit:.0%}" if verdict is Verdict.SLOWER else "")
        for verdict, count in counts
        if count
    )


def _line(row: Comparison) -> str:
    icon = "🔴" if row.fails else _ICONS.get(row.verdict, "")
    base, head, result = row.base, row.head, row.result
    cells = [
        f"{icon} {row.verdict}".strip(),
        f"`{_cell(result.check)}`",
        _cell(result.target) or "–",
        _figure(base, head, "seconds", row.slower),
        _figure(base, head, "memory_bytes", row.larger),
        _figure(base, head, "usd", row.dearer),
    ]
    return "| " + " | ".join(cells) + " |"


_SHOWN = {"seconds": format_seconds, "memory_bytes": format_bytes, "usd": format_money}


def _figure(base: TargetResult | None, head: TargetResult | None, name: str, change: float | None) -> str:
    before = getattr(base, name) if base is not None else None
    after = getattr(head, name) if head is not None else None
    show = _SHOWN[name]
    if after is None:
        return f"~~{show(before)}~~" if before is not None else "–"
    if change is None:
        return show(after)
    return f"{show(after)} ({change:+.1%})" if abs(change) >= 0.0005 else show(after)


def _problem(row: Comparison) -> str:
    assert row.head is not None
    words = safe(row.head.problem, MOST_PROBLEM).replace("`", "'")
    return f"- `{_cell(row.head.check)}` on {_cell(row.head.target) or '–'}, {row.head.answer}: `{words}`"


def _notes(rows: Sequence[Comparison]) -> list[str]:
    base = compilers([row.base for row in rows if row.base is not None])
    head = compilers([row.head for row in rows if row.head is not None])
    moved = [f"{name} {base[name]} → {version}" for name, version in head.items() if base.get(name, version) != version]
    lines = [
        "Changes are against the base branch. Times are those of the compilers' schedules (`chipwise check`), costs at "
        "the cheapest listed offer."
    ]
    return [*lines, "", f"The compilers differ: {', '.join(moved)}."] if moved else lines


def _cell(text: str) -> str:
    """Text of anyone's, harmless in a cell of a table."""
    return safe(text, 120).replace("|", "\\|").replace("`", "'").replace("<", "&lt;").replace("@", "@\u200b")

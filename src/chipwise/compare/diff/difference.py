"""The difference of two decisions: the pick, every row, the question, and what was assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chipwise.compare.diff.causes import Cause, causes, percent
from chipwise.compare.diff.document import Document
from chipwise.errors import InputError
from chipwise.present.blocks import Block, Text, section
from chipwise.present.columns import Column, flat, padded, record, table
from chipwise.present.result import Result
from chipwise.units import format_seconds


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """Chips in one decision or both."""

    name: str
    chip: str
    rank_before: int | None
    rank_after: int | None
    before: float | None  # what decides: dollars, seconds, kWh or joules
    after: float | None
    shown: tuple[str, str]  # both for people
    causes: tuple[Cause, ...]
    missing: str = ""  # where it is in one decision alone: why

    @property
    def changed(self) -> bool:
        """Whether anything about it did."""
        return bool(self.causes or self.missing or self.rank_before != self.rank_after)

    @property
    def change(self) -> str:
        """What decides, in percent."""
        if self.before is None or self.after is None:
            return ""
        return "none" if self.before == self.after else percent(self.before, self.after)

    @property
    def why(self) -> str:
        """Every cause in words."""
        return self.missing or "; ".join(cause.words for cause in self.causes)


@dataclass(frozen=True, slots=True)
class Asked:
    """A part of the question that is another now."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        name = self.field.partition(".")[2] or self.field
        seconds = name.endswith("_seconds")
        before, after = (
            format_seconds(float(v)) if seconds and isinstance(v, int | float) else _said(v)
            for v in (self.before, self.after)
        )
        return f"{name.removesuffix('_seconds').replace('_', ' ')}: {before} to {after}"


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Result):
    """Two decisions side by side: what changed, and why."""

    VERB: ClassVar[str] = "diff"
    before: Document
    after: Document
    question: tuple[Asked, ...]
    rows: tuple[ChangedRow, ...]
    assumed_before: tuple[str, ...]  # lines that the other decision doesn't have
    assumed_after: tuple[str, ...]

    @property
    def pick_changed(self) -> bool:
        """Whether another set of chips is picked."""
        return self.before.pick != self.after.pick

    def headline(self) -> str:
        """The pick, and whether it is the same."""
        if not self.pick_changed:
            return f"Pick {self.after.pick or 'none'}, as before"
        return f"Pick {self.after.pick or 'none'} instead of {self.before.pick or 'none'}"

    def why(self) -> str:
        """Why the pick is another, or what it takes now, in a sentence."""
        names = dict.fromkeys(name for name in (self.after.pick, self.before.pick) if name)
        told = [self._told(name) for name in names]
        return "; ".join(words for words in told if words) + "." if any(told) else ""

    def _told(self, name: str) -> str:
        row = next((row for row in self.rows if name in (row.name, _other_name(row))), None)
        if row is None:
            return ""
        if row.missing:
            return f"{row.name}: {row.missing}"
        before, after = row.shown
        if before == after and not row.causes:
            return f"{row.name} is at {after} as before"
        moved = f"{row.name} went from {before} to {after}" + (f" ({row.change})" if row.change else "")
        return f"{moved}: {row.why}" if row.why else moved

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "objective": {"before": self.before.objective, "after": self.after.objective},
            "pick": {"before": self.before.pick, "after": self.after.pick, "changed": self.pick_changed},
            "words": {"pick": self.headline(), "why": self.why()},
            "versions": {"before": self.before.data.get("chipwise"), "after": self.after.data.get("chipwise")},
            "question": [{"field": a.field, "before": a.before, "after": a.after} for a in self.question],
            "rows": [record(ROWS, row) for row in self.rows],
            "assumptions": {"before": list(self.assumed_before), "after": list(self.assumed_after)},
        }

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: a row for each set of chips."""
        return padded([flat(ROWS, row) | {"why": row.why} for row in self.rows])

    def blocks(self) -> list[Block]:
        """For people: the pick and why, the question, the rows that changed, the assumptions."""
        changed = [row for row in self.rows if row.changed]
        out: list[Block] = [Text(f"{self.before.name} to {self.after.name}"), Text(self.headline() + ".")]
        if why := self.why():
            out.append(Text(why))
        out += section("Asked otherwise", [str(asked) for asked in self.question])
        if changed:
            strong = frozenset(i for i, row in enumerate(changed) if row.name == self.after.pick)
            out += [Text(""), table(ROWS, changed, self, strong=strong)]
        same = len(self.rows) - len(changed)
        if same:
            out.append(Text(f"{same} {'row is' if same == 1 else 'rows are'} as before."))
        out += section("No longer assumed", self.assumed_before)
        return [*out, *section("Assumed now", self.assumed_after)]


def _other_name(row: ChangedRow) -> str:
    """The name of a row in the first decision, where its count was another."""
    count = next((cause for cause in row.causes if cause.kind == "count"), None)
    if count is None:
        return row.name
    return str(count.before) if isinstance(count.before, str) else f"{row.chip}:{count.before}"


def _said(value: Any) -> str:
    if value is None or value == "":
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _ranks(row: ChangedRow) -> str:
    old, new = (str(rank) if rank else "-" for rank in (row.rank_before, row.rank_after))
    return old if old == new else f"{old} -> {new}"


ROWS: list[Column[ChangedRow]] = [
    Column("", None, "#", _ranks, words=True),
    Column("accelerators", lambda r: r.name, "chips", words=True, help="as in the second decision, if it is there"),
    Column("rank_before", lambda r: r.rank_before, help="null where the first decision doesn't have it"),
    Column("rank_after", lambda r: r.rank_after, help="null where the second decision doesn't have it"),
    Column(
        "before",
        lambda r: r.before,
        lambda d: f"{d.before.objective} before",
        lambda r: r.shown[0],
        help="what decides: dollars, seconds, kWh or joules; null without a price",
    ),
    Column("after", lambda r: r.after, lambda d: f"{d.after.objective} now", lambda r: r.shown[1], help="the same"),
    Column("", None, "change", lambda r: r.change),
    Column(
        "causes",
        lambda r: [{"kind": c.kind, "before": c.before, "after": c.after, "words": c.words} for c in r.causes],
        nested=True,
        help="`kind` (question, price, count, layout, software, evidence or model), `before`, `after`, `words`",
    ),
    Column("missing", lambda r: r.missing or None, help="why only one decision has it; else null"),
    Column("", None, "why", lambda r: r.why, words=True, under=True),
]


def compared(before: Document, after: Document) -> Difference:
    """What changed from one decision to another."""
    if before.serving != after.serving:
        kinds = ["a served model" if d.serving else "a training run" for d in (before, after)]
        raise InputError("after", after.name, f"a decision on {kinds[0]} as before, not on {kinds[1]}")
    question = _question(before, after)
    rows = _rows(before, after, any(asked.field.startswith(("workload", "demand")) for asked in question))
    old, new = (tuple(map(str, d.data.get("assumptions", ()))) for d in (before, after))
    gone, added = (tuple(x for x in a if x not in b) for a, b in ((old, new), (new, old)))
    return Difference(before, after, question, rows, gone, added)


def _question(before: Document, after: Document) -> tuple[Asked, ...]:
    old, new = before.question(), after.question()
    fields = dict.fromkeys((*old, *new))
    return tuple(Asked(f, old.get(f), new.get(f)) for f in fields if old.get(f) != new.get(f))


def _rows(before: Document, after: Document, question: bool) -> tuple[ChangedRow, ...]:
    """Rows of the second decision in its order, then those that only the first has."""
    partners = _partners(before, after)
    rows = []
    for row in after.rows:
        old = partners.get(_name(row))
        found = causes(old, row, question) if old is not None else ()
        rows.append(_changed(before, after, old, row, found))
    matched = {_name(old) for old in partners.values()}
    gone = [old for old in before.rows if _name(old) not in matched]
    return (*rows, *(_changed(before, after, old, None, ()) for old in gone))


def _partners(before: Document, after: Document) -> dict[str, Mapping[str, Any]]:
    """By name in the second decision, the row of the first: the same chips, else the only ones of that kind."""
    left = {_name(row): row for row in before.rows}
    partners = {name: left.pop(name) for name in map(_name, after.rows) if name in left}
    kinds = Counter(row["accelerators"]["chip"] for row in after.rows if _name(row) not in partners)
    for row in after.rows:
        name, chip = _name(row), row["accelerators"]["chip"]
        same = [key for key, old in left.items() if old["accelerators"]["chip"] == chip]
        if name not in partners and len(same) == 1 and kinds[chip] == 1:
            partners[name] = left.pop(same[0])
    return partners


def _name(row: Mapping[str, Any]) -> str:
    return str(row["accelerators"]["name"])


def _changed(
    before: Document,
    after: Document,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    found: tuple[Cause, ...],
) -> ChangedRow:
    named = new if new is not None else old
    assert named is not None  # a row is in one of them
    chip = str(named["accelerators"]["chip"])
    missing = ""
    if old is None or new is None:
        without, when = (before, "before") if old is None else (after, "now")
        refusal = without.refusal(chip)
        missing = f"refused {when}: {refusal}" if refusal else f"not compared {when}"
    was, now = before.value(old), after.value(new)
    return ChangedRow(
        _name(named),
        chip,
        None if old is None else before.rows.index(old) + 1,
        None if new is None else after.rows.index(new) + 1,
        was,
        now,
        ("-" if old is None else before.shown(was), "-" if new is None else after.shown(now)),
        found,
        missing,
    )

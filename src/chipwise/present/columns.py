"""Columns declared once: what a result's rows hold, and how people see it.

A package declares a tuple of `Column` for each kind of row. The terminal's table, JSON, CSV, HTML, pandas and the
report are all drawn from that tuple, so that adding a column is adding one line to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from chipwise.present.blocks import Cell, Table
from chipwise.present.data import flatten, to_data

R = TypeVar("R")
Q = TypeVar("Q")


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column: `key` and `value` for programs, `header` and `show` for people.

    `help` says what it holds and `unit` in which unit `value` is; HTML shows both when a reader points at the header.
    A column without `header` is in the data alone, one without `key` in tables alone. `value` is in SI units, and may
    be an estimate or a record (anything with `to_dict`). `nested` values stay out of flat rows (CSV, pandas).
    On a narrow terminal a column `under` moves beneath its row; columns with a `drop` are left out, 1 first.
    """

    key: str = ""
    value: Callable[[R], Any] | None = None
    header: str | Callable[[Any], str] = ""
    show: Callable[[R], Cell] | None = None
    help: str = ""
    unit: str = ""
    words: bool = False
    under: bool = False
    drop: int = 0
    nested: bool = False

    def title(self, result: Any) -> str:
        """The header in a table of that result."""
        return self.header if isinstance(self.header, str) else self.header(result)

    @property
    def tip(self) -> str:
        """What it holds, with the unit of its value.

        >>> Column("step_seconds", help="one step", unit="s").tip, Column("mfu", help="of the peak").tip
        ('one step (s)', 'of the peak')
        """
        words = self.help.replace("`", "")
        return f"{words} ({self.unit})" if words and self.unit else words

    def cell(self, row: R) -> Cell:
        """What people see of a row."""
        if self.show is not None:
            return self.show(row)
        assert self.value is not None  # a column has one of them
        value = self.value(row)
        return "–" if value is None else str(value)

    def within(self, held: Callable[[Q], R | None], missing: str = "") -> Column[Q]:
        """The column of rows that hold one of these; of a row that holds none, people see `missing`."""
        of = self.value

        def value(row: Q) -> Any:
            inner = held(row)
            return None if inner is None or of is None else of(inner)

        def show(row: Q) -> Cell:
            inner = held(row)
            return missing if inner is None else self.cell(inner)

        return cast("Column[Q]", replace(cast(Any, self), value=value if of else None, show=show))


def table(columns: Iterable[Column[R]], rows: Sequence[R], result: Any = None, **options: Any) -> Table:
    """The rows as people see them; `options` as of `Table`.

    >>> pair = (Column("name", lambda r: r[0], "chip", words=True), Column("gib", lambda r: r[1], "GiB"))
    >>> table(pair, [("h100", 80)]).rows
    (('h100', '80'),)
    """
    shown = [(column, title) for column in columns if (title := column.title(result))]
    return Table(
        tuple(title for _, title in shown),
        tuple(tuple(column.cell(row) for column, _ in shown) for row in rows),
        left=frozenset(title for column, title in shown if column.words),
        under=tuple(title for column, title in shown if column.under),
        drop=tuple(title for column, title in sorted(shown, key=lambda pair: pair[0].drop) if column.drop),
        tips={title: column.tip for column, title in shown if column.tip},
        **options,
    )


def chosen(columns: Sequence[Column[R]], *headers: str) -> list[Column[R]]:
    """The columns with these headers, in this order.

    >>> pair = (Column("name", lambda r: r[0], "chip", words=True), Column("gib", lambda r: r[1], "GiB"))
    >>> [column.key for column in chosen(pair, "GiB")]
    ['gib']
    """
    named = {column.header: column for column in columns}
    return [named[header] for header in headers]


def narrowed(block: Table, most: int) -> Table:
    """A table of at most so many columns, for paper: those a narrow terminal would drop first are left out.

    >>> narrowed(Table(["a", "b", "c"], [["1", "2", "3"]], drop=("b", "a")), 2).headers
    ('a', 'c')
    """
    out = set(block.drop[: max(0, len(block.headers) - most)])
    kept = [i for i, header in enumerate(block.headers) if header not in out]
    return replace(
        block,
        headers=tuple(block.headers[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in block.rows),
        drop=tuple(name for name in block.drop if name not in out),
    )


def renamed(block: Table, names: Mapping[str, str]) -> Table:
    """A table with other headers.

    >>> renamed(Table(["a", "b"], [["1", "2"]], drop=("b",)), {"b": "c"}).headers
    ('a', 'c')
    """

    def of(header: str) -> str:
        return names.get(header, header)

    return replace(
        block,
        headers=tuple(map(of, block.headers)),
        left=frozenset(map(of, block.left)),
        under=tuple(map(of, block.under)),
        drop=tuple(map(of, block.drop)),
        tips={of(header): tip for header, tip in block.tips.items()},
    )


def without(block: Table, header: str) -> Table:
    """A table less one column, if it has it.

    >>> without(Table(["a", "b"], [["1", "2"]]), "a").headers
    ('b',)
    """
    kept = [i for i, name in enumerate(block.headers) if name != header]
    return replace(
        block,
        headers=tuple(block.headers[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in block.rows),
        drop=tuple(name for name in block.drop if name != header),
    )


def key_table(columns: Iterable[Column[R]]) -> list[str]:
    """The keys of a row as a table in Markdown, for documentation.

    >>> some = (Column("name", help="of the chip"), Column("", None, "90 %"), Column("gib", help="memory", unit="GiB"))
    >>> key_table(some)[2:]
    ['| `name` | | of the chip |', '| `gib` | GiB | memory |']
    """
    rows = [f"| `{c.key}` | {c.unit} | {c.help} |".replace("|  |", "| |") for c in columns if c.key]
    return ["| key | unit | what it is |", "|---|---|---|", *rows]


def record(columns: Iterable[Column[R]], row: R) -> dict[str, Any]:
    """A row as JSON has it.

    >>> record((Column("name", lambda r: r[0]), Column("gib", lambda r: r[1])), ("h100", 80))
    {'name': 'h100', 'gib': 80}
    """
    return {column.key: to_data(column.value(row)) for column in columns if column.value is not None and column.key}


def flat(columns: Iterable[Column[R]], row: R) -> dict[str, Any]:
    """A row as CSV and pandas have it: estimates take three columns, records one a field."""
    out: dict[str, Any] = {}
    for column in columns:
        if column.value is not None and column.key and not column.nested:
            out |= flatten(column.key, column.value(row))
    return out


def padded(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Flat rows with the same columns each: what a row doesn't have is empty.

    >>> padded([{"a": 1}, {"b": 2}])
    [{'a': 1, 'b': None}, {'a': None, 'b': 2}]
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in names} for row in rows]

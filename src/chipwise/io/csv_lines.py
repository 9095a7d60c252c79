"""Lines of a CSV file that a user points at; what is wrong is said with file, line and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

from chipwise.errors import AmbiguousCurrency, AmbiguousNumber, BrokenFile, InputError, UnknownName
from chipwise.io.files import read_text
from chipwise.io.printable import csv_text
from chipwise.units import parse_scaled

Quantity = TypeVar("Quantity")
MAX_CHIPS = 1_000_000  # of one line: more is another unit or a slip


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file by the names of its columns."""

    file: str
    number: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return csv_text(self.cells.get(column, "").strip())

    def where(self, column: str) -> str:
        """How a message begins.

        >>> Line("own.csv", 3, {}).where("chip")
        'own.csv line 3 chip'
        """
        return f"{self.file} line {self.number} {column}"

    def wrong(self, column: str, accepted: str) -> BrokenFile:
        """The error that a cell of this line is."""
        return BrokenFile(self.where(column), self[column] or "nothing", accepted)

    def words(self, column: str, accepted: str) -> str:
        """A cell that must not be empty."""
        if not self[column]:
            raise self.wrong(column, accepted)
        return self[column]

    def number_of(self, column: str, accepted: str, most: float, zero: bool = False) -> float:
        """A cell that holds a number above 0, or of at least 0."""
        try:
            value = parse_scaled(self[column], self.where(column), accepted)
        except AmbiguousNumber:
            raise
        except InputError:
            value = math.nan
        if not 0 <= value <= most or (value == 0 and not zero):  # nan is neither
            raise self.wrong(column, accepted)
        return value

    def amount_of(self, column: str, accepted: str, read: Callable[[str, str], Quantity]) -> Quantity:
        """A cell as a reader of quantities reads it, which is given its text and where it stands."""
        try:
            return read(self[column], self.where(column))
        except (AmbiguousNumber, AmbiguousCurrency):
            raise
        except InputError:
            raise self.wrong(column, accepted) from None

    def day(self, column: str, today: date) -> str:
        """A date as YYYY-MM-DD, at most a day ahead: it may be tomorrow elsewhere."""
        accepted = "a date such as 2026-08-22, not after today"
        try:
            found = date.fromisoformat(self[column])
        except ValueError:
            raise self.wrong(column, accepted) from None
        if found > today + timedelta(days=1):
            raise self.wrong(column, accepted)
        return found.isoformat()


def read_lines(path: Path, text: str | None = None) -> tuple[tuple[str, ...], Iterator[Line]]:
    """The columns of a small file and its lines; empty lines are passed over."""
    content = read_text(path) if text is None else text
    return lines_of(path.name, content.splitlines())


def lines_of(file: str, text: Iterable[str]) -> tuple[tuple[str, ...], Iterator[Line]]:
    """The columns of CSV text and its lines, read as they are needed."""
    reader = csv.reader(text, strict=True)
    try:
        header = tuple(name.strip() for name in next(reader))
    except StopIteration:
        raise BrokenFile("file", file, "a file that isn't empty") from None
    except csv.Error as error:
        raise BrokenFile(f"{file} line 1", str(error), "plain CSV") from None
    twice = [name for i, name in enumerate(header) if name and name in header[:i]]
    if twice:
        raise BrokenFile(f"{file} line 1", twice[0], "each column only once")

    def rest() -> Iterator[Line]:
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if len(cells) != len(header):
                    raise BrokenFile(
                        f"{file} line {reader.line_num}",
                        f"{len(cells)} cells",
                        f"{len(header)} cells, as the header has",
                    )
                yield Line(file, reader.line_num, dict(zip(header, cells, strict=True)))
        except csv.Error as error:
            raise BrokenFile(f"{file} line {reader.line_num}", str(error), "plain CSV") from None

    return header, rest()


def check_columns(file: str, header: Sequence[str], needed: Sequence[str], known: Sequence[str] = ()) -> None:
    """Refuse a file that lacks columns, naming all; with `known`, also one that has another (a slip of the pen)."""
    missing = [name for name in needed if name not in header]
    if missing:
        split = ", and cells split by commas" if len(header) == 1 and (";" in header[0] or "\t" in header[0]) else ""
        raise BrokenFile(
            f"{file} line 1",
            ",".join(header),
            f"the {'columns' if missing[1:] else 'column'} {', '.join(missing)}{split}",
        )
    if known:
        for name in header:
            if name not in known:
                raise UnknownName(f"{file} line 1", name, known)

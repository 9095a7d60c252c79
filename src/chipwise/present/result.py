"""What every verb of the library returns: typed data that shows itself as text, JSON, CSV, pandas and HTML."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from chipwise.present.blocks import Block, Text
from chipwise.present.columns import padded
from chipwise.present.data import flatten, to_data
from chipwise.present.safe import safe

SCHEMA = 1
LONGEST_REPR = 100  # characters: a line of a terminal


class Result:
    """The base of results. A package gives its results a `record`, `blocks` and, where they have rows, `flat_rows`.

    Results are dataclasses with `repr=False`: all that one rests on may be megabytes.
    `VERB` is the command that prints the same: ``chipwise compare`` for a `Comparison`.
    """

    __slots__ = ()
    VERB: ClassVar[str]
    CSV_HEADER: ClassVar[tuple[str, ...]] = ()  # columns of a CSV file that may have no rows

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The result as a document, without what every document begins with."""

    @abstractmethod
    def blocks(self) -> Sequence[Block]:
        """The result for people."""

    def flat_rows(self) -> list[dict[str, Any]]:
        """The result as flat rows for CSV and pandas; a result without rows is one row."""
        return [{name: cell for key, value in self.record().items() for name, cell in flatten(key, value).items()}]

    def to_dict(self) -> dict[str, Any]:
        """The document that ``-o json`` prints."""
        from chipwise.version import __version__

        head = {"schema": SCHEMA, "chipwise": __version__, "command": self.VERB}
        return {**head, **{key: to_data(value) for key, value in self.record().items()}}

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame; needs pandas, which chipwise does without elsewhere."""
        try:
            from pandas import DataFrame
        except ImportError as missing:
            raise ImportError("to_pandas needs pandas: pip install pandas") from missing
        return DataFrame(padded(self.flat_rows()))

    def headline(self) -> str:
        """One line of what the result says: its first line of text, or how many rows it has."""
        first = next(iter(self.blocks()), None)
        if isinstance(first, Text):
            return first.words
        rows = len(self.flat_rows())
        return f"{rows:,} row{'' if rows == 1 else 's'}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {safe(' '.join(self.headline().split()), LONGEST_REPR)}>"

    def __str__(self) -> str:
        from chipwise.present.text import document

        return document(self.blocks())

    def _repr_html_(self) -> str:
        from chipwise.present.html import document

        return document(self.blocks())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What IPython shows: the text and the tables, not every field of every object inside as `repr` does."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}

"""`TablePart`: the rows of a job table that one pass looks at, each column copied only when it is first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from chipwise.route.cluster_state import ClusterState, Floats, Ints
from chipwise.route.job_table_kernels import NOTHING_LEFT, look_up_starts

Read = Callable[[str], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Moment:
    """What all rows of one scheduling pass share."""

    now: float
    free: Ints
    total: Ints
    table: Floats  # [P, chips] when so many chips of a pool are free, with no queue
    starts: Floats | None  # [J, P] predicted starts, where they are given by job and pool
    weights: dict[str, float]


class TablePart(ClusterState):
    """A state whose columns come from `read` at their first use: most policies need half of them.

    It holds until the table changes; a column that is first read after that is an error, not what the table holds then.
    """

    __slots__ = ("_read",)
    _read: Read

    @classmethod
    def of(cls, read: Read, **facts: Any) -> Self:
        """A state with these facts, and all other columns as they are read."""
        part = cls.__new__(cls)
        object.__setattr__(part, "_read", read)
        for name, value in facts.items():
            object.__setattr__(part, name, value)
        return part

    def __getattr__(self, name: str) -> Any:
        """A column, at its first use."""
        if name not in COLUMNS:
            raise AttributeError(name)
        array = self._read(name)
        array.flags.writeable = False
        object.__setattr__(self, name, array)
        return array


class Names(Sequence[str]):
    """The ids of some rows, looked up one by one: a pass needs those of the few jobs that it decides on."""

    def __init__(self, ids: Callable[[], Sequence[str]], rows: Sequence[int]) -> None:
        self._ids, self._rows = ids, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[str]: ...
    def __getitem__(self, k: int | slice) -> str | Sequence[str]:
        if isinstance(k, slice):
            return [*map(self._ids().__getitem__, self._rows[k])]
        return self._ids()[self._rows[k]]

    def __iter__(self) -> Iterator[str]:
        return map(self._ids().__getitem__, self._rows)


COLUMNS = frozenset(ClusterState.__dataclass_fields__)


def column_of(arrays: Mapping[str, NDArray[Any]], rows: Ints | slice, name: str, moment: Moment) -> NDArray[Any]:
    """One column of a state: some rows of a table's, or what follows from them."""

    def column(name: str) -> NDArray[Any]:
        return arrays[name][rows] if isinstance(rows, slice) else arrays[name].take(rows, axis=0)

    if name == "low":
        return np.asarray(column("all_low") * np.maximum(1.0 - column("done"), NOTHING_LEFT)[:, None])
    if name == "joules":
        return np.asarray(column("watts") * column("seconds"))
    if name != "start":
        return column(name)
    chips = column("chips")
    if moment.starts is not None:
        return np.where(chips <= moment.free, moment.now, moment.starts[rows])
    start = np.empty(chips.shape)
    look_up_starts(moment.table, chips, start)
    return start

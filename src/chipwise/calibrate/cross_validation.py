"""Leave-one-group-out cross-validation: refits without each group of rows, and errors of rows they never saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
Refit = TypeVar("Refit")
# group left out, rows to fit, rows left out -> the refit and the errors of the rows left out
Fit = Callable[[Any, Rows, Rows], tuple[Refit, Array]]


def cross_validate(
    fit: Fit[Refit],
    groups: NDArray[Any],
    names: Iterable[Any] | None = None,
    left_out: Callable[[NDArray[Any], Any], Mask] = np.equal,
) -> tuple[dict[Any, Refit], Array]:
    """The refit without each group, by its name, and every row's error by the refit without its own group.

    `names` are the groups to leave out, all unless given; `left_out` says which rows go with one, where that is more
    than its own.

    >>> values = np.array([1.0, 2.0, 6.0])
    >>> def mean(name, kept, out): return float(values[kept].mean()), values[out] - values[kept].mean()
    >>> cross_validate(mean, np.array(["a", "a", "b"]))
    ({'a': 6.0, 'b': 1.5}, array([-5. , -4. ,  4.5]))
    """
    errors, refits = np.zeros(len(groups)), {}
    for name in sorted(set(groups.tolist())) if names is None else names:
        out = left_out(groups, name)
        refits[name], left = fit(name, np.flatnonzero(~out), np.flatnonzero(out))
        every = np.zeros(len(groups))
        every[out] = left
        errors[groups == name] = every[groups == name]
    return refits, errors


def spread_over_folds(groups: Sequence[str], count: int) -> dict[str, int]:
    """The fold of each group: the largest groups are spread over the folds first.

    >>> spread_over_folds(["a", "b", "b", "c"], 2)
    {'b': 0, 'a': 1, 'c': 0}
    """
    size = Counter(groups)
    order = sorted(size, key=lambda group: (-size[group], group))
    return {group: i % count for i, group in enumerate(order)}


def k_folds(count: int, parts: int = 5) -> Sequence[Mask]:
    """Which rows each of some equal parts leaves out."""
    return [np.arange(count) % parts == part for part in range(min(parts, count))]

"""Data of the presets, as NumPy arrays: text that ships with the package, digits that ship with scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pair = tuple[NDArray[np.int32], NDArray[np.int32]]


@cache
def text() -> tuple[NDArray[np.int32], int]:
    """Characters of the text as numbers, and how many different ones there are."""
    import numpy as np

    content = files("chipwise.numerics").joinpath("data/alice.txt").read_text(encoding="ascii")
    alphabet = sorted(set(content))
    index = {character: i for i, character in enumerate(alphabet)}
    return np.array([index[character] for character in content], dtype=np.int32), len(alphabet)


def passages(seed: int, batch: int, length: int) -> Iterator[Pair]:
    """Endless batches of passages, and the same passages one character on."""
    import numpy as np

    characters, _ = text()
    chance = np.random.default_rng(seed)
    while True:
        starts = chance.integers(0, len(characters) - length - 1, batch)[:, None] + np.arange(length)
        yield characters[starts], characters[starts + 1]


@cache
def _digits() -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    import numpy as np
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    loaded = load_digits()
    return (loaded.images / 16.0).astype(np.float32), loaded.target.astype(np.int32)


def digits(seed: int, batch: int) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int32]]]:
    """Endless batches of 8x8 pictures of handwritten digits, and which digits they are."""
    import numpy as np

    images, labels = _digits()
    chance = np.random.default_rng(seed)
    while True:
        order = chance.permutation(len(images))
        for start in range(0, len(order) - batch + 1, batch):
            chosen = order[start : start + batch]
            yield images[chosen], labels[chosen]

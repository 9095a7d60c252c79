"""Every picture is drawn and saved here: matplotlib without a screen, one style, the same bytes for the same figure.

matplotlib takes a second to import, so it is imported where a picture is drawn and nowhere else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from chipwise.errors import InputError
from chipwise.io.atomic import atomic_write

SUFFIXES = (".svg", ".png")
DPI = 130

# Okabe and Ito, "Color Universal Design", 2008: told apart by color-blind readers, and as greys in print
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#767676"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY, BLACK)
INK, FAINT, GRID = "#1f2a30", "#5a6670", "#e3e6e8"

_STYLE: dict[str, Any] = {
    "svg.hashsalt": "chipwise",
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
}


def ready(target: Path, field: str = "plot") -> None:
    """Refuse a picture that couldn't be written, before the work it would show."""
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(field, str(target), f"a file name that ends in {' or '.join(SUFFIXES)}")
    folder = target.resolve().parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(field, str(target), "a file in a folder that exists and can be written to")


@contextmanager
def drawing(words: bool = False) -> Iterator[Any]:
    """pyplot in the one style; figures opened inside are closed at the end.

    With `words` an SVG keeps its letters as text, for pages that bring their own font, and a dollar is a dollar; else
    letters are outlines and dollars enclose formulas.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells of caches and fonts
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    opened = set(pyplot.get_fignums())
    style: Any = {**_STYLE, "svg.fonttype": "none" if words else "path", "text.parse_math": not words}
    with pyplot.rc_context(style):
        try:
            yield pyplot
        finally:
            for number in set(pyplot.get_fignums()) - opened:
                pyplot.close(number)


def save(figure: Any, target: Path, field: str = "plot") -> None:
    """Write a figure atomically; the name's ending says which kind."""
    ready(target, field)
    atomic_write(drawn(figure, target.suffix[1:].lower()), target, field)


def drawn(figure: Any, kind: str) -> bytes:
    """The bytes of a figure as ``svg`` or ``png``; inside `drawing`, whose style decides them too."""
    data = BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(data, format=kind, metadata=metadata)
    return data.getvalue()

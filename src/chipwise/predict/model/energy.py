"""Watts while a step runs, from what the chip is busy with, or as somebody measured them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chipwise.catalog import Chip
from chipwise.catalog.economics import CHIP_IDLE_WATTS, CHIP_WATTS, Assumption

# Share of the TDP above idle that a chip draws while it computes, and while it waits for wires or the host.
# Computing: eight H100 in a DGX drew 8.4 kW of the 10.2 kW rated when training, at most (Latif et al., IEEE
# Access 13, 2025), which leaves the GPUs near 0.93 of their TDP. Waiting: an assumption, between idle and that.
COMPUTING = 0.93
WAITING = 0.40


Figures = Mapping[str, Assumption]  # by name; those of power are of one chip each
NONE: Figures = {}


def watts(chip: Chip, computing: float, measured: Figures = NONE) -> float:
    """Mean watts of one chip that computes for a share `computing` of the time and waits for the rest.

    What was measured of the chip while jobs held it counts instead, whatever a job does: the mean of all of them.

    >>> from chipwise.catalog import load
    >>> h100 = load().chips["h100"]
    >>> h100.idle_w < watts(h100, 0.0) < watts(h100, 1.0) < h100.tdp_w
    True
    """
    drawn = measured.get(f"{CHIP_WATTS}.{chip.id}")
    if drawn is not None:
        return drawn.value
    level = COMPUTING * computing + WAITING * (1 - computing)
    return chip.idle_w + (chip.tdp_w - chip.idle_w) * level


def idle_watts(chip: Chip, measured: Figures = NONE) -> float:
    """Watts of one chip that nobody uses: as measured, else its data sheet's."""
    drawn = measured.get(f"{CHIP_IDLE_WATTS}.{chip.id}")
    return chip.idle_w if drawn is None else drawn.value


def waiting_watts(chip: Chip, measured: Figures = NONE) -> float:
    """Watts of one chip whose job waits for requests: what was measured while jobs held it has such moments in it."""
    drawn = measured.get(f"{CHIP_WATTS}.{chip.id}")
    return chip.idle_w if drawn is None else drawn.value


def power_in_words(chips: Iterable[Chip], measured: Figures) -> list[str]:
    """What was measured of the power of chips, in place of what is assumed; nothing where that stands."""
    held = {chip.id: measured.get(f"{CHIP_WATTS}.{chip.id}") for chip in chips}
    return [
        f"{name} draws {drawn.value:.0f} W while a job holds it ({drawn.low:.0f} to {drawn.high:.0f} W; "
        f"{drawn.source}, {drawn.date}), in place of what is assumed"
        for name, drawn in held.items()
        if drawn is not None
    ]

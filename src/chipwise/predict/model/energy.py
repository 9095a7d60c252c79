"""Watts while a step runs, from what the chip is busy with."""

from __future__ import annotations

from chipwise.catalog import Chip

# Share of the TDP above idle that a chip draws while it computes, and while it waits for wires or the host.
# Computing: eight H100 in a DGX drew 8.4 kW of the 10.2 kW rated when training, at most (Latif et al., IEEE
# Access 13, 2025), which leaves the GPUs near 0.93 of their TDP. Waiting: an assumption, between idle and that.
COMPUTING = 0.93
WAITING = 0.40


def watts(chip: Chip, computing: float) -> float:
    """Mean watts of one chip that computes for a share `computing` of the time and waits for the rest.

    >>> from chipwise.catalog import load
    >>> h100 = load().chips["h100"]
    >>> h100.idle_w < watts(h100, 0.0) < watts(h100, 1.0) < h100.tdp_w
    True
    """
    level = COMPUTING * computing + WAITING * (1 - computing)
    return chip.idle_w + (chip.tdp_w - chip.idle_w) * level

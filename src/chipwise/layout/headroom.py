"""Memory that a layout leaves free: what the runtime takes is reserved, and of the rest a share is headroom.

The reserve is for what the bookkeeping does not count (runtime, communication buffers, fragmentation) and is in use in
every run. Headroom is on top: for a longest batch, an uneven expert, an evaluation step or a new release of the stack.
"""

from __future__ import annotations

from chipwise.catalog import Chip
from chipwise.errors import InputError
from chipwise.predict.model.memory import RESERVE
from chipwise.units import parse_number

# Of the memory that a chip can allocate. A choice, not a measurement: what out-of-memory errors of runs that fitted at
# first are made of is some percent of a chip.
HEADROOM = 0.05
MOST_PERCENT = 90.0


def read_headroom(percent: str | float | None) -> float:
    """The share that a percentage as people write it stands for; the default where there is none.

    >>> read_headroom("10%"), read_headroom(0), read_headroom(None)
    (0.1, 0.0, 0.05)
    """
    if percent is None:
        return HEADROOM
    accepted = f"a percentage of a chip's memory from 0 to {MOST_PERCENT:g}, such as 5"
    named = isinstance(percent, str) and percent.rstrip().endswith("%")
    share = parse_number(str(percent).strip().removesuffix("%"), "headroom", accepted)
    if not named and 0 < share < 1:  # a share or a percentage
        raise InputError("headroom", percent, f"{share:g}% or {share * 100:g}%: {accepted}")
    if share > MOST_PERCENT:
        raise InputError("headroom", percent, accepted)
    return share / 100


def allocatable(chip: Chip, reserve: float = RESERVE) -> float:
    """Bytes of a chip that a layout could take if it left nothing free."""
    return chip.usable_bytes * (1 - reserve)


def required(chip: Chip, headroom: float) -> float:
    """Bytes of a chip that have to stay free."""
    return chip.usable_bytes * headroom


def in_words(headroom: float) -> str:
    """A headroom as a requirement: ``5 % of the memory``."""
    return f"{headroom * 100:g} % of the memory"

"""A replica before it is set up: what runs where, under which stack and what load."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from chipwise.catalog import Chip, Stack
from chipwise.serving.split import Split
from chipwise.workload.model import Model
from chipwise.workload.serve import Speculation


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """A model in a precision on the chips of one replica, the stack that serves it, and its requests."""

    model: Model
    chip: Chip
    split: Split
    precision: str  # of the weights
    kv_precision: str
    stack: Stack
    release: float | None = None  # of the stack, in years; None: today's
    load: str = "online"  # "open", "online" (users in a closed loop), "offline" or "batch"
    longest: float = 0.0  # tokens of the longest request
    typical: float = inf  # tokens of context that sequences have on average
    speculation: Speculation | None = None

    @property
    def scored(self) -> int:
        """Tokens of a decoding sequence in an iteration."""
        return 1 + (self.speculation.tokens if self.speculation else 0)

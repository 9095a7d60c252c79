"""Answers as plain dictionaries: what `-o json` prints. Documented in docs/json.md; SI units throughout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators
    from chipwise.predict.estimate import Estimate

SCHEMA = 1


def head(command: str) -> dict[str, Any]:
    """How every document begins."""
    from chipwise.version import __version__

    return {"schema": SCHEMA, "chipwise": __version__, "command": command}


def estimate(e: Estimate) -> dict[str, Any]:
    """A number with its interval and evidence."""
    return {"value": e.value, "low": e.low, "high": e.high, "evidence": e.evidence, "because": e.because}


def accelerators(acc: Accelerators) -> dict[str, Any]:
    """Chips and how many."""
    return {"name": str(acc), "chip": acc.chip.id, "count": acc.count, "shape": list(acc.shape), "slices": acc.slices}

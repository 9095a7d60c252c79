"""Where a step's time comes from: `--evidence` of predict and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.cli.options import EVIDENCE
from chipwise.errors import InputError

if TYPE_CHECKING:
    from chipwise.catalog.calibration import Calibration
    from chipwise.predict.prediction import Prediction


def known_evidence(evidence: str) -> None:
    """Refuse what isn't one of the kinds."""
    if evidence not in EVIDENCE:
        raise InputError("--evidence", evidence, ", ".join(EVIDENCE))


def with_evidence(found: Prediction, evidence: str, calibration: Calibration) -> Prediction:
    """The prediction by the evidence asked for: ``compiled`` refuses what can't be compiled, ``auto`` says so."""
    if evidence == "modelled":
        return found
    from chipwise.compiled.prediction import compile_prediction, compiled_prediction, kept_prediction
    from chipwise.present.progress import stages

    if evidence == "auto":
        made = kept_prediction(found)
        return found if made is None else compiled_prediction(found, made, calibration)
    with stages(f"compiling for {found.accelerators}") as shown:
        compiled = compile_prediction(found, None, shown)
    return compiled_prediction(found, compiled, calibration)


def mixing(evidence: str, calibration: Calibration) -> Callable[[Prediction], Prediction] | None:
    """What a comparison does to each prediction: compile where it can, and say where it couldn't."""
    if evidence == "modelled":
        return None
    from chipwise.errors import DoesNotFit, Refusal

    def change(found: Prediction) -> Prediction:
        try:
            return with_evidence(found, evidence, calibration)
        except DoesNotFit:
            raise
        except Refusal as refusal:
            return replace(found, assumptions=(*found.assumptions, f"not compiled: {refusal.reason}"))

    return change

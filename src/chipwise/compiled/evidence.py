"""Where a step's time comes from: the model, or the vendor's compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chipwise.catalog.calibration import Calibration
from chipwise.errors import DoesNotFit, InputError, Refusal
from chipwise.predict.prediction import Prediction

EVIDENCE = ("modelled", "compiled", "auto")
Stage = Callable[[str, float], None]  # told the stage of a compilation and its seconds


def known_evidence(evidence: str) -> str:
    """The kind of evidence, if it is one that can be asked for."""
    if evidence not in EVIDENCE:
        raise InputError("evidence", evidence, ", ".join(EVIDENCE))
    return evidence


def with_evidence(
    prediction: Prediction, evidence: str, calibration: Calibration, stage: Stage | None = None
) -> Prediction:
    """The prediction by the evidence asked for: ``compiled`` refuses what can't be compiled, ``auto`` says so."""
    if evidence == "modelled":
        return prediction
    from chipwise.compiled.prediction import compile_prediction, compiled_prediction, kept_prediction

    if evidence == "auto":
        kept = kept_prediction(prediction)
        return prediction if kept is None else compiled_prediction(prediction, kept, calibration)
    return compiled_prediction(prediction, compile_prediction(prediction, None, stage), calibration)


def better_evidence(
    evidence: str, calibration: Calibration, stage: Stage | None = None
) -> Callable[[Prediction], Prediction] | None:
    """What a comparison does to each prediction: compile where it can, and say where it couldn't."""
    if evidence == "modelled":
        return None

    def change(prediction: Prediction) -> Prediction:
        try:
            return with_evidence(prediction, evidence, calibration, stage)
        except DoesNotFit:
            raise
        except Refusal as refusal:
            return replace(prediction, assumptions=(*prediction.assumptions, f"not compiled: {refusal.reason}"))

    return change

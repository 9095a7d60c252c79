"""How sure a first token under an open load is, where requests come by themselves, whatever was answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.catalog.calibration import ServingCalibration
from chipwise.predict.estimate import Distance
from chipwise.serving.coefficients import OPEN_LOAD
from chipwise.serving.distance import ENOUGH, Place, Seen
from chipwise.serving.estimates import Correction

BECAUSE = "errors of first tokens under open loads on models left out, and of iterations on sources left out"
ITERATIONS = "errors of first tokens of the stack under open loads, of other chips, and of iterations of this one"


def open_correction(calibration: ServingCalibration, place: Place, later: Correction, closed: Correction) -> Correction:
    """Of a first token under an open load: what is known of its iterations, and how far such figures were off.

    A first token is made of iterations and of what a stack adds on its host: on a chip whose open loads nobody has
    published it is as uncertain as either. Where there are none of the stack, as first tokens of closed loops are.
    """
    learned: Mapping[str, Any] = calibration.first_tokens
    places = Seen.from_texts(learned.get("seen", {}))
    if places.of_stack(place.stack) < ENOUGH:
        return replace(closed, factor=later.factor)
    low, high = learned["bounds"]
    if places.distance(replace(place, load=OPEN_LOAD)) is Distance.REGIME and not place.like:
        return Correction(later.factor, low, high, "modelled", BECAUSE, Distance.REGIME)
    ends = min(low, later.low), max(high, later.high)
    why = later.because if later.evidence == "bounded" else ITERATIONS
    return Correction(later.factor, *ends, later.evidence, why, later.distance)

"""Errors of serving predictions by distance: refits without whole repositories, chips, designs, vendors and stacks.

A figure counts at the distance of what its prediction was fitted to: its repository is always left out, and then in
turn its load, stack, chip, design and vendor, wherever they were published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.serving import REFIT, linear, predicted, prepare, ratios, solve_without
from chipwise.catalog.calibration import Calibration
from chipwise.predict.learn.gp import Points
from chipwise.serving import residuals
from chipwise.serving.coefficients import NAMES
from chipwise.serving.distance import Place, Seen
from chipwise.serving.estimates import METRICS
from chipwise.serving.widths import Error
from chipwise.validate.serving import model_key, place_of_row, point_of
from chipwise.validate.serving_rows import ServingRow, repository_of

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Say = Callable[[str], None]

TRAITS = ("load", "stack", "chip", "design", "vendor")


class Refits:
    """Published rows under the effects of a calibration, and refits of it without some of the rows it was fitted to."""

    def __init__(self, rows: Sequence[ServingRow], later: Sequence[ServingRow], calibration: Calibration) -> None:
        self.observations, self.rows = prepare(rows, calibration, later)
        o = self.observations
        self.later: Mask = o.later
        effects = calibration.serving.effects
        self.effects = np.array([[effects.get(key, {}).get(name, 0.0) for name in o.names] for key in NAMES])
        self.ratio = ratios(o, self.rows, self.effects, calibration)
        self.around = linear(o, self.ratio, self.effects)
        self.locations: Points = residuals.points([point_of(self.rows[i]) for i in o.row])
        self.places = [place_of_row(self.rows[i]) for i in o.row]
        self.repositories = np.array([repository_of(self.rows[i].source) for i in o.row])

    def errors(self, kept: Mask, wanted: Mask) -> Array:
        """log(observed / predicted) of the entries wanted, refitted to those kept."""
        inside, outside = np.flatnonzero(kept), np.flatnonzero(wanted)
        effects = solve_without(self.observations, np.flatnonzero(~kept), self.ratio, self.around, REFIT)
        errors = np.log(self.observations.observed / predicted(self.observations, effects, self.ratio))
        for metric in METRICS:
            of = self.observations.metric == metric
            near, far = inside[of[inside]], outside[of[outside]]
            if len(near) and len(far):
                weights = residuals.fit(metric, self.locations.take(near), errors[near])
                prior = residuals.PRIORS[metric]
                errors[far] -= prior.mean_at(self.locations.take(far), self.locations.take(near), weights)
        return np.asarray(errors[outside])

    def seen(self, kept: Mask) -> Seen:
        """What a refit to these entries saw."""
        return Seen(Counter(self.places[i] for i in np.flatnonzero(kept)))

    def splits(self) -> Iterator[tuple[str, Mask, Mask]]:
        """What is left out: in words, the entries kept, and those that the refit is asked for."""
        for name in sorted(set(self.repositories[self.later])):
            base = self.repositories != name
            wanted = self.later & (self.repositories == name)
            yield name, base, wanted
            for trait in TRAITS:
                values = np.array([getattr(place, trait) for place in self.places])
                for value in sorted(set(values[wanted].tolist())):
                    kept = base & (values != value)
                    if 0 < kept.sum() < base.sum():
                        yield f"{name} {trait} {value}", kept, wanted & (values == value)


def errors_by_distance(refits: Refits, say: Say) -> list[Error]:
    """Errors of the rows gathered later, at every distance that leaving out can make.

    Those of the sources before would be too small even with a source left out: priors were set in sight of them.
    """
    out: list[Error] = []
    o = refits.observations
    for name, kept, wanted in refits.splits():
        seen = refits.seen(kept)
        values = refits.errors(kept, wanted)
        for i, value in zip(np.flatnonzero(wanted).tolist(), values.tolist(), strict=True):
            place: Place = refits.places[i]
            out.append(
                Error(
                    row=refits.rows[o.row[i]].id,
                    metric=str(o.metric[i]),
                    distance=seen.distance(replace(place, repository="")),
                    repository=str(refits.repositories[i]),
                    group="|".join((str(refits.repositories[i]), place.vendor, place.stack, place.load)),
                    model=model_key(refits.rows[o.row[i]].model),
                    value=round(value, 4),
                )
            )
        say(f"  without {name}: {len(values)} errors by {int(kept.sum())} figures")
    return out

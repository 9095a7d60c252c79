"""What no prediction may break, over the whole catalog x every preset: bounds, MFU, intervals.

Two layouts of each pair, drawn at random among the legal ones and not the best, so that odd ones are met too, with the
shipped calibration and its measurements. `make test` has an eighth of the presets for each chip, another for the next.
"""

import random
from functools import cache

import pytest

from chipwise import load as load_workload
from chipwise.catalog import load
from chipwise.catalog.calibration import load_calibration
from chipwise.compare.terms import at_least
from chipwise.errors import InputError, Refusal
from chipwise.layout import enumerate_layouts
from chipwise.layout.splits import domain
from chipwise.predict.prediction import predict
from chipwise.workload.presets import preset, preset_names
from lane import ALL, share

PRECISIONS = ("bf16", "fp16", "fp32")  # the first that a chip has
COUNTS = (8, 64)
SHARE = 8
TRAINING = [chip for chip in load().chips.values() if chip.trains]


@cache
def workload(name, precision):
    """A run of a preset with steps of 256 samples; None where it can't be trained."""
    model = preset(name)
    flags = {"batch": 256, "precision": precision}
    try:
        if model.vocab:
            return load_workload(name, **flags, sequence=min(model.context or 512, 512), tokens="1B")
        return load_workload(name, **flags, samples="1M")
    except (InputError, Refusal):
        return None


@cache
def legal(name, precision, count, shape, reach):
    run = workload(name, precision)
    return enumerate_layouts(run.model, run.train, PLACES[count, shape, reach])


PLACES = {}


def predictions(chip):
    """Predictions of every preset on 8 and on 64 chips."""
    rng = random.Random(chip.id)
    precision = next((p for p in PRECISIONS if p in chip.peak), None)
    for name in share(preset_names(), SHARE, TRAINING.index(chip)):
        run = workload(name, precision)
        if run is None:
            continue
        for count in COUNTS:
            acc = at_least(chip, count)
            key = (acc.count, acc.shape, domain(acc))
            PLACES.setdefault(key, acc)
            try:
                layouts = legal(name, precision, *key).layouts
            except Refusal:
                continue
            yield predict(run, acc, layouts.at(rng.randrange(len(layouts))), load_calibration())


@pytest.mark.sampled
@pytest.mark.parametrize("chip", TRAINING, ids=lambda c: c.id)
def test_no_prediction_is_faster_than_physics(chip):
    met = 0
    for said in predictions(chip):
        met += 1
        where = f"{said.workload.name} on {said.accelerators} with {said.layout}"
        assert said.bound_s <= said.step.value * (1 + 1e-9), where
        assert 0 < said.mfu <= 1, where
        assert 0 < said.step.low <= said.step.value <= said.step.high, where
        assert said.step.low >= said.bound_s * (1 - 1e-9), where
    assert met * len(TRAINING) * (1 if ALL else SHARE) >= 18_000, met  # some presets can't be trained

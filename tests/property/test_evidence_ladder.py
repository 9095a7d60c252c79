"""The ladder of evidence is right side up: what nobody measured is no surer than what was measured."""

from __future__ import annotations

from math import log

import pytest

import chipwise as cw
from chipwise.errors import ChipwiseError
from chipwise.predict.prediction import Prediction

CHIPS = ("h200", "h100", "mi300x", "rtx-4090", "v5e", "v6e", "trainium2")
IMAGES = ("vit-b-16", "vit-l-16", "vit-h-14", "resnet-50", "dit-xl-2")
TOKENS = ("llama-3.2-1b", "mixtral-8x7b", "mamba-2.8b", "bert-large", "t5-large")


def predictions(names: tuple[str, ...], chips: int, **work: object) -> dict[str, list[Prediction]]:
    """Steps, by chip and evidence."""
    out: dict[str, list[Prediction]] = {}
    for name in names:
        for chip in CHIPS:
            for batch in (64, 256):
                try:
                    answer = cw.predict(cw.load(name, batch=batch, steps=10, **work), on=f"{chip}:{chips}")
                except ChipwiseError:
                    continue
                out.setdefault(f"{chip} {answer.step.evidence}", []).append(answer)
    return out


def high(answer: Prediction) -> float:
    """The logarithm of the high end over the value; the low one is also held by what physics allows."""
    return log(answer.step.high / answer.step.value)


@pytest.mark.parametrize(("names", "chips", "work"), [(IMAGES, 1, {}), (TOKENS, 8, {"sequence": 512})])
def test_bounded_is_never_narrower_than_modelled_for_the_same_chip_and_kind(names, chips, work):
    by = predictions(names, chips, **work)
    both = 0
    for chip in CHIPS:
        modelled, bounded = by.get(f"{chip} modelled", []), by.get(f"{chip} bounded", [])
        both += bool(modelled and bounded)
        assert max(map(high, modelled), default=0.0) <= min(map(high, bounded), default=9.0) + 1e-9, chip
    assert both >= 1


def test_a_chip_that_nobody_measured_is_no_surer_than_one_that_was():
    by = predictions(IMAGES, 1)
    measured = max(high(answer) for answer in by["h200 modelled"])
    for place in ("mi300x bounded", "v5e bounded"):
        assert min(map(high, by[place])) >= measured - 1e-9

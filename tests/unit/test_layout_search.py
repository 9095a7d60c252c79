"""What a search returns and how it refuses."""

from itertools import pairwise

import pytest

from chipwise.catalog import parse
from chipwise.catalog.calibration import Calibration
from chipwise.errors import DoesNotFit, PrecisionMissing
from chipwise.layout import HEADROOM, RESERVE, search, smallest_that_holds
from chipwise.predict.model.training import costs
from chipwise.workload.model import Train, Workload
from chipwise.workload.presets import preset

UNCALIBRATED = Calibration()


def job(name="llama-3.1-8b", batch=128, sequence=8192, **train):
    return Workload(name, preset(name), Train(batch, sequence, **train))


def test_the_best_fits_and_leads_the_list():
    result = search(job(), parse("h100:64"), UNCALIBRATED)
    assert (
        result.best == result.top[0]
        and result.front[0].seconds <= result.best.seconds <= result.front[0].seconds * 1.01
    )
    assert result.limit == pytest.approx(parse("h100").chip.usable_bytes * (1 - RESERVE - HEADROOM))
    assert result.required <= result.headroom(result.best) < result.limit
    assert result.evaluated > result.too_large > 0


def test_the_list_holds_different_splits():
    top = search(job(), parse("h100:64"), UNCALIBRATED, top=12).top
    kinds = {(f.layout.tp, f.layout.pp, f.layout.cp, f.layout.ep, f.layout.zero == 3, f.layout.shard) for f in top}
    assert len(top) == 12 and len(kinds) == 12


def test_the_front_trades_time_for_memory():
    front = search(job(), parse("h100:64"), UNCALIBRATED).front
    assert len(front) > 2
    for faster, smaller in pairwise(front):
        assert faster.seconds < smaller.seconds and faster.bytes > smaller.bytes


def test_what_does_not_fit_is_refused_with_the_slice_that_would_hold_it():
    with pytest.raises(DoesNotFit, match=r"does not fit on h100:8: .* needs .* a chip, .* the smallest that holds"):
        search(job("llama-3.1-70b", 64), parse("h100:8"), UNCALIBRATED)


def test_the_smallest_slice_that_holds_a_model_is_a_legal_one():
    holds = smallest_that_holds(job("llama-3.1-70b", 1024), parse("v5e:8").chip, UNCALIBRATED)
    assert holds is not None and holds.shape and parse(str(holds)) == holds
    half = parse(f"v5e:{holds.count // 2}")
    with pytest.raises(DoesNotFit):
        search(job("llama-3.1-70b", 1024), half, UNCALIBRATED)


def test_a_batch_too_small_for_any_slice_says_that_none_holds_it():
    with pytest.raises(DoesNotFit, match="no slice of t4 up to 65,536 chips holds it"):
        search(job("resnet-50", 1, 1, precision="fp32"), parse("t4:1"), UNCALIBRATED, headroom=0, reserve=0.9999)


def test_a_precision_the_chip_lacks_is_refused():
    with pytest.raises(PrecisionMissing):
        search(job(precision="fp8"), parse("a100-80gb:64"), UNCALIBRATED)


def test_adapters_need_less_than_training_everything():
    lora = search(job(lora_rank=16), parse("h100:8"), UNCALIBRATED)
    everything = search(job(), parse("h100:8"), UNCALIBRATED)
    assert lora.least_bytes < everything.least_bytes


@pytest.mark.parametrize(
    ("train", "moved"),
    [
        ({}, 30.0),  # master and two moments read and written in fp32, gradient read, bf16 weights written
        ({"optimizer": "sgd"}, 22.0),
        ({"state_precision": "bf16"}, 14.0),  # no master: the weights are read and written
        ({"precision": "fp32"}, 28.0),
    ],
)
def test_the_optimiser_moves_what_it_keeps(train, moved):
    assert costs(Train(8, 128, **train), preset("llama-3.1-8b")).optimizer_bytes == moved


def test_adapters_train_a_share_and_freeze_the_rest():
    found = costs(Train(8, 128, lora_rank=16), preset("llama-2-70b"))
    assert found.frozen and found.trained == pytest.approx(65_536_000 / 68_976_648_192, rel=1e-3)

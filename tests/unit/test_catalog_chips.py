"""Chips, slices and offers as the rest of the product uses them."""

import pytest

from chipwise.catalog import load, scaled, with_figures, wraps


def test_load_reads_once():
    assert load() is load()


def test_the_catalog_cannot_be_changed_by_accident():
    chip = load().chips["h100"]
    with pytest.raises(TypeError):
        chip.peak["bf16"] = 1.0  # type: ignore[index]
    with pytest.raises(AttributeError):
        chip.bandwidth = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["h100", "v5p", "mi300x"])
def test_scaled_multiplies_every_figure_but_counts(name):
    chip = load().chips[name]
    twice = scaled(chip, 2.0)
    assert twice.peak["bf16"] == 2 * chip.peak["bf16"]
    for field in ("memory_bytes", "usable_bytes", "bandwidth", "onchip_bytes", "clock_hz", "tdp_w", "idle_w"):
        assert getattr(twice, field) == 2 * getattr(chip, field)
    for field in ("scale_up", "link", "scale_out", "host_link"):
        assert getattr(twice.fabric, field) == 2 * getattr(chip.fabric, field)
    assert (twice.cores, twice.fabric.domain) == (chip.cores, chip.fabric.domain)
    assert scaled(chip, 1.0) == chip


def test_with_figures_keeps_the_sources():
    chip = load().chips["h100"]
    changed = with_figures(chip, bandwidth=4e12)
    assert changed.bandwidth == 4e12 and changed.figures == chip.figures


def test_runs_says_which_precisions_a_chip_has():
    chips = load().chips
    assert chips["h100"].runs("fp8") and not chips["a100-80gb"].runs("fp8")
    assert not chips["v5e"].runs("fp16") and not chips["v100"].runs("bf16")


@pytest.mark.parametrize(
    ("name", "shape", "rings"),
    [
        ("v5e", (4, 4), (False, False)),
        ("v5e", (8, 16), (False, True)),
        ("v5e", (16, 16), (True, True)),
        ("v3", (16, 32), (False, True)),
        ("v5p", (2, 2, 1), (False, False, False)),
        ("v5p", (2, 4, 4), (False, False, False)),
        ("v5p", (4, 4, 8), (True, True, True)),
        ("v7x", (4, 4, 4), (True, True, True)),
        ("h100", (8,), (False,)),
    ],
)
def test_wraps(name, shape, rings):
    assert wraps(load().chips[name], shape) == rings


def test_the_most_cubic_shape_is_chosen():
    legal = load().slices["v5p"]
    assert legal.shape_for(512) == (8, 8, 8)
    assert legal.shape_for(6144) == (16, 16, 24)
    assert legal.shape_for(5) is None
    assert (4, 4, 32) in legal.shapes_for(512)


def test_offer_prices_are_per_chip():
    offer = next(o for o in load().offers if o.instance == "v5p-1024")
    assert offer.chips == 512 and 3 < offer.ondemand_usd_per_chip_hour < 6

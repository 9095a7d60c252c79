"""Edge data: every figure has a source and a date, nothing is out of range, and data-center rankings don't see it."""

import csv
import re
from importlib import resources

import pytest

from chipwise.catalog import load
from chipwise.catalog.edge import edge_devices, find_device
from chipwise.catalog.edge_models import edge_models, find_edge_model
from chipwise.catalog.files import rows, tables
from chipwise.compare import every_chip
from chipwise.validate import edge_rows
from chipwise.validate.score import published

FIGURES = list(rows("edge_figures.csv"))
ROWS = published()[0].parent / "edge.csv"
UNITS = {
    "peak": "FLOP/s",
    "dla_int8": "FLOP/s",
    "bandwidth": "bytes/s",
    "link": "bytes/s",
    "memory_bytes": "bytes",
    "usable_bytes": "bytes",
    "onchip_bytes": "bytes",
    "cores": "count",
    "clock_hz": "Hz",
    "tdp_w": "W",
    "mode_w": "W",
    "mode_hz": "Hz",
    "price_usd": "USD",
}


def test_every_figure_has_unit_source_and_date():
    for row in FIGURES:
        assert row["unit"] == UNITS[row["figure"].split(".")[0]], row
        assert float(row["value"]) > 0, row
        assert row["source"].strip(), row
        assert row["date"].strip(), row


def test_figures_are_of_known_devices_and_none_twice():
    names = {entry["id"] for entry in tables("edge_devices.toml", "device")}
    assert {row["device"] for row in FIGURES} <= names
    keys = [(row["device"], row["figure"]) for row in FIGURES]
    assert len(keys) == len(set(keys))


def test_no_figure_points_at_a_private_index():
    assert not [row for row in FIGURES if re.search(r"stored file|chips\.csv", row["source"] + row["note"])]


@pytest.mark.parametrize("device", edge_devices().values(), ids=lambda device: device.id)
def test_a_device_is_consistent(device):
    peak = device.peak
    if {"int8", "fp16"} <= peak.keys():
        assert peak["int8"] >= peak["fp16"]
    assert device.full.clock == 1.0
    assert all(0 < mode.clock <= 1 for mode in device.modes)
    assert find_device(device.id) is device
    if device.tdp_w:
        assert all(mode.watts <= device.tdp_w for mode in device.modes)


def test_edge_devices_are_in_no_data_center_ranking():
    chips = {candidate.chip.id for candidate in every_chip()}
    assert chips <= set(load().chips)
    own = {d.id for d in edge_devices().values() if d.kind in ("soc", "asic")}
    assert not own & set(load().chips)


@pytest.mark.parametrize("model", edge_models().values(), ids=lambda model: model.id)
def test_a_model_has_operations_weights_and_a_source(model):
    assert model.ops > 0
    assert model.params > 0
    assert model.passes >= 1
    assert model.precision in ("int8", "fp16", "fp4")
    assert model.source
    assert model.date
    assert find_edge_model(model.id) is model


def test_published_edge_rows_name_their_source():
    with ROWS.open(encoding="utf-8") as file:
        every = list(csv.DictReader(file))
    assert every[0].keys() >= edge_rows.COLUMNS
    assert all(row["source_repo"] and row["source_date"] for row in every)
    assert len({row["id"] for row in every}) == len(every)
    assert sum(map(edge_rows.eligible, every)) > 0.95 * len(every)


def test_figures_of_data_sheets_that_nobody_read_are_marked():
    """A source without an address can't be looked up: its row says that it is not verified."""
    text = resources.files("chipwise.catalog").joinpath("data", "edge_figures.csv").read_text(encoding="utf-8")
    sheets = [row for row in csv.DictReader(text.splitlines()) if row["source"].startswith("NVIDIA A")]
    assert sheets and all(row["note"].startswith("not verified") for row in sheets)

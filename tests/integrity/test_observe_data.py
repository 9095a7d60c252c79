"""The data of `observe`: every line has its source and date, and says each thing once."""

from datetime import date

import pytest

from chipwise.observe.data_files import rows
from chipwise.observe.exporters import mapping
from chipwise.observe.health.playbook import advice, device_series
from chipwise.observe.health.records import Condition
from chipwise.observe.records import FaultClass

FILES = {
    "xids.csv": ("xid",),
    "playbook.csv": ("condition", "fault"),
    "device_series.csv": ("series",),
    "series.csv": ("metric",),
    "versions.csv": ("label", "before"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_sourced_dated_and_there_once(name):
    lines = rows(name)
    assert all(line["source"] and date.fromisoformat(line["date"]) <= date(2030, 1, 1) for line in lines)
    keys = [tuple(line[key] for key in FILES[name]) for line in lines]
    assert len(set(keys)) == len(keys) > 0
    assert all(value == value.strip() for line in lines for value in line.values())


def test_there_is_advice_for_every_condition_and_fault():
    for condition in Condition:
        if condition is not Condition.FAULT:
            assert advice(condition).action
    for fault in FaultClass:
        assert advice(Condition.FAULT, fault).action


def test_what_tells_of_faults_is_kept_too_where_it_has_a_series():
    kept = {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "gpu_ecc_uncorrect_total"}
    assert kept <= set(mapping()) & {one.series for one in device_series()}

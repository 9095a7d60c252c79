"""Configs of every decoder that is read, by name or by its fields, against the classes of transformers.

`scripts/reference_configs.py` counted: each architecture's own class, built from its own default config.
"""

import json
from pathlib import Path

import pytest

from chipwise.workload.hf import _READERS, model_from_config
from chipwise.workload.params import count

ROWS = json.loads(Path(__file__).with_name("reference_configs.json").read_text())["rows"]
# a config doesn't say whether norms and gates have weights: what is counted by fields alone may lack those
TOLERANCE = {True: 0.0055, False: 0.01}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["config"]["model_type"])
def test_a_config_is_counted_as_its_own_class_is(row):
    known = row["config"]["model_type"] in _READERS
    assert count(model_from_config(row["config"])).total == pytest.approx(row["parameters"], rel=TOLERANCE[known])


def test_most_are_read_by_their_fields_alone():
    kinds = {row["config"]["model_type"] for row in ROWS}
    assert len(kinds - set(_READERS)) > 35 and {"falcon_mamba", "qwen3_next", "olmo2", "granite", "smollm3"} <= kinds
